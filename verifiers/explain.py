"""How a verdict came about, step by step, for a person to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from . import countdown, graph_coloring, knights_and_knaves
from .expressions import ExpressionError, literals, mode_key, parse, values
from .extract import locate
from .format import verify_format
from .registry import TASKS, verify
from .role_statements import plain
from .verdict import Verdict

_SHOWN = 300


def explain(task: str, completion: str, gold: Any, *, mode: str = "lenient", **options: Any) -> Iterator[tuple[str, str]]:
    """(step, what was found) from the completion to the verdict. Raises what :func:`verify` raises, but late: what was found shows."""
    yield "task", f"{task}, mode {mode}" + (f", options {options}" if options else "")
    verifier = TASKS.get(task)
    if verifier is None:
        verify(task, completion, gold, mode=mode)  # says which tasks there are
    if isinstance(completion, str):
        yield "completion", f"{len(completion)} characters: {_short(completion)}"
        yield from _thinking(completion)
        if verifier is not verify_format:
            yield from _marker(completion, mode)
    verdict = verify(task, completion, gold, mode=mode, **options)
    yield from _gold(task, gold)
    if verdict.answer is not None:
        yield "answer", _short(verdict.answer)
        if verifier is countdown.verify_countdown:
            yield from _countdown(verdict.answer, countdown.parse_gold(gold))
        elif verifier is graph_coloring.verify_graph_coloring:
            yield from _colors(verdict.answer, graph_coloring.parse_graph(gold))
        elif verifier is knights_and_knaves.verify_knights_and_knaves:
            yield from _roles(verdict, knights_and_knaves.parse_roles(gold))
    if verdict.mode_key is not None:
        yield "mode key", verdict.mode_key
    yield "verdict", f"{verdict.status.name}, reward {verdict.reward:g}, reason: {verdict.reason}"


def _short(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN // 2]} ... {shown[-_SHOWN // 2 :]}"


def _thinking(completion: str) -> Iterator[tuple[str, str]]:
    closed = completion.rfind("</think>")
    if completion.rfind("<think>") > closed:
        yield "thinking", "a <think> is not closed: there is no answer"
    elif closed >= 0:
        yield "thinking", f"{closed + len('</think>')} characters up to the last </think> do not count"
    else:
        yield "thinking", "no think tags: all of the text counts"


def _marker(completion: str, mode: str) -> Iterator[tuple[str, str]]:
    text = completion[completion.rfind("</think>") + 1 :]
    found, marked = locate(completion, mode)
    if marked:
        kind = "answer tag" if "<answer>" in text else "box"
        yield "marker", f"the last {kind}" + (", which is empty or not closed" if found is None else f" holds {_short(found)}")
    elif mode == "strict":
        yield "marker", "neither an answer tag nor a box"
    else:
        yield "marker", "neither an answer tag nor a box: lenient mode lets the task look through the text"


def _gold(task: str, gold: Any) -> Iterator[tuple[str, str]]:
    verifier = TASKS[task]
    if verifier is countdown.verify_countdown:
        problem = countdown.parse_gold(gold)
        yield "gold", f"reach {problem.target} with {', '.join(map(str, problem.numbers))}, each once"
    elif verifier is graph_coloring.verify_graph_coloring:
        graph = graph_coloring.parse_graph(gold)
        yield "gold", f"{graph.n} vertices in {graph.colors} colours, the edges {_edges(graph.edges)}"
    elif verifier is knights_and_knaves.verify_knights_and_knaves:
        yield "gold", ", ".join(f"{name} is {role}" for name, role in knights_and_knaves.parse_roles(gold).roles)
    else:
        yield "gold", _short(gold) if isinstance(gold, str) else repr(gold)[:_SHOWN]
        if isinstance(gold, str) and verifier is not verify_format:
            yield "gold's key", str(verify(task, f"<answer>{gold}</answer>", gold).mode_key)


def _countdown(answer: str, problem: countdown.CountdownGold) -> Iterator[tuple[str, str]]:
    try:
        text, stated = countdown.split_equation(countdown.normalise(answer))
        tree = parse(text)
    except ExpressionError as error:
        yield "expression", f"none: {error}"
        return
    yield "expression", text.strip() + ("" if stated is None else f", said to be {stated}")
    used, given = Counter(literals(tree)), Counter(problem.numbers)
    left, extra = sorted((given - used).elements()), sorted((used - given).elements())
    yield "numbers", "those given" if used == given else f"left out: {left or 'none'}; not given, or too often: {extra or 'none'}"
    try:
        value = values(tree)[-1]
        yield "value", f"{value}, " + ("the target" if value == problem.target else f"not {problem.target}")
    except ZeroDivisionError:
        yield "value", "none: it divides by zero"
    yield "normal form", mode_key(text)


def _colors(answer: str, graph: graph_coloring.GraphColoringGold) -> Iterator[tuple[str, str]]:
    colors = graph_coloring.read_colors(answer)
    if colors is None:
        yield "colours", "none: not a list of digits or of capital letters"
        return
    yield "colours", f"{len(colors)} for {graph.n} vertices: {', '.join(f'{vertex} has {color}' for vertex, color in enumerate(colors))}"
    if len(colors) == graph.n:
        same = [(u, v) for u, v in graph.edges if colors[u] == colors[v]]
        yield "edges", f"of one colour: {_edges(same)}" if same else "all of them join two colours"


def _edges(edges: Sequence[tuple[int, int]]) -> str:
    return ", ".join(f"{u}-{v}" for u, v in edges) or "none"


def _roles(verdict: Verdict, puzzle: knights_and_knaves.KnightsAndKnavesGold) -> Iterator[tuple[str, str]]:
    stated = {name: role for name, _, role in (pair.rpartition("=") for pair in (verdict.mode_key or "").split("; ")) if name}
    if not stated:
        yield "statements", "not one clear role for each person named, in words of this puzzle and nothing else"
    for name, role in puzzle.roles if stated else ():
        said = stated.get(plain(name))
        yield name, f"{said or 'not mentioned'}, " + ("right" if said == role else f"but the solution says {role}")
