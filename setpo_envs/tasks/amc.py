"""``setpo/AMC-v0``: the docstring of :class:`AMCEnv` is its specification."""

from __future__ import annotations

from ..card import Card
from ..datasets.maths import AMC
from .questions import QuestionEnv


class AMCEnv(QuestionEnv):
    """AMC: problems of the American Mathematics Competition 12 of 2023, asked without their five choices.

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
