"""Countdown problems: reach a target with given numbers. Generated, enumerated, or rows of Countdown-Tasks-3to4."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from setpo_verifiers.countdown import parse_gold
from setpo_verifiers.expressions import Form, normal_form, parse, render
from setpo_verifiers.solver import MAX_NUMBERS, all_modes, solve

from ..prompts import COUNTDOWN_PROMPTS, CountdownPrompt
from .problem import Dataset, Problem, is_dataset
from .procedural import DEFAULT_SIZE, SPLITS, checked_index, expect, is_int, settings_of, split_of_key
from .sources import SUFFIXES, is_table, rows

HUB_ID = "Jiayi-Pan/Countdown-Tasks-3to4"
MAX_SPACE = 2_000_000  # pairs of a multiset and a target that "enumerate" goes through
MAX_DRAWS = 100_000  # candidates for one generated problem
BATCH = 8  # of them drawn at once: some 35 are needed for four numbers
MAX_SOLVED = 1_000  # of these, candidates whose modes are counted

PRESETS: dict[str, dict[str, Any]] = {
    "easy": {"min_numbers": 3, "max_numbers": 3},
    "medium": {"min_numbers": 4, "max_numbers": 4},
    "hard": {"min_numbers": 5, "max_numbers": 5},
}


@dataclass(frozen=True)
class CountdownSettings:
    """Which problems there are; ranges are inclusive. Raises ValueError for values that make no sense together.

    ``operators`` says with which a problem is solvable and which modes are counted; the verifier accepts all four in any
    case. "-" needs "+" beside it and "/" needs "*": a-(b-c) is the same mode as a+c-b, and a/(b/c) the same as a*c/b.
    """

    min_numbers: int = 3
    max_numbers: int = 4
    number_range: tuple[int, int] = (1, 99)
    target_range: tuple[int, int] = (10, 100)
    operators: str = "+-*/"
    min_modes: int = 1  # difficulty: a problem has at least so many modes (distinct solutions)
    max_modes: int | None = None  # and at most so many
    size: int | None = None  # length of a generated data set, by default DEFAULT_SIZE; an enumerated one has its own

    def __post_init__(self) -> None:
        for name in ("number_range", "target_range"):
            value = getattr(self, name)
            if not (isinstance(value, (tuple, list)) and len(value) == 2 and all(map(is_int, value)) and value[0] <= value[1]):
                raise ValueError(f"expected {name} to be two integers (least, greatest), got {value!r}")
            object.__setattr__(self, name, tuple(value))  # JSON has lists only
        for name, least in (("min_numbers", 1), ("max_numbers", self.min_numbers), ("min_modes", 1)):
            expect(is_int(value := getattr(self, name)) and value >= least, f"{name} to be an integer of at least {least}", value)
        for name, least in (("max_modes", self.min_modes), ("size", 1)):
            value = getattr(self, name)
            expect(value is None or (is_int(value) and value >= least), f"{name} to be None or an integer of at least {least}", value)
        expect(1 <= self.number_range[0] and self.number_range[1] < 10**12, "number_range within 1 and 10**12 - 1", self.number_range)
        expect(self.target_range[0] >= 0, "target_range to start at 0 or above", self.target_range)
        operators = self.operators
        known = isinstance(operators, str) and 0 < len(operators) == len(set(operators)) and set(operators) <= set("+-*/")
        expect(known, "operators to be distinct characters of '+-*/'", operators)
        closed = ("-" not in operators or "+" in operators) and ("/" not in operators or "*" in operators)
        expect(closed, "operators with '+' beside '-' and '*' beside '/'", operators)
        if self.counts_modes:
            expect(self.max_numbers <= MAX_NUMBERS, f"max_numbers of at most {MAX_NUMBERS} where modes are counted", self.max_numbers)

    @property
    def counts_modes(self) -> bool:
        """Whether the difficulty asks for more than that a problem is solvable."""
        return self.min_modes > 1 or self.max_modes is not None

    def accepts(self, modes: Sequence[str]) -> bool:
        return self.min_modes <= len(modes) <= (self.max_modes or math.inf)

    def allowed(self, modes: Sequence[str]) -> tuple[str, ...]:
        """The modes that use no other operators than the settings'."""
        forbidden = set("+-*/") - set(self.operators)
        return tuple(key for key in modes if forbidden.isdisjoint(key)) if forbidden else tuple(modes)

    @classmethod
    def of(cls, settings: CountdownSettings | Mapping[str, Any] | None, difficulty: str | None = None) -> CountdownSettings:
        """Settings from a mapping (as in ``gym.make``) and a named difficulty: see ``settings_of``."""
        return settings_of(cls, settings, difficulty, PRESETS)


def countdown_dataset(
    source: Any = "generator",
    *,
    split: str = "train",
    settings: CountdownSettings | Mapping[str, Any] | None = None,
    difficulty: str | None = None,
    prompt_format: str = "tinyzero",
    seed: int = 0,
) -> Dataset:
    """The data set that ``setpo/Countdown-v0`` draws from; its docstring says what the arguments mean.

    Raises:
        ValueError: An argument out of its choices, settings for rows that exist already, a malformed row (with file and
            line), or a space too large to enumerate.
    """
    expect(prompt_format in COUNTDOWN_PROMPTS, f"prompt_format among {', '.join(COUNTDOWN_PROMPTS)}", prompt_format)
    expect(split in SPLITS, f"split among {', '.join(SPLITS)}", split)
    prompt = COUNTDOWN_PROMPTS[prompt_format]
    generated = isinstance(source, str) and source in ("generator", "enumerate")
    if generated:
        typed = CountdownSettings.of(settings, difficulty)
        if source == "generator":
            return GeneratedCountdown(typed, split, prompt, seed)
        expect(typed.size is None, "no size in the settings of source='enumerate', which lists all there is", typed.size)
        items = [item for item in enumerate_space(typed) if split_of(*item[:2]) == split]
        expect(items, f"settings with at least one problem in split {split!r}", typed)
        return ListedCountdown(items, prompt)
    for name, value in (("settings", settings), ("difficulty", difficulty)):
        expect(value is None, f"no {name} beside problems that exist already", value)
    if is_dataset(source):
        return source
    choices = f"source 'generator', 'enumerate', 'hub', a path that ends in {', '.join(SUFFIXES)}, or a data set"
    path = isinstance(source, (str, os.PathLike)) and os.fspath(source).endswith(SUFFIXES)
    expect(path or is_table(source) or source == "hub", choices, source)
    expect(source != "hub" or split == "train", f"split='train', the only one that {HUB_ID} has", split)
    return ListedCountdown([_row_item(*row) for row in rows(source, hub_id=HUB_ID, split=split)], prompt)


def as_expression(problem: Problem, mode: str, rng: random.Random) -> str:
    """``mode`` with its terms and factors in random order."""
    return render(*_form(mode), rng.shuffle)


@lru_cache(maxsize=65536)
def _form(mode: str) -> tuple[int, Form]:
    return normal_form(parse(mode))


class ListedCountdown:
    """Problems listed in memory, from (numbers, target, modes or None)."""

    write_mode = staticmethod(as_expression)

    def __init__(self, items: Sequence[Item], prompt: CountdownPrompt) -> None:
        self._items = items
        self._prompt = prompt

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> Problem:
        return _problem(*self._items[checked_index(index, len(self))], self._prompt)


class GeneratedCountdown:
    """Problems generated on demand: item ``index`` of root ``seed`` depends on nothing but the two, split and settings.

    An item is drawn from ``SeedSequence([seed, index])``: an expression over random numbers is built, so there is a
    solution, until its value is in the target range and the problem belongs to the split and has the difficulty.
    """

    write_mode = staticmethod(as_expression)

    def __init__(self, settings: CountdownSettings, split: str, prompt: CountdownPrompt, seed: int) -> None:
        expect(is_int(seed) and seed >= 0, "seed to be an integer of at least 0", seed)
        self.settings, self.split, self.seed = settings, split, seed
        self._prompt = prompt

    def with_difficulty(self, name: str) -> GeneratedCountdown:
        """The same data set with the settings of a named difficulty in place of its own; ValueError for an unknown name."""
        expect(name in PRESETS, f"difficulty among {', '.join(PRESETS)}", name)
        return GeneratedCountdown(replace(self.settings, **PRESETS[name]), self.split, self._prompt, self.seed)

    def __len__(self) -> int:
        return self.settings.size or DEFAULT_SIZE

    def __getitem__(self, index: int) -> Problem:
        index = checked_index(index, len(self))
        rng = np.random.default_rng(np.random.SeedSequence([self.seed, index]))
        solved = 0
        for numbers, target in _candidates(self.settings, rng):
            if split_of(numbers, target) != self.split:
                continue
            if not self.settings.counts_modes:
                return _problem(numbers, target, None, self._prompt)
            modes = self.settings.allowed(solve(numbers, target))
            if self.settings.accepts(modes):
                return _problem(numbers, target, modes, self._prompt)
            if (solved := solved + 1) == MAX_SOLVED:
                break
        raise ValueError(f"found no problem in split {self.split!r} for {self.settings}: loosen the settings")


def split_of(numbers: Sequence[int], target: int) -> str:
    """The split that a problem belongs to, whatever the seed: train 80 %, validation 10 %, test 10 % of all problems."""
    return split_of_key(_key(numbers, target))


@lru_cache(maxsize=4)
def enumerate_space(settings: CountdownSettings) -> tuple[Item, ...]:
    """Every distinct problem of the settings over all splits, in a fixed order, as (sorted numbers, target, modes).

    Cached per process. Raises ValueError if the space is too large, saying how large it is.
    """
    expect(settings.max_numbers <= MAX_NUMBERS, f"at most {MAX_NUMBERS} numbers with source='enumerate'", settings.max_numbers)
    values = range(settings.number_range[0], settings.number_range[1] + 1)
    sizes = range(settings.min_numbers, settings.max_numbers + 1)
    targets = range(settings.target_range[0], settings.target_range[1] + 1)
    space = len(targets) * sum(math.comb(len(values) + size - 1, size) for size in sizes)
    expect(space <= MAX_SPACE, f"at most {MAX_SPACE} pairs of numbers and target with source='enumerate' (try 'generator')", space)
    found: list[Item] = []
    for size in sizes:
        for numbers in combinations_with_replacement(values, size):
            by_value = all_modes(numbers)
            for target in sorted(int(value) for value in by_value if value.denominator == 1 and int(value) in targets):
                modes = settings.allowed(by_value[Fraction(target)])
                if settings.accepts(modes):
                    found.append((numbers, target, modes))
    return tuple(found)


def problem_modes(problem: Problem) -> tuple[str, ...]:
    """All mode keys that solve a Countdown problem: from its metadata, else by exhaustive search (20 ms for 4 numbers).

    Raises ValueError above ``setpo_verifiers.solver.MAX_NUMBERS`` numbers.
    """
    if "modes" in problem.metadata:
        return tuple(problem.metadata["modes"])
    gold = parse_gold(problem.gold)
    return solve(gold.numbers, gold.target)


Item = tuple[Sequence[int], int, "tuple[str, ...] | None"]  # numbers, target, modes where known


def _problem(numbers: Sequence[int], target: int, modes: tuple[str, ...] | None, prompt: CountdownPrompt) -> Problem:
    metadata: dict[str, Any] = {"n_numbers": len(numbers)}
    if modes is not None:
        metadata.update(modes=modes, n_modes=len(modes), brackets=min(key.count("(") for key in modes))
    return Problem(
        problem_id=f"countdown/{_key(numbers, target)}",
        task="countdown",
        prompt=prompt(numbers, target),
        gold={"numbers": list(numbers), "target": target},
        metadata=metadata,
    )


def _key(numbers: Sequence[int], target: int) -> str:
    """What makes two problems the same, and never changes: splits and problem ids hang on it."""
    return f"{','.join(map(str, sorted(numbers)))}={target}"


def _candidates(settings: CountdownSettings, rng: np.random.Generator) -> Iterator[tuple[list[int], int]]:
    """Numbers with the value of a random expression over them, where that is a target of the settings; ends after MAX_DRAWS draws.

    A draw takes from [0, 1) one number for how many numbers, one for each, three for each operation, and leaves the rest of its row.
    """
    spread, operators = settings.max_numbers - settings.min_numbers + 1, settings.operators
    least, choices = settings.number_range[0], settings.number_range[1] - settings.number_range[0] + 1
    lowest, highest = settings.target_range
    for _ in range(MAX_DRAWS // BATCH):
        for row in rng.random((BATCH, 4 * settings.max_numbers)).tolist():
            draw = iter(row).__next__
            count = settings.min_numbers + int(draw() * spread)
            numbers = [least + int(draw() * choices) for _ in range(count)]
            # values as numerator and denominator, not reduced: as exact as Fraction and far cheaper
            pool = [(number, 1) for number in numbers]
            for left in range(count, 1, -1):
                a, c = pool.pop(int(draw() * left))
                b, d = pool.pop(int(draw() * (left - 1)))
                operator = operators[int(draw() * len(operators))]
                if operator == "*":
                    pool.append((a * b, c * d))
                elif operator == "/":
                    if b == 0:
                        break
                    pool.append((a * d, c * b))
                else:
                    pool.append((a * d + b * c if operator == "+" else a * d - b * c, c * d))
            else:
                value, remainder = divmod(pool[0][0], pool[0][1])
                if not remainder and lowest <= value <= highest:
                    yield numbers, value


def _row_item(where: str, row: Mapping[str, Any]) -> Item:
    column = "nums" if "nums" in row else "numbers"
    if column not in row or "target" not in row:
        raise ValueError(f"{where}: expected columns nums (or numbers) and target, got {', '.join(map(str, row)) or 'none'}")
    try:
        gold = parse_gold({"numbers": row[column], "target": row["target"]})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from None
    return gold.numbers, gold.target, None
