"""``setpo/Mixture-v0``: the docstring of :class:`MixtureEnv` is its specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym

from ..card import Card
from ..datasets.mixture import MixtureDataset
from ..env import GroupEnv

DEFAULT_COMPONENTS: tuple[Mapping[str, Any], ...] = tuple(
    {"id": "setpo/Countdown-v0", "kwargs": {"settings": {"min_numbers": n, "max_numbers": n}}} for n in (3, 4)
)


def mixture_dataset(components: Sequence[Mapping[str, Any]] = DEFAULT_COMPONENTS, *, split: str | None = None) -> MixtureDataset:
    """The data set that ``setpo/Mixture-v0`` draws from; its docstring says what the arguments mean.

    Raises:
        ValueError: Components of another form, or a mixture within a mixture.
        gymnasium.error.Error: An id that is not registered.
    """
    if not isinstance(components, (list, tuple)) or not components:
        raise ValueError(f"expected components as a list of at least one {{'id', 'weight', 'kwargs'}}, got {components!r}")
    parts = []
    for component in components:
        if not isinstance(component, Mapping) or not {"id"} <= component.keys() <= {"id", "weight", "kwargs"}:
            raise ValueError(f"expected a component with id and, if you like, weight and kwargs, got {component!r}")
        kwargs = component.get("kwargs", {})
        if not isinstance(kwargs, Mapping):
            raise ValueError(f"expected the kwargs of a component as a dict, got {kwargs!r}")
        for name in ("group_size", "shaper", "shaper_kwargs", "mode", "order", "system_prompt", "render_mode"):
            if name in kwargs:
                raise ValueError(f"expected {name} as an argument of the mixture, which it holds for, got it in component {component!r}")
        given = {"split": split, **kwargs} if split is not None else kwargs
        env: Any = gym.make(component["id"], shaper=None, **given).unwrapped
        if not isinstance(env, GroupEnv) or isinstance(env.dataset, MixtureDataset):
            raise ValueError(f"expected components that are group environments and no mixtures themselves, got {component!r}")
        parts.append(env.dataset)
    return MixtureDataset(parts, [component.get("weight", 1.0) for component in components])


class MixtureEnv(GroupEnv):
    r"""Several tasks in one environment: each episode is a group of one of them, drawn by weight.

    Example::

        import gymnasium as gym
        import setpo_envs

        components = [
            {"id": "setpo/GSM8K-v0", "weight": 3, "kwargs": {"source": "embedded"}},
            {"id": "setpo/AMC-v0", "weight": 1, "kwargs": {"source": "embedded"}},
        ]
        env = gym.make("setpo/Mixture-v0", components=components, group_size=3)
        prompt, info = env.reset(options={"index": 16})  # there are 16 of GSM8K: this is the first of AMC
        assert info["component"] == 1
        _, reward, _, _, info = env.step(["\\boxed{30}", "\\boxed{60}", "no idea"])
        assert info["group"]["rewards"].tolist() == [1.0, 0.0, 0.0]

    Observation
        ``str``, the prompt of the component that was drawn.
    Action
        Tuple or list of ``group_size`` completions of that prompt.
    Reward, episode, ``info["group"]``
        Those of the component: each problem is judged by the verifier of its own task. ``info`` of ``reset`` and ``step`` also
        has ``component`` (int), the place of the problem's task in ``components``.
    Order
        ``order`` holds within each component, with a position of its own in each: under "shuffle" every problem of a component
        comes once before any comes again. Which component is next is drawn by weight, whatever its size and the order.
        ``reset(options={"weights": [...]})`` sets the weights from then on (a curriculum); 0 leaves a component out. They are
        part of ``env.unwrapped.state``, and ``reset(seed=...)`` does not undo them.
    Splits
        ``split`` is passed on to every component that does not set its own.
    Data
        The problems of all components, one after another: ``{"index": i}`` and ``{"problem_id": id}`` reach each of them.

    Args:
        components: A list of ``{"id": "setpo/Countdown-v0", "weight": 2, "kwargs": {...}}``: the id of an environment, how often
            it is drawn (default 1, up to a common factor), and the arguments of its data set. By default Countdown with three
            and with four numbers, equally often.
        split: "train", "validation" or "test", or None for the default of each component.
        group_size, shaper, shaper_kwargs, mode, order, system_prompt, render_mode: As in every environment; they hold for all components.

    Version history
        v0: first version.
    """

    card = Card(
        data="those of its components, by default Countdown with 3 and with 4 numbers",
        rows="theirs",
        verifier="theirs",
        licence="theirs",
        example={},
    )
    make_dataset = staticmethod(mixture_dataset)
