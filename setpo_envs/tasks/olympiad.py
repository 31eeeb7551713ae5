"""``setpo/Olympiad-v0``: the docstring of :class:`OlympiadEnv` is its specification."""

from __future__ import annotations

from ..card import Card
from ..datasets.maths import OLYMPIAD
from .questions import QuestionEnv


class OlympiadEnv(QuestionEnv):
    r"""OlympiadBench: open-ended olympiad mathematics in English, text only (He et al. 2024).

    Example::

        import gymnasium as gym
        import setpo_envs

        env = gym.make("setpo/Olympiad-v0", source="embedded", group_size=3)
        prompt, info = env.reset(options={"index": 1})
        right = "\\boxed{(7,42),(8,24),(9,18),(10,15),(12,12)}"
        _, reward, _, _, info = env.step([right, "\\boxed{(12,12),(7,42),(8,24),(9,18),(10,15)}", "\\boxed{(12,12)}"])
        assert info["group"]["rewards"].tolist() == [1.0, 1.0, 0.0]  # one of five answers is not enough

    Prompt, action, info and the common arguments: :class:`~setpo_envs.tasks.questions.QuestionEnv`. As the benchmark's own prompt
    does, ours adds the unit that the answer is wanted in and says where several answers are asked for.

    Reward
        1 if the answer has the value of the gold: a number, an expression, a tuple, an interval, or all of several answers in any
        order. A row's ``error`` is the tolerance, absolute, for its answer. A unit may be left out of the answer; another unit
        than the one asked for is wrong. A mode is the value of the answer.
    Splits
        "train" only, as the hub calls it (674 rows, all of them meant for evaluation); embedded: 28.
    Data
        Hothan/OlympiadBench, configuration ``OE_TO_maths_en_COMP``, Apache-2.0; columns ``question``, ``final_answer``,
        ``is_multiple_answer``, ``unit``, ``error``, ``context``, ... Another copy: math-ai/olympiadbench ("test"), in either of its two
        schemas. Rows with pictures are left out. Row 2608 asks for a value that only the problem before it gives ("TNYWR") and is
        kept, so that results compare. Metadata of a problem: ``answer_type``, ``subfield``.

    Version history
        v0: first version.
    """

    card = Card(
        data="`Hothan/OlympiadBench`, `OE_TO_maths_en_COMP`",
        rows="train 674",
        verifier="`olympiad`",
        licence="Apache-2.0",
        example={"source": "embedded"},
    )
    table = OLYMPIAD
