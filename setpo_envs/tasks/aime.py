"""``setpo/AIME-v0``: the docstring of :class:`AIMEEnv` is its specification."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..card import Card
from ..datasets.maths import AIME
from ..datasets.problem import Dataset
from ..datasets.table import load
from .questions import QuestionEnv


class AIMEEnv(QuestionEnv):
    r"""AIME: the American Invitational Mathematics Examination, whose answers are integers from 0 to 999.

    Example::

        import gymnasium as gym
        import setpo_envs

        env = gym.make("setpo/AIME-v0", source="embedded", group_size=3)
        prompt, info = env.reset(options={"index": 0})
        _, reward, _, _, info = env.step(["\\boxed{016}", "\\boxed{16}", "\\boxed{60}"])
        assert info["group"]["rewards"].tolist() == [1.0, 1.0, 0.0]

    Prompt, action, info and the common arguments: :class:`~setpo_envs.tasks.questions.QuestionEnv`.

    Reward
        1 if the answer is the gold integer: ``025`` is 25, and so is ``25^\circ``. A mode is the value of the answer.
    Splits
        Each year's 30 problems are one split, which the copies call "train" or "test": leave ``split`` out. Embedded: 24.
    Data
        2024: HuggingFaceH4/aime_2024; 2025: math-ai/aime25. Neither page states a licence; the problems are (c) Mathematical
        Association of America. Other copies: AI-MO/aimo-validation-aime (2022 to 2024), Maxwell-Jia/AIME_2024,
        math-ai/aime24, opencompass/AIME2025, MathArena/aime_2025, yentinglin/aime_2025. The copies word the problems of 2025
        differently; problem II-5 of 2025 needs a figure that none has. Metadata of a problem: ``year``.

    Args:
        year: 2024, 2025, or None for both (of a file: for all).
        source, split, prompt_format, ...: Those of ``QuestionEnv``.

    Version history
        v0: first version.
    """

    card = Card(
        data="`HuggingFaceH4/aime_2024`, `math-ai/aime25`; `year=`",
        rows="30 a year",
        verifier="`aime`",
        licence="none stated; problems (c) MAA",
        example={"source": "embedded"},
    )
    table = AIME

    @classmethod
    def make_dataset(
        cls, source: Any = "hub", *, split: str | None = None, prompt_format: str = "boxed", year: int | None = None
    ) -> Dataset:
        table = cls.table
        if year is not None and isinstance(source, str) and source == "hub":  # then the other year's data set need not be there
            table = replace(table, hub=tuple(hub_set for hub_set in table.hub if hub_set.metadata["year"] == year))
            if not table.hub:
                years = ", ".join(str(hub_set.metadata["year"]) for hub_set in cls.table.hub)
                raise ValueError(f"expected year among {years}, or None for both, got {year!r}")
        return load(table, source, split=split, prompt_format=prompt_format, where={"year": year})
