"""What a shaper is and returns, and how that is written into groups."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np

from ..group import Groups


@dataclass(frozen=True)
class Shaping:
    """What a shaper returns for N groups of G. A field left at None is neutral: the value in brackets."""

    credits: np.ndarray | None = None  # c (N, G) float64, unweighted [zeros]
    shaped_rewards: np.ndarray | None = None  # r' (N, G) float64 [the verified rewards]
    weights: np.ndarray | None = None  # w (N, G) float64, factor on the base advantage [ones]
    defined: np.ndarray | None = None  # (N,) bool; where False the shaping of the group is neutral [all True]
    diversity: np.ndarray | None = None  # D (N,) float64, set diversity under the shaper's kernel [zeros]


@dataclass(frozen=True)
class FullShaping(Shaping):
    """A shaping in which nothing is left at None."""

    credits: np.ndarray
    shaped_rewards: np.ndarray
    weights: np.ndarray
    defined: np.ndarray
    diversity: np.ndarray


class Shaper(Protocol):
    """``shaper(groups, rng) -> Shaping``. It must not change ``groups`` and draws from nothing but ``rng``.

    An attribute ``min_group_size`` (default 1) says below which G it is undefined whatever the completions are: there it returns
    ``defined`` False, and environments of smaller groups are refused. A method
    ``before_verdicts(completions_NG) -> shaper``, if there is one, is called while worker processes verify: what it returns is
    applied in place of the shaper, says the same, and has computed what it can from the texts alone.

    Two attributes say what the method's paper trains with: ``base_advantage``, a name among the agent's (None for a method whose
    credits are the advantage itself, with weights of zero), and ``credit_coefficient``, lambda. A shaper that remembers what it was
    shown has a settable property ``state`` of JSON values, which checkpoints keep.

    Two more, both False unless set, say what :func:`~setpo_envs.shapers.contract.check_shaper` must not expect: ``draws``, that it
    draws from ``rng``, so that equal completions may be paid differently; ``breaks_ties``, that among equal completions it pays some
    by their place in the group.
    """

    def __call__(self, groups: Groups, rng: np.random.Generator, /) -> Shaping: ...


def apply_shaper(groups: Groups, shaper: Shaper, rng: np.random.Generator) -> None:
    """Write what ``shaper`` says into ``groups`` (in place), replacing what an earlier shaper wrote.

    Raises:
        ValueError: The shaper returned an array of another shape or a value that is not finite.
    """
    shaping = completed(shaper(groups, rng), groups, shaper)
    for each in fields(Shaping):
        setattr(groups, each.name, getattr(shaping, each.name))


def completed(shaping: Shaping, groups: Groups, shaper: Shaper) -> FullShaping:
    """The shaping with all fields, fresh arrays: neutral where ``shaper`` returned None or ``defined`` is False; errors as above."""
    shape = groups.n_groups, groups.group_size
    defined = np.ones(shape[0], bool) if shaping.defined is None else _checked("defined", shaping.defined, shape[:1], shaper).astype(bool)
    diversity = np.zeros(shape[0]) if shaping.diversity is None else _checked("diversity", shaping.diversity, shape[:1], shaper)
    neutral = {"credits": np.zeros(shape), "shaped_rewards": groups.rewards.copy(), "weights": np.ones(shape)}
    for name, otherwise in neutral.items():
        if (given := getattr(shaping, name)) is not None:
            neutral[name] = np.where(defined[:, None], _checked(name, given, shape, shaper), otherwise)
    return FullShaping(**neutral, defined=defined, diversity=diversity)


def _checked(name: str, value: np.ndarray, shape: tuple[int, ...], shaper: Shaper) -> np.ndarray:
    value = np.array(value, np.float64)
    if value.shape != shape:
        raise ValueError(f"expected {name} of shape {shape} from {shaper!r}, got {value.shape}")
    if not np.isfinite(value).all():
        raise ValueError(f"expected finite {name} from {shaper!r}, got nan or inf: a shaper says 'undefined' with defined=False")
    return value
