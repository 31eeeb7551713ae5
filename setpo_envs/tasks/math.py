"""``setpo/MATH-v0`` and ``setpo/MATH500-v0``: the docstrings of the classes are their specifications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..card import Card
from ..datasets.maths import MATH, MATH500, MATH_SUBJECTS
from ..datasets.problem import Dataset
from ..datasets.table import load
from .questions import QuestionEnv


class MATHEnv(QuestionEnv):
    r"""MATH: competition problems in seven subjects and five levels (Hendrycks et al. 2021, "Measuring Mathematical Problem Solving").

    Example::

        import gymnasium as gym
        import setpo_envs

        env = gym.make("setpo/MATH-v0", source="embedded", subject="Algebra", group_size=3)
        prompt, info = env.reset(options={"index": 0})
        _, reward, _, _, info = env.step(["\\boxed{7}", "\\boxed{x = 7}", "\\boxed{3.8}"])
        assert info["group"]["rewards"].tolist() == [1.0, 1.0, 0.0]

    Prompt, action, info and the common arguments: :class:`~setpo_envs.tasks.questions.QuestionEnv`.

    Reward
        1 if the answer has the value of the gold: the last box of the row's solution, with the boxes that form one answer with
        it. Values are compared, not strings; docs/verifiers.md has the rules for lists, intervals, units, decimals and words. A
        mode is the value of the answer.
    Splits
        "train" (7,500 rows, the default) and "test" (5,000); embedded: 21 and 14.
    Data
        EleutherAI/hendrycks_math, MIT, its seven configurations one after the other; columns ``problem``, ``level``, ``type``,
        ``solution``. Other copies: DigitalLearningGmbH/MATH-lighteval; HuggingFaceH4/MATH-500 (only "test"). Metadata of a problem:
        ``subject`` and ``level`` (none where the row says "Level ?").
        Two rows of "train" have an empty box and are left out. In five rows of "test" the last box is not the answer, or not the
        only one: ``setpo_envs.datasets.maths.MATH_CORRECTIONS`` has their golds and why.

    Args:
        subject: Only problems of this subject, or of these: "Algebra", ... or the name of the hub configuration, "algebra", ...
        level: Only problems of this level, or of these: 1 to 5.
        source, split, prompt_format, ...: Those of ``QuestionEnv``.

    Version history
        v0: first version.
    """

    card = Card(
        data="`EleutherAI/hendrycks_math`, all seven subjects",
        rows="train 7,500, test 5,000",
        verifier="`math`",
        licence="MIT",
        example={"source": "embedded"},
    )
    table = MATH

    @classmethod
    def make_dataset(
        cls,
        source: Any = "hub",
        *,
        split: str | None = None,
        prompt_format: str = "boxed",
        subject: str | Sequence[str] | None = None,
        level: int | Sequence[int] | None = None,
    ) -> Dataset:
        subjects = [subject] if isinstance(subject, str) else subject
        for name in subjects or ():
            if name not in MATH_SUBJECTS and name not in MATH_SUBJECTS.values():
                raise ValueError(f"expected subject among {', '.join(MATH_SUBJECTS.values())}, got {name!r}")
        where = {"subject": subjects and [MATH_SUBJECTS.get(name, name) for name in subjects], "level": level}
        return load(cls.table, source, split=split, prompt_format=prompt_format, where=where)


class MATH500Env(MATHEnv):
    r"""MATH-500: the 500 problems of MATH's test split on which most results are published (Lightman et al. 2023).

    Example::

        import gymnasium as gym
        import setpo_envs

        env = gym.make("setpo/MATH500-v0", source="embedded", group_size=3)
        prompt, info = env.reset(options={"index": 0})
        _, reward, _, _, info = env.step(["\\boxed{18}", "\\boxed{18.0}", "\\boxed{14}"])
        assert info["group"]["rewards"].tolist() == [1.0, 1.0, 0.0]

    As :class:`MATHEnv`, whose arguments it takes, with other rows.

    Splits
        "test" only (500 rows); embedded: 14.
    Data
        HuggingFaceH4/MATH-500, MIT; columns ``problem``, ``solution``, ``answer``, ``subject``, ``level``, ``unique_id``.

    Version history
        v0: first version.
    """

    card = Card(
        data="`HuggingFaceH4/MATH-500`",
        rows="test 500",
        verifier="`math`",
        licence="MIT",
        example={"source": "embedded"},
    )
    table = MATH500
