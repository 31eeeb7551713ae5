"""When do two equations, or two inequalities, state the same? When one is a constant multiple of the other."""

from __future__ import annotations

from fractions import Fraction

from .math_forms import Relation
from .math_number import close, to_complex
from .math_tokens import Tree
from .math_value import probe, variables


def proportional(first: Tree, second: Tree, positive: bool | None = None) -> bool:
    """Whether one is a constant multiple of the other (of that sign): then ``first = 0`` and ``second = 0`` are the same equation."""
    if variables(first) != variables(second) or not variables(first):
        return False
    ratio = probe(("/", first, second))
    if any(value is None for value in ratio[:2]) or not all(close(ratio[0], value) for value in ratio[1:] if value is not None):  # type: ignore[arg-type]
        return False
    if positive is None:
        return True
    head = ratio[0]
    sign = head if isinstance(head, Fraction) else to_complex(head).re  # type: ignore[arg-type]
    return (sign > 0) is positive


def equal_relations(gold: Relation, answer: Relation) -> bool:
    if len(gold.signs) != len(answer.signs):
        return False
    return _steps_match(gold, answer) or _steps_match(gold, _mirrored(answer))


_MIRROR = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}


def _mirrored(relation: Relation) -> Relation:
    return Relation(relation.sides[::-1], tuple(_MIRROR[sign] for sign in relation.signs[::-1]))


def _steps_match(gold: Relation, answer: Relation) -> bool:
    for i, (sign, other) in enumerate(zip(gold.signs, answer.signs)):
        first = ("+", gold.sides[i], ("-", gold.sides[i + 1]))
        second = ("+", answer.sides[i], ("-", answer.sides[i + 1]))
        if sign == other and proportional(first, second, None if sign == "!=" else True):
            continue
        if _MIRROR[sign] == other and proportional(first, second, False):
            continue
        return False
    return True
