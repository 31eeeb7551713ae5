"""Every mode of a Countdown problem: all normal forms over a multiset of numbers, each used exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

from .expressions import Form, Rational, apply, number_form, product_form, render, sum_form

MAX_NUMBERS = 5  # normal forms of distinct numbers: 1, 6, 68, 1170, 27142 for 1..5 numbers; 793002 for 6

Numbers = tuple[int, ...]
Valued = tuple[int, Form, Rational]  # sign, form, value


def solve(numbers: Sequence[int], target: int) -> tuple[str, ...]:
    """All modes of the problem as sorted keys (each is itself an expression that solves it); empty if unsolvable.

    Exhaustive up to MAX_NUMBERS numbers over the four binary operations; raises ValueError above. Fractions and negative
    values may occur on the way. A mode that needs a leading minus (``-3*5``) is not listed: with positive numbers it has a
    negative value, or is zero like the mode without the minus.
    """
    return _solve(tuple(sorted(numbers)), target)


@lru_cache(maxsize=16384)  # holds the few keys of one problem, where all_modes holds all keys of its numbers
def _solve(numbers: Numbers, target: int) -> tuple[str, ...]:
    return all_modes(numbers).get(target, ())


@lru_cache(maxsize=32)  # 0.2 MB for four numbers, about 6 MB for five
def all_modes(numbers: Numbers) -> dict[Rational, tuple[str, ...]]:
    """Value -> the sorted keys of all normal forms over ``numbers`` (each used exactly once) with that value.

    An integral value may be an ``int`` or a ``Fraction``: as keys they are the same. Do not change the returned dict.
    """
    by_value: dict[Rational, list[str]] = {}
    for key, (_, _, value) in _search(numbers).items():
        by_value.setdefault(value, []).append(key)
    return {value: tuple(sorted(keys, key=lambda key: (len(key), key))) for value, keys in by_value.items()}


def all_forms(numbers: Sequence[int]) -> dict[tuple[int, Form], Rational]:
    """Every (sign, normal form) over ``numbers`` with its exact value; forms that divide by zero are left out."""
    return {(sign, form): value for sign, form, value in _search(numbers).values()}


def _search(numbers: Sequence[int]) -> dict[str, Valued]:
    if not 1 <= len(numbers) <= MAX_NUMBERS:
        raise ValueError(f"expected 1 to {MAX_NUMBERS} numbers for an exhaustive search, got {len(numbers)}")
    if any(number < 0 for number in numbers):
        raise ValueError(f"expected non-negative numbers, got {list(numbers)}")
    return _forms(tuple(sorted(numbers)), {})


def _forms(numbers: Numbers, known: dict[Numbers, dict[str, Valued]]) -> dict[str, Valued]:
    """Key -> (sign, form, value). ``known`` holds the subsets met so far; it lives for one search, so memory stays bounded."""
    if numbers in known:
        return known[numbers]
    found: dict[str, Valued] = {}

    def add(sign: int, form: Form, value: Rational) -> None:
        found[render(sign, form)] = sign, form, value

    if len(numbers) == 1:
        add(1, number_form(numbers[0]), numbers[0])
    indices = range(len(numbers))
    splits = {
        (tuple(numbers[i] for i in chosen), tuple(numbers[i] for i in indices if i not in chosen))
        for size in range(1, len(numbers))
        for chosen in combinations(indices, size)
    }
    for left, right in sorted(splits):
        for s1, f1, a in _forms(left, known).values():
            for s2, f2, b in _forms(right, known).values():
                add(*sum_form([(s1, f1), (-s2, f2)]), a - b)
                if left <= right:  # + and * commute: the mirrored split gives the same forms
                    add(*sum_form([(s1, f1), (s2, f2)]), a + b)
                    add(*product_form([(s1, 1, f1), (s2, 1, f2)]), a * b)
                if b:
                    add(*product_form([(s1, 1, f1), (s2, -1, f2)]), apply("/", a, b))
    known[numbers] = found
    return found
