"""The environment whose action is a group: one prompt, G completions, one step."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from .card import Card
from .datasets.mixture import MixtureDataset
from .datasets.problem import Dataset, Problem, with_difficulty
from .group import Groups, verify_groups
from .order import ORDERS, Order, checked_weights
from .prompts import messages
from .render import render_group, wrapped
from .shapers.base import Shaper, resolve_shaper
from .spaces import Group, Unicode

MODES = ("lenient", "strict")


def _no_dataset() -> Dataset:
    raise TypeError("expected a data set as first argument: this environment makes none of its own")


class GroupEnv(gym.Env[str, Sequence[str]]):
    """``reset`` draws a problem of a data set; ``step`` takes its G completions, verifies them and ends the episode.

    A task is a subclass that names the function which makes its data set and has its specification as docstring
    (:class:`~setpo_envs.tasks.countdown.CountdownEnv`)::

        class CountdownEnv(GroupEnv):
            '''Countdown: write an arithmetic expression ...'''

            make_dataset = staticmethod(countdown_dataset)

    What ``step`` puts into ``info["group"]`` is described by ``setpo_envs.group.GROUP_FIELDS``.

    Args:
        dataset: Problems, by index. A task makes its own from ``data``.
        group_size: G, the number of completions in an action.
        shaper: Name of a registered shaper, a shaper, a list of either (all of them), or None for no shaping.
        shaper_kwargs: Options of the named shaper.
        mode: "lenient" or "strict", how the verifier looks for the answer.
        order: "random" (with replacement), "shuffle" (each problem once an epoch, each epoch in another order) or
            "sequential". ``reset(seed=...)`` begins the order again; :attr:`state` says where it stands.
        system_prompt: Opens ``info["messages"]`` as system message; the observation stays the prompt.
        render_mode: "ansi" or None.
        data: The arguments of ``make_dataset``.

    Raises:
        TypeError: An argument that there is not.
        ValueError: An argument out of its choices, or ``group_size`` below what the shaper needs.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}
    make_dataset: ClassVar[Callable[..., Dataset]] = staticmethod(_no_dataset)
    card: ClassVar[Card] = Card()
    """The environment in a few words, for ``setpo envs`` and the tables of environments."""

    def __init__(
        self,
        dataset: Dataset | None = None,
        *,
        group_size: int = 8,
        shaper: Shaper | str | Sequence[Any] | None = "setpo",
        shaper_kwargs: Mapping[str, Any] | None = None,
        mode: str = "lenient",
        order: str = "random",
        system_prompt: str | None = None,
        render_mode: str | None = None,
        **data: Any,
    ) -> None:
        _check_names(type(self), data, self.make_dataset if dataset is None else _no_dataset)
        for name, value, choices in (
            ("mode", mode, MODES),
            ("order", order, ORDERS),
            ("render_mode", render_mode, (None, *self.metadata["render_modes"])),
        ):
            if value not in choices:
                raise ValueError(f"expected {name} among {', '.join(map(str, choices))}, got {value!r}")
        self.observation_space = Unicode()
        self.action_space = Group(Unicode(), group_size)
        self.group_size = self.action_space.group_size
        self.shaper = resolve_shaper(shaper, shaper_kwargs, self.group_size)
        if not (system_prompt is None or isinstance(system_prompt, str)):
            raise ValueError(f"expected system_prompt as text or None, got {system_prompt!r}")
        self.mode = mode
        self.system_prompt = system_prompt
        self.render_mode = render_mode
        dataset = self.make_dataset(**data) if dataset is None else dataset
        if len(dataset) == 0:
            raise ValueError("expected a data set with at least one problem, got an empty one")
        self.dataset = dataset
        if isinstance(dataset, MixtureDataset):
            self.order = Order(order, dataset.sizes, dataset.weights)
        else:
            self.order = Order(order, [len(dataset)], [1.0])
        """What is drawn next; a trainer that needs many problems at once draws from it with a generator of its own."""
        self.problem: Problem | None = None
        self.last_groups: Groups | None = None  # the record (N = 1) of the last step of this episode
        self.side_rng: np.random.Generator | None = None
        """For what shapers draw, which must not change which problem comes next; a child of ``np_random``."""
        self._info: dict[str, Any] = {}
        self._index_of: dict[str, int] = {}

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Take the next problem of the order, or what ``options`` ask for:

        - ``{"index": i}`` or ``{"problem_id": id}``: that problem, without moving the order on;
        - ``{"difficulty": name}``, alone or beside an index: this one problem from ``dataset.with_difficulty(name)``, where the
          data set has that method;
        - ``{"weights": [...]}``, in a mixture: draw its components by these weights from now on.

        Returns:
            The prompt, and an info with ``index`` (int), ``problem_id`` (str), ``messages`` (the prompt as chat messages) and,
            in a mixture, ``component`` (int), the place of the problem's task among the components.

        Raises:
            ValueError: Options that there are not, or values that they cannot have.
        """
        super().reset(seed=seed)
        if seed is not None or self.side_rng is None:
            self._begin()
        dataset, index = self._chosen(options) if options else (self.dataset, self.order.next(self.np_random))
        self.problem = dataset[index]
        self.last_groups = None
        self._info = {"index": index, "problem_id": self.problem.problem_id}
        if isinstance(self.dataset, MixtureDataset):
            self._info["component"] = self.order.part(index)
        return self.problem.prompt, {**self._info, "messages": messages(self.problem.prompt, self.system_prompt)}

    def step(self, action: Sequence[str]) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Verify G completions of the prompt (``str`` or :class:`~setpo_envs.completion.Completion`).

        Returns:
            The prompt again, the mean verified reward of the group, terminated True, truncated False, and an info with
            ``index``, ``problem_id``, ``component`` in a mixture, and ``group`` (``GROUP_FIELDS``).

        Raises:
            gymnasium.error.ResetNeeded: There is no open episode.
            gymnasium.error.InvalidAction: The action is not a tuple or list of ``group_size`` texts.
        """
        problem = self.problem
        if problem is None or self.last_groups is not None:
            raise gym.error.ResetNeeded("an episode is one group: call reset() before the next step()")
        if not (isinstance(action, (tuple, list)) and all(issubclass(kind, str) for kind in set(map(type, action)))):
            raise gym.error.InvalidAction(f"expected a tuple or list of {self.group_size} str or Completion, got {_describe(action)}")
        if len(action) != self.group_size:
            raise gym.error.InvalidAction(
                f"expected {self.group_size} completions, got {len(action)}: pass one text for each member of the group, "
                f"or make the environment with group_size={len(action)}"
            )
        groups = verify_groups([problem], [action], mode=self.mode, shaper=self.shaper, rng=self.side_rng)
        self.last_groups = groups
        return problem.prompt, float(groups.mean_rewards[0]), True, False, {**self._info, "group": groups.info(0)}

    def render(self) -> str | None:
        """With ``render_mode="ansi"``: the prompt and, after ``step``, the group with its verdicts and credits."""
        if self.render_mode is None:
            gym.logger.warn("render() shows nothing without a render mode: make the environment with render_mode='ansi'")
            return None
        if self.problem is None:
            raise gym.error.ResetNeeded("there is nothing to show yet: call reset() before render()")
        shown = f"{self.problem.problem_id} (index {self._info['index']})\n\n{wrapped(self.problem.prompt, '  ')}"
        return shown if self.last_groups is None else f"{shown}\n\n{render_group(self.last_groups, 0)}"

    @property
    def state(self) -> dict[str, Any]:
        """Which problem comes next, and what a shaper draws next, as JSON values.

        Set it on an environment that was made in the same way, in another process if need be, and the same resets and steps
        follow; an open episode is not part of it. Vector environments have ``envs.get_attr("state")`` and
        ``envs.set_attr("state", states)``.
        """
        if self.side_rng is None:
            self._begin()
        rngs = {"np_random": self.np_random, "side_rng": self.side_rng}
        return {**self.order.state, **{name: rng.bit_generator.state for name, rng in rngs.items() if rng is not None}}

    @state.setter
    def state(self, state: Mapping[str, Any]) -> None:
        now = self.state
        if not isinstance(state, Mapping) or state.keys() != now.keys():
            raise ValueError(f"expected a state with {', '.join(now)}, as env.state gives it, got {str(state)[:200]}")
        try:
            self._take(state)
        except ValueError:
            self._take(now)  # all of it or nothing
            raise
        self.problem = self.last_groups = None

    def _take(self, state: Mapping[str, Any]) -> None:
        self.order.state = state
        for name in ("np_random", "side_rng"):
            try:
                getattr(self, name).bit_generator.state = state[name]
            except (TypeError, ValueError, KeyError, OverflowError) as error:
                raise ValueError(f"expected {name} as env.state gives it, got {str(state[name])[:200]}") from error

    def _begin(self) -> None:
        self.side_rng = self.np_random.spawn(1)[0]
        self.order.restart(self.np_random)

    def _chosen(self, options: Mapping[str, Any]) -> tuple[Dataset, int]:
        """The data set and the index that options ask for."""
        known = ["index", "problem_id", "difficulty", *(["weights"] if isinstance(self.dataset, MixtureDataset) else [])]
        if not isinstance(options, Mapping) or not options.keys() <= set(known):
            raise ValueError(f"expected options among {', '.join(known)}, got {options!r}")
        if "problem_id" in options and len(options) > 1:
            raise ValueError(f"expected options with problem_id alone, got {' and '.join(sorted(options, reverse=True))}")
        dataset = with_difficulty(self.dataset, options["difficulty"]) if "difficulty" in options else self.dataset
        if "weights" in options:
            self.order.weights = checked_weights(options["weights"], len(self.order.sizes))
        if "problem_id" in options:
            return dataset, self._named(options["problem_id"])
        if "index" in options:
            return dataset, _checked_index(options["index"], len(dataset))
        return dataset, self.order.next(self.np_random)

    def _named(self, problem_id: Any) -> int:
        if not self._index_of:  # first of its name: from the back, so that earlier ones overwrite
            self._index_of = {self.dataset[i].problem_id: i for i in reversed(range(len(self.dataset)))}
        if not isinstance(problem_id, str) or problem_id not in self._index_of:
            example = self.dataset[0].problem_id
            raise ValueError(
                f"expected the problem_id of one of the {len(self.dataset)} problems (such as {example!r}), got {problem_id!r}"
            )
        return self._index_of[problem_id]


def _checked_index(index: Any, length: int) -> int:
    if not isinstance(index, (int, np.integer)) or isinstance(index, bool) or not 0 <= index < length:
        raise ValueError(f"expected an integer index of at least 0 and below {length}, got {index!r}")
    return int(index)


def _check_names(env: type[GroupEnv], data: Mapping[str, Any], make: Callable[..., Dataset]) -> None:
    known = list(inspect.signature(make).parameters)
    for name in data:
        if name not in known:
            own = [each.name for each in inspect.signature(GroupEnv).parameters.values() if each.kind is each.KEYWORD_ONLY]
            raise TypeError(f"unexpected keyword argument {name!r} of {env.__name__}: choose among {', '.join([*own, *known])}")


def _describe(action: Any) -> str:
    if isinstance(action, (tuple, list)):
        return f"a {type(action).__name__} with {next(type(text).__name__ for text in action if not isinstance(text, str))} in it"
    return f"{type(action).__name__}: for one completion pass a list of one" if isinstance(action, str) else type(action).__name__
