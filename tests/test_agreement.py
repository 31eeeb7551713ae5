"""Rank agreement, shares of the signal and their intervals, against values worked by hand."""

import numpy as np
import pytest

from setpo_agents.agreement import (
    ScoredGroup,
    Signal,
    agreement,
    even_pay,
    kendall_tau_b,
    paid_most_and_least,
    paired_differences,
    positive_signal,
    rare_correct,
    volume,
)


def group(advantages, keys, correct, *, defined=None, valid=None):
    advantages, correct = np.array(advantages, float), np.array(correct, bool)
    return ScoredGroup(
        advantages,
        np.ones(len(advantages), bool) if defined is None else np.array(defined),
        np.ones(len(correct), bool) if valid is None else np.array(valid),
        correct,
        np.array([key is not None for key in keys]),
        rare_correct(keys, correct),
    )


# --- Kendall's tau-b ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "y", "tau"),
    [
        ([1, 2, 3, 4], [1, 2, 3, 4], 1),
        ([1, 2, 3, 4], [4, 3, 2, 1], -1),
        ([1, 2, 3, 4], [1, 3, 2, 4], 4 / 6),  # 5 pairs agree, 1 does not
        # x ties one pair of 6, y ties two others: (1,2) x-tied; y ties (2,3) and (1,4); of the other three 2 agree, 1 does not
        ([1, 1, 2, 3], [2, 1, 1, 2], (2 - 1) / np.sqrt(5 * 4)),
        # the same two levels against a full order: 4 of the 6 pairs are of two levels, all agree
        ([0, 0, 1, 1], [1, 2, 3, 4], 4 / np.sqrt(4 * 6)),
        ([0, 0, 1, 1], [0, 1, 0, 1], 0),
    ],
)
def test_tau_b_by_hand(x, y, tau):
    found = kendall_tau_b(np.array([x, y], float))
    assert found[0, 1] == pytest.approx(tau) and found[1, 0] == pytest.approx(tau)
    np.testing.assert_allclose(np.diag(found), 1)


def test_tau_b_counts_pairs_one_by_one():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 4, (3, 9)).astype(float)
    for a in values:
        for b in values:
            pairs = [(np.sign(a[i] - a[j]), np.sign(b[i] - b[j])) for i in range(9) for j in range(i)]
            norm = sum(x != 0 for x, _ in pairs) * sum(y != 0 for _, y in pairs)
            assert kendall_tau_b(np.array([a, b]))[0, 1] == pytest.approx(sum(x * y for x, y in pairs) / np.sqrt(norm))


def test_tau_b_is_undefined_for_a_constant_and_for_a_lone_member():
    assert np.isnan(kendall_tau_b(np.array([[1.0, 1, 1], [1, 2, 3]]))[0]).all()
    assert np.isnan(kendall_tau_b(np.array([[1.0], [2.0]]))).all()
    assert np.isnan(kendall_tau_b(np.zeros((2, 0)))).all()


def test_tau_b_takes_rounding_for_a_tie():
    third = 1 / 3
    noisy = np.array([0.1 + 0.2, 0.3, 1.0, third * 3])
    assert noisy[0] != noisy[1]
    assert kendall_tau_b(np.array([noisy, [0.0, 0, 1, 1]]))[0, 1] == pytest.approx(1)


def test_agreement_is_a_mean_over_groups_where_both_order_something():
    same = group([[1, 2, 3], [1, 2, 3]], "abc", [1, 1, 0])
    opposite = group([[1, 2, 3], [3, 2, 1]], "abc", [1, 1, 0])
    constant = group([[1, 2, 3], [5, 5, 5]], "abc", [1, 1, 0])
    undefined = group([[1, 2, 3], [3, 2, 1]], "abc", [1, 1, 0], defined=[True, False])
    tau, n = agreement([same, same, opposite, constant, undefined])
    assert tau[0, 1] == pytest.approx(1 / 3) and n[0, 1] == 3
    assert (n[0, 0], n[1, 1]) == (5, 3)


def test_agreement_among_correct_members_and_without_those_that_have_no_verdict():
    # among all: 5 of 6 pairs agree ... among the correct (first three): 2 agree, 1 does not
    mixed = group([[3, 2, 1, 0], [3, 1, 2, 0]], "abcd", [1, 1, 1, 0])
    assert agreement([mixed])[0][0, 1] == pytest.approx(4 / 6)
    assert agreement([mixed], "correct")[0][0, 1] == pytest.approx(1 / 3)
    undecided = group([[3, 2, 1, 0], [3, 2, 1, 9]], "abcd", [1, 1, 1, 0], valid=[True, True, True, False])
    assert agreement([undecided])[0][0, 1] == pytest.approx(1)
    with pytest.raises(ValueError, match="expected among"):
        agreement([mixed], "wrong")


# --- shares ---------------------------------------------------------------------------------------------------------


def test_rare_modes_hold_less_than_their_equal_share():
    assert rare_correct(list("aaab"), np.array([1, 1, 1, 1], bool)).tolist() == [False, False, False, True]
    assert rare_correct(list("aabb"), np.array([1, 1, 1, 1], bool)).tolist() == [False] * 4
    assert rare_correct(list("aabc"), np.array([1, 1, 0, 1], bool)).tolist() == [False, False, False, True]  # b is wrong
    assert rare_correct([None, "a"], np.array([0, 0], bool)).tolist() == [False, False]


def test_shares_of_the_positive_signal():
    # correct a a a b (b is rare), wrong c, no answer; the second method is undefined on the second group
    first = group([[1, 1, 1, 5, 2, -9], [1, 1, 1, 1, 0, 4]], [*"aaabc", None], [1, 1, 1, 1, 0, 0])
    second = group([[3, -1], [7, 7]], ["x", "y"], [1, 0], defined=[True, False])
    signal = positive_signal([first, second])
    np.testing.assert_allclose(signal.shares(), [[11 / 13, 4 / 8], [5 / 8, 1 / 4], [2 / 13, 0], [0, 4 / 8]])
    np.testing.assert_allclose(even_pay([first, second]), [5 / 8, 1 / 4, 2 / 8, 1 / 8])
    active, size = volume([first, second])
    np.testing.assert_allclose(active, [1, 1])
    np.testing.assert_allclose(size, [(19 + 4) / 8, 8 / 6])


def test_a_method_that_pays_nothing_has_no_shares():
    signal = positive_signal([group([[0, 0], [-1, -1]], "ab", [1, 0])])
    assert np.isnan(signal.shares()).all()
    for table in paired_differences(signal, 0, np.random.default_rng(0), n_resamples=20):
        assert np.isnan(table).all()


# --- intervals ------------------------------------------------------------------------------------------------------


def coins(heads, n):
    """Signal of a baseline that pays correct completions nothing and a method that does in ``heads`` of ``n`` groups."""
    part = np.zeros((1, n, 2))
    part[0, :heads, 1] = 1
    return Signal(part, np.ones((1, n, 2)), np.ones((n, 2), bool))


def test_bootstrap_interval_of_a_share_is_the_binomial_one():
    # a resample of 16 groups has Binomial(16, 1/2) heads: P(X <= 3) = 697/65536 = .0106, P(X <= 4) = 2517/65536 = .0384
    difference, low, high = paired_differences(coins(8, 16), 0, np.random.default_rng(0))
    assert (difference[0, 1], low[0, 1], high[0, 1]) == (0.5, 4 / 16, 12 / 16)
    assert (difference[0, 0], low[0, 0], high[0, 0]) == (0, 0, 0)  # the baseline with itself
    narrow = paired_differences(coins(8, 16), 0, np.random.default_rng(0), level=0.5)  # P(X <= 6) = .227, P(X <= 7) = .402
    assert (narrow[1][0, 1], narrow[2][0, 1]) == (7 / 16, 9 / 16)


def test_the_same_groups_are_drawn_for_both():
    rng = np.random.default_rng(1)
    part = np.repeat(rng.random((1, 30, 1)), 2, axis=2)
    part[..., 1] += 0.25  # always a quarter more: no spread is left once paired
    difference, low, high = paired_differences(Signal(part, np.ones_like(part), np.ones((30, 2), bool)), 0, rng, n_resamples=200)
    assert (difference[0, 1], low[0, 1], high[0, 1]) == pytest.approx((0.25, 0.25, 0.25))


def test_differences_are_of_the_groups_where_both_are_defined():
    part = np.array([[[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]])
    defined = np.array([[True, True], [True, True], [True, False]])
    signal = Signal(part, np.ones_like(part), defined)
    assert paired_differences(signal, 0, np.random.default_rng(0), n_resamples=50)[0][0, 1] == pytest.approx(1 - 1 / 2)


# --- most and least -------------------------------------------------------------------------------------------------


def test_paid_most_and_least_names_the_first_of_those_alike():
    groups = [
        group([[1, 0.1 + 0.2, -2]], "abc", [1, 1, 0]),
        group([[9, 9]], "ab", [1, 0], defined=[False]),
        group([[0.3, 1, 8]], "abc", [1, 1, 0], valid=[True, True, False]),
    ]
    most, least = paid_most_and_least(groups, 0, 1)
    assert [(one.group, one.member, one.advantage, one.alike) for one in most + least] == [(0, 0, 1, 1), (0, 2, -2, 0)]
    most, least = paid_most_and_least(groups, 0, 2)
    assert [one.advantage for one in most] == [1, 0.3] and most[1].alike == 1
    assert [one.advantage for one in least] == [-2]  # no one is both
