"""Knights and Knaves puzzles: generated with exactly one solution, or rows of K-and-K/knights-and-knaves."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from setpo_verifiers.knights_and_knaves import ROLE_PAIRS, parse_roles

from ..prompts import KNIGHTS_AND_KNAVES_PROMPTS, KnightsAndKnavesPrompt
from .knights_and_knaves_logic import Statement, depth_of, draw_statement, puzzle_key, solution_of, worlds
from .knights_and_knaves_text import draw_names, quiz
from .problem import Dataset, Problem, is_dataset
from .procedural import DEFAULT_SIZE, SPLITS, checked_index, expect, is_int, settings_of, split_of_key
from .sources import SUFFIXES, is_table, rows

HUB_ID = "K-and-K/knights-and-knaves"
MAX_PEOPLE = 8
MAX_DEPTH = 4
MAX_WIDTH = 4
MAX_DRAWS = 20_000  # candidates for one generated problem

PRESETS: dict[str, dict[str, Any]] = {
    "easy": {"min_people": 2, "max_people": 3},
    "medium": {"min_people": 4, "max_people": 5},
    "hard": {"min_people": 6, "max_people": 8},
}


@dataclass(frozen=True)
class KnightsAndKnavesSettings:
    """Which puzzles there are; ranges are inclusive. Raises ValueError for values that make no sense.

    A statement has at most ``depth`` levels: who is what is one level, each connective around it another. With one level no
    puzzle has exactly one solution, as the opposite of a solution is one too.
    """

    min_people: int = 3
    max_people: int = 5
    depth: int = 2
    width: int = 2  # parts of an "and" or "or", at most
    vary_roles: bool = True  # any of the verifier's role words; False: knights and knaves only
    size: int | None = None  # length of the data set, by default DEFAULT_SIZE

    def __post_init__(self) -> None:
        limits = (
            ("min_people", 2, MAX_PEOPLE),
            ("max_people", self.min_people, MAX_PEOPLE),
            ("depth", 2, MAX_DEPTH),
            ("width", 2, MAX_WIDTH),
        )
        for name, least, most in limits:
            value = getattr(self, name)
            expect(is_int(value) and least <= value <= most, f"{name} to be an integer from {least} to {most}", value)
        expect(isinstance(self.vary_roles, bool), "vary_roles to be True or False", self.vary_roles)
        expect(self.size is None or (is_int(self.size) and self.size >= 1), "size to be None or an integer of at least 1", self.size)

    @classmethod
    def of(cls, settings: KnightsAndKnavesSettings | Mapping[str, Any] | None, difficulty: str | None = None) -> KnightsAndKnavesSettings:
        """Settings from a mapping (as in ``gym.make``) and a named difficulty: see ``settings_of``."""
        return settings_of(cls, settings, difficulty, PRESETS)


class Puzzle(NamedTuple):
    """A generated puzzle: person i, called ``names[i]``, says ``statements[i]``; ``solution[i]``: whether it is true."""

    statements: tuple[Statement, ...]
    solution: tuple[bool, ...]
    names: tuple[str, ...]
    role_names: tuple[str, str]  # truth-teller, liar
    quiz: str
    key: str  # equal for puzzles that differ in wording only: see puzzle_key


def knights_and_knaves_dataset(
    source: Any = "generator",
    *,
    split: str = "train",
    settings: KnightsAndKnavesSettings | Mapping[str, Any] | None = None,
    difficulty: str | None = None,
    prompt_format: str = "logic_rl",
    seed: int = 0,
) -> Dataset:
    """The data set that ``setpo/KnightsAndKnaves-v0`` draws from; its docstring says what the arguments mean.

    Raises:
        ValueError: An argument out of its choices, settings for rows that exist already, or a malformed row (with file and
            line).
    """
    known = KNIGHTS_AND_KNAVES_PROMPTS
    expect(prompt_format in known, f"prompt_format among {', '.join(known)}", prompt_format)
    expect(split in SPLITS, f"split among {', '.join(SPLITS)}", split)
    if isinstance(source, str) and source == "generator":
        typed = KnightsAndKnavesSettings.of(settings, difficulty)
        return GeneratedKnightsAndKnaves(typed, split, known[prompt_format], seed)
    for name, value in (("settings", settings), ("difficulty", difficulty)):
        expect(value is None, f"no {name} beside problems that exist already", value)
    if is_dataset(source):
        return source
    choices = f"source 'generator', 'hub', a path that ends in {', '.join(SUFFIXES)}, or a data set"
    path = isinstance(source, (str, os.PathLike)) and os.fspath(source).endswith(SUFFIXES)
    expect(path or is_table(source) or source == "hub", choices, source)
    expect(source != "hub" or split != "validation", f"split 'train' or 'test', which {HUB_ID} has", split)
    found: Iterable[tuple[str, dict[str, Any]]] = rows(source, hub_id=HUB_ID) if source != "hub" else _hub_rows(split)
    return [_row_problem(where, row, known[prompt_format]) for where, row in found]


class GeneratedKnightsAndKnaves:
    """Puzzles generated on demand: item ``index`` of root ``seed`` depends on nothing but the two, split and settings.

    An item is drawn from ``SeedSequence([seed, index])``: statements, until exactly one world agrees with them and the puzzle
    belongs to the split; then names and words.
    """

    def __init__(self, settings: KnightsAndKnavesSettings, split: str, prompt: KnightsAndKnavesPrompt, seed: int) -> None:
        expect(is_int(seed) and seed >= 0, "seed to be an integer of at least 0", seed)
        self.settings, self.split, self.seed = settings, split, seed
        self._prompt = prompt

    def with_difficulty(self, name: str) -> GeneratedKnightsAndKnaves:
        """The same data set with the settings of a named difficulty in place of its own; ValueError for an unknown name."""
        expect(name in PRESETS, f"difficulty among {', '.join(PRESETS)}", name)
        return GeneratedKnightsAndKnaves(replace(self.settings, **PRESETS[name]), self.split, self._prompt, self.seed)

    def __len__(self) -> int:
        return self.settings.size or DEFAULT_SIZE

    def __getitem__(self, index: int) -> Problem:
        puzzle = self.puzzle(index)
        roles = {name: puzzle.role_names[not truthful] for name, truthful in zip(puzzle.names, puzzle.solution)}
        extra = {"depth": max(map(depth_of, puzzle.statements)), "key": puzzle.key}
        return _problem(puzzle.quiz, roles, puzzle.role_names, self._prompt, extra)

    def puzzle(self, index: int) -> Puzzle:
        """Item ``index`` before it is put into a prompt."""
        index = checked_index(index, len(self))
        rng = np.random.default_rng(np.random.SeedSequence([self.seed, index]))
        draw = chain.from_iterable(iter(lambda: rng.random(64).tolist(), None)).__next__
        least, most = self.settings.min_people, self.settings.max_people
        n_people = least + int(draw() * (most - least + 1))
        for _ in range(MAX_DRAWS):
            statements, tables = _draw_statements(draw, self.settings, n_people)
            solution = solution_of(tables)
            if solution is None or split_of_key(key := puzzle_key(tables)) != self.split:
                continue
            names = tuple(draw_names(draw, n_people))
            role_names = ROLE_PAIRS[int(draw() * len(ROLE_PAIRS)) if self.settings.vary_roles else 0]
            return Puzzle(statements, solution, names, role_names, quiz(draw, statements, names, role_names), key)
        raise ValueError(f"found no problem in split {self.split!r} for {self.settings}: loosen the settings")


def _draw_statements(
    draw: Callable[[], float], settings: KnightsAndKnavesSettings, n_people: int
) -> tuple[tuple[Statement, ...], list[int]]:
    """A statement for everyone and their tables. Nobody says what all, or none, could say: "I am a knight", "I am a knave"."""
    people, everywhere = worlds(n_people)
    statements, tables = [], []
    for own in people:
        while True:
            statement, table = draw_statement(draw, settings.depth, settings.width, n_people)
            if table != own and table != everywhere ^ own:
                break
        statements.append(statement)
        tables.append(table)
    return tuple(statements), tables


def _problem(
    text: str, roles: Mapping[str, str], role_names: tuple[str, str], prompt: KnightsAndKnavesPrompt, extra: Mapping[str, Any]
) -> Problem:
    mode = "; ".join(f"{name}={role}" for name, role in sorted((name.casefold(), role) for name, role in roles.items()))
    return Problem(
        problem_id=f"knights_and_knaves/{blake2b(text.encode(), digest_size=8).hexdigest()}",
        task="knights_and_knaves",
        prompt=prompt(text, list(roles), role_names),
        gold={"roles": dict(roles), "role_names": list(role_names)},
        metadata={"modes": (mode,), "n_modes": 1, "n_people": len(roles), **extra},
    )


def _hub_rows(split: str) -> Iterable[tuple[str, dict[str, Any]]]:
    return chain.from_iterable(rows("hub", hub_id=HUB_ID, config=split, split=f"{n}ppl") for n in range(2, MAX_PEOPLE + 1))


def _row_problem(where: str, row: Mapping[str, Any], prompt: KnightsAndKnavesPrompt) -> Problem:
    if not isinstance(text := row.get("quiz"), str) or not text.strip():
        raise ValueError(f"{where}: expected a column quiz with text, got {text!r} beside columns {', '.join(map(str, row)) or 'none'}")
    try:
        gold = parse_roles(row)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    return _problem(text, dict(gold.roles), gold.role_names, prompt, {})
