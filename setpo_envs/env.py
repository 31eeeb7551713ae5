"""The environment whose action is a group: one prompt, G completions, one step."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from operator import index as as_index
from typing import Any

import gymnasium as gym
import numpy as np

from setpo_verifiers import Status

from .datasets.problem import Dataset, Problem, with_difficulty
from .group import Groups, verify_groups
from .prompts import messages
from .shapers.base import Shaper, resolve_shaper
from .spaces import Group, Unicode

MODES = ("lenient", "strict")


class GroupEnv(gym.Env[str, Sequence[str]]):
    """``reset`` draws a problem of ``dataset``; ``step`` takes its G completions, verifies them and ends the episode.

    A task subclasses it: build the data set, pass it on, and write the specification as docstring
    (:class:`~setpo_envs.tasks.countdown.CountdownEnv`). What ``step`` puts into ``info["group"]`` is described by
    ``setpo_envs.group.GROUP_FIELDS``.

    Args:
        dataset: Problems, by index.
        group_size: G, the number of completions in an action.
        shaper: Name of a registered shaper, a shaper, or None for no shaping.
        shaper_kwargs: Options of the named shaper.
        mode: "lenient" or "strict", how the verifier looks for the answer.
        system_prompt: Opens ``info["messages"]`` as system message; the observation stays the prompt.
        render_mode: "ansi" or None.

    Raises:
        ValueError: An argument out of its choices, or ``group_size`` below what the shaper needs.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}

    def __init__(
        self,
        dataset: Dataset,
        *,
        group_size: int = 8,
        shaper: Shaper | str | None = "setpo",
        shaper_kwargs: Mapping[str, Any] | None = None,
        mode: str = "lenient",
        system_prompt: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"expected mode among {', '.join(MODES)}, got {mode!r}")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"expected render_mode among None, {', '.join(self.metadata['render_modes'])}, got {render_mode!r}")
        if len(dataset) == 0:
            raise ValueError("expected a data set with at least one problem, got an empty one")
        self.dataset = dataset
        self.observation_space = Unicode()
        self.action_space = Group(Unicode(), group_size)
        self.group_size = self.action_space.group_size
        self.shaper = resolve_shaper(shaper, shaper_kwargs, self.group_size)
        self.mode = mode
        self.system_prompt = system_prompt
        self.render_mode = render_mode
        self.problem: Problem | None = None
        self.last_groups: Groups | None = None  # the record (N = 1) of the last step of this episode
        self._index = -1
        self._shaper_rng: np.random.Generator | None = None
        self._index_of: dict[str, int] = {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Draw a problem, or take the one that ``options={"index": i}`` or ``{"problem_id": id}`` names.

        ``options={"difficulty": name}``, alone or beside an index, takes this one problem from ``dataset.with_difficulty(name)``,
        where the data set has that method; ValueError otherwise.

        Returns:
            The prompt, and an info with ``index`` (int), ``problem_id`` (str) and ``messages`` (the prompt as chat messages).
        """
        super().reset(seed=seed)
        if seed is not None or self._shaper_rng is None:
            # A child of np_random's stream: what a shaper draws must not change which problem comes next.
            self._shaper_rng = self.np_random.spawn(1)[0]
        options = dict(options or {})
        dataset = with_difficulty(self.dataset, options.pop("difficulty")) if "difficulty" in options else self.dataset
        self._index = self._pinned_index(options, dataset) if options else int(self.np_random.integers(len(dataset)))
        self.problem = dataset[self._index]
        self.last_groups = None
        return self.problem.prompt, {**self._info(self.problem), "messages": messages(self.problem.prompt, self.system_prompt)}

    def step(self, action: Sequence[str]) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Verify G completions of the prompt (``str`` or :class:`~setpo_envs.group.Completion`).

        Returns:
            The prompt again, the mean verified reward of the group, terminated True, truncated False, and an info with
            ``index``, ``problem_id`` and ``group`` (``GROUP_FIELDS``).

        Raises:
            gymnasium.error.ResetNeeded: There is no open episode.
            gymnasium.error.InvalidAction: The action is not a tuple or list of ``group_size`` texts.
        """
        problem = self.problem
        if problem is None or self.last_groups is not None:
            raise gym.error.ResetNeeded("an episode is one group: call reset() before the next step()")
        if not (isinstance(action, (tuple, list)) and all(isinstance(text, str) for text in action)):
            raise gym.error.InvalidAction(f"expected a tuple or list of {self.group_size} str or Completion, got {_describe(action)}")
        if len(action) != self.group_size:
            raise gym.error.InvalidAction(
                f"expected {self.group_size} completions, got {len(action)}: pass one text for each member of the group, "
                f"or make the environment with group_size={len(action)}"
            )
        groups = verify_groups([problem], [action], mode=self.mode, shaper=self.shaper, rng=self._shaper_rng)
        self.last_groups = groups
        return problem.prompt, float(groups.mean_rewards[0]), True, False, {**self._info(problem), "group": groups.info(0)}

    def render(self) -> str | None:
        """The problem and, after a step, its completions with their verdicts, as text of at most 80 columns ("ansi")."""
        if self.render_mode is None:
            gym.logger.warn('render() needs a render mode: make the environment with render_mode="ansi"')
            return None
        if self.problem is None:
            raise gym.error.ResetNeeded("there is nothing to show yet: call reset() before render()")
        shown = f"{self.problem.problem_id} (index {self._index})\n\n{_wrapped(self.problem.prompt, '  ')}"
        return shown if self.last_groups is None else f"{shown}\n\n{render_group(self.last_groups, 0)}"

    def _info(self, problem: Problem) -> dict[str, Any]:
        return {"index": self._index, "problem_id": problem.problem_id}

    def _pinned_index(self, options: Mapping[str, Any], dataset: Dataset) -> int:
        if len(options) != 1 or not options.keys() <= {"index", "problem_id"}:
            raise ValueError(f"expected options with either index or problem_id, and difficulty besides or alone, got {dict(options)!r}")
        if "index" in options:
            index = as_index(options["index"])
            if not 0 <= index < len(dataset):
                raise ValueError(f"expected an index of at least 0 and below {len(dataset)}, got {index}")
            return index
        if dataset is not self.dataset:
            raise ValueError("expected options with problem_id alone or with index and difficulty, got problem_id and difficulty")
        if not self._index_of:  # first of its name: from the back, so that earlier ones overwrite
            self._index_of = {self.dataset[i].problem_id: i for i in reversed(range(len(self.dataset)))}
        wanted = options["problem_id"]
        if wanted not in self._index_of:
            example = self.dataset[0].problem_id
            raise ValueError(f"expected the problem_id of one of the {len(self.dataset)} problems (such as {example!r}), got {wanted!r}")
        return self._index_of[wanted]


def render_group(groups: Groups, n: int) -> str:
    """Group ``n`` for people: verdict, credit and mode of each completion above its text, at most 80 columns wide."""
    undefined = "" if groups.defined[n] else " (credits undefined)"
    lines = [f"reward {groups.mean_rewards[n]:.3f}, diversity {groups.diversity[n]:+.3f}{undefined}"]
    for g, text in enumerate(groups.completions_NG[n]):
        status = Status(int(groups.status[n, g])).name.lower()
        head = f"{g + 1:3d} {status:9s} reward {groups.rewards[n, g]:g}  credit {groups.credits[n, g]:+.4f}"
        mode = groups.mode_keys[n, g]
        if mode is not None:
            head += f"  mode {groups.modes[n, g]}: {mode}"
        lines += [head if len(head) <= 80 else f"{head[:77]}...", _wrapped(text, "    ", max_lines=6)]
    return "\n".join(lines)


def _wrapped(text: str, indent: str, max_lines: int | None = None) -> str:
    # model output may hold terminal control sequences: show none of them
    printable = "".join(c if c.isprintable() or c == "\n" else " " if c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
    lines = [part for line in printable.split("\n") for part in textwrap.wrap(line, 80 - len(indent)) or [""]]
    if max_lines is not None and len(lines) > max_lines:
        lines = [*lines[: max_lines - 1], f"... ({len(lines) - max_lines + 1} more lines)"]
    return "\n".join(indent + line if line else "" for line in lines)


def _describe(action: Any) -> str:
    if isinstance(action, (tuple, list)):
        return f"a {type(action).__name__} with {next(type(text).__name__ for text in action if not isinstance(text, str))} in it"
    return f"{type(action).__name__}: for one completion pass a list of one" if isinstance(action, str) else type(action).__name__
