"""Statements about who tells the truth, their truth tables, and the key that is equal for puzzles that differ in wording only.

A statement is a nested tuple over people 0 to n - 1::

    ("truth", i)  ("lie", i)  ("not", s)  ("and", s, s, ...)  ("or", s, s, ...)  ("implies", s, s)  ("iff", s, s)

A world says of everyone whether they tell the truth. There are 2^n: person i does in world w if bit i of w is set. A truth table is
an int of 2^n bits, bit w for world w, so that connectives are bitwise operations and all worlds are tried at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from hashlib import blake2b
from operator import and_, or_
from typing import Any

Statement = tuple[Any, ...]
Table = int

CONNECTIVES = ("not", "and", "or", "implies", "iff")


@lru_cache(maxsize=16)
def worlds(n_people: int) -> tuple[tuple[Table, ...], Table]:
    """(the table of "i tells the truth" for each i, the table that is true everywhere)."""
    size = 2**n_people
    return tuple(sum(1 << world for world in range(size) if world >> i & 1) for i in range(n_people)), 2**size - 1


def connect(connective: str, tables: Sequence[Table], everywhere: Table) -> Table:
    """The table of a compound statement from those of its parts."""
    if connective == "and":
        return reduce(and_, tables)
    if connective == "or":
        return reduce(or_, tables)
    if connective == "not":
        return everywhere ^ tables[0]
    if connective == "implies":
        return (everywhere ^ tables[0]) | tables[1]
    return everywhere ^ tables[0] ^ tables[1]


def truth_table(statement: Statement, n_people: int) -> Table:
    """In which worlds the statement holds."""
    people, everywhere = worlds(n_people)
    if statement[0] == "truth":
        return people[statement[1]]
    if statement[0] == "lie":
        return everywhere ^ people[statement[1]]
    return connect(statement[0], [truth_table(part, n_people) for part in statement[1:]], everywhere)


def depth_of(statement: Statement) -> int:
    """Levels of a statement: 1 for who tells the truth or lies, one more for each connective around it."""
    return 1 if statement[0] in ("truth", "lie") else 1 + max(map(depth_of, statement[1:]))


@lru_cache(maxsize=16)
def simple_statements(n_people: int) -> tuple[tuple[Statement, Table], ...]:
    """Every statement of one level with its table."""
    people, everywhere = worlds(n_people)
    truths = tuple((("truth", i), table) for i, table in enumerate(people))
    return truths + tuple((("lie", i), everywhere ^ table) for i, table in enumerate(people))


def draw_statement(draw: Callable[[], float], depth: int, width: int, n_people: int) -> tuple[Statement, Table]:
    """A random statement of at most ``depth`` levels, with its table; ``draw`` gives numbers uniform in [0, 1).

    The kind is drawn first, each with the same chance: about one person, or one of CONNECTIVES, "and" and "or" with 2 to ``width``
    parts. The parts of a compound differ in meaning, and no compound is always true or always false.
    """
    simple = simple_statements(n_people)
    everywhere = worlds(n_people)[1]
    while True:
        kind = int(draw() * 6) if depth > 1 else 0
        if kind == 0:
            return simple[int(draw() * len(simple))]
        first, table = draw_statement(draw, depth - 1, width, n_people)
        if kind == 1:
            return (first, table) if first[0] == "not" else (("not", first), everywhere ^ table)  # no double negation
        parts, tables = [first], [table]
        for _ in range(1 + int(draw() * (width - 1)) if kind < 4 else 1):
            part, table = draw_statement(draw, depth - 1, width, n_people)
            parts.append(part)
            tables.append(table)
        table = connect(CONNECTIVES[kind - 1], tables, everywhere)
        if 0 < table < everywhere and len(set(tables)) == len(tables):
            return (CONNECTIVES[kind - 1], *parts), table


def solution_of(tables: Sequence[Table]) -> tuple[bool, ...] | None:
    """Who tells the truth, where person i says the statement with ``tables[i]``; None if there is no solution or more than one."""
    people, consistent = worlds(len(tables))
    for person, table in zip(people, tables):
        consistent &= ~(person ^ table)
    if not consistent or consistent & (consistent - 1):
        return None
    world = consistent.bit_length() - 1
    return tuple(bool(world >> i & 1) for i in range(len(tables)))


def puzzle_key(tables: Sequence[Table]) -> str:
    """16 hex digits, equal for puzzles that are the same but for names, the order of the people and the wording of what they say.

    Made from counts of worlds alone, sorted over people: for each pair i and j, in how many is i's statement true while j is
    truthful, the other way round, and while j's statement is true. So equivalent puzzles never get two keys. Different ones may
    share a key (the 2,730 of three people at depth and width 2 have 2,404), which costs nothing where keys decide on splits.
    """
    people, _ = worlds(len(tables))
    truthful_II = [[(table & person).bit_count() for person in people] for table in tables]
    shared_II = [[(table & other).bit_count() for other in tables] for table in tables]
    told = zip(truthful_II, zip(*truthful_II), shared_II)
    looks = sorted((shared[i], row[i], sorted(zip(row, column, shared))) for i, (row, column, shared) in enumerate(told))
    return blake2b(repr(looks).encode(), digest_size=8).hexdigest()
