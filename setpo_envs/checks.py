"""Checks for what others write: run them on your own data set or shaper before you train with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from setpo_verifiers import TASKS, Status, verify
from setpo_verifiers.countdown import verify_countdown
from setpo_verifiers.graph_coloring import colorings, parse_graph, verify_graph_coloring
from setpo_verifiers.knights_and_knaves import parse_roles, verify_knights_and_knaves

from .datasets.countdown import problem_modes
from .datasets.problem import Dataset, Problem, normalised
from .prompts import with_article
from .shapers.contract import check_shaper

__all__ = ["boxed_gold", "check_dataset", "check_shaper", "right_completion"]

# what a prompt says of its answer format -> the answer in it
_FORMATS = (("CONCLUSION:", "CONCLUSION:\n{}"), ("<answer>", "<answer>{}</answer>"), ("####", "#### {}"))


def boxed_gold(problem: Problem) -> str | None:
    """The completion that declares the gold answer in a box; None where the gold is no text or number, but say a record."""
    gold = problem.gold
    return f"\\boxed{{{gold}}}" if isinstance(gold, (str, int, float)) and not isinstance(gold, bool) else None


def right_completion(problem: Problem) -> str | None:
    """A completion that declares a right answer, in the answer format that the prompt asks for; in a box where it asks for none.

    The answer is the gold; for Countdown the first solution that the rules of the problem allow, for graph colouring the first colouring,
    for Knights and Knaves the role of each person. None where there is no solution, more numbers than the solver takes, or a gold that is
    no text or number.
    """
    answer = _ANSWERS.get(TASKS.get(problem.task), _gold_answer)(problem)
    if answer is None:
        return None
    return next((text for marker, text in _FORMATS if marker in problem.prompt), "\\boxed{{{}}}").format(answer)


def _gold_answer(problem: Problem) -> str | None:
    return None if boxed_gold(problem) is None else str(problem.gold)


def _roles_answer(problem: Problem) -> str | None:
    return "\n".join(f"({n}) {name} is {with_article(role)}" for n, (name, role) in enumerate(parse_roles(problem.gold).roles, start=1))


def _colors_answer(problem: Problem) -> str | None:
    return next(iter(colorings(parse_graph(problem.gold))), None)


def _countdown_answer(problem: Problem) -> str | None:
    try:
        modes = problem_modes(problem)
    except ValueError:
        return None
    return next((mode for mode in modes if verify(problem.task, mode, problem.gold, **problem.options).reward), None)


_ANSWERS: Mapping[Any, Callable[[Problem], str | None]] = {  # verifier -> an answer that it accepts
    verify_countdown: _countdown_answer,
    verify_graph_coloring: _colors_answer,
    verify_knights_and_knaves: _roles_answer,
}


def check_dataset(
    dataset: Dataset,
    limit: int = 1000,
    *,
    answer: Callable[[Problem], str | None] = boxed_gold,
    disjoint_from: Sequence[Dataset] = (),
) -> None:
    """Raise ValueError, naming the index, if ``dataset`` breaks what environments rely on.

    The first ``limit`` items are problems with prompts; two that share an id are one problem, its words in any order; the same
    index gives the same problem; the verifier of the task accepts the gold with the problem's options, rewards
    ``answer(problem)`` in strict mode (None: it is not asked), and does not reward an empty completion; every mode in the
    metadata, given as the completion, is correct.

    Args:
        answer: The completion that declares a problem's gold answer in its answer format.
        disjoint_from: Data sets, such as the other splits, that must share no prompt (but for case and spaces) with these items.
    """
    if len(dataset) < 1:
        raise ValueError("expected at least one problem, got an empty data set")
    index_of: dict[str, int] = {}
    elsewhere = {normalised(other[i].prompt): (n, i) for n, other in enumerate(disjoint_from) for i in range(len(other))}
    for index in range(min(len(dataset), limit)):
        problem = dataset[index]
        if not isinstance(problem, Problem):
            raise ValueError(f"index {index}: expected a Problem, got {type(problem).__name__}")
        if dataset[index] != problem:
            raise ValueError(f"index {index}: expected the same problem each time, got two different ones")
        if not problem.prompt.strip():
            raise ValueError(f"index {index}: expected a prompt, got an empty one")
        first = index_of.setdefault(problem.problem_id, index)
        if first != index and _words(dataset[first]) != _words(problem):
            raise ValueError(f"index {index}: expected a problem_id of its own, got {problem.problem_id!r}, which index {first} has")
        if same := elsewhere.get(normalised(problem.prompt)):
            raise ValueError(
                f"index {index}: expected prompts that data set {same[0]} of disjoint_from does not have, got its index {same[1]}"
            )
        _check_verifier(index, problem, answer(problem))


def _words(problem: Problem) -> list[str]:
    return sorted(re.findall(r"\w+", problem.prompt))


def _check_verifier(index: int, problem: Problem, right: str | None) -> None:
    try:
        empty = verify(problem.task, "", problem.gold, **problem.options)
    except (ValueError, TypeError) as error:
        raise ValueError(f"index {index}: expected a gold that the verifier of {problem.task!r} accepts ({error})") from None
    if empty.reward != 0:
        raise ValueError(f"index {index}: expected no reward for an empty completion, got {empty.reward}")
    if right is not None:
        verdict = verify(problem.task, right, problem.gold, mode="strict", **problem.options)
        if verdict.status != Status.CORRECT:
            raise ValueError(f"index {index}: expected the gold answer, given as {right!r}, to be correct, got {verdict}")
    modes = problem.metadata.get("modes", ())
    if "n_modes" in problem.metadata and problem.metadata["n_modes"] != len(modes):
        raise ValueError(f"index {index}: expected n_modes={len(modes)} as there are modes, got {problem.metadata['n_modes']}")
    for key in modes:
        verdict = verify(problem.task, key, problem.gold, **problem.options)
        if verdict.status != Status.CORRECT or verdict.mode_key != key:
            raise ValueError(f"index {index}: expected mode {key!r} to be correct and its own key, got {verdict}")
