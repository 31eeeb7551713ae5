"""What a verifier says about one completion."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

MAX_REASON = 500  # characters of what went wrong in a verifier


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
    """Reward and evidence for one completion.

    Raises TypeError for an answer, key or reason that is no text, ValueError for a reward that does not fit the status.
    """

    reward: float  # 1.0 for CORRECT, else 0.0
    status: Status
    answer: str | None  # the extracted answer, cut to a bounded length; None where none was found
    mode_key: str | None  # canonical key of the answer, right or wrong; None where it is not well-formed
    reason: str  # one of a small set that the task's verifier documents

    def __post_init__(self) -> None:
        if self.reward != (1.0 if self.status == Status.CORRECT else 0.0):
            raise ValueError(f"expected reward 1.0 with CORRECT and 0.0 with every other status, got {self.reward!r} with {self.status!r}")
        for name in ("answer", "mode_key", "reason"):
            value = getattr(self, name)
            if type(value) is not str and value is not None:
                if not isinstance(value, str):
                    raise TypeError(f"expected {name} as a str or None, got {type(value).__name__}")
                object.__setattr__(self, name, str(value))  # nothing but the text: a verdict travels between processes

    @classmethod
    def failure(cls, reason: str) -> Verdict:
        """The verdict ERROR, with ``reason`` cut to ``MAX_REASON`` characters."""
        return cls(0.0, Status.ERROR, None, None, reason[:MAX_REASON])

    @property
    def valid(self) -> bool:
        """False where no verdict was reached (TIMEOUT, ERROR): such a completion must not count as wrong."""
        return self.status < Status.TIMEOUT
