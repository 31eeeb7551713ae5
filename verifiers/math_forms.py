"""The forms that an answer can have; ``math_answer`` reads them from text, the leaves are the trees of ``math_parser``."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from .math_tokens import Tree


@dataclass(frozen=True)
class Value:
    tree: Tree
    unit: str = ""
    percent: bool = False
    significant: int | None = None  # digits of a decimal literal, None for anything else
    ulp: Fraction = Fraction(0)  # one unit in the last place of that literal


@dataclass(frozen=True)
class Words:
    text: str


@dataclass(frozen=True)
class Group:
    """Several answers: ``opening`` is empty for a bare list, ``{`` for a set, ``(`` or ``[`` for a tuple or an interval."""

    opening: str
    closing: str
    items: tuple[Answer, ...]


@dataclass(frozen=True)
class Equation:
    left: Tree | None  # None where the left side is no expression but a description
    name: str  # the variable, or the function, that the equation states; empty if it states none
    arguments: tuple[str, ...]  # of a function
    right: Answer


@dataclass(frozen=True)
class Relation:
    sides: tuple[Tree, ...]
    signs: tuple[str, ...]  # of < > <= >= !=


@dataclass(frozen=True)
class Sets:
    """``parts`` joined by ``sign``: cup, cap, setminus; builder (the set of what meets the one part); list (several conditions: what
    meets all of them, or any if nothing can meet all)."""

    sign: str
    parts: tuple[Answer, ...]


@dataclass(frozen=True)
class Matrix:
    kind: str
    rows: tuple[tuple[Answer, ...], ...]


@dataclass(frozen=True)
class Base:
    digits: str
    base: int
    plain: Tree  # what the digits are when read without the base


@dataclass(frozen=True)
class Ratio:
    parts: tuple[Tree, ...]
    clock: bool  # written like a time of day
    unit: str = ""


Answer = Value | Words | Group | Equation | Relation | Sets | Matrix | Base | Ratio
