"""What every shaper keeps to, as a check that shows the group on which it does not."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import fields
from itertools import groupby
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from ..completion import Completion
from ..group import Groups
from .base import resolve_shaper
from .sample_groups import Member, completion, groups_of, odd_rows, sample_rows
from .shaping import FullShaping, Shaper, Shaping, completed

_ID = "setpo/Countdown-v0"
_SEED = 7
_PAID = ("credits", "shaped_rewards", "weights")
_LEAST = "the declared min_group_size"


def check_shaper(shaper: Shaper | str | Sequence[Any], shaper_kwargs: Mapping[str, Any] | None = None) -> None:
    """Raise ValueError, naming the property and the group that shows it, if a shaper breaks what trainers rely on.

    - It returns a Shaping of finite arrays, (N, G) and (N,), on right, wrong, mixed, unanswered and identical groups, on groups with
      members that have no verdict, and on texts that are empty, a million characters long or no proper text.
    - The groups are not changed, and an environment's reward is what it is without a shaper.
    - Randomness comes from the generator that is handed in: the same one gives the same result, and the global ones stay as they are.
    - Permuting the members of a group permutes what they get; equal completions get the same, so a group of identical ones gets a
      constant. Not expected of a shaper with the attribute ``draws``; one with ``breaks_ties`` may pay the members of a group by
      their place as long as the amounts are the same.
    - A group gets the same alone as among others; not expected with ``draws``, or of one that remembers (has a ``state``).
    - Groups of 1, 2 and 3 raise nothing: all undefined below ``min_group_size``, and some defined from there on.
    - A pickled copy, what ``before_verdicts`` returns, and one that is given the ``state`` (after JSON) say the same.
    - Given by name with JSON options: an environment's ``spec.to_json()`` makes an environment with the same shaping.

    The shaper itself is not changed: copies of it are shaped with.

    Args:
        shaper: A shaper, a registered name, or a list of either.
        shaper_kwargs: Options of the named shaper.

    Raises:
        ValueError: A broken property, or an unknown name or option.
    """
    made: Any = resolve_shaper(shaper, shaper_kwargs)
    if made is None:
        raise ValueError("expected a shaper to check, got None")
    check = _Check(made)
    size = max(6, check.least)
    rows = sample_rows(size)
    twin = check.pickled()  # first, since copies are what is shaped with
    check.values(rows)
    check.randomness(rows)
    check.same_as_pickled(rows, twin)
    check.equal_pay(rows)
    check.permutation(rows)
    check.independence(rows)
    check.small_groups()
    check.values(odd_rows(size))
    check.before_verdicts(rows)
    check.memory(rows)
    if not callable(shaper):
        check.environment(shaper, shaper_kwargs, size)


class _Check:
    """The properties of one shaper, each a method that raises."""

    def __init__(self, shaper: Any) -> None:
        self.shaper = shaper
        self.draws = bool(getattr(shaper, "draws", False))
        self.breaks_ties = bool(getattr(shaper, "breaks_ties", False))
        self.least = getattr(shaper, "min_group_size", 1)
        if isinstance(self.least, bool) or not isinstance(self.least, int) or self.least < 1:
            raise self.broken(_LEAST, f"expected an integer of at least 1, got {self.least!r}")

    def broken(self, prop: str, found: str, group: Sequence[Member] | None = None) -> ValueError:
        shown = "" if group is None else f"; the group: {_described(group)}"
        return ValueError(f"{prop} is broken by {self.shaper!r}: {found}{shown}")

    def shaped(self, prop: str, groups: Groups, shaper: Any = None, seed: int = _SEED) -> FullShaping:
        """What a fresh copy (or ``shaper``) says, with neutral values filled in; any exception breaks ``prop``."""
        asked = deepcopy(self.shaper) if shaper is None else shaper
        try:
            return completed(asked(groups, np.random.default_rng(seed)), groups, self.shaper)
        except Exception as error:  # whatever another's shaper raises
            raise self.broken(prop, f"expected a Shaping, got {type(error).__name__}: {error}") from error

    # --- one property each ---

    def values(self, rows: Mapping[str, Sequence[Member]]) -> None:
        prop = "shapes, finite values and untouched groups"
        for name, row in rows.items():
            groups = groups_of([row, row], [name, name])
            before = deepcopy(groups)
            try:
                shaping = deepcopy(self.shaper)(groups, np.random.default_rng(_SEED))
                if not isinstance(shaping, Shaping):
                    raise TypeError(f"expected a Shaping, got {type(shaping).__name__}")
                completed(shaping, groups, self.shaper)
            except Exception as error:  # whatever another's shaper raises
                raise self.broken(prop, f"{type(error).__name__}: {error}", row) from error
            if changed := _changed(before, groups):
                raise self.broken(prop, f"it changed {changed} of the groups that it was shown", row)

    def randomness(self, rows: Mapping[str, Sequence[Member]]) -> None:
        prop = "randomness from the given generator alone"
        groups = groups_of(list(rows.values()), list(rows))
        before = _global_state()
        first = self.shaped(prop, groups)
        if _global_state() != before:
            raise self.broken(prop, "it drew from numpy.random or random, or seeded them")
        again = self.shaped(prop, groups)
        if found := _difference(first, again, exactly=True):
            n, said = found
            raise self.broken(prop, f"two generators of one seed gave {said}", list(rows.values())[n])

    def equal_pay(self, rows: Mapping[str, Sequence[Member]]) -> None:
        if self.draws or self.breaks_ties:
            return
        prop = "equal pay for equal completions"
        shaping = self.shaped(prop, groups_of(list(rows.values()), list(rows)))
        for n, row in enumerate(rows.values()):
            for places in _places_of_equals(row):
                for name in _PAID:
                    paid = getattr(shaping, name)[n, places]
                    if not np.allclose(paid, paid[0], rtol=1e-5, atol=1e-6):
                        raise self.broken(prop, f"members {places} have {name} {paid.tolist()}", row)

    def permutation(self, rows: Mapping[str, Sequence[Member]]) -> None:
        if self.draws:
            return
        prop, names, table = "permutation of members", list(rows), list(rows.values())
        plain = self.shaped(prop, groups_of(table, names))
        size = len(table[0])
        for order in [np.arange(size)[::-1], *(np.random.default_rng(seed).permutation(size) for seed in range(3))]:
            permuted = self.shaped(prop, groups_of([[row[i] for i in order] for row in table], names))
            expected = _by_member(plain, lambda values_NG, order=order: values_NG[:, order])
            if self.breaks_ties:
                expected, permuted = (_by_member(each, lambda values_NG: np.sort(values_NG, axis=1)) for each in (expected, permuted))
            if found := _difference(expected, permuted):
                n, said = found
                raise self.broken(prop, f"in the order {order.tolist()} its members got {said}", table[n])

    def independence(self, rows: Mapping[str, Sequence[Member]]) -> None:
        if self.draws or hasattr(self.shaper, "state"):
            return
        prop = "independence of groups"
        together = self.shaped(prop, groups_of(list(rows.values()), list(rows)))
        for n, (name, row) in enumerate(rows.items()):
            alone = self.shaped(prop, groups_of([row], [name]))
            among = FullShaping(**{each.name: getattr(together, each.name)[n : n + 1] for each in fields(Shaping)})
            if found := _difference(alone, among):
                raise self.broken(prop, f"alone and among others it got {found[1]}", row)

    def small_groups(self) -> None:
        prop, least = _LEAST, self.least
        for size in sorted({1, 2, 3, least}):
            rows = sample_rows(size)
            defined_N = self.shaped(prop, groups_of(list(rows.values()), list(rows))).defined
            if size < least and defined_N.any():
                raise self.broken(prop, f"it is {least}, but a group of {size} is defined", list(rows.values())[int(defined_N.argmax())])
            if size >= least and not defined_N.any():
                raise self.broken(prop, f"it is {least}, but no group of {size} is defined", rows["all_right"])

    def pickled(self) -> Any:
        try:
            return pickle.loads(pickle.dumps(self.shaper))
        except Exception as error:  # pickle raises many kinds
            raise self.broken("pickling", f"{type(error).__name__}: {error}") from error

    def same_as_pickled(self, rows: Mapping[str, Sequence[Member]], twin: Any) -> None:
        prop, groups = "pickling", groups_of(list(rows.values()), list(rows))
        remembers = hasattr(self.shaper, "state")  # then a copy is shown the groups, which may lack what a pickle lacks
        own = self.shaped(prop, groups, deepcopy(self.shaper) if remembers else self.shaper)
        if found := _difference(own, self.shaped(prop, groups, twin)):
            raise self.broken(prop, f"it and its pickled copy gave {found[1]}", list(rows.values())[found[0]])

    def before_verdicts(self, rows: Mapping[str, Sequence[Member]]) -> None:
        if not hasattr(self.shaper, "before_verdicts"):
            return
        prop, groups = "before_verdicts", groups_of(list(rows.values()), list(rows))
        try:
            prepared = deepcopy(self.shaper).before_verdicts(groups.completions_NG)
        except Exception as error:  # whatever another's shaper raises
            raise self.broken(prop, f"{type(error).__name__}: {error}") from error
        if found := _difference(self.shaped(prop, groups), self.shaped(prop, groups, prepared)):
            raise self.broken(prop, f"without and with it the members got {found[1]}", list(rows.values())[found[0]])

    def memory(self, rows: Mapping[str, Sequence[Member]]) -> None:
        if not hasattr(self.shaper, "state"):
            return
        prop, groups = "state", groups_of(list(rows.values()), list(rows))
        first, twin = deepcopy(self.shaper), deepcopy(self.shaper)
        self.shaped(prop, groups, first)
        try:
            twin.state = json.loads(json.dumps(first.state))
        except Exception as error:  # whatever another's property raises
            raise self.broken(prop, f"expected JSON values that can be set again, got {type(error).__name__}: {error}") from error
        if found := _difference(self.shaped(prop, groups, first), self.shaped(prop, groups, twin)):
            raise self.broken(prop, f"it and a copy that was given its state gave {found[1]}", list(rows.values())[found[0]])

    def environment(self, shaper: str | Sequence[Any], shaper_kwargs: Mapping[str, Any] | None, size: int) -> None:
        prop = "round trip of the environment's spec"
        try:
            json.dumps([shaper, shaper_kwargs])
        except (TypeError, ValueError):
            return  # objects are exempt
        row = sample_rows(size)["right_and_wrong"]
        action = [completion(text) for text, _, _ in row]
        bare = _step(gym.make(_ID, group_size=size, shaper=None), action)
        try:
            env = gym.make(_ID, group_size=size, shaper=shaper, shaper_kwargs=shaper_kwargs)
            assert env.spec is not None
            twin = gym.make(EnvSpec.from_json(env.spec.to_json()))
            shaped, again = (_step(each, action) for each in (env, twin))
        except Exception as error:  # whatever another's shaper raises
            raise self.broken(prop, f"{type(error).__name__}: {error}", row) from error
        for name in _PAID:
            if not np.array_equal(shaped[1][name], again[1][name]):
                raise self.broken(prop, f"{name} {shaped[1][name].tolist()} and {again[1][name].tolist()}", row)
        if shaped[0] != bare[0] or not np.array_equal(shaped[1]["rewards"], bare[1]["rewards"]):
            raise self.broken("the environment's reward", f"{bare[0]} without the shaper, {shaped[0]} with it", row)


def _step(env: gym.Env, action: Sequence[Completion]) -> tuple[float, dict[str, Any]]:
    env.reset(seed=_SEED, options={"index": 0})
    _, reward, _, _, info = env.step(action)
    env.close()
    return float(reward), info["group"]


def _difference(first: FullShaping, second: FullShaping, exactly: bool = False) -> tuple[int, str] | None:
    """The first group that differs beyond the rounding of a float32 kernel, and how; None where none does."""
    for each in fields(Shaping):
        one, other = getattr(first, each.name), getattr(second, each.name)
        same = one == other if exactly else np.isclose(one, other, rtol=1e-4, atol=1e-5)
        if not same.all():
            n = int(np.argwhere(~same)[0, 0])
            return n, f"{each.name} {one[n].tolist()} and {other[n].tolist()}"
    return None


def _by_member(shaping: FullShaping, change: Any) -> FullShaping:
    changed = {name: change(getattr(shaping, name)) for name in _PAID}
    return FullShaping(**changed, defined=shaping.defined, diversity=shaping.diversity)


def _places_of_equals(row: Sequence[Member]) -> Iterator[list[int]]:
    order = sorted(range(len(row)), key=lambda i: repr(row[i]))
    for _, places in groupby(order, key=lambda i: row[i]):
        yield list(places)


def _changed(before: Groups, after: Groups) -> str | None:
    """The name of a field that is not what it was."""
    for each in fields(Groups):
        old, new = getattr(before, each.name), getattr(after, each.name)
        same = np.array_equal(old, new) and old.dtype == new.dtype if isinstance(old, np.ndarray) else old == new
        if not same:
            return each.name
    for old_G, new_G in zip(before.completions_NG, after.completions_NG):
        if any(not np.array_equal(old.embedding, new.embedding) for old, new in zip(old_G, new_G)):  # type: ignore[attr-defined]
            return "the embeddings of completions"
    return None


def _global_state() -> tuple[Any, ...]:
    numpy_state: Any = np.random.get_state()  # noqa: NPY002 (nobody may draw from it, which this tells)
    return *map(repr, numpy_state[2:]), numpy_state[1].tobytes(), random.getstate()


def _described(row: Sequence[Member]) -> str:
    shown = [f"{status.name.lower()} {key!r} {text[:24]!r}{'...' if len(text) > 24 else ''}" for text, key, status in row[:8]]
    return ", ".join(shown) + (f" and {len(row) - 8} more" if len(row) > 8 else "")
