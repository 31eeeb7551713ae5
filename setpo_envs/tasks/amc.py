"""``setpo/AMC-v0``: the docstring of :class:`AMCEnv` is its specification."""

from __future__ import annotations

from ..card import Card
from ..datasets.maths import AMC
from .questions import QuestionEnv


class AMCEnv(QuestionEnv):
    r"""AMC: problems of the American Mathematics Competition 12 of 2023, asked without their five choices.

    Example::

        import gymnasium as gym
        import setpo_envs

        env = gym.make("setpo/AMC-v0", source="embedded", group_size=3)
        prompt, info = env.reset(options={"index": 0})
        _, reward, _, _, info = env.step(["\\boxed{30}", "\\boxed{30\\text{ pens}}", "\\boxed{60}"])
        assert info["group"]["rewards"].tolist() == [1.0, 1.0, 0.0]

    Prompt, action, info and the common arguments: :class:`~setpo_envs.tasks.questions.QuestionEnv`.

    Reward
        1 if the answer has the value of the gold, a number (27.0 in the data is the gold 27). A mode is the value of the answer.
    Splits
        "test" only (40 rows); embedded: 24.
    Data
        math-ai/amc23; columns ``id``, ``question``, ``answer``, ``url``. Its page states no licence; the problems are (c) Mathematical
        Association of America. Another copy: AI-MO/aimo-validation-amc (83 rows of 2022 and 2023, "train").

    Version history
        v0: first version.
    """

    card = Card(
        data="`math-ai/amc23`",
        rows="test 40",
        verifier="`math`",
        licence="none stated; problems (c) MAA",
        example={"source": "embedded"},
    )
    table = AMC
