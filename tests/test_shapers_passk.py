"""Pass@k Training and PKPO: golden vectors, brute force over subsets, published implementations."""

import json
import os
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from group_factory import make_groups

from setpo_agents.advantages import grpo
from setpo_envs.shapers import apply_shaper, make_shaper
from setpo_envs.shapers.passk import passk_training_advantages, pkpo_rewards

GOLDEN = np.array([[1, 1, 1, 1, 0, 0]], float)
EDGES = make_groups([list("abcdef")] * 2, None, [[1] * 6, [0] * 6])
RNG = np.random.default_rng(0)


def oracle(name):
    if "SETPO_TEST_DATA" not in os.environ:
        pytest.skip(f"SETPO_TEST_DATA is not set: the folder that holds oracles/{name}.jsonl")
    return list(map(json.loads, (Path(os.environ["SETPO_TEST_DATA"]) / "oracles" / f"{name}.jsonl").read_text().splitlines()))


def shaped(name, groups, **options):
    apply_shaper(groups, make_shaper(name, **options), np.random.default_rng(0))
    return groups


# --- Pass@k Training ---


def test_passk_training_golden():
    np.testing.assert_allclose(passk_training_advantages(GOLDEN, 2)[0], [0.267261] * 4 + [-0.534522] * 2, atol=5e-7)
    np.testing.assert_array_equal(passk_training_advantages(GOLDEN, 4), np.zeros((1, 6)))


def naive_passk_training(correct, k):
    """Z-score of every subset's best member, averaged over the subsets that a member is in."""
    subsets = list(combinations(range(len(correct)), k))
    best = np.array([max(correct[i] for i in subset) for subset in subsets], float)
    scores = (best - best.mean()) / best.std() if best.std() > 0 else np.zeros(len(best))
    return [np.mean([score for score, subset in zip(scores, subsets) if i in subset]) for i in range(len(correct))]


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_passk_training_is_the_mean_z_score_of_the_subsets_of_a_member(k):
    for size in (5, 8):
        correct = RNG.random((6, size)) < np.linspace(0, 1, 6)[:, None]
        expected = [naive_passk_training(row, k) for row in correct.astype(int)]
        np.testing.assert_allclose(passk_training_advantages(correct, k), expected, rtol=0, atol=1e-12)


def test_passk_training_at_k_1_is_grpo():
    rewards = np.array([[1, 0, 0, 0], [1, 1, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]], float)
    np.testing.assert_allclose(passk_training_advantages(rewards, 1, eps=1e-6), grpo(rewards, ddof=0), rtol=0, atol=1e-14)


def test_passk_training_is_exact_where_nearly_every_subset_has_a_correct_member():
    advantages = passk_training_advantages(np.arange(64)[None] >= 16, 16)[0]  # 1 - rho = 1 / C(64, 16), about 2e-15
    np.testing.assert_allclose(advantages[-1], 488526937079580**-0.5, rtol=1e-12)
    assert abs(advantages.sum()) < 1e-12 * advantages.max()


def test_passk_training_oracle():
    lines = oracle("passk_training")
    assert len(lines) == 480
    for line in lines:
        found = passk_training_advantages(np.array([line["in"]["rewards"]]), line["in"]["k"], eps=1e-6)[0]
        np.testing.assert_allclose(found, line["out"]["calc_adv"], rtol=1e-8, atol=1e-11, err_msg=f"line {line['id']}")


def test_passk_training_shaper():
    groups = shaped("passk_training", make_groups([list("abcdef")], None, GOLDEN), k=2)
    np.testing.assert_allclose(groups.credits[0], [0.267261] * 4 + [-0.534522] * 2, atol=5e-7)
    assert not groups.weights.any() and groups.defined.all()
    assert not shaped("passk_training", EDGES, k=2).credits.any()


# --- PKPO ---


def test_pkpo_golden():
    np.testing.assert_allclose(pkpo_rewards(GOLDEN, 2, "s")[0], [0.333333] * 4 + [0.266667] * 2, atol=5e-7)
    np.testing.assert_allclose(pkpo_rewards(GOLDEN, 2)[0], [0.133333] * 4 + [0] * 2, atol=5e-7)


def naive_pkpo(rewards, k, variant):
    n, out = len(rewards), []
    subsets = list(combinations(range(n), k))
    for i in range(n):
        inside = [subset for subset in subsets if i in subset]
        s = sum(max(rewards[j] for j in subset) for subset in inside) / len(subsets)
        if variant == "sloo":
            outside = [max(rewards[j] for j in subset) for subset in subsets if i not in subset]
            s -= k / (n - 1) * np.mean(outside)
        elif variant == "sloo_minus_one" and k > 1:
            s -= sum(max(rewards[j] for j in subset if j != i) for subset in inside) / len(subsets)
        out.append(s)
    return out


@pytest.mark.parametrize("variant", ["s", "sloo", "sloo_minus_one"])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_pkpo_is_what_subsets_say(k, variant):
    rewards = np.stack([RNG.normal(size=7), RNG.integers(0, 2, 7), RNG.integers(0, 3, 7), np.ones(7)])  # with ties
    expected = [naive_pkpo(row, k, variant) for row in rewards]
    np.testing.assert_allclose(pkpo_rewards(rewards, k, variant), expected, rtol=0, atol=1e-14)


def test_pkpo_oracle():
    lines = oracle("pkpo")
    assert len(lines) == 500
    compared = 0
    for line in lines:
        rewards, k = np.array([line["in"]["rewards"]]), line["in"]["k"]
        for variant in ("s", "sloo", "sloo_minus_one"):
            expected = line["out"][variant]
            if expected is None:  # k = n, where sloo has no baseline
                assert variant == "sloo" and k == rewards.shape[1]
                with pytest.raises(ValueError, match="leaves one out"):
                    pkpo_rewards(rewards, k, variant)
                continue
            found = pkpo_rewards(rewards, k, variant)[0]
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-11, err_msg=f"line {line['id']}, {variant}")
            compared += 1
    assert compared > 1400


def test_pkpo_shaper_on_all_right_and_all_wrong_groups():
    for variant, right in (("s", 2 / 6), ("sloo", -2 / 30), ("sloo_minus_one", 0)):
        groups = shaped("pkpo", EDGES, k=2, variant=variant)
        np.testing.assert_allclose(groups.credits, [[right] * 6, [0] * 6], atol=1e-15)
        assert not groups.weights.any()


def test_too_few_members_leave_the_group_as_it_is():
    for name, options, least in (("passk_training", {}, 4), ("pkpo", {}, 4), ("pkpo", {"variant": "sloo"}, 5)):
        assert make_shaper(name, **options).min_group_size == least
        groups = shaped(name, make_groups([["a"] * (least - 1)]), **options)
        assert not groups.defined.any() and (groups.weights == 1).all() and not groups.credits.any()


def test_options_that_make_no_sense():
    for k in (0, 1.5, True):
        with pytest.raises(ValueError, match="expected k to be an integer of at least 1"):
            make_shaper("pkpo", k=k)
    with pytest.raises(ValueError, match="choose one of s, sloo, sloo_minus_one"):
        make_shaper("pkpo", variant="loo")
    with pytest.raises(ValueError, match="at most the group size, 6, got 7: lower k"):
        passk_training_advantages(GOLDEN, 7)
