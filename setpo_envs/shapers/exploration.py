"""Outcome-based exploration (arXiv 2509.06941): credit for answers that are rare in the group, or were in the past.

Both are credits beside GRPO's advantage; the paper's coefficient was not found. They look at answers, right or wrong alike. The
outcome of a completion is its mode; all members without a mode share one outcome, and one without a verdict gets credit 0.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..group import Groups
from .base import Shaping, register
from .frequency import outcome_counts


@register("batch_exploration")
@dataclass(frozen=True)
class BatchExploration:
    """Batch exploration (arXiv 2509.06941): credit b_i = -(n_i - 1)/n, the share of the group that repeats i's outcome.

    n_i of the n members with a verdict have i's outcome. All-wrong and all-right groups are trained towards rarer outcomes like any
    other. b is not centred: it pushes down on repetition.
    """

    base_advantage = "grpo"

    def __call__(self, groups: Groups, rng: np.random.Generator) -> Shaping:
        return Shaping(credits=batch_exploration_credits(groups.modes, groups.valid))


def batch_exploration_credits(modes_NG: np.ndarray, members_NG: np.ndarray | None = None) -> np.ndarray:
    """-(n_i - 1)/n over the members of N groups, 0 outside, (N, G) float64."""
    counts_NG = outcome_counts(modes_NG, members_NG)
    n_N1 = counts_NG.shape[1] if members_NG is None else np.asarray(members_NG).sum(axis=1, keepdims=True)
    return (np.minimum(1 - counts_NG, 0)) / np.maximum(n_N1, 1)


@register("ucb_exploration")
@dataclass
class UCBExploration:
    """Historical exploration (arXiv 2509.06941): credit from b = min(1, N(x, a)^(-1/2)), N(x, a) past completions of x with outcome a.

    "ucb" is b itself; "mean" is b less its mean over the other members of the group; "constant" is b - 1/2, and 0 in a group all
    of whose members (with a verdict) are correct. Else all-wrong and all-right groups get credits like any other.

    It remembers: N counts what this object was shown before the present call, per problem (task and id) and mode key. So one object
    serves one training run; ``state``, a copy and a pickle have the counts, and the trainer's checkpoints keep them. Environments of
    a vector have one object each. (Whether the paper counts the present batch as well was not found; its bound by 1 says that N
    may be 0.)

    Args:
        variant: "ucb", "mean" (the paper's UCB-Mean; needs two members) or "constant" (UCB-Con).
    """

    variant: str = "mean"
    seen: Counter[tuple[str, str, str | None]] = field(default_factory=Counter, init=False, repr=False, compare=False)
    base_advantage = "grpo"

    def __post_init__(self) -> None:
        _check_variant(self.variant)

    @property
    def min_group_size(self) -> int:
        return 2 if self.variant == "mean" else 1

    @property
    def state(self) -> list[list[Any]]:
        """The counts, as JSON values."""
        return [[*outcome, count] for outcome, count in self.seen.items()]

    @state.setter
    def state(self, state: list[list[Any]]) -> None:
        self.seen.clear()
        self.seen.update({(task, problem_id, key): count for task, problem_id, key, count in state})

    def __call__(self, groups: Groups, rng: np.random.Generator) -> Shaping:
        outcomes_NG = [
            [(problem.task, problem.problem_id, key) for key in keys_G] for problem, keys_G in zip(groups.problems, groups.mode_keys)
        ]
        visits_NG = np.array([[self.seen[outcome] for outcome in outcomes_G] for outcomes_G in outcomes_NG])
        for outcomes_G, valid_G in zip(outcomes_NG, groups.valid):
            self.seen.update(outcome for outcome, valid in zip(outcomes_G, valid_G) if valid)
        credits_NG = ucb_credits(visits_NG, groups.correct, self.variant, groups.valid)
        return Shaping(credits_NG, defined=groups.valid.sum(axis=1) >= self.min_group_size)


def ucb_credits(visits_NG: np.ndarray, correct_NG: np.ndarray, variant: str = "mean", members_NG: np.ndarray | None = None) -> np.ndarray:
    """Credits (N, G) float64 from ``visits_NG`` (N, G), how often each member's outcome occurred before; see :class:`UCBExploration`.

    ``correct_NG`` (N, G) bool is read by "constant" alone. Members outside ``members_NG`` enter no mean and get 0.
    """
    _check_variant(variant)
    bonus_NG = np.maximum(np.asarray(visits_NG), 1).astype(np.float64) ** -0.5
    members_NG = np.ones(bonus_NG.shape, bool) if members_NG is None else np.asarray(members_NG, bool)
    bonus_NG = np.where(members_NG, bonus_NG, 0.0)
    if variant == "mean":
        others_N1 = np.maximum(members_NG.sum(axis=1, keepdims=True) - 1, 1)
        bonus_NG = bonus_NG - (bonus_NG.sum(axis=1, keepdims=True) - bonus_NG) / others_N1
    elif variant == "constant":
        all_right_N1 = (np.asarray(correct_NG, bool) | ~members_NG).all(axis=1, keepdims=True)
        bonus_NG = np.where(all_right_N1, 0.0, bonus_NG - 0.5)
    return np.where(members_NG, bonus_NG, 0.0)


def _check_variant(variant: str) -> None:
    if variant not in ("ucb", "mean", "constant"):
        raise ValueError(f"unknown variant {variant!r}: choose one of ucb, mean, constant")
