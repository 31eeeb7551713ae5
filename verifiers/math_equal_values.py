"""When are two values the same value? Units, percentages and the decimal rule, which alone knows which side is gold."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

from .math_forms import Value
from .math_number import CONTEXT, SMALLEST, Number, close, to_complex
from .math_tokens import Tree
from .math_units import compatible
from .math_value import constant, same, variables

Precision = float | Sequence[float] | None


def equal_values(gold: Value, answer: Value, precision: Precision = None) -> bool:
    if not compatible(gold.unit, answer.unit) or gold.percent != answer.percent and (gold.unit or answer.unit):
        return False
    for left, right in _percents(gold, answer):
        if _trees(left, right, gold, answer, precision):
            return True
    if gold.unit != answer.unit and len(gold.unit + answer.unit) == 1:  # 4 "m" and 4 m: the unit written as a symbol
        return same(_with_symbol(gold), _with_symbol(answer))
    return False


def _with_symbol(value: Value) -> Tree:
    return ("*", value.tree, ("s", value.unit)) if value.unit else value.tree


def _percents(gold: Value, answer: Value) -> list[tuple[Tree, Tree]]:
    """x% is x% and x/100 and a bare x, never 100x."""
    pairs = [(gold.tree, answer.tree)]
    hundred = ("n", Fraction(100))
    if gold.percent and not answer.percent:
        pairs.append((("/", gold.tree, hundred), answer.tree))
    elif answer.percent and not gold.percent:
        pairs.append((gold.tree, ("/", answer.tree, hundred)))
    return pairs


def _trees(left: Tree, right: Tree, gold: Value, answer: Value, precision: Precision) -> bool:
    if left == right:
        return constant(left) is not None or bool(variables(left))
    a, b = constant(left), constant(right)
    if a is None or b is None:
        return same(left, right)
    if close(a, b):
        return _tiny(a) == _tiny(b)
    with localcontext(CONTEXT):
        if isinstance(precision, int | float) and _within(a, b, precision):
            return True
        return _decimals(a, b, gold, answer)


def _tiny(x: Number) -> bool:
    """Not zero, but far below what rounding leaves of a zero."""
    return not isinstance(x, Fraction) and 0 < abs(x.re) + abs(x.im) < SMALLEST


def _within(a: Number, b: Number, precision: float) -> bool:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return abs(a - b) <= Fraction(repr(float(precision)))
    p, q = to_complex(a), to_complex(b)
    return abs(p.re - q.re) <= Decimal(repr(float(precision))) and abs(p.im - q.im) < Decimal("1e-30")


def _decimals(gold: Number, answer: Number, gold_form: Value, answer_form: Value) -> bool:
    """A rounded decimal on one side: what the module's rule accepts as the same number."""
    p, q = to_complex(gold), to_complex(answer)
    if max(abs(p.im), abs(q.im)) > Decimal("1e-30"):
        return False
    gap = abs(p.re - q.re)
    whole = isinstance(gold, Fraction) and gold.denominator == 1
    if gold_form.significant is not None and answer_form.significant is not None:
        return not whole and gap <= abs(p.re) * Decimal("1e-6")
    scale = Fraction(1, 100) if gold_form.percent != answer_form.percent else Fraction(1)
    if answer_form.significant is not None:
        ulp = answer_form.ulp * (scale if abs(q.re) < abs(_literal(answer_form)) else 1)
        return not whole and not _terminates(gold) and answer_form.significant >= 4 and gap < _decimal(ulp)
    if gold_form.significant is not None:
        ulp = gold_form.ulp * (scale if abs(p.re) < abs(_literal(gold_form)) else 1)
        return not whole and gold_form.significant >= 3 and gap * 2 <= _decimal(ulp)
    return False


def _literal(form: Value) -> Decimal:
    value = constant(form.tree)
    return to_complex(value).re if value is not None else Decimal(0)


def _decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def _terminates(x: Number) -> bool:
    """A fraction with a short decimal expansion must be given exactly."""
    return isinstance(x, Fraction) and 10**6 % x.denominator == 0
