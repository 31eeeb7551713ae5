"""The solver lists every mode of a problem and nothing else."""

from fractions import Fraction

import pytest
from expression_trees import all_trees, tree_key
from hypothesis import given, settings
from hypothesis import strategies as st

from setpo_verifiers import Status, mode_key, solve, verify
from setpo_verifiers.expressions import literals, parse, values
from setpo_verifiers.solver import MAX_NUMBERS, all_forms, all_modes


@pytest.mark.parametrize(
    ("numbers", "target", "count"),
    [
        ((19, 36, 55, 7), 65, 1),
        ((4, 6, 2, 8), 24, 8),
        ((1, 2, 3, 4), 24, 4),
        ((10, 20, 30, 40), 100, 5),
        ((3, 5, 7), 15, 1),
        ((2, 2, 2, 2), 8, 3),
    ],
)
def test_modes_of_known_problems(numbers, target, count):
    assert len(solve(numbers, target)) == count


@pytest.mark.parametrize(("numbers", "count"), [((2, 2, 3, 4), 644), ((3, 3, 8, 8), 363), ((2, 2, 2, 2), 89)])
def test_modes_of_all_targets(numbers, count):
    assert sum(len(keys) for keys in all_modes(numbers).values()) == count


@pytest.mark.parametrize(
    ("numbers", "count"), [((17,), 1), ((17, 29), 6), ((17, 29, 41), 68), ((17, 29, 41, 67), 1170), ((101, 211, 307, 401, 503), 27142)]
)
def test_number_of_forms_over_generic_numbers(numbers, count):
    assert len(all_forms(numbers)) == count


@pytest.mark.parametrize("numbers", [(1, 2, 3, 4), (2, 2, 3, 4), (0, 1, 1, 5), (3, 3, 8, 8)])
def test_lists_exactly_the_modes_of_all_trees(numbers):
    expected = {}
    for tree in all_trees(numbers):
        try:
            expected[tree_key(tree)] = values(tree)[-1]
        except ZeroDivisionError:
            continue
    found = {mode: value for value, modes in all_modes(tuple(sorted(numbers))).items() for mode in modes}
    assert found == expected


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=4))
def test_every_key_is_canonical_and_verifies(numbers):
    for value, keys in all_modes(tuple(sorted(numbers))).items():
        for mode in keys:
            assert mode_key(mode) == mode
            assert sorted(literals(parse(mode))) == sorted(numbers)
            if value.denominator == 1:
                verdict = verify("countdown", mode, {"numbers": numbers, "target": int(value)})
                assert (verdict.status, verdict.mode_key) == (Status.CORRECT, mode)


def test_solve():
    assert solve((7, 3), 22) == ()
    assert solve([2, 3], 6) == solve((3, 2), 6) == ("2*3",)
    assert solve((2, 3), -1) == ("2-3",)
    assert solve((8, 3, 8, 3), 24) == ("8/(3-8/3)",)  # needs a fraction on the way
    assert all_modes((2, 4))[Fraction(1, 2)] == ("2/4",)


def test_five_numbers():
    keys = solve((1, 3, 5, 7, 9), 25)
    assert len(keys) == len(set(keys)) > 50
    assert all(values(parse(mode))[-1] == 25 for mode in keys)


@pytest.mark.parametrize(("numbers", "message"), [((), "1 to 5 numbers"), (range(1, MAX_NUMBERS + 2), "got 6"), ((3, -2), "non-negative")])
def test_rejects(numbers, message):
    with pytest.raises(ValueError, match=message):
        solve(numbers, 1)
