"""``setpo/AMC-v0``: the docstring of :class:`AMCEnv` is its specification."""

from __future__ import annotations

from typing import Any

from ..datasets.maths import AMC
from .questions import QuestionEnv


class AMCEnv(QuestionEnv):
    """AMC: problems of the American Mathematics Competition 12 of 2022 and 2023, with their choices taken away.

    Prompt, action, info and the common arguments: :class:`~setpo_envs.tasks.questions.QuestionEnv`.

    Reward
        1 if the answer has the value of the gold, a number (27.0 in the data is the gold 27). A mode is the value of the answer.
    Splits
        "test" only (40 rows); embedded: 24.
    Data
        math-ai/amc23; columns ``id``, ``question``, ``answer``, ``url``. Its page states no licence; the problems are (c) Mathematical
        Association of America. Another copy: AI-MO/aimo-validation-amc (83 rows, "train").

    Args:
        options: Those of ``QuestionEnv``.

    Version history
        v0: first version.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(AMC, **options)
