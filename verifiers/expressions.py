"""Arithmetic over non-negative integers: bounded parser, exact value, and the AC normal form that defines a *mode*.

Grammar (nothing else is accepted, nothing is ever evaluated by Python)::

    expr   := [+|-] term {(+|-) term}
    term   := factor {(*|/) factor}
    factor := INT | "(" expr ")"          INT := 0 | [1-9][0-9]*, at most 12 digits

A tree is a nested tuple: ``int`` for a literal, ``(op, left, right)`` with op one of ``+ - * /``, ``("neg", tree)``. Chains
lean to the left and may be as long as the text; the functions below walk them in loops and recurse into brackets only.

Normal form (level C of the ladder text < commutative < AC < rational function): chains of + and - become a sorted
multiset of signed terms, chains of * and / a sorted multiset of factors with exponent +1 or -1, signs are pulled out of
products, and a sum used as a factor is written with its first term positive. With distinct literals, each used once, two
trees have the same normal form exactly when they are the same rational function (1, 6, 68, 1170 classes: OEIS A140606).
With repeated literals it is a little finer (3*2/2 is not 3+2-2), and never joins two different functions. A tree that divides
by zero has a normal form too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

MAX_LENGTH = 512
MAX_DEPTH = 32
MAX_DIGITS = 12

Tree = Any  # int | tuple[str, Tree] | tuple[str, Tree, Tree]: recursive aliases do not survive Python 3.10
Rational = int | Fraction

_TOKEN = re.compile(r"[0-9]+|\S")
_SIGNS = ("+", "-")
_SCALES = ("*", "/")
_OPERATORS = frozenset("+-*/()")


class ExpressionError(ValueError):
    """The text is not an expression of the grammar; the message says why."""


def tokenize(text: str) -> list[int | str]:
    """Split ``text`` into integers and operator characters; raises :class:`ExpressionError` on anything else."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"expected at most {MAX_LENGTH} characters, got {len(text)}")
    tokens: list[int | str] = []
    for token in _TOKEN.findall(text):
        if token in _OPERATORS:
            tokens.append(token)
        elif not "0" <= token[0] <= "9":
            raise ExpressionError(f"expected numbers, + - * / and brackets, got {token!r}")
        elif len(token) > MAX_DIGITS or (token[0] == "0" and token != "0"):
            raise ExpressionError(f"expected an integer of 1 to {MAX_DIGITS} digits without leading zero, got {token[:20]!r}")
        else:
            tokens.append(int(token))
    return tokens


class _Parser:
    """Recursive descent; recursion is bounded by MAX_DEPTH, work by MAX_LENGTH."""

    def __init__(self, tokens: list[int | str]) -> None:
        self.tokens = [*tokens, ""]  # a sentinel saves every bounds check
        self.position = 0

    def take(self) -> int | str:
        token = self.tokens[self.position]
        self.position += 1
        return token

    def peek(self) -> int | str:
        return self.tokens[self.position]

    def expr(self, depth: int) -> Tree:
        if depth > MAX_DEPTH:
            raise ExpressionError(f"expected at most {MAX_DEPTH} nested brackets")
        sign = self.take() if self.peek() in _SIGNS else "+"
        tree = self.term(depth)
        if sign == "-":
            tree = ("neg", tree)
        while self.peek() in _SIGNS:
            tree = (self.take(), tree, self.term(depth))
        return tree

    def term(self, depth: int) -> Tree:
        tree = self.factor(depth)
        while self.peek() in _SCALES:
            tree = (self.take(), tree, self.factor(depth))
        return tree

    def factor(self, depth: int) -> Tree:
        token = self.take()
        if isinstance(token, int):
            return token
        if token == "(":
            tree = self.expr(depth + 1)
            if self.take() != ")":
                raise ExpressionError("expected a closing bracket")
            return tree
        raise ExpressionError(f"expected a number or '(', got {token or 'the end'!r}")


@lru_cache(maxsize=4096)
def parse(text: str) -> Tree:
    """Parse ``text`` into a tree. Raises :class:`ExpressionError`."""
    parser = _Parser(tokenize(text))
    tree = parser.expr(0)
    if parser.peek() != "":
        raise ExpressionError(f"expected the end of the expression, got {parser.peek()!r}")
    return tree


def _spine(tree: Tree) -> tuple[int, list[Any]]:
    """(leftmost literal, the nodes above it from the root down)."""
    nodes = []
    while not isinstance(tree, int):
        nodes.append(tree)
        tree = tree[1]
    return tree, nodes


def literals(tree: Tree) -> list[int]:
    """The integer literals of ``tree``, left to right (a sign does not change a literal)."""
    number, nodes = _spine(tree)
    found = [number]
    for node in reversed(nodes):
        if node[0] != "neg":
            found.extend([node[2]] if isinstance(node[2], int) else literals(node[2]))
    return found


def values(tree: Tree) -> list[Rational]:
    """Exact values of every node in post-order; the last is the value of ``tree``. Raises ZeroDivisionError.

    An integral quotient is an ``int``, any other a ``Fraction``; the two compare and hash alike.
    """
    value: Rational
    value, nodes = _spine(tree)
    found: list[Rational] = [value]
    for node in reversed(nodes):
        op = node[0]
        if op == "neg":
            value = -value
        else:
            right = [node[2]] if isinstance(node[2], int) else values(node[2])
            found.extend(right)
            value = apply(op, value, right[-1])
        found.append(value)
    return found


def apply(op: str, a: Rational, b: Rational) -> Rational:
    """Exact ``a op b``. Integers stay ``int`` as long as they can: ``Fraction`` arithmetic is many times slower."""
    if op == "+":
        return a + b
    if op == "-":
        return a - b
    if op == "*":
        return a * b
    quotient, rest = divmod(a, b)
    return Fraction(a, b) if rest else quotient


# --- normal form -------------------------------------------------------------------------------------------------


class Form(NamedTuple):
    """A normal form with positive sign. Equal texts are equal forms; the fields stand in the order that forms sort by:
    numbers before the rest and by value, then shorter texts first (any total order would do, this one reads naturally)."""

    kind: str  # "#" number, "*" product, "+" sum
    length: int
    text: str
    parts: tuple[tuple[int, Form], ...]  # (sign, term) of a sum, (exponent, factor) of a product; () for a number


_EXPONENT = itemgetter(0)
_FORM = itemgetter(1)


def number_form(number: int) -> Form:
    """The form of a non-negative integer."""
    text = str(number)
    return Form("#", len(text), text, ())


def sum_form(terms: Sequence[tuple[int, Form]]) -> tuple[int, Form]:
    """(sign, form) of a sum with two or more terms: nested sums are flattened, the first sorted term is made positive."""
    flat: list[tuple[int, Form]] = []
    for sign, form in terms:
        if form.kind == "+":
            flat.extend([(sign * s, f) for s, f in form.parts] if sign < 0 else form.parts)
        else:
            flat.append((sign, form))
    plus = _sort_terms(flat)
    minus = _sort_terms([(-s, f) for s, f in flat])
    # Both orders list the same forms; comparing signs makes the first one positive and breaks ties (a term beside its
    # own negative) the same way whichever sign the sum came with.
    sign, parts = (1, plus) if [-s for s, _ in plus] <= [-s for s, _ in minus] else (-1, minus)
    text = _write_sum(parts, [f.text for _, f in parts])
    return sign, Form("+", len(text), text, tuple(parts))


def product_form(factors: Sequence[tuple[int, int, Form]]) -> tuple[int, Form]:
    """(sign, form) of a product of (sign, exponent, form): nested products are flattened, signs are pulled out."""
    overall = 1
    flat: list[tuple[int, Form]] = []
    for sign, exponent, form in factors:
        overall *= sign
        if form.kind == "*":
            flat.extend([(-e, f) for e, f in form.parts] if exponent < 0 else form.parts)
        else:
            flat.append((exponent, form))
    flat.sort(key=_FORM)
    flat.sort(key=_EXPONENT, reverse=True)  # stable; factors before divisors: keys then read as people write them
    text = _write_product(flat, [f.text for _, f in flat])
    return overall, Form("*", len(text), text, tuple(flat))


def _sort_terms(terms: list[tuple[int, Form]]) -> list[tuple[int, Form]]:
    return sorted(sorted(terms, key=_EXPONENT, reverse=True), key=_FORM)  # stable: equal forms keep + before -


def _write_sum(parts: Sequence[tuple[int, Form]], texts: Sequence[str]) -> str:
    text = "".join([("+" if s > 0 else "-") + t for (s, _), t in zip(parts, texts, strict=True)])
    return text[1:] if text[0] == "+" else text


def _write_product(parts: Sequence[tuple[int, Form]], texts: Sequence[str]) -> str:
    written = [("*" if e > 0 else "/") + (f"({t})" if f.kind == "+" else t) for (e, f), t in zip(parts, texts, strict=True)]
    return "".join(written)[1:]


def normal_form(tree: Tree) -> tuple[int, Form]:
    """The AC normal form of ``tree`` as (sign, form)."""
    number, nodes = _spine(tree)
    sign, form = 1, number_form(number)
    while nodes:
        op = nodes[-1][0]
        if op == "neg":
            nodes.pop()
            # a sum that is its own negative (5-5) keeps its sign
            sign, form = sum_form([(-sign, form)]) if form.kind == "+" else (-sign, form)
            continue
        # one whole chain at a time: flattening after every operator would be quadratic in its length
        chain = _SIGNS if op in _SIGNS else _SCALES
        operands = [(sign, 1, form)]
        while nodes and nodes[-1][0] in chain:
            op, _, right = nodes.pop()
            s, f = (1, number_form(right)) if isinstance(right, int) else normal_form(right)
            operands.append((s, 1 if op == chain[0] else -1, f))
        sign, form = sum_form([(s * e, f) for s, e, f in operands]) if chain is _SIGNS else product_form(operands)
    return sign, form


def render(sign: int, form: Form, shuffle: Callable[[list[Any]], None] | None = None) -> str:
    """Write a normal form with the fewest brackets; ``shuffle`` (in place) may permute terms and factors.

    The result parses back to the same normal form, so the unshuffled text serves as its key.
    """
    if shuffle is None and (sign > 0 or form.kind != "+"):
        return form.text if sign > 0 else "-" + form.text
    if form.kind == "#":
        return form.text if sign > 0 else "-" + form.text
    parts = [(sign * s, f) for s, f in form.parts] if form.kind == "+" else list(form.parts)
    if shuffle:
        shuffle(parts)
    # a positive term or a factor leads where there is one: no leading minus, no leading divisor
    parts.insert(0, parts.pop(next((i for i, (s, _) in enumerate(parts) if s > 0), 0)))
    texts = [render(1, f, shuffle) for _, f in parts]
    if form.kind == "+":
        return _write_sum(parts, texts)
    return ("-" if sign < 0 else "") + _write_product(parts, texts)


@lru_cache(maxsize=65536)
def mode_key(text: str) -> str:
    """Canonical key of the expression ``text``: equal for two texts exactly when they have the same normal form."""
    return render(*normal_form(parse(text)))


@lru_cache(maxsize=16384)
def features(text: str) -> tuple[str, ...]:
    """What an expression is made of: each part of its normal form together with the operator that applies to it.

    ``2+3*4`` gives ``+2, +3*4, *3, *4, =2+3*4``. Equal modes have equal features.
    """

    def parts(sign: int, form: Form) -> list[str]:
        if form.kind == "#":
            return []
        signs = "+-" if form.kind == "+" else "*/"
        own = [(sign * s if form.kind == "+" else s, f) for s, f in form.parts]
        return [signs[s < 0] + f.text for s, f in own] + [part for _, f in own for part in parts(1, f)]

    sign, form = normal_form(parse(text))
    return (*parts(sign, form), "=" + render(sign, form))
