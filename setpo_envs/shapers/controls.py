"""Controls: shapers that show what an effect is *not* due to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..group import Groups
from .base import Shaping, make_shaper, register


@register("shuffled")
@dataclass(frozen=True)
class Shuffled:
    """Another shaper's credits, dealt at random among the well-formed members of each group.

    Sizes of credits, their mean in the group and what a malformed completion gets are those of the other shaper; only who
    gets which is random. If training with it matches training without credit, the other shaper's effect is due to *whom* it
    pays, and neither to noise nor to its penalty on malformed output.

    Args:
        of: Name of the shaper whose credits are dealt.
        of_kwargs: Its options.
    """

    of: str = "setpo"
    of_kwargs: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        self._source()  # an unknown shaper or option is an error now, not in the first step

    def _source(self) -> Any:
        return make_shaper(self.of, **(self.of_kwargs or {}))

    @property
    def min_group_size(self) -> int:
        return getattr(self._source(), "min_group_size", 1)

    def __call__(self, groups: Groups, rng: np.random.Generator) -> Shaping:
        shaping = self._source()(groups, rng)
        if shaping.credits is None:
            raise ValueError(f"shaper {self.of!r} gives no credits, so there is nothing to shuffle: choose one that does")
        credits_NG = shaping.credits.copy()
        for credits_G, well_formed_G in zip(credits_NG, groups.well_formed):
            credits_G[well_formed_G] = rng.permutation(credits_G[well_formed_G])
        return replace(shaping, credits=credits_NG)
