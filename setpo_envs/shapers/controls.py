"""Controls: shapers that show what an effect is *not* due to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..group import Groups
from .base import Shaping, register, resolve_shaper
from .composition import Around
from .shaping import completed


@dataclass
class _Control(Around):
    of: str | Sequence[Any] = "setpo"
    of_kwargs: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        self.source = resolve_shaper(self.of, self.of_kwargs)


@register("shuffled")
@dataclass
class Shuffled(_Control):
    """Another shaper's credits, dealt at random among the well-formed members of each group.

    Sizes of credits, their mean in the group and what a malformed completion gets are those of the other shaper; only who
    gets which is random. If training with it matches training without credit, the other shaper's effect is due to *whom* it
    pays, and neither to noise nor to its penalty on malformed output.

    Args:
        of: The shaper whose credits are dealt, by name or as a list.
        of_kwargs: Its options.
    """

    draws = True

    def __call__(self, groups: Groups, rng: np.random.Generator) -> Shaping:
        shaping = self.source(groups, rng)
        if shaping.credits is None:
            raise ValueError(f"shaper {self.of!r} gives no credits, so there is nothing to shuffle: choose one that does")
        credits_NG = shaping.credits.copy()
        for credits_G, well_formed_G in zip(credits_NG, groups.well_formed):
            credits_G[well_formed_G] = rng.permutation(credits_G[well_formed_G])
        return replace(shaping, credits=credits_NG)


@register("random_partition")
@dataclass
class RandomPartition(_Control):
    """Another shaper, told the wrong partition into modes: mode keys are dealt at random among members of equal status.

    How many modes a group has, how large they are among the correct and among the wrong, and who is right stay as they are;
    only who belongs to which mode is random. A method that weighs completions by the size of their mode should lose its effect
    on which solutions survive, and keep whatever effect its sizes alone have. The control of rarity-aware credit
    (arXiv 2608.03467), for any shaper that reads modes; one that reads texts or embeddings is left unchanged.

    Args:
        of: The shaper that is told so, by name or as a list.
        of_kwargs: Its options; by default none, and for "setpo" the equality kernel, the one of its kernels that reads modes.
    """

    draws = True

    def __post_init__(self) -> None:
        options = {"kernel": "equality_key"} if self.of == "setpo" and self.of_kwargs is None else self.of_kwargs
        self.source = resolve_shaper(self.of, options)

    def __call__(self, groups: Groups, rng: np.random.Generator) -> Shaping:
        dealt = copy(groups)
        dealt.modes, dealt.mode_keys, dealt.answers = groups.modes.copy(), groups.mode_keys.copy(), groups.answers.copy()
        for n, status_G in enumerate(groups.status):
            for status in np.unique(status_G):
                members = np.flatnonzero(status_G == status)
                order = rng.permutation(members)
                for field in (dealt.modes, dealt.mode_keys, dealt.answers):
                    field[n, members] = field[n, order]
        return self.source(dealt, rng)


@register("mean_matched")
@dataclass
class MeanMatched(_Control):
    """What another shaper gives on average to the correct and to the other members of each group, given to each of them alike.

    Weights, credits and what is added to rewards keep their means, so the push on the group as a whole is that of the other
    shaper; all that it says about one completion against another of the same correctness is gone. If training with it
    matches, the effect is one of scale. (Mean-matched weights are a usual control; this form of it is derived here.)

    Args:
        of: The shaper whose means are given, by name or as a list.
        of_kwargs: Its options.
    """

    def __call__(self, groups: Groups, rng: np.random.Generator) -> Shaping:
        shaped = completed(self.source(groups, rng), groups, self.source)
        added_NG = shaped.shaped_rewards - groups.rewards
        credits_NG, added_NG, weights_NG = (_class_means(x, groups.correct) for x in (shaped.credits, added_NG, shaped.weights))
        return Shaping(credits_NG, groups.rewards + added_NG, weights_NG, shaped.defined, shaped.diversity)


def _class_means(values_NG: np.ndarray, correct_NG: np.ndarray) -> np.ndarray:
    """The mean over the correct members in their places, and that over the others in theirs."""
    means_NG = np.zeros_like(values_NG)
    for members_NG in (correct_NG, ~correct_NG):
        count_N1 = np.maximum(members_NG.sum(axis=1, keepdims=True), 1)
        means_NG += members_NG * (np.where(members_NG, values_NG, 0.0).sum(axis=1, keepdims=True) / count_N1)
    return means_NG
