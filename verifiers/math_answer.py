"""The structure of an answer: a value with its unit, a list, a tuple, a set, an interval, an equation, a matrix, or words.

Reads the notation of ``math_latex``; the leaves are expression trees. What cannot be read as mathematics becomes :class:`Words` and can
only ever equal the same words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from .math_equations import equation
from .math_forms import Answer, Base, Equation, Group, Ratio, Relation, Sets, Value, Words
from .math_latex import normalise
from .math_matrix import matrix_of
from .math_parser import parse_expression
from .math_phrases import in_notation
from .math_split import closes, separators, split
from .math_tokens import Unreadable
from .math_units import UNITS, split_unit
from .math_value import variables
from .math_variants import GROUPED, variants

MAX_ANSWER = 4_000
MAX_ITEMS = 100
MAX_DEPTH = 8
MAX_LAYERS = 12  # of braces, labels and marks around an answer

_DECIMAL = re.compile(r"-?\s*(\d*)\.(\d+)\s*(?:[eE]([-+]?\d{1,4})|\s*\*\s*10\s*\^\s*(?:\{\s*([-+]?\d{1,4})\s*\}|(\d{1,4}))|\s*\\dots)?")
_BASE = re.compile(  # 101_2, (101)_{two}, 1F_{16}
    r"[({]?\s*(\d[\d ]*|[\dA-Z]{2,}|[\da-f]{2,}(?=\s*[)}]?\s*_\s*\{?\s*1[1-6]))\s*[)}]?\s*"
    r"_\s*\{?\s*\(?\s*(?:(\d{1,2})|\"?\s*([a-z]{3,9})\s*\"?)\s*\)?\s*\}?"
)
_DIGITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split()
_CLOCK = re.compile(r"\d{1,2}\s*:\s*\d\d")
_SPACED = re.compile(r"(?<![\d.,])\d{1,3}(?: \d{3})+(?![\d,])")
_APOSTROPHES = re.compile(r"(?<![\d.,'])\d{1,3}(?:'\d{3})+(?![\d,'])")
_RELATION = re.compile(r"<=|>=|!=|\\le\b|\\ge\b|\\ne\b|=<|=>|<|>")
_OR = re.compile(r",?\s*(?<![A-Za-z])or(?![a-z])\s*")
_SIGN = {"\\le": "<=", "\\ge": ">=", "\\ne": "!=", "=<": "<=", "=>": ">="}
_TAIL = re.compile(r'[,;]?\s*"?\s*\b(?:for (?:all|any|every|some|each)|where|with|if and only if)\b.*$', re.DOTALL)
_LEAD = re.compile(
    r'\s*"?\s*(?:(?:the |our )?(?:final |correct )?answer(?: is)?|therefore|thus|so|hence|about|approximately|exactly)'
    r'\s*[:=]?\s*"?\s*[:=]?(?=[\s\d\\(\[{-])',
    re.I,
)
_SYMBOLS = re.compile(r"\s*(?:\\?[A-Za-z]\w*(?:_\S+)?(?:\s+\\?[A-Za-z]\w*(?:_\S+)?){0,2}\s*)?")  # \Delta p
_PLUS_MINUS = re.compile(r"\\(p|m)[mp](?![a-z])")
_LABEL = re.compile(  # maximum: 5; The area is 12
    r'"?\s*[A-Za-z]{3,}[A-Za-z ]*"?\s*:\s*"?(?=\s*[^\s"])|"[A-Za-z ]*[:,]\s*"(?=\s*\S)|'
    r'"?\s*(?:The|So|Thus|Hence|Therefore)\b[A-Za-z ,"]{3,200}\b(?:is|are|equals)\s*"?\s*(?=[\d\\(-])|'
    r"\\(?:Rightarrow|Longrightarrow|to|implies|therefore)(?![a-z])"
)
_MINUTES = re.compile(r"(-?\d+)\s*(?:\^\s*\{?\s*)?\\circ\s*\}?\s*(\d+)\s*'(?:\s*(\d+)\s*(?:''|\"))?")
_PERCENT = re.compile(
    r'\s*(?:%|"?\s*\b(?:percent|percentage|pct|per cent)\b\.?(?: (?:of|more|less|off|increase|decrease)\b[a-z ]*)?\s*"?)\s*$'
    r'|%\s*"[a-z ]*"\s*$',
    re.I,
)
_REAL_LINE = Group("(", ")", (Value(("-", ("s", "\\infty"))), Value(("s", "\\infty"))))


@lru_cache(maxsize=8192)
def read(raw: str) -> tuple[str, tuple[Answer, ...]]:
    """(the plain notation of ``raw``, its readings, most likely first). Nothing raises; no reading means that it states nothing."""
    if len(raw) > MAX_ANSWER:
        return raw, ()
    try:
        text = tidy(normalise(raw))
    except ValueError:
        return "", ()
    if not text:
        return "", ()
    found: list[Answer] = []
    for variant in variants(text):
        answer = read_one(variant)
        if answer not in found:
            found.append(answer)
    return text, tuple(found)


def tidy(text: str) -> str:
    """``text`` without what stands around an answer: blanks, closing punctuation, a brace pair, "the answer is"."""
    for _ in range(MAX_LAYERS):
        before = text
        text = text.strip().rstrip(".,;: ").rstrip()
        while text.endswith("\\\\") or (text.endswith("\\") and not text.endswith("\\\\")):
            text = text[:-1].rstrip()
        if (
            text.startswith("{")
            and closes(text, 0) == len(text) - 1
            and (len(split(text[1:-1])) < 2 or GROUPED.fullmatch(text[1:-1].strip()))
        ):
            text = text[1:-1]
        lead = _LEAD.match(text) or _LABEL.match(text)
        if lead:
            text = text[lead.end() :]
        if text.startswith(("*", "'", "#")) or text.endswith("*"):
            text = text.strip("* ") if "*" in (text[0], text[-1]) else text.strip("' ").lstrip("#")
        if text == before:
            break
    return text


def read_one(text: str, depth: int = 0) -> Answer:
    """One reading of ``text``; :class:`Words` if it is not mathematics."""
    try:
        if depth > MAX_DEPTH:
            raise Unreadable("nested too deeply")
        return _read(text, depth)
    except (Unreadable, OverflowError, RecursionError):
        return Words(text)


def _read(text: str, depth: int) -> Answer:
    text = _SPACED.sub(lambda m: m[0].replace(" ", ""), tidy(text))
    text = _APOSTROPHES.sub(lambda m: m[0].replace("'", ""), text)
    cut = _TAIL.sub("", text) if depth == 0 else text
    text = cut if cut.strip() and cut.count('"') % 2 == 0 else text
    if not text:
        raise Unreadable("empty")
    text = in_notation(text, UNITS)
    if "or" in text and ("and" in text or ")" in text) and _RELATION.search(text):  # or binds weaker than and
        alternatives = split(text, _OR)
        if len(alternatives) > 1:
            return Sets("cup", tuple(read_one(part, depth + 1) for part in alternatives))
    parts = [part for part in split(text) if part.strip(' "')]
    if len(parts) > 1:
        return _list(text, parts, depth)
    text = parts[0].strip() if parts else text
    if "\\approx" in text:
        text = _before_approximation(text).strip()
        if not text:
            raise Unreadable("nothing stated")
    if "\\in " in text or "\\in\\" in text:
        head, _, tail = text.partition("\\in")
        if re.fullmatch(r"\s*(?:[A-Za-z]\w*\s*(?:_\S+\s*)?|\(\s*[a-z](?:\s*,\s*[a-z])*\s*\)\s*)", head):
            return read_one(tail, depth + 1)
    relations = split(text, _RELATION)
    if len(relations) > 1:
        signs = [_SIGN.get(sign, sign) for sign in separators(text, _RELATION)]
        return Relation(tuple(parse_expression(side) for side in relations), tuple(signs))
    sides = split(text, re.compile(r"=+|\\equiv"))
    if len(sides) > 1:
        return equation([side.strip() for side in sides], lambda side: read_one(side, depth + 1))
    return _single(text, depth)


def _before_approximation(text: str) -> str:
    left, _, right = text.partition("\\approx")
    return right.partition("\\approx")[0] if _SYMBOLS.fullmatch(left) else left


def _list(text: str, parts: list[str], depth: int) -> Answer:
    if len(parts) > MAX_ITEMS:
        raise Unreadable("too many items")
    if ";" in text and "," in text and "(" not in text and "=" not in text:  # 1,2;3,4 are pairs
        rows = [[read_one(item, depth + 1) for item in split(row)] for row in split(text, re.compile(";"))]
        if len({len(row) for row in rows}) == 1 and len(rows[0]) > 1:
            return Group("", "", tuple(Group("(", ")", tuple(row)) for row in rows))
    items: list[Answer] = []
    for part in parts:
        item = read_one(part, depth + 1)
        items.extend(_several(item))
    conditions = any(isinstance(item, Relation) for item in items) or all(isinstance(item, Sets) for item in items)
    if (
        conditions
        and all(isinstance(item, Relation | Sets) or _is_interval(item) for item in items)
        and ("and" in text or _RELATION.search(text))
    ):
        return Sets("cap" if "and" in text else "cup" if "or" in text else "list", tuple(items))
    if all(isinstance(item, Relation) and _conditions(items[0], item) for item in items[1:]):
        return items[0]
    return Group("", "", tuple(_share_label(items)))


def _several(item: Answer) -> Sequence[Answer]:
    r"""The values that one item of a list states: two for ``\pm 3`` and for ``x = \pm 3``."""
    if isinstance(item, Equation) and isinstance(item.right, Group) and not item.right.opening:
        return [Equation(item.left, item.name, item.arguments, right) for right in item.right.items]
    return item.items if isinstance(item, Group) and not item.opening else [item]


def _conditions(stated: Answer, relation: Relation) -> bool:
    """``a_n = 3n - 1, n > 0``: the relation says for which n."""
    value = stated.right if isinstance(stated, Equation) else stated
    names = frozenset().union(*map(variables, relation.sides))
    return isinstance(value, Value) and bool(names) and names <= variables(value.tree)


def _share_label(items: list[Answer]) -> list[Answer]:
    """``n = 1, 2, 3`` states three values of n."""
    first = items[0]
    indexed = [re.fullmatch(r"([A-Za-z])_\{?\d\}?", item.name) if isinstance(item, Equation) else None for item in items]
    if len(items) > 1 and len({match and match[1] for match in indexed}) == 1 and indexed[0]:  # x_1 = 2, x_2 = 3: the values of x
        return [item.right for item in items if isinstance(item, Equation)]
    labels = {item.name for item in items if isinstance(item, Equation)}
    if isinstance(first, Equation) and first.name and len(labels) == 1 and not isinstance(items[-1], Equation):
        return [item.right if isinstance(item, Equation) else item for item in items]
    return items


def _is_interval(item: Answer) -> bool:
    return isinstance(item, Group) and len(item.items) == 2 and item.opening in ("(", "[")


def _single(text: str, depth: int) -> Answer:
    if text[0] == "{" or text.startswith("\\{"):
        bracketed = _bracketed(text, depth)  # before \pm is written out: {0, \pm 1} is one set
        if bracketed is not None:
            return bracketed
    if _PLUS_MINUS.search(text):
        both = [_signed(text, *signs) for signs in ("+-", "-+")]
        return Group("", "", tuple(read_one(one, depth + 1) for one in both))
    for sign, name in (("cup", "cup"), ("cap", "cap"), ("setminus", "setminus")):
        if f"\\{sign}" in text:
            parts = split(text, re.compile(rf"\\{sign}\b"))
            if len(parts) > 1:
                return Sets(name, tuple(read_one(part, depth + 1) for part in parts))
    if text in ("\\mathbb {R}", "\\mathbb R", "\\R", "\\Reals"):
        return _REAL_LINE
    if text.startswith("\\mathbb {R}") and re.fullmatch(r"\\mathbb \{R\}\s*[\^_]\s*\{?\s*[+-]\s*\}?", text):
        zero = Value(("n", Fraction(0)))
        return Group("(", ")", (zero, _REAL_LINE.items[1]) if "+" in text else (_REAL_LINE.items[0], zero))
    if text == "\\emptyset" or re.fullmatch(r"\\\{\s*\\\}", text):
        return Group("{", "}", ())
    if text[0] in "([{" or text.startswith("\\{"):
        bracketed = _bracketed(text, depth)
        if bracketed is not None:
            return bracketed
    if "\\begin" in text:
        return matrix_of(text, lambda cell: read_one(cell, depth + 1)) or _value(text)
    if "_" in text:
        base = _base(text.replace('"', " ") if text[-1] in "0123456789}" else text)
        if base is not None:
            return base
    return _value(text)


def _base(text: str) -> Base | None:
    match = _BASE.fullmatch(text)
    base = int(match[2]) if match and match[2] else _DIGITS.index(match[3]) if match and match[3] in _DIGITS else None
    if match is None or base is None:
        return None
    digits = match[1].replace(" ", "")
    return Base(digits.upper(), base, parse_expression(digits))


def _signed(text: str, plus: str, minus: str) -> str:
    return _PLUS_MINUS.sub(lambda match: plus if match[1] == "p" else minus, text)


def _bracketed(text: str, depth: int) -> Answer | None:
    end = closes(text, 0)
    if end != len(text) - 1:
        return None
    start = 2 if text.startswith("\\{") else 1
    stop = end - 1 if text.endswith("\\}") else end
    opening, closing = text[start - 1], text[-1]
    inner = text[start:stop]
    if opening == "{" and not inner.strip():
        return Group("{", "}", ())
    parts = split(inner)
    if opening == "{" or (closing == "}" and opening == "{"):
        builder = split(inner, re.compile(r"\||:"))
        if len(builder) == 2 and re.fullmatch(r"\s*[A-Za-z]\s*(?:\\in.*)?", builder[0]):
            return Sets("builder", (read_one(builder[1], depth + 1),))  # the name of its variable does not matter
        item = read_one(inner, depth + 1)
        items = item.items if isinstance(item, Group) and not item.opening else (item,)
        return Group("{", "}", tuple(items))
    if inner.lstrip().startswith("\\begin") and inner.rstrip().endswith("}"):
        return read_one(inner, depth + 1)
    if len(parts) < 2 or (opening == "(" and closing == ")" and _RELATION.search(inner)):
        return read_one(inner, depth + 1) if opening == "(" and closing == ")" else None
    return Group(opening, closing, tuple(read_one(part, depth + 1) for part in parts))


def _value(text: str) -> Answer:
    minutes = _MINUTES.fullmatch(text)
    if minutes:
        degrees, sixtieths, seconds = (Fraction(part or 0) for part in minutes.groups())
        part = (sixtieths + seconds / 60) / 60
        return Value(("n", degrees - part if text.startswith("-") else degrees + part), "deg")
    percent = _PERCENT.search(text)
    head, unit = (text[: percent.start()], "") if percent else split_unit(text)
    head = head.strip()
    if ":" in head:
        parts = head.split(":")
        return Ratio(tuple(parse_expression(part) for part in parts), bool(_CLOCK.fullmatch(head)), unit)
    tree = parse_expression(head)
    literal = _DECIMAL.fullmatch(head)
    if literal is None:
        return Value(tree, unit, bool(percent))
    whole, decimals = literal[1], literal[2]
    exponent = int(literal[3] or literal[4] or literal[5] or 0)
    significant = len((whole + decimals).lstrip("0"))
    return Value(tree, unit, bool(percent), significant, Fraction(10) ** (exponent - len(decimals)))
