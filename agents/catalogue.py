"""What environments there are and what is in them, as text for people; no model is needed for it."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium as gym

from setpo_envs import GroupEnv
from setpo_envs.checks import right_completion
from setpo_envs.render import render_group, wrapped

NAMESPACE = "setpo/"


def registered_ids() -> list[str]:
    """The ids of the suite, in the order in which they are registered."""
    return [env_id for env_id in gym.registry if env_id.startswith(NAMESPACE)]


def env_class(env_id: str) -> type[GroupEnv]:
    """The class behind an id. ``module:id`` imports the module first, for environments that others registered.

    Raises:
        ValueError: There is no such module, or the environment takes no groups.
        gymnasium.error.Error: There is no such id.
    """
    module, _, name = env_id.rpartition(":")
    if module:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            raise ValueError(f"expected MODULE:ID with a module that can be imported, got {env_id!r} ({error})") from error
    try:
        entry_point = gym.spec(name).entry_point
    except gym.error.Error as error:
        raise gym.error.UnregisteredEnv(f"{error} (setpo envs lists the ids of the suite)") from error
    found: Any = gym.envs.registration.load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point
    if not (isinstance(found, type) and issubclass(found, GroupEnv)):
        raise ValueError(f"expected a group environment, such as {', '.join(registered_ids()[:2])}, got {env_id!r}")
    return found


def overview() -> Iterator[str]:
    """Each registered environment in a few lines: its task, its card, and the first line of an example prompt."""
    for env_id in registered_ids():
        env = env_class(env_id)
        summary = _own_doc(env).partition("\n\n")[0]
        yield f"{env_id}\n{wrapped(' '.join(summary.split()), '  ')}"
        for name, text in _facts(env_id, env):
            yield _field(name, text)
        yield ""


def specification(env_id: str) -> str:
    """The docstring of the environment's class, followed by those of the classes that it builds on."""
    classes = [each for each in env_class(env_id).__mro__ if issubclass(each, GroupEnv) and each is not GroupEnv] or [GroupEnv]
    return "\n\n\n".join(f"{each.__name__}\n{'-' * len(each.__name__)}\n{_own_doc(each)}" for each in classes)


def example(env_id: str, index: int = 0, settings: Mapping[str, Any] | None = None) -> str:
    """One problem: its prompt, gold, verifier options and metadata, and a right answer as the verifier judges it.

    Args:
        env_id: As :func:`env_class`.
        index: Place of the problem in the data set.
        settings: Arguments of ``gym.make`` beside ``render_mode``; without others there is one completion and no shaper.

    Raises what ``gym.make`` and ``reset`` raise, and as :func:`env_class`.
    """
    env_class(env_id)
    given = {"group_size": 1, "shaper": None, **(settings or {})}
    env: Any = gym.make(env_id, render_mode="ansi", **given).unwrapped
    env.reset(options={"index": index})
    problem = env.problem
    lines = [f"{env_id}, {len(env.dataset):,} problems", env.render(), ""]
    facts = {"verifier": problem.task, "gold": problem.gold, "options": problem.options, "metadata": problem.metadata}
    lines += [_field(name, value if name == "verifier" else _json(value)) for name, value in facts.items() if value or name == "gold"]
    text = right_completion(problem)
    if text is None:
        return "\n".join([*lines, "", "no sample: no right completion can be made from the gold alone"])
    env.step([text] * env.group_size)
    return "\n".join([*lines, "", "a right answer, as it is judged:", render_group(env.last_groups, 0)])


def _own_doc(env: type[GroupEnv]) -> str:
    """Not an inherited one, which would describe another environment."""
    return inspect.cleandoc(env.__dict__.get("__doc__") or "(without a docstring)")


def _facts(env_id: str, env: type[GroupEnv]) -> Iterator[tuple[str, str]]:
    card = env.card
    parameter = inspect.signature(env.make_dataset).parameters.get("source")
    if parameter is not None:
        yield "source", "yours" if parameter.default is None else f"{_json(parameter.default)} by default{_offline(env)}"
    for name in ("data", "rows", "verifier", "licence"):
        yield name, getattr(card, name).replace("`", "")
    if card.example is not None:
        yield "prompt", _prompt_line(env_id, card.example)


def _prompt_line(env_id: str, arguments: Mapping[str, Any]) -> str:
    try:
        made: Any = gym.make(env_id, shaper=None, **arguments).unwrapped
    except (ValueError, TypeError, OSError, ImportError, gym.error.Error) as error:  # one that cannot be made must not hide the others
        return f"none: {error}"
    first, *more = wrapped(made.dataset[0].prompt, " " * 16).split("\n")
    return first.strip() + (" ..." if more else "")


def _offline(env: type[GroupEnv]) -> str:
    source = (env.card.example or {}).get("source")
    return f"; {_json(source)} works offline" if source == "embedded" else ""


def _field(name: str, text: str) -> str:
    indent = " " * 12
    return f"  {name:10}{wrapped(text, indent, max_lines=6)[len(indent) :]}"


def _json(value: Any) -> str:
    return json.dumps(dict(value) if isinstance(value, Mapping) else value, ensure_ascii=False, default=str)
