"""Shapers of other distributions, which name them in the entry point group ``setpo_envs.shapers``::

    [project.entry-points."setpo_envs.shapers"]
    rare_mode = "their_package:RareMode"  # a class, or a function that returns a shaper

They are imported when they are asked for, and no sooner. A name that is registered already is never taken over.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

GROUP = "setpo_envs.shapers"


def shaper(name: str) -> Callable[..., Any] | None:
    """The class or function that an installed distribution names so, or None where none does.

    Raises:
        ValueError: It cannot be imported or called, or two distributions have one of this name.
    """
    found = _found().get(name)
    return None if found is None else _load(name, found)


def shapers(taken: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """All installed shapers by name. What is broken, or goes by a name in ``taken``, is left out with a warning."""
    usable = {}
    for name, found in _found().items():
        try:
            factory = _load(name, found)
            if taken.get(name, factory) is not factory:
                raise ValueError(f"the shaper {name!r} of {_owners(found)} is ignored: {taken[name].__module__} has one of this name")
        except ValueError as error:
            warnings.warn(str(error), RuntimeWarning, stacklevel=3)
        else:
            usable[name] = factory
    return usable


def _found() -> dict[str, list[EntryPoint]]:
    by_name: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        by_name.setdefault(point.name, []).append(point)
    return by_name


def _owners(found: list[EntryPoint]) -> str:
    return " and ".join(sorted(f"the installed distribution {getattr(point.dist, 'name', None) or '?'}" for point in found))


def _load(name: str, found: list[EntryPoint]) -> Callable[..., Any]:
    if len(found) > 1:
        raise ValueError(f"{_owners(found)} name a shaper {name!r}: expected one, uninstall the other")
    try:
        factory = found[0].load()
    except Exception as error:  # whatever another's module raises
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"the shaper {name!r} of {_owners(found)} cannot be imported ({found[0].value}): {reason}") from error
    if not callable(factory):
        raise ValueError(f"expected a class or function as shaper {name!r} of {_owners(found)} ({found[0].value}), got {factory!r}")
    return factory
