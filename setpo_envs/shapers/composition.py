"""Several shapers as one, and shapers that are put around another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Any

import numpy as np

from ..group import Groups
from .shaping import Shaper, Shaping, completed

_MISSING: Any = object()


class Around:
    """What is asked of a shaper beside its shaping, passed on from ``source``, the shaper that this one is put around (or None)."""

    source: Any

    @property
    def min_group_size(self) -> int:
        return getattr(self.source, "min_group_size", 1)

    @property
    def draws(self) -> bool:
        return getattr(self.source, "draws", False)

    @property
    def breaks_ties(self) -> bool:
        return getattr(self.source, "breaks_ties", False)

    @property
    def base_advantage(self) -> str | None:
        return self.source.base_advantage  # where there is none, the AttributeError says that there is none here

    @property
    def credit_coefficient(self) -> float:
        return self.source.credit_coefficient

    @property
    def state(self) -> Any:
        return self.source.state

    @state.setter
    def state(self, state: Any) -> None:
        self.source.state = state


@dataclass
class Composed:
    """Several shapers as one. By names it is made from a list of names, of pairs (name, options) and of shapers::

        gym.make(..., shaper=["darling", ["setpo", {"scale": "zscore", "coefficient": 0.5}]])

    Each member sees the groups as they were verified and never what another member made of them. With coefficients a_m (the option
    ``coefficient`` of each, 1 unless given) the members' shapings (r'_m, w_m, c_m) become

        r' = r + sum_m (r'_m - r)        w = prod_m w_m        c = sum_m a_m c_m

    so A = w * base(r') + lambda * c. Why so: every formula keeps the input that its paper has (a reward shaper that saw another's r'
    would take it for correctness), the order does not matter to r', w and c, and a member that leaves a field alone drops out of it.
    The price is that two factors on the reward add their changes, r (f_1 + f_2 - 1), and are not multiplied.

    - A group is defined where it is for all members; elsewhere the whole shaping is neutral. Half of a composition would be
      another method, on just those groups. (``overlong`` with the option ``of`` adds its punishment everywhere.)
    - ``diversity`` is that of the first member that gives one.
    - Members that name the base advantage of their paper must name the same. One that replaces it (None, weights of zero) goes
      only with members that give credits and name none: rewards and weights of others would have no effect.
    - ``min_group_size`` is the largest; members that draw do so one after the other from one generator.

    Raises:
        ValueError: No member, base advantages that differ, a coefficient that is no finite number; when it is applied, a coefficient
            beside a member without credits, or a reward or weight beside a member that replaces the base advantage.
    """

    members: tuple[Shaper, ...]
    coefficients: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.members:
            raise ValueError("expected at least one shaper, got an empty list: shaper=None leaves groups unshaped")
        for coefficient in self.coefficients:
            if isinstance(coefficient, bool) or not isinstance(coefficient, (int, float)) or not isfinite(coefficient):
                raise ValueError(f"expected a coefficient as a finite number, got {coefficient!r}")
        named = [(shaper, shaper.base_advantage) for shaper in self.members if hasattr(shaper, "base_advantage")]
        if len({base for _, base in named}) > 1 or [base for _, base in named].count(None) > 1:
            said = "; ".join(f"{shaper!r} {'replaces it' if base is None else f'trains with {base}'}" for shaper, base in named)
            raise ValueError(f"expected shapers that go with one base advantage, got: {said}: leave one of them out")

    def _named(self, name: str) -> Any:
        """What members say under this name, if they say the same."""
        said = {getattr(shaper, name) for shaper in self.members if hasattr(shaper, name)}
        if len(said) != 1:
            raise AttributeError(f"no {name} that all members which name one agree on")
        return said.pop()

    @property
    def min_group_size(self) -> int:
        return max(getattr(shaper, "min_group_size", 1) for shaper in self.members)

    @property
    def draws(self) -> bool:
        return any(getattr(shaper, "draws", False) for shaper in self.members)

    @property
    def breaks_ties(self) -> bool:
        return any(getattr(shaper, "breaks_ties", False) for shaper in self.members)

    @property
    def base_advantage(self) -> str | None:
        return self._named("base_advantage")

    @property
    def credit_coefficient(self) -> float:
        return self._named("credit_coefficient")

    @property
    def state(self) -> list[Any]:
        """The states of the members, None for one that remembers nothing; there is none where no member remembers."""
        states = [getattr(shaper, "state", _MISSING) for shaper in self.members]
        if all(state is _MISSING for state in states):
            raise AttributeError("no member remembers what it was shown")
        return [None if state is _MISSING else state for state in states]

    @state.setter
    def state(self, states: list[Any]) -> None:
        if not isinstance(states, list) or len(states) != len(self.members):
            raise ValueError(f"expected a list of {len(self.members)} states, as there are members, got {str(states)[:200]}")
        for shaper, state in zip(self.members, states):
            if hasattr(shaper, "state"):
                shaper.state = state

    def before_verdicts(self, completions_NG: Sequence[Sequence[str]]) -> Shaper:
        """The same composition, of members that have computed what they can from the texts."""
        prepared = tuple(
            shaper.before_verdicts(completions_NG) if hasattr(shaper, "before_verdicts") else shaper for shaper in self.members
        )
        return partial(self, prepared=prepared)

    def __call__(self, groups: Groups, rng: np.random.Generator, *, prepared: tuple[Shaper, ...] | None = None) -> Shaping:
        shape = groups.rewards.shape
        credits_NG, added_NG, weights_NG = np.zeros(shape), np.zeros(shape), np.ones(shape)
        defined_N, diversity_N = np.ones(shape[0], bool), None
        replaced = getattr(self, "base_advantage", "") is None
        for shaper, coefficient, asked in zip(self.members, self.coefficients, prepared or self.members):
            given = asked(groups, rng)
            if coefficient != 1 and given.credits is None:
                raise ValueError(f"expected credits beside coefficient={coefficient}, which weighs them, got none from {shaper!r}")
            inert = replaced and not hasattr(shaper, "base_advantage")
            if inert and not (given.shaped_rewards is None and given.weights is None):
                raise ValueError(f"{shaper!r} shapes rewards or weights, which has no effect beside one that replaces the base advantage")
            shaping = completed(given, groups, shaper)
            credits_NG += coefficient * shaping.credits
            added_NG += shaping.shaped_rewards - groups.rewards
            weights_NG *= shaping.weights
            defined_N &= shaping.defined
            if diversity_N is None and given.diversity is not None:
                diversity_N = shaping.diversity
        return Shaping(credits_NG, groups.rewards + added_NG, weights_NG, defined_N, diversity_N)
