"""Graph colouring problems: a connected graph, at most ten vertices, and the colours to give them. Generated or enumerated."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from setpo_verifiers.graph_coloring import MAX_VERTICES, GraphColoringGold, colorings

from ..prompts import GRAPH_COLORING_PROMPTS, GraphColoringPrompt
from .problem import Dataset, Problem, is_dataset
from .procedural import DEFAULT_SIZE, SPLITS, checked_index, expect, is_int, settings_of, split_of_key

MIN_VERTICES = 3  # the sample answer of the prompt has two
MAX_COLORS = 4  # ten vertices in a line have 3,281 modes with four colours, and 21,146 with nine
MAX_SPACE = 50_000  # graphs that "enumerate" goes through: six vertices have 32,768, some 60 us each
MAX_DRAWS = 20_000  # candidates for one generated problem

PRESETS: dict[str, dict[str, Any]] = {
    "easy": {"min_vertices": 4, "max_vertices": 5, "edge_range": (4, 7)},
    "medium": {"min_vertices": 6, "max_vertices": 7, "edge_range": (7, 11)},
    "hard": {"min_vertices": 8, "max_vertices": 9, "edge_range": (11, 16)},
}

Edges = tuple[tuple[int, int], ...]  # (u, v) with u < v, in order


@dataclass(frozen=True)
class GraphColoringSettings:
    """Which problems there are; ranges are inclusive. Raises ValueError for values that make no sense together.

    Every graph is connected and has a colouring. Each number of vertices from ``min_vertices`` to ``max_vertices`` takes what it can of
    ``edge_range``: connected graphs of n vertices have n - 1 edges to n(n - 1)/2.
    """

    min_vertices: int = 5
    max_vertices: int = 7
    edge_range: tuple[int, int] = (6, 10)
    colors: int = 3
    min_modes: int = 1  # difficulty: a problem has at least so many modes (distinct solutions)
    max_modes: int | None = None  # and at most so many
    size: int | None = None  # length of a generated data set, by default DEFAULT_SIZE; an enumerated one has its own

    def __post_init__(self) -> None:
        limits = (
            ("min_vertices", MIN_VERTICES, MAX_VERTICES),
            ("max_vertices", self.min_vertices, MAX_VERTICES),
            ("colors", 2, MAX_COLORS),
        )
        for name, least, most in limits:
            value = getattr(self, name)
            expect(is_int(value) and least <= value <= most, f"{name} to be an integer from {least} to {most}", value)
        expect(is_int(self.min_modes) and self.min_modes >= 1, "min_modes to be an integer of at least 1", self.min_modes)
        for name, least in (("max_modes", self.min_modes), ("size", 1)):
            value = getattr(self, name)
            expect(value is None or (is_int(value) and value >= least), f"{name} to be None or an integer of at least {least}", value)
        edges = self.edge_range
        pair = isinstance(edges, (tuple, list)) and len(edges) == 2 and all(map(is_int, edges)) and edges[0] <= edges[1]
        expect(pair, "edge_range to be two integers (least, greatest)", edges)
        object.__setattr__(self, "edge_range", tuple(edges))  # JSON has lists only
        for n in self.vertices:
            expect(
                self.edges_of(n), f"edge_range to allow connected graphs of {n} vertices, with {n - 1} to {math.comb(n, 2)} edges", edges
            )

    @property
    def vertices(self) -> range:
        return range(self.min_vertices, self.max_vertices + 1)

    def edges_of(self, n: int) -> range:
        """How many edges a graph of n vertices may have."""
        return range(max(self.edge_range[0], n - 1), min(self.edge_range[1], math.comb(n, 2)) + 1)

    def accepts(self, modes: Sequence[str]) -> bool:
        return self.min_modes <= len(modes) <= (self.max_modes or math.inf)

    @classmethod
    def of(cls, settings: GraphColoringSettings | Mapping[str, Any] | None, difficulty: str | None = None) -> GraphColoringSettings:
        """Settings from a mapping (as in ``gym.make``) and a named difficulty: see ``settings_of``."""
        return settings_of(cls, settings, difficulty, PRESETS)


class Item(NamedTuple):
    """A graph and the number of colours, with all modes."""

    graph: GraphColoringGold
    modes: tuple[str, ...]


def graph_coloring_dataset(
    source: Any = "generator",
    *,
    split: str = "train",
    settings: GraphColoringSettings | Mapping[str, Any] | None = None,
    difficulty: str | None = None,
    prompt_format: str = "tinyzero",
    seed: int = 0,
) -> Dataset:
    """The data set that ``setpo/GraphColoring-v0`` draws from; its docstring says what the arguments mean.

    Raises:
        ValueError: An argument out of its choices, settings for problems that exist already, or a space too large to enumerate.
    """
    expect(prompt_format in GRAPH_COLORING_PROMPTS, f"prompt_format among {', '.join(GRAPH_COLORING_PROMPTS)}", prompt_format)
    expect(split in SPLITS, f"split among {', '.join(SPLITS)}", split)
    if is_dataset(source):
        for name, value in (("settings", settings), ("difficulty", difficulty)):
            expect(value is None, f"no {name} beside problems that exist already", value)
        return source
    prompt, typed = GRAPH_COLORING_PROMPTS[prompt_format], GraphColoringSettings.of(settings, difficulty)
    expect(isinstance(source, str) and source in ("generator", "enumerate"), "source 'generator', 'enumerate' or a data set", source)
    if source == "generator":
        return GeneratedGraphColoring(typed, split, prompt, seed)
    expect(typed.size is None, "no size in the settings of source='enumerate', which lists all there is", typed.size)
    items = [item for item in enumerate_space(typed) if split_of(item.graph) == split]
    expect(items, f"settings with at least one problem in split {split!r}", typed)
    return ListedGraphColoring(items, prompt)


def as_colors(problem: Problem, mode: str, rng: random.Random) -> str:
    """``mode`` with the colours of the problem exchanged at random."""
    colors = [*map(str, range(problem.gold["colors"]))]
    rng.shuffle(colors)
    return "".join(colors[int(color)] for color in mode)


class ListedGraphColoring:
    """Problems listed in memory."""

    write_mode = staticmethod(as_colors)

    def __init__(self, items: Sequence[Item], prompt: GraphColoringPrompt) -> None:
        self._items = items
        self._prompt = prompt

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> Problem:
        return _problem(self._items[checked_index(index, len(self))], self._prompt)


class GeneratedGraphColoring:
    """Problems generated on demand: item ``index`` of root ``seed`` depends on nothing but the two, split and settings.

    An item is drawn from ``SeedSequence([seed, index])``: vertices, a number of edges and the edges, each uniformly, until the graph is
    connected, belongs to the split and has the difficulty.
    """

    write_mode = staticmethod(as_colors)

    def __init__(self, settings: GraphColoringSettings, split: str, prompt: GraphColoringPrompt, seed: int) -> None:
        expect(is_int(seed) and seed >= 0, "seed to be an integer of at least 0", seed)
        self.settings, self.split, self.seed = settings, split, seed
        self._prompt = prompt

    def with_difficulty(self, name: str) -> GeneratedGraphColoring:
        """The same data set with the settings of a named difficulty in place of its own; ValueError for an unknown name."""
        expect(name in PRESETS, f"difficulty among {', '.join(PRESETS)}", name)
        return GeneratedGraphColoring(replace(self.settings, **PRESETS[name]), self.split, self._prompt, self.seed)

    def __len__(self) -> int:
        return self.settings.size or DEFAULT_SIZE

    def __getitem__(self, index: int) -> Problem:
        index = checked_index(index, len(self))
        rng = np.random.default_rng(np.random.SeedSequence([self.seed, index]))
        for graph in _candidates(self.settings, rng):
            if split_of(graph) == self.split and self.settings.accepts(modes := colorings(graph)):
                return _problem(Item(graph, modes), self._prompt)
        raise ValueError(f"found no problem in split {self.split!r} for {self.settings}: loosen the settings")


def split_of(graph: GraphColoringGold) -> str:
    """The split that a labelled graph belongs to, whatever the seed and the colours: train 80 %, validation 10 %, test 10 %."""
    return split_of_key(_key(graph.edges))


@lru_cache(maxsize=4)
def enumerate_space(settings: GraphColoringSettings) -> tuple[Item, ...]:
    """Every problem of the settings over all splits, in a fixed order: by vertices, then by edges.

    Cached per process. Raises ValueError if the space is too large, saying how large it is.
    """
    space = sum(math.comb(math.comb(n, 2), size) for n in settings.vertices for size in settings.edges_of(n))
    expect(space <= MAX_SPACE, f"at most {MAX_SPACE} sets of edges with source='enumerate' (try 'generator')", space)
    graphs = (
        GraphColoringGold(n, edges, settings.colors)
        for n in settings.vertices
        for size in settings.edges_of(n)
        for edges in combinations(tuple(combinations(range(n), 2)), size)
        if connected(n, edges)
    )
    items = (Item(graph, colorings(graph)) for graph in graphs)
    return tuple(item for item in items if settings.accepts(item.modes))


def connected(n: int, edges: Edges) -> bool:
    """Whether the edges join all of the vertices 0 to n - 1."""
    reached = {0}
    for _ in range(n - 1):
        reached.update(vertex for edge in edges if not reached.isdisjoint(edge) for vertex in edge)
    return len(reached) == n


def _candidates(settings: GraphColoringSettings, rng: np.random.Generator) -> Iterator[GraphColoringGold]:
    """Random connected graphs; ends after MAX_DRAWS draws. A draw takes two numbers from [0, 1) and one for each pair of vertices."""
    for _ in range(MAX_DRAWS):
        first, second = rng.random(2).tolist()
        n = settings.vertices[int(first * len(settings.vertices))]
        sizes = settings.edges_of(n)
        pairs = tuple(combinations(range(n), 2))
        chosen = np.sort(np.argsort(rng.random(len(pairs)), kind="stable")[: sizes[int(second * len(sizes))]])
        edges = tuple(pairs[i] for i in chosen.tolist())
        if connected(n, edges):
            yield GraphColoringGold(n, edges, settings.colors)


def _problem(item: Item, prompt: GraphColoringPrompt) -> Problem:
    n, edges, colors = item.graph
    return Problem(
        problem_id=f"graph_coloring/{_key(edges)}:{colors}",
        task="graph_coloring",
        prompt=prompt(n, edges, colors),
        gold={"n": n, "edges": [list(edge) for edge in edges], "colors": colors},
        metadata={"n_vertices": n, "n_edges": len(edges), "modes": item.modes, "n_modes": len(item.modes)},
    )


def _key(edges: Edges) -> str:
    """What makes two graphs the same, and never changes: splits and problem ids hang on it."""
    return ",".join(f"{u}{v}" for u, v in edges)
