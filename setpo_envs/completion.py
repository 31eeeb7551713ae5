"""A completion: a text, and what the agent that sampled it knows of it besides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


class Completion(str):
    """A completion and what the agent knows of it besides its text. It is a ``str``; a plain ``str`` knows nothing besides.

    Args:
        text: What was sampled.
        truncated: Whether it was cut off before its end.
        embedding: A vector (d,) for the embedder "policy".
        n_tokens: How many tokens were sampled, for shapers that weigh length.
    """

    __slots__ = ("truncated", "embedding", "n_tokens")
    truncated: bool
    embedding: np.ndarray | None
    n_tokens: int | None

    def __new__(cls, text: str, truncated: bool = False, embedding: np.ndarray | None = None, n_tokens: int | None = None) -> Completion:
        if not isinstance(text, str) or not isinstance(truncated, bool):
            raise TypeError(f"expected a text and truncated as a bool, got {text!r:.100} and {truncated!r}")
        if n_tokens is not None and (isinstance(n_tokens, bool) or not isinstance(n_tokens, int) or n_tokens < 0):
            raise TypeError(f"expected n_tokens as an integer of at least 0, or None, got {n_tokens!r}")
        self = super().__new__(cls, text)
        self.truncated = truncated
        self.embedding = embedding
        self.n_tokens = n_tokens
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:  # pickle and copy build the str with it
        return str(self), self.truncated, self.embedding, self.n_tokens


def is_truncated(text: str) -> bool:
    """Whether the agent marked the completion as cut off; a plain ``str`` never is."""
    return isinstance(text, Completion) and text.truncated


def n_tokens(text: str) -> int | None:
    """How many tokens the agent says that the completion has; None for a plain ``str``."""
    return text.n_tokens if isinstance(text, Completion) else None


def stored_completions(texts: Sequence[str], line: Mapping[str, Any]) -> list[str]:
    """Texts with what a stored line says of them under ``truncated`` and ``n_tokens``, either of which may be missing."""
    cut, counts = line.get("truncated") or [False] * len(texts), line.get("n_tokens") or [None] * len(texts)
    if not len(texts) == len(cut) == len(counts):
        raise ValueError(f"expected truncated and n_tokens for each of {len(texts)} completions, got {len(cut)} and {len(counts)}")
    return [Completion(text, truncated=bool(t), n_tokens=n) if t or n is not None else text for text, t, n in zip(texts, cut, counts)]
