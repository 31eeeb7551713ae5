"""Numbers for the maths verifier: exact rationals as long as they last, else complex numbers of 60 digits.

``Fraction`` arithmetic is exact and decides most comparisons; surds, pi, e and functions leave it for :class:`Complex`, a pair of
decimals. Sizes are bounded before anything is computed: a tower or a factorial of a million raises :class:`TooLarge` at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from decimal import Context, Decimal, DivisionByZero, InvalidOperation, Overflow, localcontext
from fractions import Fraction
from math import comb, factorial, isqrt
from typing import NamedTuple

MAX_BITS = 400_000  # of an exact numerator or denominator
MAX_FACTORIAL = 2_000
PRECISION = 60
CONTEXT = Context(prec=PRECISION, Emax=10**6, Emin=-(10**6), traps=[InvalidOperation, DivisionByZero, Overflow])
TOLERANCE = Decimal(10) ** -40  # relative; leaves 20 digits for cancellation


class TooLarge(ValueError):
    """The number has more digits than anyone would write down."""


class Undefined(ValueError):
    """The value does not exist (division by zero, logarithm of zero)."""


class Complex(NamedTuple):
    re: Decimal
    im: Decimal


Number = Fraction | Complex

SMALLEST = Decimal(10) ** -(PRECISION + 5)
ZERO = Decimal(0)
ONE = Decimal(1)
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803")


def to_complex(x: Number) -> Complex:
    if isinstance(x, Complex):
        return x
    if max(x.numerator.bit_length(), x.denominator.bit_length()) > 20_000:
        raise TooLarge("too many digits for a decimal")
    return Complex(Decimal(x.numerator) / Decimal(x.denominator), ZERO)


def _bounded(x: Fraction) -> Fraction:
    if max(x.numerator.bit_length(), x.denominator.bit_length()) > MAX_BITS:
        raise TooLarge("too many digits")
    return x


def add(a: Number, b: Number) -> Number:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return _bounded(a + b)
    p, q = to_complex(a), to_complex(b)
    return Complex(p.re + q.re, p.im + q.im)


def neg(a: Number) -> Number:
    return -a if isinstance(a, Fraction) else Complex(-a.re, -a.im)


def mul(a: Number, b: Number) -> Number:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return _bounded(a * b)
    p, q = to_complex(a), to_complex(b)
    return Complex(p.re * q.re - p.im * q.im, p.re * q.im + p.im * q.re)


def div(a: Number, b: Number) -> Number:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        if not b:
            raise Undefined("division by zero")
        return _bounded(a / b)
    p, q = to_complex(a), to_complex(b)
    size = q.re * q.re + q.im * q.im
    if not size or SMALLEST**2 < size < TOLERANCE**2:  # what rounding leaves of a zero; tinier numbers are meant
        raise Undefined("division by zero")
    return Complex((p.re * q.re + p.im * q.im) / size, (p.im * q.re - p.re * q.im) / size)


def power(a: Number, b: Number) -> Number:
    """Principal value of a to the b; exact for an integer exponent and for perfect roots."""
    if isinstance(b, Fraction) and b.denominator == 1:
        n = int(b)
        if isinstance(a, Fraction):
            return _integer_power(a, n)
        if abs(n) <= 64:
            return _repeated(a, n)
    if isinstance(a, Fraction) and isinstance(b, Fraction) and a >= 0 and b.denominator <= 12 and abs(b.numerator) <= 64:
        root = _exact_root(a, b.denominator)
        if root is not None:
            return _integer_power(root, b.numerator)
    if isinstance(b, Fraction) and b.denominator.bit_length() > 64:
        raise TooLarge("a root too high to tell from one")
    p, q = to_complex(a), to_complex(b)
    if p.re == p.im == 0:
        if q.re > 0:
            return Fraction(0)
        raise Undefined("zero to a power that is not positive")
    if not p.im and p.re > 0 and not q.im:
        if abs(q.re * p.re.ln()) > 5_000:
            raise TooLarge("power")
        return Complex(p.re**q.re, ZERO)
    return exp(mul(q, ln(p)))


def _integer_power(a: Fraction, n: int) -> Fraction:
    if not a and n <= 0:
        raise Undefined("zero to a power that is not positive")
    if abs(a) == 1 or not a:
        return a if n % 2 or not a else Fraction(1)
    if abs(n) * max(a.numerator.bit_length(), a.denominator.bit_length()) > MAX_BITS:
        raise TooLarge("power")
    return a**n


def _repeated(a: Complex, n: int) -> Number:
    result: Number = Fraction(1)
    for _ in range(abs(n)):
        result = mul(result, a)
    return result if n >= 0 else div(Fraction(1), result)


def _exact_root(a: Fraction, k: int) -> Fraction | None:
    top, bottom = _integer_root(a.numerator, k), _integer_root(a.denominator, k)
    return Fraction(top, bottom) if top is not None and bottom is not None else None


def _integer_root(n: int, k: int) -> int | None:
    if n.bit_length() > 10_000:
        return None
    if k == 2:
        root = isqrt(n)
    else:
        root = round(n ** (1 / k)) if n.bit_length() < 1000 else 0
    return root if root**k == n else None


def exp(z: Number) -> Number:
    p = to_complex(z)
    if abs(p.re) > 5_000:
        raise TooLarge("exponential")
    size = p.re.exp()
    if not p.im:
        return Complex(size, ZERO)
    return Complex(size * cosine(p.im), size * sine(p.im))


def ln(z: Number) -> Number:
    p = to_complex(z)
    if p.re == p.im == 0:
        raise Undefined("logarithm of zero")
    if not p.im and p.re > 0:
        return Complex(p.re.ln(), ZERO)
    return Complex((p.re * p.re + p.im * p.im).ln() / 2, angle(p.im, p.re))


def sine(x: Decimal) -> Decimal:
    """Taylor series after reduction to one turn; arguments beyond 10^12 have lost too many digits."""
    if abs(x) > 10**12:
        raise TooLarge("angle")
    x = x % (2 * PI)
    if abs(x) > PI:
        x = x - 2 * PI if x > 0 else x + 2 * PI
    term, total, n = x, x, 1
    while abs(term) > SMALLEST and n < 200:
        n += 2
        term = -term * x * x / (n * (n - 1))
        total += term
    return total


def cosine(x: Decimal) -> Decimal:
    return sine(x + PI / 2)


def arctan(x: Decimal) -> Decimal:
    halvings = 0
    while abs(x) > Decimal("0.05") and halvings < 12:
        x = x / (1 + (1 + x * x).sqrt())
        halvings += 1
    term, total, n = x, x, 1
    while abs(term) > SMALLEST and n < 400:
        n += 2
        term = -term * x * x
        total += term / n
    return total * 2**halvings


def angle(y: Decimal, x: Decimal) -> Decimal:
    if x > 0:
        return arctan(y / x)
    if x < 0:
        return arctan(y / x) + (PI if y >= 0 else -PI)
    return PI / 2 if y > 0 else -PI / 2


def _circular(name: str, z: Number) -> Number:
    p = to_complex(z)
    if not p.im:
        s, c = Complex(sine(p.re), ZERO), Complex(cosine(p.re), ZERO)
    else:
        up, down = exp(Complex(-p.im, p.re)), exp(Complex(p.im, -p.re))
        two_i = Complex(ZERO, Decimal(2))
        s, c = to_complex(div(add(up, neg(down)), two_i)), to_complex(div(add(up, down), Fraction(2)))
    top, bottom = {"sin": (s, None), "cos": (c, None), "tan": (s, c), "cot": (c, s), "sec": (None, c), "csc": (None, s)}[name]
    value: Number = top if top is not None else Fraction(1)
    return value if bottom is None else div(value, bottom)


def _hyperbolic(name: str, z: Number) -> Number:
    up, down = exp(z), exp(neg(z))
    s, c = div(add(up, neg(down)), Fraction(2)), div(add(up, down), Fraction(2))
    one = Fraction(1)
    pairs: dict[str, tuple[Number, Number]]
    pairs = {"sinh": (s, one), "cosh": (c, one), "tanh": (s, c), "coth": (c, s), "sech": (one, c), "csch": (one, s)}
    return div(*pairs[name])


def _area(name: str, z: Number) -> Number:
    """The inverse hyperbolic functions by their logarithms."""
    if name == "arctanh":
        return div(ln(div(add(Fraction(1), z), add(Fraction(1), neg(z)))), Fraction(2))
    square = add(mul(z, z), Fraction(1 if name == "arcsinh" else -1))
    return ln(add(z, power(square, Fraction(1, 2))))


def real(z: Number) -> Decimal:
    p = to_complex(z)
    if abs(p.im) > TOLERANCE * max(abs(p.re), ONE):
        raise Undefined("expected a real number")
    return p.re


def _inverse(name: str, z: Number) -> Number:
    x = real(z)
    if name in ("arcsec", "arccsc"):
        if not x:
            raise Undefined("division by zero")
        name, x = {"arcsec": "arccos", "arccsc": "arcsin"}[name], 1 / x
    if name == "arctan":
        return Complex(arctan(x), ZERO)
    if name == "arccot":
        return Complex(PI / 2 - arctan(x), ZERO)
    if abs(x) > 1:
        raise Undefined("inverse sine beyond one")
    value = PI / 2 * (1 if x > 0 else -1) if abs(x) == 1 else arctan(x / (1 - x * x).sqrt())
    return Complex(value if name == "arcsin" else PI / 2 - value, ZERO)


def _whole(z: Number, name: str) -> Number:
    if isinstance(z, Fraction):
        return Fraction(z.__floor__() if name == "floor" else z.__ceil__())
    x = real(z)
    if abs(x) > 10**30:
        raise TooLarge(name)
    nearest = x.to_integral_value()
    if abs(x - nearest) < TOLERANCE:
        return Fraction(int(nearest))
    return Fraction(int(x.__floor__() if name == "floor" else x.__ceil__()))


def absolute(z: Number) -> Number:
    if isinstance(z, Fraction):
        return abs(z)
    return Complex(abs(z.re) if not z.im else (z.re * z.re + z.im * z.im).sqrt(), ZERO)


def fact(z: Number) -> Number:
    if not isinstance(z, Fraction) or z.denominator != 1 or z < 0:
        raise Undefined("factorial")
    if z > MAX_FACTORIAL:
        raise TooLarge("factorial")
    return Fraction(factorial(int(z)))


def binomial(n: Number, k: Number) -> Number:
    if not (isinstance(n, Fraction) and isinstance(k, Fraction) and n.denominator == k.denominator == 1 and n >= 0):
        raise Undefined("binomial")
    if k < 0 or k > n:
        return Fraction(0)
    if n > 5_000:
        raise TooLarge("binomial")
    return Fraction(comb(int(n), int(k)))


FUNCTIONS: dict[str, Callable[[Number], Number]] = {
    "exp": exp,
    "ln": ln,
    "abs": absolute,
    "fact": fact,
    "floor": lambda z: _whole(z, "floor"),
    "ceil": lambda z: _whole(z, "ceil"),
    **{name: (lambda z, name=name: _circular(name, z)) for name in ("sin", "cos", "tan", "cot", "sec", "csc")},  # type: ignore[misc]
    **{name: (lambda z, name=name: _hyperbolic(name, z)) for name in ("sinh", "cosh", "tanh", "coth", "sech", "csch")},  # type: ignore[misc]
    **{name: (lambda z, name=name: _area(name, z)) for name in ("arcsinh", "arccosh", "arctanh")},  # type: ignore[misc]
    **{name: (lambda z, name=name: _inverse(name, z)) for name in ("arcsin", "arccos", "arctan", "arccot", "arcsec", "arccsc")},  # type: ignore[misc]
}


def close(a: Number, b: Number) -> bool:
    """Equal: exactly for two rationals, else to 40 digits."""
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a == b
    try:
        with localcontext(CONTEXT):
            p, q = to_complex(a), to_complex(b)
            size = max(abs(p.re) + abs(p.im), abs(q.re) + abs(q.im))
            return abs(p.re - q.re) + abs(p.im - q.im) <= TOLERANCE * (size if size > TOLERANCE else ONE)
    except (ArithmeticError, TooLarge):
        return False


def digits(x: Number) -> str:
    """A text that is the same for equal numbers: a reduced fraction, else 25 significant digits."""
    if isinstance(x, Fraction):
        top, bottom = x.numerator, x.denominator
        if max(top.bit_length(), bottom.bit_length()) > 10_000:
            return "#" + hashlib.sha1(f"{top:x}/{bottom:x}".encode()).hexdigest()  # str() of so long an integer is slow
        return str(top) if bottom == 1 else f"{top}/{bottom}"
    with localcontext(CONTEXT):
        size = max(abs(x.re), abs(x.im))
        parts = [ZERO if abs(part) <= TOLERANCE * max(size, TOLERANCE) else part for part in x]
        if not parts[1] and abs(parts[0]) < 10**15:
            near = Fraction(parts[0]).limit_denominator(1_000)
            if abs(parts[0] - Decimal(near.numerator) / near.denominator) < TOLERANCE * max(size, ONE):
                return digits(near)
        text = "~" + format(parts[0], ".24e")
        return text if not parts[1] else f"{text}{format(parts[1], '+.24e')}i"
