"""Base advantages and their combination with credit, against hand-computed vectors and verl's outputs."""

import numpy as np
import pytest

from setpo_agents.advantages import (
    BASE_ADVANTAGES,
    among_valid,
    combine,
    dr_grpo,
    grpo,
    grpo_passk,
    maxrl,
    rloo,
    scale_shaping,
    shaping_ratio,
)
from setpo_envs.shapers.setpo import setpo_credits

REWARDS = np.array([[1.0, 1, 1, 1, 0, 0]])
LABELS = np.array([0, 0, 0, 1, 2, 3])


def test_golden_vectors():
    np.testing.assert_allclose(grpo(REWARDS), [[0.645496] * 4 + [-1.290992] * 2], atol=1e-6)
    np.testing.assert_allclose(grpo(REWARDS, ddof=0), [[0.707105] * 4 + [-1.414211] * 2], atol=1e-6)
    np.testing.assert_allclose(dr_grpo(REWARDS), [[1 / 3] * 4 + [-2 / 3] * 2], atol=1e-12)
    np.testing.assert_allclose(rloo(REWARDS), [[0.4] * 4 + [-0.8] * 2], atol=1e-12)
    np.testing.assert_allclose(maxrl(REWARDS), [[0.5] * 4 + [-1.0] * 2], atol=1e-12)


def test_best_only_by_hand():
    np.testing.assert_array_equal(grpo_passk([[0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.2, 0.5, 0.9]]), [[0, 1, 0], [0, 0, 0], [0, 0, 0.4]])
    np.testing.assert_allclose(grpo_passk([[0.0, 1.0, 0.0]], normalize=True), [[0, 3**0.5, 0]], atol=1e-5)


def test_setpo_advantage_golden_vector():
    credits, _, _ = setpo_credits((LABELS[:, None] == LABELS).astype(float)[None])
    np.testing.assert_allclose(combine(grpo(REWARDS), credits, 0.05), [[0.641547] * 3 + [0.649248] + [-1.287240] * 2], atol=1e-6)


@pytest.mark.parametrize("name", BASE_ADVANTAGES)
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_equal_rewards_give_zero(name, value):
    advantages = BASE_ADVANTAGES[name](np.full((2, 4), value))
    np.testing.assert_array_equal(advantages, 0.0)


def test_weights_scale_the_base_only():
    np.testing.assert_allclose(combine([[1.0, -1.0]], [[2.0, 4.0]], 0.5, [[3.0, 0.0]]), [[4.0, 2.0]])


def test_shaping_ratio():
    assert shaping_ratio([[3.0, -3.0]], [[3.6, -3.6]]) == pytest.approx(0.2)
    added = combine([[1.0, -1.0]], [[2.0, 0.0]], 0.5)
    assert shaping_ratio([[1.0, -1.0]], added) == pytest.approx(0.5 * 2**0.5)  # lambda RMS(c) / RMS(base)
    assert shaping_ratio([[3.0, -4.0]], [[0.0, 0.0]]) == 1.0  # a weight of zero takes away all there is
    assert shaping_ratio([[0.0, 0.0]], [[1.0, 1.0]]) == 0.0


def shaped_batch(seed):
    """(base, shaped), each (N, G): any base, whose shaping also weighs it and adds credit."""
    rng = np.random.default_rng(seed)
    base = grpo(rng.integers(0, 2, (5, 8)))
    return base, combine(base, rng.normal(size=base.shape), 10.0 ** rng.integers(-3, 3), rng.uniform(0, 2, base.shape))


@pytest.mark.parametrize("seed", range(5))
def test_strength_scales_what_is_changed(seed):
    base, shaped = shaped_batch(seed)
    assert (scale_shaping(base, shaped) == shaped).all()  # to the bit: the method as it is
    assert (scale_shaping(base, shaped, 0.0) == base).all()
    np.testing.assert_allclose(scale_shaping(base, shaped, 0.3) - base, 0.3 * (shaped - base), atol=1e-12)
    assert shaping_ratio(base, scale_shaping(base, shaped, 3.0)) == pytest.approx(3 * shaping_ratio(base, shaped))
    assert scale_shaping([[1.0, -1.0]], [[2.0, -1.0]], 3.0).tolist() == [[4.0, -1.0]]


def test_strength_is_a_factor_on_the_coefficient_of_a_method_that_adds_credit():
    credits = [[0.5, 0.25]]
    stronger = scale_shaping([[1.0, -1.0]], combine([[1.0, -1.0]], credits, 0.1), 3.0)
    np.testing.assert_allclose(stronger, combine([[1.0, -1.0]], credits, 0.3), atol=1e-15)


@pytest.mark.parametrize("ratio", [0.0, 0.2, 1.0, 5.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_matched_ratio_is_reached_whatever_the_own_scale(seed, ratio):
    base, shaped = shaped_batch(seed)
    matched = scale_shaping(base, shaped, ratio=ratio)
    assert shaping_ratio(base, matched) == pytest.approx(ratio, rel=1e-12)
    louder = scale_shaping(base, base + 1000 * (shaped - base), ratio=ratio)
    np.testing.assert_allclose(louder, matched, rtol=1e-9, atol=1e-12)  # of a method only the direction is left


def test_nothing_to_scale_leaves_the_base():
    base, zeros = np.array([[1.0, -1.0]]), np.zeros((1, 2))
    for strength, ratio in ((3.0, None), (1.0, 0.2)):
        assert (scale_shaping(base, base, strength, ratio) == base).all()  # the shaper changes nothing
    assert (scale_shaping(zeros, np.ones((1, 2)), ratio=0.2) == zeros).all()  # no RMS to be measured against
    assert scale_shaping(zeros, np.ones((1, 2)), 3.0).tolist() == [[3.0, 3.0]]


VERL = {
    "grpo": grpo,
    "grpo_nonorm": dr_grpo,
    "rloo": rloo,
    "rloo_vectorized": rloo,
    "grpo_passk": lambda rewards: grpo_passk(rewards, normalize=True),
    "grpo_passk_nonorm": grpo_passk,
}


def test_equal_to_verl(oracle):
    compared = dict.fromkeys(VERL, 0)
    for line in oracle("verl_advantages"):
        rewards, index = np.array(line["in"]["rewards"]), np.array(line["in"]["index"])
        for name in VERL.keys() & line["out"].keys():
            for group in np.unique(index):
                rows = index == group
                noise = name in ("grpo", "grpo_passk") and rewards[rows].std() < 1e-3  # float32 rounding over eps
                if rows.sum() > 1 and not noise:
                    found = VERL[name](rewards[rows][None])[0]
                    np.testing.assert_allclose(found, np.array(line["out"][name])[rows], rtol=2e-4, atol=2e-6)
                    compared[name] += 1
    assert min(compared.values()) > 100, compared


def test_equal_to_trl(oracle):
    """scale_rewards "group" and "none"; "batch" divides by a std over groups, which no base advantage here does."""
    compared = 0
    for line in oracle("trl_advantages"):
        rewards = np.array(line["in"]["rewards_per_func"]) @ np.array(line["in"]["reward_weights"])
        rewards_NG = rewards.reshape(-1, line["in"]["num_generations"])
        np.testing.assert_allclose(dr_grpo(rewards_NG).ravel(), line["out"]["none"], rtol=1e-4, atol=1e-6)
        spread = rewards_NG.std(axis=1) > 1e-3  # elsewhere float32 rounding over eps
        expected_NG = np.reshape(line["out"]["group"], rewards_NG.shape)
        np.testing.assert_allclose(grpo(rewards_NG, eps=1e-4)[spread], expected_NG[spread], rtol=1e-4, atol=1e-6)
        compared += int(spread.sum())
    assert compared > 200


@pytest.mark.parametrize("name", BASE_ADVANTAGES)
def test_members_without_a_verdict_are_left_out_of_their_group(name):
    base = BASE_ADVANTAGES[name]
    rewards = np.array([[1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    valid = np.array([[True] * 4, [True, True, True, False], [False, True, False, False]])
    advantages = among_valid(base, rewards, valid)
    assert (advantages[0] == base(rewards[:1])[0]).all()
    assert advantages[1].tolist() == [*base([[1.0, 0.0, 1.0]])[0], 0.0]
    assert not advantages[2].any()
    assert (among_valid(base, rewards, np.ones_like(valid)) == base(rewards)).all()
