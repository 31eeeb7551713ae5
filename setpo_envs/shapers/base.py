"""What a set shaper is, the registry of shapers, and the wrapper that puts one around an environment.

A shaper looks at N verified groups and says how their training signal changes: A = w * base(r') + lambda * c, with the
shaped rewards r', the weights w and the credits c that it returns. It never touches rewards or verdicts. A new one is
registered with a decorator; its options are the fields of a dataclass (or the parameters of a factory function)::

    @register("rare_mode")
    @dataclass(frozen=True)
    class RareMode:
        "Credit = 1 / size of the completion's mode in its group."

        power: float = 1.0
        min_group_size = 2

        def __call__(self, groups, rng):
            same_NGG = groups.modes[:, :, None] == groups.modes[:, None, :]
            return Shaping(credits=1 / same_NGG.sum(axis=2) ** self.power)

From there on ``gym.make(..., shaper="rare_mode", shaper_kwargs={"power": 2})``, the trainer and the contract test know it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import gymnasium as gym
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


class Shaper(Protocol):
    """``shaper(groups, rng) -> Shaping``. It must not change ``groups`` and draws from nothing but ``rng``.

    An attribute ``min_group_size`` (default 1) says below which G it is undefined whatever the completions are. A method
    ``before_verdicts(completions_NG) -> shaper``, if there is one, is called while worker processes verify: what it returns is
    applied in place of the shaper, says the same, and has computed what it can from the texts alone.

    Two attributes say what the method's paper trains with: ``base_advantage``, a name among the agent's (None for a method whose
    credits are the advantage itself, with weights of zero), and ``credit_coefficient``, lambda. A shaper that remembers what it was
    shown has a settable property ``state`` of JSON values, which checkpoints keep.
    """

    def __call__(self, groups: Groups, rng: np.random.Generator, /) -> Shaping: ...


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
    """Registered shapers: name -> class or function that makes one from its options."""
    return dict(_SHAPERS)


def make_shaper(name: str, **options: Any) -> Shaper:
    """The shaper registered as ``name``; an unknown name or option raises ValueError with the choices."""
    if name not in _SHAPERS:
        raise ValueError(f"unknown shaper {name!r}: choose one of {', '.join(sorted(_SHAPERS))}, or register it first")
    known = inspect.signature(_SHAPERS[name]).parameters
    unknown = [option for option in options if option not in known]
    if unknown:
        raise ValueError(f"unknown option {unknown[0]!r} of shaper {name!r}: choose among {', '.join(known) or 'none, it has no options'}")
    return _SHAPERS[name](**options)


def resolve_shaper(
    shaper: Shaper | str | None, shaper_kwargs: Mapping[str, Any] | None = None, group_size: int | None = None
) -> Shaper | None:
    """A shaper from a registered name with options, from an object (which takes no options), or None.

    Raises:
        ValueError: Unknown name or option, options beside an object, or ``group_size`` below the shaper's least.
    """
    if shaper_kwargs is not None and not (isinstance(shaper_kwargs, Mapping) and all(isinstance(name, str) for name in shaper_kwargs)):
        raise ValueError(f"expected shaper_kwargs to be a dict of options by name, or None, got {shaper_kwargs!r}")
    if isinstance(shaper, str):
        shaper = make_shaper(shaper, **(shaper_kwargs or {}))
    elif shaper is not None and not callable(shaper):
        raise ValueError(f"expected shaper to be the name of a registered shaper, a shaper or None, got {shaper!r}")
    elif shaper_kwargs:
        raise ValueError(f"shaper_kwargs belong to the name of a registered shaper, got {dict(shaper_kwargs)} beside shaper={shaper!r}")
    least = getattr(shaper, "min_group_size", 1)
    if group_size is not None and group_size < least:
        raise ValueError(
            f"{shaper!r} needs groups of at least {least} completions, got group_size={group_size}: raise it, or set shaper=None"
        )
    return shaper


def apply_shaper(groups: Groups, shaper: Shaper, rng: np.random.Generator) -> None:
    """Write what ``shaper`` says into ``groups`` (in place), replacing what an earlier shaper wrote.

    Raises:
        ValueError: The shaper returned an array of another shape or a value that is not finite.
    """
    shaping = shaper(groups, rng)
    shape = groups.n_groups, groups.group_size
    defined = np.ones(shape[0], bool) if shaping.defined is None else _checked("defined", shaping.defined, shape[:1], shaper).astype(bool)
    groups.defined = defined
    groups.diversity = np.zeros(shape[0]) if shaping.diversity is None else _checked("diversity", shaping.diversity, shape[:1], shaper)
    neutral = {"credits": np.zeros(shape), "shaped_rewards": groups.rewards.copy(), "weights": np.ones(shape)}
    for name, otherwise in neutral.items():
        given = getattr(shaping, name)
        value = otherwise if given is None else np.where(defined[:, None], _checked(name, given, shape, shaper), otherwise)
        setattr(groups, name, value)


def _checked(name: str, value: np.ndarray, shape: tuple[int, ...], shaper: Shaper) -> np.ndarray:
    value = np.array(value, np.float64)
    if value.shape != shape:
        raise ValueError(f"expected {name} of shape {shape} from {shaper!r}, got {value.shape}")
    if not np.isfinite(value).all():
        raise ValueError(f"expected finite {name} from {shaper!r}, got nan or inf: a shaper says 'undefined' with defined=False")
    return value


class ShaperWrapper(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """Shapes the groups of an environment: replaces what ``info["group"]`` says of shaping, never the reward.

    Works in ``gym.make_vec(..., wrappers=[ShaperWrapper])``, in a spec's JSON (with a name and JSON options) and pickled.

    Args:
        env: A :class:`~setpo_envs.env.GroupEnv`, wrapped or not.
        shaper: Name of a registered shaper, or a shaper.
        shaper_kwargs: Options of the named shaper.
    """

    def __init__(self, env: gym.Env, shaper: Shaper | str = "setpo", shaper_kwargs: Mapping[str, Any] | None = None):
        gym.utils.RecordConstructorArgs.__init__(self, shaper=shaper, shaper_kwargs=shaper_kwargs)
        gym.Wrapper.__init__(self, env)
        self.shaper = resolve_shaper(shaper, shaper_kwargs, env.get_wrapper_attr("group_size"))

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(action)
        env: Any = self.unwrapped
        groups = env.last_groups
        apply_shaper(groups, self.shaper, env.side_rng)  # type: ignore[arg-type]
        return observation, reward, terminated, truncated, {**info, "group": groups.info(0)}
