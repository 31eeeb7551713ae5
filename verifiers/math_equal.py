"""When are two answers the same answer? Symmetric but for the decimal rule, which knows which side is gold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from .math_equal_relations import equal_relations, proportional
from .math_equal_values import Precision, equal_values
from .math_forms import Answer, Base, Equation, Group, Matrix, Ratio, Relation, Sets, Value, Words
from .math_number import Number, TooLarge, Undefined, add, close
from .math_sets import pieces_of
from .math_tokens import Tree
from .math_units import compatible
from .math_value import constant, same, variables


def equal(gold: Answer, answer: Answer, precision: Precision = None) -> bool:
    """Whether ``answer`` states what ``gold`` states. ``precision`` is an absolute tolerance, or one a value."""
    try:
        return _equal(gold, answer, precision)
    except (TooLarge, Undefined):
        return False


def _equal(gold: Answer, answer: Answer, precision: Precision) -> bool:
    if isinstance(gold, Words) or isinstance(answer, Words):
        return isinstance(gold, Words) and isinstance(answer, Words) and words(gold.text) == words(answer.text)
    if isinstance(gold, Equation) and isinstance(answer, Equation):
        return _equations(gold, answer, precision)
    if isinstance(gold, Equation):
        return states_value(gold) and _equal(gold.right, answer, precision)
    if isinstance(answer, Equation):
        return states_value(answer) and _equal(gold, answer.right, precision)
    if _is_set(gold) or _is_set(answer) or isinstance(gold, Group) != isinstance(answer, Group):
        pair = _unlisted(gold), _unlisted(answer)
        if pair != (gold, answer):
            return _equal(*pair, precision)
    if isinstance(gold, Value) and isinstance(answer, Value):
        return equal_values(gold, answer, precision[0] if isinstance(precision, Sequence) and precision else precision)
    if isinstance(gold, Group) and isinstance(answer, Group):
        return _groups(gold, answer, precision)
    if isinstance(gold, Matrix) and isinstance(answer, Matrix):
        return _matrices(gold, answer)
    if isinstance(gold, Matrix | Group) and isinstance(answer, Matrix | Group) and isinstance(gold, Matrix) != isinstance(answer, Matrix):
        left, right = _vector(gold), _vector(answer)
        return bool(left and right) and _ordered(left, right, precision)  # type: ignore[arg-type]
    if isinstance(gold, Base) or isinstance(answer, Base):
        return _bases(gold, answer)
    if isinstance(gold, Ratio) or isinstance(answer, Ratio):
        return _ratios(gold, answer)
    if isinstance(gold, Relation) and isinstance(answer, Relation) and equal_relations(gold, answer):
        return True
    return _as_sets(gold, answer)


def words(text: str) -> str:
    """Words without case, blanks and closing punctuation; a single letter keeps its case."""
    plain = " ".join(re.sub(r'["{}]|\\ ', " ", text).split()).strip(" .!,;:")
    plain = re.sub(r"^(?:an?|the) (?=[a-z]{3})", "", plain, flags=re.I)
    return plain if len(plain) == 1 or re.search(r"[\\=<>^_]", plain) else plain.casefold()


# --- equations -----------------------------------------------------------------------------------------------------


def states_value(equation: Equation) -> bool:
    """``x = 5``, ``f(x) = ...``, ``(p, q) = ...``, ``P(A) = ...``: the right side is the answer."""
    return bool(equation.name) or equation.left is None or equation.arguments == ("",)


def _equations(gold: Equation, answer: Equation, precision: Precision) -> bool:
    right, other = gold.right, answer.right
    if isinstance(right, Value) and isinstance(other, Value) and not compatible(right.unit, other.unit):
        return False
    if states_value(gold) and states_value(answer):
        if _same_left(gold, answer):
            if gold.arguments and answer.arguments and gold.arguments != answer.arguments and len(gold.arguments) == len(answer.arguments):
                other = _renamed(other, dict(zip(answer.arguments, gold.arguments)))
            if _equal(right, other, precision):
                return True
    elif gold.left is not None and answer.left is not None and same(gold.left, answer.left) and _equal(right, other, None):
        return True
    first, second = difference(gold), difference(answer)
    return first is not None and second is not None and proportional(first, second)


def _same_left(gold: Equation, answer: Equation) -> bool:
    """Whether both may state the same quantity: x and x, f(x) and y, AB and any; not x and y, nor x and sin x."""
    if gold.name and answer.name:
        return gold.name == answer.name or (bool(gold.arguments or answer.arguments) and "_" not in gold.name + answer.name)
    if not gold.name and not answer.name:
        return gold.left is None or answer.left is None or same(gold.left, answer.left)
    named, other = (gold, answer) if gold.name else (answer, gold)
    return named.arguments != () or other.left is None or named.name not in variables(other.left)


def _renamed(answer: Answer, names: dict[str, str]) -> Answer:
    def rename(tree: Tree) -> Tree:
        if tree[0] == "s":
            return ("s", names.get(tree[1], tree[1]))
        return tuple(rename(part) if isinstance(part, tuple) else part for part in tree)

    return Value(rename(answer.tree), answer.unit) if isinstance(answer, Value) else answer


def difference(equation: Equation) -> Tree | None:
    if equation.left is None or not isinstance(equation.right, Value):
        return None
    return ("+", equation.left, ("-", equation.right.tree))


# --- several values ------------------------------------------------------------------------------------------------


def _is_set(answer: Answer) -> bool:
    return isinstance(answer, Group) and answer.opening == "{"


def _unlisted(answer: Answer) -> Answer:
    """A set or a bare list of one value is that value, however often it is repeated."""
    if not isinstance(answer, Group) or answer.opening not in ("", "{") or not answer.items:
        return answer
    first = answer.items[0]
    if _is_set(first):  # a set of sets
        return answer
    return first if all(_equal(first, item, None) for item in answer.items[1:]) else answer


def _groups(gold: Group, answer: Group, precision: Precision) -> bool:
    assigned = _assignment(gold), _assignment(answer)
    if assigned[0] is not None and assigned[1] is not None:
        return _unordered(assigned[0], assigned[1], None)
    if assigned[0] is not None or assigned[1] is not None:
        if assigned[0] is not None:
            return any(_equal(form, answer, None) for form in _as_tuples(assigned[0], answer))
        return any(_equal(gold, form, None) for form in _as_tuples(assigned[1] or [], gold))
    if not gold.opening and not answer.opening or _is_set(gold) and _is_set(answer):
        return _unordered(gold.items, answer.items, precision)
    if _is_set(gold) != _is_set(answer):
        return bool(not gold.opening or not answer.opening) and _unordered(gold.items, answer.items, precision)
    brackets = {(group.opening, group.closing) for group in (gold, answer) if group.opening}
    if len(brackets) > 1 or (len(brackets) == 1 and ("(", ")") not in brackets and gold.opening != answer.opening):
        return False  # a bare list may stand for a tuple, not for an interval
    return _ordered(gold.items, answer.items, precision)


def _tolerance(precision: Precision, index: int) -> Precision:
    if not isinstance(precision, Sequence):
        return precision
    return precision[index] if index < len(precision) else None


def _ordered(gold: Sequence[Answer], answer: Sequence[Answer], precision: Precision) -> bool:
    return len(gold) == len(answer) and all(_equal(a, b, _tolerance(precision, i)) for i, (a, b) in enumerate(zip(gold, answer)))


def _unordered(gold: Sequence[Answer], answer: Sequence[Answer], precision: Precision) -> bool:
    """Order free, duplicates ignored: each item has its like on the other side."""
    if not gold or not answer:
        return not gold and not answer
    if len(gold) > 40 or len(answer) > 40:
        return _ordered(gold, answer, precision)
    table = [[_equal(a, b, _tolerance(precision, i)) for b in answer] for i, a in enumerate(gold)]
    if not all(any(row) for row in table) or not all(any(column) for column in zip(*table)):
        return False
    return precision is None or len(gold) != len(answer) or _assignable(table)


def _assignable(table: list[list[bool]]) -> bool:
    """Whether rows and columns can be matched one to one (with a tolerance two answers may be near one gold)."""
    owner: dict[int, int] = {}

    def place(row: int, seen: set[int]) -> bool:
        for column, fits in enumerate(table[row]):
            if fits and column not in seen:
                seen.add(column)
                if column not in owner or place(owner[column], seen):
                    owner[column] = row
                    return True
        return False

    return all(place(row, set()) for row in range(len(table)))


def _assignment(group: Group) -> list[Answer] | None:
    """``x = 5, y = 2`` as one row of equations; a name that comes again starts a new row. None if not every item is an equation."""
    if group.opening or not group.items or not all(isinstance(item, Equation) and states_value(item) and item.name for item in group.items):
        return None
    rows: list[list[Equation]] = [[]]
    for item in group.items:
        assert isinstance(item, Equation)
        if any(item.name == before.name for before in rows[-1]):
            rows.append([])
        rows[-1].append(item)
    if len(rows) == 1:
        return list(rows[0])
    ordered = [sorted(row, key=lambda equation: equation.name) for row in rows]
    return [row[0] if len(row) == 1 else Group("(", ")", tuple(row)) for row in ordered]


def _as_tuples(rows: list[Answer], other: Group) -> list[Answer]:
    """The values of an assignment, in the order written and in the order of the names."""
    if any(isinstance(row, Group) for row in rows):
        groups = [row if isinstance(row, Group) else Group("", "", (row,)) for row in rows]
        return [
            Group(
                "", "", tuple(Group("(", ")", tuple(item.right for item in group.items if isinstance(item, Equation))) for group in groups)
            )
        ]
    equations = [row for row in rows if isinstance(row, Equation)]
    names = {equation.name for equation in equations}
    if len(names) < len(equations):  # x = 1 or x = 2
        return [Group("", "", tuple(equation.right for equation in equations))]
    orders = [sorted(equations, key=lambda equation: equation.name)]
    if not other.opening or any("\\" in name for name in names):  # r, theta: Greek letters have no known place
        orders.append(equations)
    opening = ("(", ")")
    forms: list[Answer] = []
    for order in orders:
        values = tuple(equation.right for equation in order)
        forms.append(Group(*opening, values))
    return [form for form in forms if not _is_set(other)]


def _vector(answer: Matrix | Group) -> tuple[Answer, ...] | None:
    """The entries of a tuple, a row or a column."""
    if isinstance(answer, Group):
        return answer.items if answer.opening + answer.closing in ("()", "[]") else None
    if answer.kind != "matrix" or min(len(answer.rows), len(answer.rows[0])) > 1:
        return None
    return tuple(cell for row in answer.rows for cell in row)


def _matrices(gold: Matrix, answer: Matrix) -> bool:
    if gold.kind != answer.kind or [len(row) for row in gold.rows] != [len(row) for row in answer.rows]:
        return False
    cells = [(a, b) for left, right in zip(gold.rows, answer.rows) for a, b in zip(left, right)]
    return all(_equal(a, b, None) for a, b in cells)


def _bases(gold: Answer, answer: Answer) -> bool:
    if isinstance(gold, Base) and isinstance(answer, Base):
        return gold.base == answer.base and gold.digits == answer.digits
    base, other = (gold, answer) if isinstance(gold, Base) else (answer, gold)
    return isinstance(base, Base) and isinstance(other, Value) and not other.percent and other.tree == base.plain


def _ratios(gold: Answer, answer: Answer) -> bool:
    if isinstance(gold, Ratio) and isinstance(answer, Ratio):
        if not compatible(gold.unit, answer.unit):
            return False
        if len(gold.parts) != len(answer.parts):
            return False
        if all(same(a, b) or close_constants(a, b) for a, b in zip(gold.parts, answer.parts)):
            return True
        if gold.clock and answer.clock:
            return bool(gold.unit) != bool(answer.unit) and _time(gold) == _time(answer)
        return all(
            same(("*", gold.parts[0], b), ("*", answer.parts[0], a)) or close_constants(("*", gold.parts[0], b), ("*", answer.parts[0], a))
            for a, b in zip(gold.parts[1:], answer.parts[1:])
        )
    ratio, other = (gold, answer) if isinstance(gold, Ratio) else (answer, gold)
    if not (isinstance(ratio, Ratio) and isinstance(other, Value)) or len(ratio.parts) != 2:
        return False
    quotient = ("/", *ratio.parts)
    if constant(quotient) is None and not variables(quotient):
        return False
    return same(quotient, other.tree) or close_constants(quotient, other.tree)


def _time(clock: Ratio) -> tuple[Number | None, Number | None]:
    """Hour of the day and minute."""
    hour, minute = map(constant, clock.parts)
    if hour is not None and clock.unit in ("am", "pm"):
        hour = add(hour if hour != 12 else Fraction(0), Fraction(12 if clock.unit == "pm" else 0))
    return hour, minute


def close_constants(a: Tree, b: Tree) -> bool:
    x, y = constant(a), constant(b)
    return x is not None and y is not None and close(x, y)


def _as_sets(gold: Answer, answer: Answer) -> bool:
    """Intervals, inequalities and unions as sets of real numbers; a set against a set by its pieces."""
    if not any(isinstance(side, Relation | Sets) for side in (gold, answer)):
        return False
    left, right = pieces_of(gold), pieces_of(answer)
    if left is None or right is None:
        bounds = _bounds(gold), _bounds(answer)
        if bounds[0] and bounds[1]:  # a <= x <= b and [a, b]
            return bounds[0][0] == bounds[1][0] and all(same(a, b) for a, b in zip(bounds[0][1], bounds[1][1]))
        return (
            isinstance(gold, Sets) and isinstance(answer, Sets) and gold.sign == answer.sign and _unordered(gold.parts, answer.parts, None)
        )
    return left[1] == right[1] and (not left[0] or not right[0] or left[0] == right[0])


def _bounds(answer: Answer) -> tuple[tuple[bool, bool], tuple[Tree, Tree]] | None:
    """(whether the ends belong, the ends) of one interval, as an interval or as a pair of inequalities."""
    if isinstance(answer, Group) and len(answer.items) == 2 and answer.opening in ("(", "["):
        low, high = answer.items
        if isinstance(low, Value) and isinstance(high, Value):
            return (answer.opening == "[", answer.closing == "]"), (low.tree, high.tree)
    if isinstance(answer, Relation) and len(answer.signs) == 2 and answer.sides[1][0] == "s":
        if all(sign in ("<", "<=") for sign in answer.signs):
            return (answer.signs[0] == "<=", answer.signs[1] == "<="), (answer.sides[0], answer.sides[2])
        if all(sign in (">", ">=") for sign in answer.signs):
            return (answer.signs[1] == ">=", answer.signs[0] == ">="), (answer.sides[2], answer.sides[0])
    return None
