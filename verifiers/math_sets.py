"""Sets of real numbers as sorted disjoint pieces: intervals, inequalities, unions, finite sets."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

from .math_forms import Answer, Equation, Group, Relation, Sets, Value
from .math_number import CONTEXT, TooLarge, Undefined, digits, real
from .math_tokens import Tree
from .math_value import constant, variables

# An end of a piece: its place on the line, its key (equal ends have equal keys), whether the point itself belongs.
End = tuple[Decimal, str, bool]
Piece = tuple[End, End]
Pieces = tuple[str, tuple[tuple[str, bool, str, bool], ...]]

_INFINITY = ("s", "\\infty")
_LOW: End = (Decimal("-Infinity"), "-oo", False)
_HIGH: End = (Decimal("Infinity"), "oo", False)


def pieces_of(answer: Answer) -> Pieces | None:
    """(variable or "", the pieces as keys), or None for what is no set of real numbers with known ends."""
    try:
        name, pieces = _pieces(answer)
    except (ValueError, ArithmeticError):
        return None
    return name, tuple((low[1], low[2], high[1], high[2]) for low, high in pieces)


def _pieces(answer: Answer) -> tuple[str, list[Piece]]:
    if isinstance(answer, Equation) and answer.name:
        return answer.name, _pieces(answer.right)[1]
    if isinstance(answer, Value):
        point = _end(answer.tree, True)
        return "", [(point, point)]
    if isinstance(answer, Relation):
        return _solved(answer)
    if isinstance(answer, Sets) and answer.sign == "builder":
        return "", _pieces(answer.parts[0])[1]
    if isinstance(answer, Sets):
        parts = [_pieces(part) for part in answer.parts]
        names = {name for name, _ in parts if name}
        if len(names) > 1:
            raise ValueError("two variables")
        name = names.pop() if names else ""
        result = parts[0][1]
        sign = answer.sign
        if sign == "list":
            sign = "cap" if _all_meet([pieces for _, pieces in parts]) else "cup"
        for _, other in parts[1:]:
            result = result + other if sign == "cup" else _meet(result, other if sign == "cap" else _complement(_union(other)))
        return name, _union(result)
    if isinstance(answer, Group):
        if answer.opening in ("(", "[") and len(answer.items) == 2:
            low, high = answer.items
            if not (isinstance(low, Value) and isinstance(high, Value)):
                raise ValueError("not an interval")
            piece = _end(low.tree, answer.opening == "["), _end(high.tree, answer.closing == "]")
            if not _exists(piece):
                raise ValueError("a pair, not an interval")  # as the empty set, (5, 2) would equal (3, 1) and 1 < x < 0
            return "", [piece]
        if answer.opening in ("{", ""):
            return "", _union([piece for item in answer.items for piece in _pieces(item)[1]])
    raise ValueError("not a set of numbers")


def _all_meet(sets: list[list[Piece]]) -> bool:
    common = sets[0]
    for other in sets[1:]:
        common = _meet(common, other)
    return bool(common)


def _end(tree: Tree, closed: bool) -> End:
    if tree == _INFINITY:
        return _HIGH
    if tree == ("-", _INFINITY):
        return _LOW
    value = constant(tree)
    if value is None:
        raise ValueError("an end with variables")
    with localcontext(CONTEXT):
        try:
            return real(value), digits(value), closed
        except (Undefined, TooLarge) as error:
            raise ValueError(str(error)) from error


def _solved(relation: Relation) -> tuple[str, list[Piece]]:
    """``a < x <= b``, ``x > 3``, ``x != 3``, ``|x| < 3``, ``0 < f(x) < 1``: one lone variable, constant bounds."""
    sides = tuple(map(_lone, relation.sides))
    absolute = sides != relation.sides and any(side[:2] == ("f", "abs") for side in relation.sides)
    relation = Relation(sides, relation.signs)
    at = [i for i, side in enumerate(relation.sides) if side[0] == "s" and side != _INFINITY]
    if len(at) != 1 or any(variables(side) - {"\\infty"} for i, side in enumerate(relation.sides) if i != at[0]):
        raise ValueError("not solved")
    index, name = at[0], relation.sides[at[0]][1]
    result = [(_LOW, _HIGH)]
    for i, sign in enumerate(relation.signs):
        if i not in (index - 1, index):
            raise ValueError("not solved")
        sign = sign if i == index else {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}[sign]
        bound = _end(relation.sides[i + 1 if i == index else i], sign in ("<=", ">="))
        if sign == "!=":
            part = [(_LOW, bound), (bound, _HIGH)]
        else:
            part = [(_LOW, bound)] if "<" in sign else [(bound, _HIGH)]
        result = _meet(result, part)
    if absolute:  # what was said of |x|
        zero = _end(("n", Fraction(0)), True)
        result = _meet(result, [(zero, _HIGH)])
        result = _union(result + [(_negated(high), _negated(low)) for low, high in result])
    return name, result


def _lone(side: Tree) -> Tree:
    """The variable of |x|; f(x) as one name."""
    if side[:2] == ("f", "abs") and side[2][0] == "s":
        return side[2]
    if side[0] == "*" and side[1][0] == side[2][0] == "s" and side[1][1] in ("f", "g", "h"):
        return ("s", f"{side[1][1]}({side[2][1]})")
    return side


def _negated(end: End) -> End:
    place, name, closed = end
    bare = name.lstrip("~")
    if bare != "0":
        name = name[: len(name) - len(bare)] + (bare[1:] if bare[0] == "-" else f"-{bare}")
    return -place, name, closed


def _union(pieces: list[Piece]) -> list[Piece]:
    pieces = sorted((piece for piece in pieces if _exists(piece)), key=lambda piece: (piece[0][0], not piece[0][2]))
    merged: list[Piece] = []
    for low, high in pieces:
        if merged:
            last = merged[-1][1]
            if low[0] < last[0] or (low[1] == last[1] and (low[2] or last[2])):
                merged[-1] = (merged[-1][0], max(last, high, key=lambda end: (end[0], end[2])))
                continue
        merged.append((low, high))
    return merged


def _exists(piece: Piece) -> bool:
    low, high = piece
    return low[2] and high[2] if low[1] == high[1] else low[0] < high[0]


def _meet(first: list[Piece], second: list[Piece]) -> list[Piece]:
    found = []
    for a, b in first:
        for c, d in second:
            low = max(a, c, key=lambda end: (end[0], not end[2]))
            high = min(b, d, key=lambda end: (end[0], end[2]))
            found.append((low, high))
    return [piece for piece in found if _exists(piece)]


def _complement(pieces: list[Piece]) -> list[Piece]:
    found, low = [], _LOW
    for start, stop in pieces:
        if start != _LOW:
            found.append((low, (start[0], start[1], not start[2])))
        low = (stop[0], stop[1], not stop[2])
    if low != _HIGH and low[0] != _HIGH[0]:
        found.append((low, _HIGH))
    return [piece for piece in found if _exists(piece)]


def key(answer: Answer) -> str | None:
    """The pieces as a text."""
    pieces = pieces_of(answer)
    if pieces is None:
        return None
    return "u".join(f"{'[' if a else '('}{low},{high}{']' if b else ')'}" for low, a, high, b in pieces[1]) or "{}"
