"""``setpo/GSM8K-v0``: the docstring of :class:`GSM8KEnv` is its specification."""

from __future__ import annotations

from ..card import Card
from ..datasets.maths import GSM8K
from .questions import QuestionEnv


class GSM8KEnv(QuestionEnv):
    r"""GSM8K: word problems of grade-school arithmetic (Cobbe et al. 2021, "Training Verifiers to Solve Math Word Problems").

    Example::

        import gymnasium as gym
        import setpo_envs

        env = gym.make("setpo/GSM8K-v0", source="embedded", group_size=3)
        prompt, info = env.reset(options={"index": 0})
        _, reward, _, _, info = env.step(["That leaves \\boxed{19}.", "#### 19", "\\boxed{84}"])
        assert info["group"]["rewards"].tolist() == [1.0, 1.0, 0.0]

    Prompt, action, info and the common arguments: :class:`~setpo_envs.tasks.questions.QuestionEnv`.

    Reward
        1 if the answer has the value of the gold, the number behind the last ``####`` of the row's solution. In lenient mode a
        text without any marker is judged by its last number. A mode is the value of the answer.
    Splits
        "train" (7,473 rows, the default) and "test" (1,319); embedded: 16 and 12.
    Data
        openai/gsm8k, configuration ``main``, MIT; columns ``question``, ``answer``. Thousands separators are taken out of the gold.

    Version history
        v0: first version.
    """

    card = Card(
        data="`openai/gsm8k`",
        rows="train 7,473, test 1,319",
        verifier="`gsm8k`",
        licence="MIT",
        example={"source": "embedded"},
    )
    table = GSM8K
