"""Matrices: the environments in which they are written, and the sums and products of them that an answer may leave unevaluated."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from .math_forms import Answer, Equation, Group, Matrix, Value
from .math_parser import parse_expression
from .math_split import separators, split
from .math_tokens import Tree, Unreadable

MAX_ROWS = 30
MAX_PRODUCT = 6  # rows and columns of a matrix that is multiplied
MAX_FACTORS = 3

_ENVIRONMENT = re.compile(r"\\begin \{([a-zA-Z]*)\*?\}((?:(?!\\begin).)*?)\\end \{\1\*?\}", re.DOTALL)
_TRANSPOSED = re.compile(r"\s*\^\s*\{?\s*(?:\"?T\"?|\\top|\\intercal)\s*\}?")
_MATRICES = frozenset("pmatrix bmatrix Bmatrix matrix vmatrix array smallmatrix".split())
_LAYOUT = frozenset("aligned align equation gathered gather split alignedat eqnarray".split())
_IF = re.compile(r'&\s*"?\s*(?:if|when|for)\b\s*"?')
_SIGN = re.compile(r"[+-]")

Cells = tuple[tuple[Answer, ...], ...]


def matrix_of(text: str, read: Callable[[str], Answer]) -> Answer | None:
    """The matrix, the cases or the aligned lines that ``text`` is, or the matrix that it comes to; None if it is something else."""
    match = _ENVIRONMENT.fullmatch(text.strip())
    if match is None:
        terms = _terms(text)
        return Matrix("matrix", _sum(terms, read)) if terms else None
    kind, body = match[1], match[2]
    if kind in _LAYOUT:
        lines = [line.replace("&", " ") for line in split(body, re.compile(r"\\\\")) if line.strip()]
        return read(lines[0]) if len(lines) == 1 else Group("", "", tuple(map(read, lines)))
    cells = _cells(kind, body, read)
    if kind == "cases":
        if all(len(row) == 1 and isinstance(row[0], Equation) for row in cells):
            return Group("", "", tuple(row[0] for row in cells))
        return Matrix("cases", cells)
    if kind == "vmatrix":
        return Value(_determinant(cells))
    return cells[0][0] if len(cells) == len(cells[0]) == 1 else Matrix("matrix", cells)


def _cells(kind: str, body: str, read: Callable[[str], Answer]) -> Cells:
    if kind == "array":
        body = re.sub(r"^\s*\{[^}]*\}", "", body)
    if kind not in _MATRICES and kind != "cases":
        raise Unreadable(kind)
    rows = [row for row in split(body, re.compile(r"\\\\")) if row.strip()]
    if not 0 < len(rows) <= MAX_ROWS:
        raise Unreadable("too many rows")
    if kind == "cases":
        rows = [_IF.sub("&", row) for row in rows]
    cells = tuple(tuple(read(cell) for cell in split(row, re.compile("&"))) for row in rows)
    if len({len(row) for row in cells}) != 1 and kind != "cases":
        raise Unreadable("rows of different lengths")
    return cells


def _determinant(cells: Cells) -> Tree:
    size = len(cells)
    if size > 4 or any(len(row) != size or not all(isinstance(cell, Value) for cell in row) for row in cells):
        raise Unreadable("determinant")
    if size == 1:
        return cells[0][0].tree  # type: ignore[union-attr]
    total: Tree = ("n", Fraction(0))
    for column, cell in enumerate(cells[0]):
        minor = tuple(tuple(c for i, c in enumerate(row) if i != column) for row in cells[1:])
        term = ("*", cell.tree, _determinant(minor))  # type: ignore[union-attr]
        total = ("+", total, ("-", term) if column % 2 else term)
    return total


# --- what is left to be computed -----------------------------------------------------------------------------------


def _terms(text: str) -> list[tuple[bool, str]]:
    """(whether it is subtracted, term) for the terms of a sum in which every term has a matrix; else none."""
    parts = split(text, _SIGN)
    signs = ["+", *separators(text, _SIGN)]
    if not parts[0].strip():
        parts, signs = parts[1:], signs[1:]
    whole = all("\\begin" in part for part in parts)
    return [(sign == "-", part) for sign, part in zip(signs, parts)] if whole and len(parts) <= 8 else []


def _sum(terms: list[tuple[bool, str]], read: Callable[[str], Answer]) -> Cells:
    total: list[list[Tree]] | None = None
    for negative, term in terms:
        product = _product(term, read)
        if negative:
            product = [[("-", cell) for cell in row] for row in product]
        if total is not None and (len(total), len(total[0])) != (len(product), len(product[0])):
            raise Unreadable("a sum of matrices of different sizes")
        total = product if total is None else [[("+", a, b) for a, b in zip(*rows)] for rows in zip(total, product)]
    return tuple(tuple(Value(cell) for cell in row) for row in total or [])


def _product(term: str, read: Callable[[str], Answer]) -> list[list[Tree]]:
    """The product of the factors of ``term``: matrices, and expressions that scale them."""
    product: list[list[Tree]] | None = None
    scale: Tree = ("n", Fraction(1))
    position = 0
    if term.count("\\begin") > MAX_FACTORS:
        raise Unreadable("a product of too many matrices")
    while position < len(term):
        match = _ENVIRONMENT.search(term, position)
        between = term[position : match.start() if match else len(term)].strip().strip("*").strip()
        if between:
            scale = ("*", scale, parse_expression(between))
        if match is None:
            break
        factor = [[_tree(cell) for cell in row] for row in _cells(match[1], match[2], read)]
        transposed = _TRANSPOSED.match(term, match.end())
        if transposed:
            factor = [list(column) for column in zip(*factor)]
        product = factor if product is None else _multiplied(product, factor)
        position = (transposed or match).end()
    if product is None:
        raise Unreadable("no matrix")
    return [[("*", scale, cell) for cell in row] for row in product]


def _tree(cell: Answer) -> Tree:
    if not isinstance(cell, Value):
        raise Unreadable("a matrix of something else than expressions")
    return cell.tree


def _multiplied(left: list[list[Tree]], right: list[list[Tree]]) -> list[list[Tree]]:
    if len(left[0]) != len(right) or max(len(left), len(right), len(right[0])) > MAX_PRODUCT:
        raise Unreadable("a product of matrices that do not fit")
    return [[_dot(row, column) for column in zip(*right)] for row in left]


def _dot(row: list[Tree], column: tuple[Tree, ...]) -> Tree:
    total: Tree = ("*", row[0], column[0])
    for a, b in zip(row[1:], column[1:]):
        total = ("+", total, ("*", a, b))
    return total
