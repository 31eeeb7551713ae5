"""Shapers that weigh the length of a completion, in tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..completion import is_truncated, n_tokens
from ..group import Groups
from .base import Shaping, register, resolve_shaper
from .composition import Around
from .shaping import completed


@register("overlong")
@dataclass
class Overlong(Around):
    """DAPO's soft overlong punishment (arXiv 2503.14476, eq. 13), beside another shaper if you like.

    With n tokens, L = ``max_tokens`` and C = ``cache_tokens`` the shaped reward is r' = r + p(n),

        p(n) = 0 for n <= L - C;    ((L - C) - n) / C up to n = L;    -1 above.

    The verified reward stays as it is. Token counts come with the completions, ``Completion(text, n_tokens=n)``; one without a
    count that is marked as truncated gets -1. The punishment is always defined, so ``defined`` is True in every group that is as
    large as the other shaper asks: where that is undefined its part is neutral.

    Args:
        max_tokens: L, the length at which sampling stops.
        cache_tokens: C, over how many tokens before it the punishment grows.
        of: A shaper whose shaping the punishment is added to, by name or as a list, or None.
        of_kwargs: Its options.

    Raises:
        ValueError: Lengths out of order, and, when it is applied, a completion without a token count.
    """

    max_tokens: int = 20_480
    cache_tokens: int = 4_096
    of: str | Sequence[Any] | None = None
    of_kwargs: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        lengths = self.cache_tokens, self.max_tokens
        if not all(isinstance(length, int) for length in lengths) or not 0 < self.cache_tokens <= self.max_tokens:
            raise ValueError(f"expected integers 0 < cache_tokens <= max_tokens, got {self.cache_tokens!r} and {self.max_tokens!r}")
        self.source = resolve_shaper(self.of, self.of_kwargs)

    def __call__(self, groups: Groups, rng: np.random.Generator) -> Shaping:
        tokens_NG = np.array([[self._tokens(text) for text in group] for group in groups.completions_NG], np.float64)
        punishment_NG = np.clip((self.max_tokens - self.cache_tokens - tokens_NG) / self.cache_tokens, -1.0, 0.0)
        if self.source is None:
            return Shaping(shaped_rewards=groups.rewards + punishment_NG)
        shaped = completed(self.source(groups, rng), groups, self.source)
        large_enough_N = np.full(groups.n_groups, groups.group_size >= self.min_group_size)
        return Shaping(shaped.credits, shaped.shaped_rewards + punishment_NG, shaped.weights, large_enough_N, shaped.diversity)

    def _tokens(self, text: str) -> int:
        count = n_tokens(text)
        if count is None and not is_truncated(text):
            raise ValueError(
                "expected the number of tokens with every completion, got one without: hand in Completion(text, n_tokens=n), "
                "or choose another shaper than 'overlong'"
            )
        return self.max_tokens if count is None else count
