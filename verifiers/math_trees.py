"""Expression trees: how they are built from what is read, and what is known of them without their values.

A tree is a tuple: ("n", Fraction), ("s", name), ("c", "pi" | "e" | "i"), ("-", a), ("+" | "*" | "/" | "^", a, b), ("f", name, *arguments),
("sum" | "prod", variable, low, high, body), or ("o", name, *parts) for an operator that is not computed.
"""

from __future__ import annotations

from fractions import Fraction

from .math_tokens import Tree


def levels(tree: Tree) -> int:
    """How deep ``tree`` is, without recursion."""
    levels, layer = 0, [tree]
    while layer:
        levels += 1
        layer = [part for node in layer for part in node if isinstance(part, tuple)]
    return levels


def with_imaginary_unit(tree: Tree) -> Tree:
    """``tree`` with every I read as the imaginary unit: ``2 + 3I``."""
    if tree == ("s", "I"):
        return ("c", "i")
    return tuple(with_imaginary_unit(part) if isinstance(part, tuple) else part for part in tree)


def with_index(tree: Tree) -> Tree:
    if tree == ("c", "i"):
        return ("s", "i")
    return tuple(with_index(part) if isinstance(part, tuple) else part for part in tree)


def letter_of(letter: str) -> Tree:
    if letter == "e":
        return ("c", "e")
    return ("c", "i") if letter == "i" else ("s", letter)


def applied(name: str, base: Tree | None, arguments: list[Tree]) -> Tree:
    if name == "sqrt" and len(arguments) == 1:
        return ("^", arguments[0], ("/", ("n", Fraction(1)), ("n", Fraction(2))))
    if name == "cbrt" and len(arguments) == 1:
        return ("^", arguments[0], ("/", ("n", Fraction(1)), ("n", Fraction(3))))
    if name == "lg":
        return ("/", ("f", "ln", arguments[0]), ("f", "ln", ("n", Fraction(10))))
    if name == "log":
        top = ("f", "ln", arguments[0])
        base = arguments[1] if len(arguments) == 2 else base
        return top if base is None else ("/", top, ("f", "ln", base))
    return ("f", name, *arguments)
