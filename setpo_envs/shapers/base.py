"""The registry of set shapers, and the wrapper that puts one around an environment.

A shaper looks at N verified groups and says how their training signal changes: A = w * base(r') + lambda * c, with the
shaped rewards r', the weights w and the credits c that it returns. It never touches rewards or verdicts. A new one is
registered with a decorator; its options are the fields of a dataclass (or the parameters of a factory function)::

    @register("rare_mode")
    @dataclass(frozen=True)
    class RareMode:
        "Credit = 1 / size of the completion's mode in its group."

        power: float = 1.0

        def __call__(self, groups, rng):
            same_NGG = groups.modes[:, :, None] == groups.modes[:, None, :]
            return Shaping(credits=1 / same_NGG.sum(axis=2) ** self.power)

From there on ``gym.make(..., shaper="rare_mode", shaper_kwargs={"power": 2})`` and the trainer know it, and
:func:`~setpo_envs.checks.check_shaper` says whether it keeps to what they rely on. What is installed with the entry point group
:data:`~setpo_envs.shapers.installed.GROUP` is known without an import, and :func:`~setpo_envs.shapers.from_file.load_shaper_file`
imports a file that registers shapers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import gymnasium as gym

from . import installed
from .composition import Composed
from .shaping import Shaper, Shaping, apply_shaper

__all__ = ["Shaper", "ShaperWrapper", "Shaping", "apply_shaper", "make_shaper", "register", "registry", "resolve_shaper"]


Factory = TypeVar("Factory", bound=Callable[..., Any])
_SHAPERS: dict[str, Callable[..., Shaper]] = {}


def register(name: str) -> Callable[[Factory], Factory]:
    """Decorator that makes a shaper class, or a function that returns a shaper, known as ``name``."""

    def add(factory: Factory) -> Factory:
        known = _SHAPERS.get(name, factory)
        if (known.__module__, known.__qualname__) != (factory.__module__, factory.__qualname__):  # a cell that is run again may
            raise ValueError(f"a shaper named {name!r} is registered already: choose another name")
        _SHAPERS[name] = factory
        return factory

    return add


def registry() -> dict[str, Callable[..., Shaper]]:
    """Shapers that are registered or installed: name -> class or function that makes one from its options.

    An installed shaper that cannot be imported, or whose name is taken, is left out with a warning that names its distribution.
    """
    return {**installed.shapers(_SHAPERS), **_SHAPERS}


def make_shaper(name: str | Sequence[Any], **options: Any) -> Shaper:
    """The shaper of that name, or of several (:class:`~setpo_envs.shapers.composition.Composed`, whose options go beside each name).

    Raises:
        ValueError: An unknown name or option, with the choices; a broken installed shaper, with the cause; shapers that do not go
            together.
    """
    if not isinstance(name, str):
        return _composed(name, options)
    factory = _SHAPERS.get(name) or installed.shaper(name)
    if factory is None:
        raise ValueError(f"unknown shaper {name!r}: choose one of {', '.join(sorted(registry()))}, or register it first")
    known = inspect.signature(factory).parameters
    unknown = [option for option in options if option not in known]
    if unknown:
        raise ValueError(f"unknown option {unknown[0]!r} of shaper {name!r}: choose among {', '.join(known) or 'none, it has no options'}")
    return factory(**options)


def resolve_shaper(
    shaper: Shaper | str | Sequence[Any] | None, shaper_kwargs: Mapping[str, Any] | None = None, group_size: int | None = None
) -> Shaper | None:
    """A shaper from a name with options, from an object (which takes no options), from a list of either (see :func:`make_shaper`), or None.

    Raises:
        ValueError: Unknown name or option, options beside an object or a list, or ``group_size`` below the shaper's least.
    """
    if shaper_kwargs is not None and not (isinstance(shaper_kwargs, Mapping) and all(isinstance(name, str) for name in shaper_kwargs)):
        raise ValueError(f"expected shaper_kwargs to be a dict of options by name, or None, got {shaper_kwargs!r}")
    if isinstance(shaper, (str, list, tuple)):
        shaper = make_shaper(shaper, **(shaper_kwargs or {}))
    elif shaper is not None and not callable(shaper):
        raise ValueError(f"expected shaper to be the name of a registered shaper, a list of names, a shaper or None, got {shaper!r}")
    elif shaper_kwargs:
        raise ValueError(f"shaper_kwargs belong to the name of a registered shaper, got {dict(shaper_kwargs)} beside shaper={shaper!r}")
    least = getattr(shaper, "min_group_size", 1)
    if group_size is not None and group_size < least:
        raise ValueError(
            f"{shaper!r} needs groups of at least {least} completions, got group_size={group_size}: raise it, or set shaper=None"
        )
    return shaper


def _composed(parts: Sequence[Any], options: Mapping[str, Any]) -> Shaper:
    if options:
        raise ValueError(f'expected options beside each name, such as ["darling", ["setpo", {{"scale": "zscore"}}]], got {dict(options)}')
    members, coefficients = [], []
    for part in parts:
        name, own = part if isinstance(part, (list, tuple)) and len(part) == 2 else (part, {})
        if isinstance(name, (list, tuple)) or name is None or not isinstance(own, Mapping):
            raise ValueError(f"expected a list of names, of pairs (name, options) and of shapers, got {part!r} in it")
        own = dict(own)
        coefficients.append(own.pop("coefficient", 1.0))
        members.append(resolve_shaper(name, own))
    return Composed(tuple(members), tuple(coefficients))  # type: ignore[arg-type]


class ShaperWrapper(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """Shapes the groups of an environment: replaces what ``info["group"]`` says of shaping, never the reward.

    Works in ``gym.make_vec(..., wrappers=[ShaperWrapper])``, in a spec's JSON (with a name and JSON options) and pickled.

    Args:
        env: A :class:`~setpo_envs.env.GroupEnv`, wrapped or not.
        shaper: Name of a registered shaper, a shaper, or a list of either.
        shaper_kwargs: Options of the named shaper.
    """

    def __init__(self, env: gym.Env, shaper: Shaper | str | Sequence[Any] = "setpo", shaper_kwargs: Mapping[str, Any] | None = None):
        gym.utils.RecordConstructorArgs.__init__(self, shaper=shaper, shaper_kwargs=shaper_kwargs)
        gym.Wrapper.__init__(self, env)
        self.shaper = resolve_shaper(shaper, shaper_kwargs, env.get_wrapper_attr("group_size"))

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(action)
        env: Any = self.unwrapped
        groups = env.last_groups
        apply_shaper(groups, self.shaper, env.side_rng)  # type: ignore[arg-type]
        return observation, reward, terminated, truncated, {**info, "group": groups.info(0)}
