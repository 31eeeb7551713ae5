"""Shapers that count outcomes: golden vectors, the one family they form, naive formulas, groups at the edges."""

import copy
import pickle
from itertools import combinations
from math import log

import numpy as np
import pytest
from group_factory import make_groups

from setpo_agents.advantages import BASE_ADVANTAGES, combine, dr_grpo, grpo
from setpo_envs.metrics import semantic_entropy
from setpo_envs.shapers import apply_shaper, make_shaper, registry, setpo_credits
from setpo_envs.shapers.exploration import batch_exploration_credits, ucb_credits
from setpo_envs.shapers.frequency import (
    edas_weights,
    gapo_rewards,
    ips_rewards,
    madrl_advantages,
    outcome_counts,
    poly_epo_advantages,
    rarity_weights,
    seed_weights,
)
from setpo_envs.shapers.setpo import equality_kernel
from setpo_verifiers import Status

LABELS = np.array([[0, 0, 0, 1, 2, 3]])
RIGHT = np.array([[1, 1, 1, 1, 0, 0]], bool)
RNG = np.random.default_rng(0)
FREQUENCY = ["gapo", "ips", "rarity_aware", "edas", "seed_grpo", "madrl", "poly_epo", "batch_exploration", "ucb_exploration"]


def groups_of(labels, right, status=None, n_modes=None):
    groups = make_groups([[f"t{i}" for i in range(len(row))] for row in labels], labels, right, status)
    for problem in groups.problems:
        if n_modes is not None:
            problem.metadata["n_modes"] = n_modes
    return groups


def shaped(name, groups, seed=0, **options):
    apply_shaper(groups, make_shaper(name, **options), np.random.default_rng(seed))
    return groups


def advantages(name, groups, **options):
    """As the agent computes them from what the shaper declares."""
    shaper = make_shaper(name, **options)
    apply_shaper(groups, shaper, np.random.default_rng(0))
    base_NG = BASE_ADVANTAGES[shaper.base_advantage or "grpo"](groups.shaped_rewards)
    return combine(base_NG, groups.credits, getattr(shaper, "credit_coefficient", 1.0), groups.weights)


# --- golden vectors ---


def test_golden_vectors_of_the_functions():
    for found, expected in [
        (gapo_rewards(LABELS, RIGHT, [2]), [0.75] * 3 + [1.25, -1, -1]),
        (ips_rewards(RIGHT, LABELS), [2] * 3 + [6, 0, 0]),
        (rarity_weights(LABELS, RIGHT), [0.739614] * 3 + [1.781157, 1, 1]),
        (batch_exploration_credits(LABELS), [-1 / 3] * 3 + [0] * 3),
        (madrl_advantages(LABELS, np.full((1, 6), 1 / 4)), [-0.4] * 3 + [0.4] * 3),  # raw -.3 and .5, mean .1
        (outcome_counts(LABELS), [3, 3, 3, 1, 1, 1]),
        (outcome_counts(LABELS, RIGHT), [3, 3, 3, 1, 0, 0]),
    ]:
        np.testing.assert_allclose(found[0], expected, rtol=0, atol=5e-7)


def test_golden_vectors_through_the_registry():
    def groups():
        return groups_of(LABELS.tolist(), RIGHT)

    np.testing.assert_allclose(shaped("gapo", groups()).shaped_rewards[0], [0.75] * 3 + [1.25, -1, -1])  # L = 2 correct modes
    np.testing.assert_allclose(shaped("ips", groups()).shaped_rewards[0], [2] * 3 + [6, 0, 0])
    np.testing.assert_allclose(shaped("rarity_aware", groups()).weights[0], [0.739614] * 3 + [1.781157, 1, 1], atol=5e-7)
    np.testing.assert_allclose(shaped("batch_exploration", groups()).credits[0], [-1 / 3] * 3 + [0] * 3)
    np.testing.assert_allclose(shaped("rarity_aware", groups(), power=1).weights[0], [2 / 3] * 3 + [2, 1, 1])
    np.testing.assert_allclose(shaped("gapo", groups_of([[0, 0, 0]], [[1, 1, 1]])).shaped_rewards[0], [1, 1, 1])  # f = 1/L = 1
    known = groups_of(LABELS.tolist(), RIGHT, n_modes=4)
    np.testing.assert_allclose(shaped("gapo", known).shaped_rewards[0], [0.5] * 3 + [1, -1, -1])
    # q = 1/4 for the right ones and 0 for the two wrong ones: raw -.3, .5 and 0, mean -.4/6
    np.testing.assert_allclose(shaped("madrl", known).credits[0], np.array([-0.3] * 3 + [0.5, 0, 0]) + 0.4 / 6)
    assert not known.weights.any()


def test_methods_declare_the_advantage_they_are_made_for():
    for name, factory in registry().items():
        if name in FREQUENCY or name in ("darling", "passk_training", "pkpo"):
            base = factory.base_advantage
            assert base in BASE_ADVANTAGES or base is None
            groups = shaped(name, groups_of(LABELS.tolist(), RIGHT))
            assert groups.weights.any() == (base is not None), name
            assert hasattr(factory, "credit_coefficient") == (base is None), name


def test_seed_grpo_scales_a_group_by_how_much_its_answers_disagree():
    np.testing.assert_allclose(semantic_entropy(np.array([3, 1, 1, 1])), 1.242453, atol=5e-7)  # of LABELS
    np.testing.assert_allclose(seed_weights(LABELS)[0], [1 / (1 + 0.04 * 1.242453 / np.log(6))] * 6, atol=1e-8)
    np.testing.assert_allclose(seed_weights(LABELS)[0, 0], 0.973012, atol=5e-7)
    assert (seed_weights(np.zeros((1, 5), int)) == 1).all() and (seed_weights(np.zeros((1, 1), int)) == 1).all()  # they agree
    np.testing.assert_allclose(seed_weights([[0, 1, 2, 3]], strength=1.0), 0.5)  # the largest entropy there is
    np.testing.assert_allclose(seed_weights([[-1, -1, 0, 0]], strength=1.0), 2 / 3)  # those without a mode are one outcome: ln 2 / ln 4
    without = seed_weights([[0, 1, 2, 3]], [[True, True, False, False]], strength=1.0)
    np.testing.assert_allclose(without, [[0.5, 0.5, 1, 1]])  # no verdict: in no count, and left alone
    rng = np.random.default_rng(4)
    for labels in rng.integers(-1, 4, (50, 1, 7)):
        expected = semantic_entropy(np.unique(labels, return_counts=True)[1])
        np.testing.assert_allclose(1 / seed_weights(labels, strength=2.0) - 1, 2 * expected / np.log(7), atol=1e-12)
    scaled = advantages("seed_grpo", groups_of(LABELS.tolist(), RIGHT))
    np.testing.assert_allclose(scaled, 0.973012 * BASE_ADVANTAGES["grpo"](RIGHT.astype(float)), atol=1e-6)


# --- one family ---


@pytest.mark.parametrize("size", [3, 6, 11])
def test_four_methods_are_one_up_to_scale_where_every_member_is_valid(size):
    labels = RNG.integers(0, 4, (20, size))
    expected = (size - 2) * setpo_credits(equality_kernel(labels), g="linear")[0]
    scale = 2 * size / (size - 1)
    target = np.full(labels.shape, 1 / 4)
    for found in (
        madrl_advantages(labels, target),
        scale * batch_exploration_credits(labels),
        scale * gapo_rewards(labels, np.ones(labels.shape, bool), np.full(20, 4)),
    ):
        np.testing.assert_allclose(dr_grpo(found), dr_grpo(expected), rtol=0, atol=1e-12)
    assert np.abs(expected).max() > 0.1


# --- against the formulas, member by member ---


def naive_edas(base, labels, wrong, alpha, beta, kappa):
    """The formula of Error-diversity shaping as it reads, on one group's advantages."""
    out, inside = list(base), [i for i, flag in enumerate(wrong) if flag]
    if len(inside) <= 1:
        return out
    share = {label: [labels[i] for i in inside].count(label) / len(inside) for label in [labels[i] for i in inside]}
    size = sum(abs(base[i]) for i in inside) / len(inside)
    entropy = -sum(p * log(p) for p in share.values())
    for i in inside:
        d = -beta * size if len(share) == 1 else alpha * size * (-log(share[labels[i]]) - entropy) / log(len(inside))
        out[i] += np.sign(d) * min(abs(d), abs(base[i]) / kappa)
    return out


@pytest.mark.parametrize("options", [(0.4, 0.2, 2.0), (0.4, 0.3, 6.0), (3.0, 2.0, 2.0)])
def test_edas_weights_give_the_published_advantages(options):
    labels = RNG.integers(0, 4, (40, 8))
    right = RNG.random((40, 8)) < RNG.random((40, 1))
    for base in (grpo(right), dr_grpo(right)):
        expected = [naive_edas(*rows, *options) for rows in zip(base, labels, ~right)]
        np.testing.assert_allclose(edas_weights(labels, ~right, *options) * base, expected, rtol=0, atol=1e-12)


def test_edas_by_hand():
    labels, right = [[9, 0, 0, 1, 2], [9, 0, 0, 0, 0], [9, 9, 9, 9, 0]], [[1, 0, 0, 0, 0], [1, 0, 0, 0, 0], [1, 1, 1, 1, 0]]
    weights = shaped("edas", groups_of(labels, right)).weights
    # I = ln 2, ln 2, ln 4, ln 4; H = 1.5 ln 2; over ln 4: -+ 1/4, times .4
    np.testing.assert_allclose(weights, [[1, 1.1, 1.1, 0.9, 0.9], [1, 1.2, 1.2, 1.2, 1.2], [1] * 5], atol=1e-15)
    capped = edas_weights(np.array(labels[1:2]), ~np.array(right[1:2], bool), beta=5)
    np.testing.assert_array_equal(capped[0], [1, 1.5, 1.5, 1.5, 1.5])


def naive_poly_epo(rewards, labels, k):
    sets = list(combinations(range(len(rewards)), k))
    f = [sum(rewards[i] for i in chosen) / k * len({labels[i] for i in chosen} - {-1}) / k for chosen in sets]
    mean = sum(f) / len(f)
    return [np.mean([value for value, chosen in zip(f, sets) if i in chosen]) - mean for i in range(len(rewards))]


@pytest.mark.parametrize("k", [1, 2, 4, 7])
def test_poly_epo_is_what_subsets_say(k):
    for size in (7, 8):
        labels, rewards = RNG.integers(-1, 4, (10, size)), RNG.integers(0, 2, (10, size)) * RNG.choice([1, 0.3], (10, size))
        labels[0], labels[1], rewards[2] = np.arange(size), -1, 1
        expected = [naive_poly_epo(*rows, k) for rows in zip(rewards, labels)]
        np.testing.assert_allclose(poly_epo_advantages(rewards, labels, k), expected, rtol=0, atol=1e-13)


def test_poly_epo_of_single_members_is_dr_grpo():
    np.testing.assert_allclose(poly_epo_advantages(RIGHT, LABELS, 1), dr_grpo(RIGHT), atol=1e-14)
    # by hand: G = 3, k = 2, modes a, a, none; r = 1, 0, 0; f = 1/4 for {1,2} and {1,3}, 0 for {2,3}
    np.testing.assert_allclose(poly_epo_advantages([[1, 0, 0]], [[0, 0, -1]], 2), [[1 / 12, -1 / 24, -1 / 24]], atol=1e-15)


@pytest.mark.parametrize("power", [0, 0.5, 1, 2])
def test_rarity_weights_have_mean_one_over_the_correct(power):
    labels, right = RNG.integers(0, 3, (30, 7)), RNG.random((30, 7)) < 0.5
    weights = rarity_weights(labels, right, power)
    assert (weights[~right] == 1).all()
    for row, flags, keys in zip(weights, right, labels):
        if flags.any():
            np.testing.assert_allclose(row[flags].mean(), 1)
            raised = np.array([float((keys[flags] == key).sum()) ** -power for key in keys[flags]])
            np.testing.assert_allclose(row[flags] / row[flags][0], raised / raised[0])


def test_random_partition_deals_the_same_weights_to_other_correct_members():
    plain = shaped("rarity_aware", groups_of(LABELS.tolist(), RIGHT)).weights
    draws = [shaped("rarity_aware", groups_of(LABELS.tolist(), RIGHT), seed, random_partition=True).weights for seed in range(20)]
    for weights in draws:
        np.testing.assert_allclose(np.sort(weights[0, :4]), np.sort(plain[0, :4]), rtol=1e-14)
        assert (weights[0, 4:] == 1).all()
    assert len({int(weights[0].argmax()) for weights in draws}) == 4


def test_ips_pays_each_outcome_the_same_in_total():
    labels = RNG.integers(0, 5, (10, 9))
    paid = ips_rewards(np.ones((10, 9)), labels)
    for row, keys in zip(paid, labels):
        np.testing.assert_allclose([row[keys == key].sum() for key in np.unique(keys)], 9)
    np.testing.assert_allclose(ips_rewards(RIGHT, LABELS, floor=0.25)[0], [2] * 3 + [4, 0, 0])


# --- memory ---


def test_ucb_by_hand():
    visits, right = np.array([[0, 1, 4, 9]]), np.array([[1, 0, 0, 0]])
    bonus = np.array([1, 1, 1 / 2, 1 / 3])
    np.testing.assert_allclose(ucb_credits(visits, right, "ucb")[0], bonus)
    np.testing.assert_allclose(ucb_credits(visits, right, "constant")[0], bonus - 0.5)
    np.testing.assert_allclose(ucb_credits(visits, right, "mean")[0], [1 - 11 / 18, 1 - 11 / 18, 1 / 2 - 7 / 9, 1 / 3 - 5 / 6])
    assert not ucb_credits(visits, np.ones((1, 4)), "constant").any() and ucb_credits(visits, np.ones((1, 4)), "mean").any()


def test_ucb_counts_what_came_before_by_problem_and_outcome():
    shaper, labels, right = make_shaper("ucb_exploration", variant="ucb"), [[0, 0, 1, None], [0, 2, 2, 2]], [[1, 1, 0, 0]] * 2
    rng = np.random.default_rng(0)

    def credits(groups, shaper=shaper):
        apply_shaper(groups, shaper, rng)
        return groups.credits

    np.testing.assert_array_equal(credits(groups_of(labels, right)), np.ones((2, 4)))  # never seen, however often in this batch
    twin = pickle.loads(pickle.dumps(shaper))
    expected = [[2**-0.5, 2**-0.5, 1, 1], [1, 3**-0.5, 3**-0.5, 3**-0.5]]
    for one in (shaper, twin):
        np.testing.assert_allclose(credits(groups_of(labels, right), one), expected)
    other = groups_of(labels, right)
    other.problems = other.problems[::-1]
    np.testing.assert_allclose(credits(other), [[2**-0.5, 2**-0.5, 1, 1], [0.5, 1, 1, 1]])  # p1 has seen two 0; p0 four 0, no 2
    assert make_shaper("ucb_exploration") == make_shaper("ucb_exploration") and "seen" not in repr(shaper)


def test_ucb_leaves_members_without_a_verdict_out():
    shaper, status = make_shaper("ucb_exploration", variant="constant"), [[Status.CORRECT, Status.CORRECT, Status.TIMEOUT]]
    first = groups_of([[0, 0, None]], None, status)
    apply_shaper(first, shaper, RNG)
    np.testing.assert_array_equal(first.credits, [[0, 0, 0]])  # all that have a verdict are right
    again = groups_of([[0, 1, None]], [[1, 0, 0]])
    apply_shaper(again, shaper, RNG)
    np.testing.assert_allclose(again.credits, [[2**-0.5 - 0.5, 0.5, 0.5]])  # the time-out was not counted as "no answer"


# --- groups at the edges ---


@pytest.mark.parametrize("name", FREQUENCY)
def test_one_outcome_gives_no_gradient_where_the_docstring_says_so(name):
    all_right, all_wrong = advantages(name, groups_of([[0] * 6] * 2, [[1] * 6, [0] * 6]))
    expected = -5 / 6 if name == "batch_exploration" else 0
    np.testing.assert_allclose([all_right, all_wrong], expected, atol=1e-12)


def test_mixed_outcomes_in_all_right_and_all_wrong_groups():
    signs = {}
    for name in FREQUENCY:
        right, wrong = advantages(name, groups_of([[0, 0, 0, 0, 1]] * 2, [[1] * 5, [0] * 5]))
        signs[name] = (np.sign(np.round(right[4] - right[0], 9)), np.sign(np.round(wrong[4] - wrong[0], 9)))
    assert signs == {
        "gapo": (1, 0),
        "ips": (1, 0),
        "rarity_aware": (0, 0),
        "edas": (0, 0),
        "seed_grpo": (0, 0),
        "madrl": (1, 1),
        "poly_epo": (1, 0),
        "batch_exploration": (1, 1),
        "ucb_exploration": (0, 0),  # all of it is new
    }


@pytest.mark.parametrize("name", sorted(set(FREQUENCY) - {"poly_epo"}))  # whose sets need k of G members
def test_a_member_without_a_verdict_is_neutral_and_in_no_count(name):
    keys, right = [0, 0, 1, 2, 2, None], [1, 1, 1, 0, 0, 0]
    status = [Status.CORRECT] * 3 + [Status.WRONG] * 2 + [Status.NO_ANSWER]
    without = shaped(name, groups_of([keys], [right], [status]))
    more = shaped(name, groups_of([[*keys, None, None]], None, [[*status, Status.TIMEOUT, Status.ERROR]]))
    for field in ("credits", "shaped_rewards", "weights"):
        np.testing.assert_allclose(getattr(more, field)[:, :6], getattr(without, field), err_msg=field)
    assert not more.credits[:, 6:].any() and not more.shaped_rewards[:, 6:].any()
    assert name == "madrl" or (more.weights[:, 6:] == 1).all()


@pytest.mark.parametrize("name", FREQUENCY)
def test_order_of_members_does_not_matter(name):
    labels, right = RNG.integers(0, 4, (1, 9)), RNG.random((1, 9)) < 0.5
    order = RNG.permutation(9)
    found, moved = (advantages(name, groups_of(x.tolist(), y)) for x, y in ((labels, right), (labels[:, order], right[:, order])))
    np.testing.assert_allclose(moved, found[:, order], atol=1e-12)


@pytest.mark.parametrize(
    "name, options, message",
    [
        ("ips", {"floor": 2}, "floor between 0 and 1"),
        ("rarity_aware", {"power": -1}, "power of at least 0"),
        ("edas", {"kappa": 1}, "kappa > 1"),
        ("seed_grpo", {"strength": -0.1}, "strength of at least 0"),
        ("poly_epo", {"k": 0}, "integer of at least 1, got 0"),
        ("ucb_exploration", {"variant": "con"}, "choose one of ucb, mean, constant"),
    ],
)
def test_options_that_make_no_sense(name, options, message):
    with pytest.raises(ValueError, match=message):
        make_shaper(name, **options)


def test_poly_epo_refuses_sets_larger_than_the_group():
    with pytest.raises(ValueError, match="between 1 and the group size, 6, got 7"):
        poly_epo_advantages(RIGHT, LABELS, 7)
    groups = shaped("poly_epo", groups_of([[0, 1, 2]], [[1, 1, 0]]))
    assert not groups.defined.any() and (groups.weights == 1).all()


def test_shapers_leave_their_input_alone():
    labels, right = LABELS.copy(), RIGHT.copy()
    groups = groups_of(labels.tolist(), right)
    modes = copy.deepcopy(groups.modes)
    for name in FREQUENCY:
        shaped(name, groups, random_partition=True) if name == "rarity_aware" else shaped(name, groups)
        np.testing.assert_array_equal(groups.modes, modes)
