"""``setpo/Minerva-v0``: the docstring of :class:`MinervaEnv` is its specification."""

from __future__ import annotations

from ..card import Card
from ..datasets.maths import MINERVA
from .questions import QuestionEnv


class MinervaEnv(QuestionEnv):
    r"""Minerva: undergraduate problems from the sciences with a value, an expression or an equation as answer (Lewkowycz et al. 2022).

    Example::

        import gymnasium as gym
        import setpo_envs

        env = gym.make("setpo/Minerva-v0", source="embedded", group_size=3)
        prompt, info = env.reset(options={"index": 1})
        _, reward, _, _, info = env.step(["\\boxed{6.0 \\times 10^{-7}}", "\\boxed{6e-7 \\mathrm{~m}}", "\\boxed{1.7e6}"])
        assert info["group"]["rewards"].tolist() == [1.0, 1.0, 0.0]

    Prompt, action, info and the common arguments: :class:`~setpo_envs.tasks.questions.QuestionEnv`.

    Reward
        1 if the answer has the value of the gold. The data define no tolerance; the verifier's rules for decimals apply
        (docs/verifiers.md): a decimal equals another to a relative 1e-6, an exact answer the decimal that it rounds to. A mode is
        the value of the answer.
    Splits
        "test" only (272 rows); embedded: 24.
    Data
        math-ai/minervamath; columns ``question``, ``answer``. Its page states no licence; the questions are from MIT OpenCourseWare
        (CC BY-NC-SA).

    Version history
        v0: first version.
    """

    card = Card(
        data="`math-ai/minervamath`",
        rows="test 272",
        verifier="`math`",
        licence="none stated; questions CC BY-NC-SA",
        example={"source": "embedded"},
    )
    table = MINERVA
