"""Graph colouring: give every vertex one of k colours so that no edge joins two vertices of the same colour.

An answer lists the colours of the vertices 0, 1, ..., n-1 in this order, one character each: ``01021``, ``0 1 0 2 1``,
``[0, 1, 0, 2, 1]`` or ``ABACB``. Colours are the digits from 0 to k-1, the digits from 1 to k, or the first k capital letters. Spaces,
commas and semicolons may stand between them, one pair of brackets, dollar signs and a period around them.

Which colour is called what makes no difference, so the mode key is the partition of the vertices: colours renamed in order of
appearance, ``20212`` to ``01020``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from .extract import locate
from .verdict import Status, Verdict

REASONS = ("correct", "no_answer", "syntax", "vertices", "colors", "edge U-V")
MAX_VERTICES = 10  # each is named by one digit
MAX_COLORS = 9
MAX_LENGTH = 200  # characters of a declared answer

_DIGITS, _LETTERS = "0123456789", "ABCDEFGHI"
_SEPARATORS = str.maketrans(",;", "  ")
_BRACKETS = {"[": "]", "(": ")", "{": "}"}


class GraphColoringGold(NamedTuple):
    """A graph with the vertices 0 to n-1, its edges (u, v) with u < v in order, and the number of colours."""

    n: int
    edges: tuple[tuple[int, int], ...]
    colors: int


_NO_ANSWER = Verdict(0.0, Status.NO_ANSWER, None, None, "no_answer")


def verify_graph_coloring(completion: str, gold: Any, *, mode: str = "lenient") -> Verdict:
    """Judge ``completion`` against ``gold`` (see :func:`parse_graph`).

    ``mode="strict"`` wants an ``<answer>`` tag or a box; lenient also takes a completion that is a list of colours and nothing else.

    Reasons: ``correct``; ``no_answer`` (nothing declared, or blank); ``syntax`` (the declared answer is no list of colours);
    ``vertices`` (not one colour for each vertex); ``colors`` (a colour that there is not); ``edge U-V`` (the first edge, in order, that
    joins two vertices of the same colour, such as ``edge 0-3``).

    Raises TypeError for a completion that is not a str, ValueError for a malformed gold or an unknown mode.
    """
    graph = parse_graph(gold)
    answer, marked = locate(completion, mode)
    if answer is None:
        return _NO_ANSWER
    if len(answer) > MAX_LENGTH:
        verdict = Verdict(0.0, Status.WRONG, answer[:MAX_LENGTH], None, "syntax")
    else:
        verdict = _judge(answer, graph)
    # Prose without a marker declares nothing, so it is no answer rather than a wrong one.
    return _NO_ANSWER if verdict.reason == "syntax" and not marked else verdict


def parse_graph(gold: Any) -> GraphColoringGold:
    """``{"n": 5, "edges": [[0, 1], ...], "colors": 3}`` or its JSON text. Nobody checks that there is a colouring: see :func:`colorings`.

    Raises ValueError unless n is an integer from 1 to 10, colors one from 1 to 9, and edges are pairs of two different vertices, none of
    them given twice (in either direction).
    """
    try:
        return _parse_text(gold) if isinstance(gold, str) else _parse_mapping(gold)
    except (TypeError, KeyError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(
            'expected a graph colouring gold {"n": vertices, "edges": [[0, 1], ...], "colors": k} as a mapping or its JSON text, '
            f"got {repr(gold)[:200]} ({error})"
        ) from error


def colorings(graph: GraphColoringGold) -> tuple[str, ...]:
    """Every proper colouring, one for each partition of the vertices, in order: the mode keys of all right answers."""
    earlier: list[list[int]] = [[] for _ in range(graph.n)]
    for u, v in graph.edges:
        earlier[v].append(u)
    found = [""]
    for neighbours in earlier:
        found = [
            coloring + color
            for coloring in found
            for color in _DIGITS[: min(len(set(coloring)) + 1, graph.colors)]
            if all(coloring[u] != color for u in neighbours)
        ]
    return tuple(found)


def partition(colors: Sequence[str]) -> str:
    """The colours, at most ten, renamed 0, 1, 2, ... in order of appearance."""
    names: dict[str, str] = {}
    return "".join(names.setdefault(color, str(len(names))) for color in colors)


@lru_cache(maxsize=4096)
def _parse_text(text: str) -> GraphColoringGold:
    return _parse_mapping(json.loads(text))


def _parse_mapping(gold: Any) -> GraphColoringGold:
    n, edges, colors = gold if isinstance(gold, GraphColoringGold) else (gold["n"], gold["edges"], gold["colors"])
    if type(n) is not int or not 1 <= n <= MAX_VERTICES:
        raise ValueError(f"n must be an integer from 1 to {MAX_VERTICES}")
    if type(colors) is not int or not 1 <= colors <= MAX_COLORS:
        raise ValueError(f"colors must be an integer from 1 to {MAX_COLORS}")
    if not isinstance(edges, (list, tuple)):
        raise ValueError("edges must be a list of pairs")
    found = set()
    for edge in edges:
        if not (isinstance(edge, (list, tuple)) and len(edge) == 2 and all(type(vertex) is int and 0 <= vertex < n for vertex in edge)):
            raise ValueError(f"edge {repr(edge)[:40]} is no pair of vertices from 0 to {n - 1}")
        pair = (min(edge), max(edge))
        if pair[0] == pair[1] or pair in found:
            raise ValueError(f"edge {list(edge)} " + ("joins a vertex to itself" if pair[0] == pair[1] else "is there twice"))
        found.add(pair)
    return GraphColoringGold(n, tuple(sorted(found)), colors)


@lru_cache(maxsize=65536)
def _judge(answer: str, graph: GraphColoringGold) -> Verdict:
    colors = read_colors(answer)
    if colors is None:
        return Verdict(0.0, Status.WRONG, answer, None, "syntax")
    reason = _reason(colors, graph)
    right = reason == "correct"
    return Verdict(float(right), Status(int(right)), answer, partition(colors), reason)


def read_colors(answer: str) -> str | None:
    """The colours that an answer lists, one character each; None where it is no list of colours."""
    text = answer.strip().removesuffix(".").strip("$ ")
    if text and text[-1] == _BRACKETS.get(text[0]):
        text = text[1:-1]
    words = text.translate(_SEPARATORS).split()
    colors = "".join(words)
    spaced = len(words) == 1 or len(words) == len(colors)
    return colors if colors and spaced and (set(colors) <= set(_DIGITS) or set(colors) <= set(_LETTERS)) else None


def _reason(colors: str, graph: GraphColoringGold) -> str:
    if len(colors) != graph.n:
        return "vertices"
    k = graph.colors
    if not any(set(colors) <= set(palette) for palette in (_DIGITS[:k], _DIGITS[1 : k + 1], _LETTERS[:k])):
        return "colors"
    return next((f"edge {u}-{v}" for u, v in graph.edges if colors[u] == colors[v]), "correct")
