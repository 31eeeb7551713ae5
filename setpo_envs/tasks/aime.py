"""``setpo/AIME-v0``: the docstring of :class:`AIMEEnv` is its specification."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..datasets.maths import AIME
from .questions import QuestionEnv


class AIMEEnv(QuestionEnv):
    r"""AIME: the American Invitational Mathematics Examination, whose answers are integers from 0 to 999.

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
        options: Those of ``QuestionEnv``.

    Version history
        v0: first version.
    """

    def __init__(self, *, year: int | None = None, **options: Any) -> None:
        table = AIME
        if year is not None and options.get("source", "hub") == "hub":
            table = replace(AIME, hub=tuple(hub_set for hub_set in AIME.hub if hub_set.metadata["year"] == year))
            if not table.hub:
                raise ValueError(
                    f"expected year among {', '.join(str(s.metadata['year']) for s in AIME.hub)}, or None for both, got {year!r}"
                )
        super().__init__(table, where={"year": year}, **options)
