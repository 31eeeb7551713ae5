"""What an equation states: the value of a variable or a function, a quantity described on its left, or a condition to be met."""

from __future__ import annotations

import re
from collections.abc import Callable

from .math_forms import Answer, Equation, Group, Matrix, Value
from .math_parser import parse_expression
from .math_split import split
from .math_symbols import FUNCTIONS
from .math_tokens import Tree, Unreadable
from .math_value import variables

_FUNCTION = re.compile(
    r"([A-Za-z]|\\[a-z]+)\s*(?:_\{?\s*\w{1,8}\s*\}?)?\s*'*(?:\^\s*\{\s*-\s*1\s*\})?\s*\(\s*([a-z](?:\s*,\s*[a-z])*)\s*\)"
)
_SEQUENCE = re.compile(r"([A-Za-z])_\{?([a-z])\}?")
_DERIVATIVE = re.compile(r"\\frac\s*\{\s*d\s*\w?\s*\}\s*\{\s*d\s*\w\s*\}|d\w\s*/\s*d\w")
_DESCRIBED = re.compile(
    "|".join(
        (
            r"[A-Z]{2,4}",  # the length AB
            r"[A-Z][a-z]{2,}",
            r"(?:\\mathbb \{?[A-Z]\}?|[A-Z][a-z]{0,2})\s*[\[(].*[\])]",  # P(A), E[X]
            r"[A-Za-z]'+\s*\(\s*[a-z]\s*\)",
            r"[A-Za-z]\s*\(\s*(?:-?\d+|[A-Z])\s*\)",  # f(2), n(S)
            r"\[[A-Z]{3,}\]",  # the area of ABC
            r"m?\s*\\(?:angle|overline|max|min|sup|inf|sum|prod|int|lim)\b.*",
            r"\\(?:sin|cos|tan|cot|sec|csc|log|ln)\b(?!.*(?<![A-Za-z\\])[a-z](?![A-Za-z])).*",  # of an angle A; sin x = 1 is to be solved
            r"\\frac\s*\{[A-Z]{2}\}\s*\{[A-Z]{2}\}|[A-Z]{2}\s*/\s*[A-Z]{2}",
            r"(?:#|\\# ?).*",
        )
    )
)
_WORDED = re.compile(r"[\"#A-Za-z\\][A-Za-z\\ _{}0-9'()\[\]\"|:+,/.^#-]*")
_TERM = re.compile(r"(?<=[\w)}\]'|])\s*(?:\+|-(?![A-Za-z]{3})|\s-\s)")


def equation(sides: list[str], read: Callable[[str], Answer]) -> Answer:
    """The sides of an equation or of a chain of them, as an answer; ``read`` reads one side. The last side is what is stated."""
    right = read(sides[-1])
    left = sides[0]
    if not left:
        return right
    function = _FUNCTION.fullmatch(left)
    if function and function[1].lstrip("\\") not in FUNCTIONS:
        arguments = tuple(name.strip() for name in function[2].split(","))
        return Equation(None, re.sub(r"[\s{}]", "", left.rpartition("(")[0]), arguments, right)
    terms = len(split(left, _TERM)) > 1  # then it is an equation to solve, not the name of what the right side is
    try:
        tree = parse_expression(left)
    except (Unreadable, OverflowError):
        described = _WORDED.fullmatch(left) and not terms
        if described or len(sides) > 2 or "\\begin" in left or isinstance(read(left), Group | Matrix | Value):
            return Equation(None, "", (), right)
        raise
    if tree[0] == "s":
        return _named(tree, right)
    if len(sides) > 2 and isinstance(right, Value) and not variables(right.tree):
        if any(isinstance(value, Value) and not variables(value.tree) for value in map(read, sides[1:-1])):
            return Equation(None, "", (), right)  # m + n = 10 + 7 = 17
    if not isinstance(right, Value):
        return Equation(None if isinstance(right, Matrix) else tree, "", (), right)  # A^{-1} = ...
    if not variables(tree):
        if right.tree[0] == "s":  # 2 = x
            return Equation(right.tree, right.tree[1], (), read(left))
        return right if not variables(right.tree) else Equation(tree, "", (), right)
    if _DERIVATIVE.fullmatch(left):
        return Equation(tree, re.sub(r"\\frac|[\s{}/]", "", left), (), right)
    if not terms and (_DESCRIBED.fullmatch(left) or "|" in left):
        return Equation(tree, "", ("",), right)  # a description, not an equation to solve
    return Equation(tree, "", (), right)


def _named(tree: Tree, right: Answer) -> Equation:
    """``x = 5``, and ``a_n = 3n - 1``, which is a function of n."""
    sequence = _SEQUENCE.fullmatch(tree[1])
    if sequence and isinstance(right, Value) and sequence[2] in variables(right.tree):
        return Equation(tree, sequence[1], (sequence[2],), right)
    return Equation(tree, tree[1], (), right)
