"""What a verifier says about one completion."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Status(IntEnum):
    """Outcome of a verification; the numbers are stored in arrays and files and never change."""

    WRONG = 0  # an answer was found and is wrong
    CORRECT = 1
    NO_ANSWER = 2  # no answer was found
    TRUNCATED = 3  # cut off by the token limit before an answer (flagged by whoever generated the text)
    TIMEOUT = 4  # no verdict: time ran out
    ERROR = 5  # no verdict: the verifier failed


@dataclass(frozen=True, slots=True)
class Verdict:
    """Reward and evidence for one completion."""

    reward: float  # 1.0 for CORRECT, else 0.0
    status: Status
    answer: str | None  # the extracted answer, cut to a bounded length; None where none was found
    mode_key: str | None  # canonical key of the answer, right or wrong; None where it is not well-formed
    reason: str  # one of a small set that the task's verifier documents

    @property
    def valid(self) -> bool:
        """False where no verdict was reached (TIMEOUT, ERROR): such a completion must not count as wrong."""
        return self.status < Status.TIMEOUT
