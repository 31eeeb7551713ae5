"""Countdown: reach the target with the given numbers, each used exactly once, and + - * / and brackets.

An answer is an expression of the grammar in ``expressions.py``, optionally followed by ``= target``. LaTeX and Unicode spellings of the
operators, ``\\frac{a}{b}``, dollar signs and one trailing period are accepted. Values are exact: intermediate results may be fractions or
negative unless an option forbids it, and 33.33 is not 33.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import lru_cache
from operator import index
from typing import Any, NamedTuple

from .expressions import MAX_DIGITS, MAX_LENGTH, ExpressionError, Tree, literals, mode_key, parse, values
from .extract import locate
from .verdict import Status, Verdict

REASONS = ("correct", "no_answer", "syntax", "numbers", "division_by_zero", "value")

# fmt: off
_CHARACTERS = str.maketrans(
    "×·⋅∗＊" "÷∕／" "−–－" "＋（）＝" "０１２３４５６７８９" "$",
    "*****" "///" "---" "+()=" "0123456789" " ",
)
# fmt: on
_COMMAND = re.compile(r"\\(?:(times|cdot|div|left|right)(?![A-Za-z])|[()\[\]])")
_OPERATOR = {"times": "*", "cdot": "*", "div": "/"}
_FRACTION = re.compile(r"\\[dt]?frac\s*\{|\}\s*\{|[{}()]")
_STATED_TARGET = re.compile(rf"\s*[-+]?\s*(?:0|[1-9][0-9]{{0,{MAX_DIGITS - 1}}})\s*")


class CountdownGold(NamedTuple):
    """A Countdown problem: the numbers to use (in the order given) and the target."""

    numbers: tuple[int, ...]
    target: int


_NO_ANSWER = Verdict(0.0, Status.NO_ANSWER, None, None, "no_answer")


def verify_countdown(
    completion: str,
    gold: Any,
    *,
    mode: str = "lenient",
    allow_subset: bool = False,
    integer_only: bool = False,
    nonnegative_only: bool = False,
) -> Verdict:
    """Judge ``completion`` against ``gold`` (see :func:`parse_gold`).

    ``mode="strict"`` wants an ``<answer>`` tag or a box; lenient also takes a completion that is an expression and nothing else.
    ``allow_subset`` lets numbers be left out, ``integer_only`` and ``nonnegative_only`` hold for every intermediate value
    (television rules: all three).

    Reasons: ``correct``; ``no_answer`` (nothing declared, or blank); ``syntax`` (the declared answer is not an expression); ``numbers``
    (not the given numbers); ``division_by_zero``; ``value`` (not the target, a false ``= target``, or a forbidden intermediate value).

    Raises TypeError for a completion that is not a str, ValueError for a malformed gold or an unknown mode.
    """
    problem = parse_gold(gold)
    answer, marked = locate(completion, mode)
    if answer is None:
        return _NO_ANSWER
    if len(answer) > MAX_LENGTH:
        verdict = Verdict(0.0, Status.WRONG, answer[:MAX_LENGTH], None, "syntax")
    else:
        verdict = _judge(answer, problem, allow_subset, integer_only, nonnegative_only)
    # Prose without a marker declares nothing, so it is no answer rather than a wrong one.
    return _NO_ANSWER if verdict.reason == "syntax" and not marked else verdict


def parse_gold(gold: Any) -> CountdownGold:
    """``{"numbers": [...], "target": n}``, the hub's ``{"nums": [...], "target": n}``, JSON text of one, or a solution.

    A solution is an expression such as ``95 - 20 - 28``: its literals are the numbers, its value is the target.

    Raises ValueError unless there is at least one number, all are non-negative integers of at most 12 digits and the target is an integer.
    """
    try:
        return _parse_text(gold) if isinstance(gold, str) else _parse_mapping(gold)
    except (TypeError, KeyError, ValueError, ZeroDivisionError, RecursionError) as error:
        raise ValueError(
            'expected a Countdown gold {"numbers": [non-negative integers], "target": integer} ("nums" is as good; a mapping or its JSON '
            f"text) or an expression that solves it, got {repr(gold)[:200]}"
        ) from error


@lru_cache(maxsize=4096)
def _parse_text(text: str) -> CountdownGold:
    if text.lstrip().startswith("{"):
        return _parse_mapping(json.loads(text))
    tree = parse(normalise(text))
    if isinstance(tree, int):
        raise ValueError("a lone number solves nothing")  # more likely a target whose numbers were lost
    return _check_gold(values(tree)[-1], *literals(tree))


def _parse_mapping(gold: Any) -> CountdownGold:
    if isinstance(gold, CountdownGold):
        return _check_gold(gold.target, *gold.numbers)
    return _check_gold(gold["target"], *(gold["numbers"] if "numbers" in gold else gold["nums"]))


@lru_cache(maxsize=4096, typed=True)  # typed: 1.0 and True equal 1 but are no integers
def _check_gold(target: Any, *numbers: Any) -> CountdownGold:
    if not numbers or isinstance(target, bool) or any(isinstance(number, bool) or not 0 <= number < 10**MAX_DIGITS for number in numbers):
        raise ValueError("not a Countdown problem")
    return CountdownGold(tuple(index(number) for number in numbers), index(target))


@lru_cache(maxsize=65536)
def _judge(answer: str, gold: CountdownGold, allow_subset: bool, integer_only: bool, nonnegative_only: bool) -> Verdict:
    try:
        text, stated = split_equation(normalise(answer))
        tree = parse(text)
    except ExpressionError:
        return Verdict(0.0, Status.WRONG, answer, None, "syntax")
    reason = _reason(tree, stated, gold, allow_subset, integer_only, nonnegative_only)
    if reason == "correct":
        return Verdict(1.0, Status.CORRECT, answer, mode_key(text), reason)
    return Verdict(0.0, Status.WRONG, answer, mode_key(text), reason)


def _reason(tree: Tree, stated: int | None, gold: CountdownGold, allow_subset: bool, integer_only: bool, nonnegative_only: bool) -> str:
    used = literals(tree)
    if Counter(used) - Counter(gold.numbers) if allow_subset else sorted(used) != sorted(gold.numbers):
        return "numbers"
    try:
        steps = values(tree)
    except ZeroDivisionError:
        return "division_by_zero"
    if integer_only and any(value.denominator != 1 for value in steps):
        return "value"
    if nonnegative_only and any(value < 0 for value in steps):
        return "value"
    return "correct" if steps[-1] == gold.target and stated in (None, gold.target) else "value"


def split_equation(text: str) -> tuple[str, int | None]:
    """(expression, the integer stated after ``=``); anything but one integer there is a syntax error."""
    expression, equals, stated = text.partition("=")
    if not equals:
        return expression, None
    if not _STATED_TARGET.fullmatch(stated):
        raise ExpressionError(f"expected one integer after '=', got {stated[:40]!r}")
    return expression, int("".join(stated.split()))


def normalise(answer: str) -> str:
    """LaTeX and Unicode spellings to the grammar's own; what is none of them stays, for the parser to refuse."""
    text = answer.translate(_CHARACTERS)
    if "\\" in text:
        text = _COMMAND.sub(lambda command: _OPERATOR.get(command[1], " "), text)
        if "frac" in text:
            text = _rewrite_fractions(text)
    text = text.strip()
    return text[:-1] if text.endswith(".") else text


def _rewrite_fractions(text: str) -> str:
    r"""``\frac{a}{b}`` to ``((a)/(b))`` in one pass; braces and brackets must nest."""
    open_groups: list[str] = []

    def rewrite(match: re.Match[str]) -> str:
        token = match[0]
        if token == "(":
            open_groups.append("bracket")
            return "("
        if token[0] == "\\":
            open_groups.append("numerator")
            return "(("
        group = open_groups.pop() if open_groups else ""
        if token == ")" and group == "bracket":
            return ")"
        if token == "}" and group == "denominator":
            return "))"
        if token[0] == "}" and token[-1] == "{" and group == "numerator":
            open_groups.append("denominator")
            return ")/("
        raise ExpressionError(r"expected \frac{a}{b} with braces that match")

    return _FRACTION.sub(rewrite, text)
