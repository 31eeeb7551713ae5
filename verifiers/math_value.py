"""The value of an expression tree: exact where it can be, else to 60 digits; with variables, its values at fixed random points.

Two expressions are equal when they agree at every point: identities of polynomials and rational functions are tested in exact arithmetic
modulo nothing, so a false agreement would need a root at one of the points.
"""

from __future__ import annotations

import zlib
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import gcd, lcm

from .math_number import (
    CONTEXT,
    FUNCTIONS,
    ONE,
    PI,
    ZERO,
    Complex,
    Number,
    TooLarge,
    Undefined,
    absolute,
    add,
    binomial,
    close,
    digits,
    div,
    mul,
    neg,
    power,
    to_complex,
)
from .math_tokens import Tree

# Where expressions are compared: below one, above one, far above, then with both signs. Whole numbers where whole numbers are counted.
RANGES = ((0.1, 0.95), (1.0, 3.0), (130.0, 400.0), (60.0, 200.0), (0.1, 0.95))
POINTS = len(RANGES)
POSITIVE = 3  # the first of them; then all variables are negative, then some
STRICT = 2  # the first of them, where non-real values count as well: elsewhere branches differ
MAX_TERMS = 1_000  # of a sum or product that is written out
MAX_SERIES_BITS = 8_000  # of the denominator while it is written out
MAX_STEPS = 4_000

Values = tuple[Number | None, ...]
Bindings = dict[str, Number]

_E = Complex(ONE.exp(CONTEXT), ZERO)
_I = Complex(ZERO, ONE)
_PI = Complex(PI, ZERO)


def variables(tree: Tree) -> frozenset[str]:
    """The names that occur free in ``tree``."""
    kind = tree[0]
    if kind == "s":
        return frozenset([tree[1]])
    if kind in "nc":
        return frozenset()
    if kind in ("sum", "prod"):
        return variables(tree[2]) | variables(tree[3]) | (variables(tree[4]) - {tree[1]})
    parts = tree[2:] if kind in "fo" else tree[1:]
    return frozenset().union(*(variables(part) for part in parts))


@lru_cache(maxsize=4096)
def probe(tree: Tree, whole: frozenset[str] = frozenset()) -> Values:
    """The values of ``tree``: one if it is constant, else one a point; None where undefined or, with variables, too large. Raises TooLarge.

    The variables in ``whole`` have positive whole values.
    """
    return tuple(_seen(tree, point, whole) for point in range(POINTS)) if variables(tree) else (_at(tree, 0, whole),)


def _seen(tree: Tree, point: int, whole: frozenset[str]) -> Number | None:
    """The value at a point; None where it is of no use: too large, or by way of the root of a negative number, where branches are many."""
    try:
        return _at(tree, point, whole, point >= STRICT)
    except TooLarge:
        return None


def counters(tree: Tree) -> frozenset[str]:
    """The variables for which ``tree`` is defined at whole numbers only: the n of n!, of binomials, of sums up to n."""
    found: frozenset[str] = frozenset()
    if tree[0] in ("sum", "prod"):
        found = variables(tree[2]) | variables(tree[3])
    elif tree[0] == "f" and tree[1] in ("fact", "binom", "gcd", "lcm", "mod"):
        found = variables(tree)
    return found.union(*(counters(part) for part in tree if isinstance(part, tuple)))


def _at(tree: Tree, point: int, whole: frozenset[str], real: bool = False) -> Number | None:
    evaluator = _Evaluator(point, whole)
    try:
        with localcontext(CONTEXT):
            value = evaluator.value(tree, {})
        return None if real and evaluator.left_reals else value
    except (Undefined, ZeroDivisionError):
        return None
    except ArithmeticError as error:  # decimal overflow or an invalid operation: beyond what is compared
        raise TooLarge(str(error)) from error


def draw(name: str, point: int, whole: bool = False) -> Fraction:
    """The value that the variable ``name`` has at ``point``: fixed, in its range."""
    seed = zlib.crc32(f"{name}:{point}".encode("utf-8", "replace"))
    if whole:
        count = 2 + seed % (7 + 3 * point)
        pattern = zlib.crc32(name.encode("utf-8", "replace")) % (2**POINTS - 2) + 1  # even at some points, odd at others
        return Fraction(count + (count + (pattern >> point)) % 2)
    low, high = RANGES[point]
    value = Fraction(int(low * 100_003) + seed % int((high - low) * 100_003), 100_003)
    return -value if point == POSITIVE or (point > POSITIVE and seed >> 8 & 1) else value


class _Evaluator:
    def __init__(self, point: int, whole: frozenset[str]) -> None:
        self.point, self.whole = point, whole
        self.left_reals = False  # by a root or a logarithm of a negative number
        self.steps = 0

    def value(self, tree: Tree, bound: Bindings) -> Number:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise TooLarge("too many operations")
        result = self.compute(tree, bound)
        if isinstance(result, Fraction):
            self.steps += result.numerator.bit_length() // 256
        return result

    def compute(self, tree: Tree, bound: Bindings) -> Number:
        kind = tree[0]
        if kind == "n":
            result: Number = tree[1]
            return result
        if kind == "s":
            return bound[tree[1]] if tree[1] in bound else self.free(tree[1])
        if kind == "c":
            return {"pi": _PI, "e": _E, "i": _I}[tree[1]]
        if kind == "^":
            return self.power(tree, bound)
        if kind == "f":
            return self.function(tree[1], [self.value(argument, bound) for argument in tree[2:]])
        if kind in ("sum", "prod"):
            return self.series(tree, bound)
        if kind == "o":
            return self.opaque(tree[1], [self.value(argument, bound) for argument in tree[2:]])
        left = self.value(tree[1], bound)
        if kind == "-":
            return neg(left)
        right = self.value(tree[2], bound)
        return {"+": add, "*": mul, "/": div}[kind](left, right)

    def free(self, name: str) -> Number:
        if name == "\\infty":
            raise Undefined("infinity is no number")
        return draw(name, self.point, name in self.whole)

    def power(self, tree: Tree, bound: Bindings) -> Number:
        exponent = self.value(tree[2], bound)
        if tree[1] == ("c", "e"):
            return FUNCTIONS["exp"](exponent) if exponent else Fraction(1)
        base = self.value(tree[1], bound)
        if not isinstance(base, Fraction) and isinstance(exponent, Fraction):
            self.steps += abs(int(exponent))  # so many multiplications of long numbers
        result = power(base, exponent)
        self.left_reals |= _is_real(base) and not _is_real(result)
        return result

    def function(self, name: str, arguments: list[Number]) -> Number:
        if len(arguments) == 1 and name in FUNCTIONS:
            result = FUNCTIONS[name](arguments[0])
            self.left_reals |= name == "ln" and _is_real(arguments[0]) and not _is_real(result)
            return result
        if name == "binom" and len(arguments) == 2:
            return binomial(*arguments)
        exact = [a for a in arguments if isinstance(a, Fraction)]
        if len(exact) < len(arguments) or not exact:
            raise Undefined(name)
        if name in ("max", "min"):
            return max(exact) if name == "max" else min(exact)
        if name in ("gcd", "lcm") and all(a.denominator == 1 for a in exact):
            return Fraction((gcd if name == "gcd" else lcm)(*(a.numerator for a in exact)))
        if name == "mod" and len(exact) == 2 and exact[1]:
            return exact[0] % exact[1]
        return self.opaque(name, arguments)

    def series(self, tree: Tree, bound: Bindings) -> Number:
        kind, variable, low, high, body = tree
        first = self.value(low, bound)
        last = draw("\\infty", self.point) if high == ("s", "\\infty") else self.value(high, bound)
        if (
            isinstance(first, Fraction)
            and isinstance(last, Fraction)
            and first.denominator == last.denominator == 1
            and (self.whole or not variables(high))
        ):
            if last - first > MAX_TERMS:
                raise TooLarge("series")
            total = Fraction(0) if kind == "sum" else Fraction(1)
            result: Number = total
            for index in range(int(first), int(last) + 1):
                term = self.value(body, {**bound, variable: Fraction(index)})
                result = add(result, term) if kind == "sum" else mul(result, term)
                if isinstance(result, Fraction) and result.denominator.bit_length() > MAX_SERIES_BITS:
                    raise TooLarge("series")
            return result
        return self.opaque(kind, [first, last, self.value(body, {**bound, variable: draw("\\bound", self.point)})])

    def opaque(self, name: str, arguments: list[Number]) -> Number:
        """A number that stands for an operator that is not computed: the same for the same arguments."""
        return draw(name + "".join(f"|{digits(argument)}" for argument in arguments), self.point)


def same(a: Tree, b: Tree) -> bool:
    """Whether two expressions are equal wherever both are real, and at the points with positive values at least."""
    if a == b:
        return True
    names = variables(a) ^ variables(b)
    if "\\infty" in names:
        return False
    whole = counters(a) | counters(b)
    left, right = _spread(a, whole), _spread(b, whole)
    if names and not (variables(a) and variables(b)):  # one side is a constant: the variables of the other must cancel out
        return all(x is not None and y is not None and close(x, y) for x, y in zip(left, right))
    agreed = 0
    for point, (x, y) in enumerate(zip(left, right)):
        if x is None or y is None:
            if (x is None) != (y is None) and point < STRICT and not whole:
                return False
            continue
        if point >= STRICT and not (_is_real(x) and _is_real(y)):
            continue  # the root of a negative number: principal value or real root, both are in use
        if not close(x, y):
            return False
        agreed += 1
    if agreed > 1 and not whole and (_rounds(a) or _rounds(b)):
        return all(x is None or y is None or close(x, y) for x, y in zip(_spread(a, variables(a)), _spread(b, variables(b))))
    return agreed > 1


def _spread(tree: Tree, whole: frozenset[str]) -> Values:
    values = probe(tree, whole)
    return values * POINTS if len(values) == 1 else values


def _is_real(x: Number) -> bool:
    return isinstance(x, Fraction) or abs(x.im) <= Decimal(10) ** -40


def constant(tree: Tree) -> Number | None:
    """The value of an expression without variables; None if it has variables or no value. Raises TooLarge."""
    return None if variables(tree) else probe(tree)[0]


def key_of(tree: Tree) -> str:
    """A text that is the same for equal expressions."""
    if "\\infty" in variables(tree):
        return "".join(("oo" if tree == ("s", "\\infty") else "-oo" if tree == ("-", ("s", "\\infty")) else repr(tree)).split())
    values = probe(tree, frozenset() if _rounds(tree) else variables(tree))
    if len(values) == 1:
        return "undefined" if values[0] is None else digits(values[0])
    first = tuple(None if value is None else digits(value) for value in values[:3])
    return f"{','.join(sorted(variables(tree)))}:{zlib.crc32(repr(first).encode()):08x}{zlib.adler32(repr(first).encode()):08x}"


def ratio_key(tree: Tree, signed: bool = False) -> str:
    """A text that is the same for expressions that are constant (``signed``: positive constant) multiples of each other."""
    values = probe(tree)
    first = next((value for value in values if value and any(to_complex(value))), None)
    if len(values) == 1 or first is None:
        return key_of(tree)
    scale = absolute(first) if signed else first
    with localcontext(CONTEXT):
        ratios = repr([None if value is None else digits(div(value, scale)) for value in values[:3]])
    return f"{','.join(sorted(variables(tree)))}:{zlib.crc32(ratios.encode()):08x}{zlib.adler32(ratios.encode()):08x}"


def _rounds(tree: Tree) -> bool:
    """Whether ``tree`` has a function that is special at whole numbers."""
    return (tree[0] == "f" and tree[1] in ("floor", "ceil", "sin", "cos", "tan", "cot")) or any(
        isinstance(part, tuple) and _rounds(part) for part in tree
    )
