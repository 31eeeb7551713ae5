"""The SetPO shaper: its kernels and every option."""

import numpy as np
import pytest
from group_factory import make_groups
from naive_setpo import G_FUNCTIONS, label_kernel, naive_credits, naive_diversity

from setpo_envs.shapers import SetPO, make_shaper
from setpo_envs.shapers.setpo import cosine_kernel, rbf_kernel
from setpo_verifiers import Status

RNG = np.random.default_rng(0)


def draw(shaper, groups):
    return shaper(groups, np.random.default_rng(0))


# --- kernels ---


def test_kernels_are_in_range_with_unit_diagonal():
    vectors = RNG.normal(size=(2, 5, 3)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    cosines = np.einsum("nid,njd->nij", vectors, vectors)
    assert cosines.min() < 0
    np.testing.assert_allclose(cosine_kernel(vectors), np.clip(cosines, 0, 1), atol=1e-6)
    distances = ((vectors[:, :, None] - vectors[:, None]) ** 2).sum(axis=3)
    np.testing.assert_allclose(rbf_kernel(vectors, 0.7), np.exp(-0.7 * distances), atol=1e-6)
    for kernel in (cosine_kernel(vectors), rbf_kernel(vectors, 0.7)):
        assert kernel.dtype == np.float32 and kernel.min() >= 0 and kernel.max() <= 1
        np.testing.assert_array_equal(np.diagonal(kernel, axis1=1, axis2=2), 1)


def test_members_without_a_mode_are_one_mode_under_the_equality_kernel():
    groups = make_groups([list("abcdef")], [[None, None, None, "x", "x", "y"]])
    kernel = SetPO(kernel="equality_key").similarity(groups)
    np.testing.assert_array_equal(kernel[0], label_kernel([0, 0, 0, 1, 1, 2]))
    credits = draw(SetPO(kernel="equality_key"), groups).credits[0]
    assert credits[0] == credits[1] == credits[2] < credits[3] < credits[5]


# --- the shaper's options ---

TEXTS = ["1+2+3", "1+2+3", "1+3+2", "(1+2)*3 = nine", "something else entirely", ""]
KEYS = ["a", "a", "b", "c", None, None]
GROUPS = make_groups([TEXTS, TEXTS[::-1]], [KEYS, KEYS[::-1]], [[1, 1, 1, 0, 0, 0], [0] * 6])


def test_defaults_are_the_papers():
    shaper = make_shaper("setpo")
    shaping = draw(shaper, GROUPS)
    kernel = shaper.similarity(GROUPS)
    for n in range(2):
        expected = naive_credits(kernel[n].astype(float), list(range(6)), G_FUNCTIONS["softlog"])
        np.testing.assert_allclose(shaping.credits[n], expected, rtol=0, atol=1e-12)
        np.testing.assert_allclose(shaping.diversity[n], naive_diversity(kernel[n].astype(float), range(6), G_FUNCTIONS["softlog"]))
    # rewards play no part: the all-wrong group gets what the mixed one gets
    np.testing.assert_allclose(shaping.credits[1], shaping.credits[0][::-1], rtol=0, atol=1e-7)
    assert shaping.shaped_rewards is None and shaping.weights is None
    assert abs(shaping.credits[0, 0] - shaping.credits[0, 1]) < 1e-7  # equal completions, equal credit


def test_members_restrict_the_set():
    shaper = SetPO(members="well_formed")
    shaping, kernel = draw(shaper, GROUPS), shaper.similarity(GROUPS)[0].astype(float)
    np.testing.assert_allclose(shaping.credits[0], naive_credits(kernel, [0, 1, 2, 3], G_FUNCTIONS["softlog"]), rtol=0, atol=1e-12)
    shaping = draw(SetPO(members="correct"), GROUPS)
    assert shaping.defined.tolist() == [True, False]
    assert (shaping.credits[0, :3] != 0).all() and (shaping.credits[0, 3:] == 0).all() and (shaping.credits[1] == 0).all()


def test_apply_to_zeroes_the_others_and_changes_nothing_else():
    everyone = draw(SetPO(), GROUPS).credits
    correct = draw(SetPO(apply_to="correct"), GROUPS).credits
    mixed = draw(SetPO(apply_to="mixed_groups"), GROUPS).credits
    np.testing.assert_array_equal(correct, np.where(GROUPS.correct, everyone, 0))
    np.testing.assert_array_equal(mixed, [everyone[0], np.zeros(6)])
    all_right = make_groups([TEXTS], [list("abcdef")])
    assert (draw(SetPO(apply_to="mixed_groups"), all_right).credits == 0).all()
    penalised = SetPO(members="well_formed", malformed="min_minus_one", apply_to="correct")
    assert (draw(penalised, GROUPS).credits[0, 4:] == 0).all()


@pytest.mark.parametrize("members, size", [("all", 6), ("well_formed", 4)])
def test_scales_and_centring_are_over_the_set(members, size):
    inside = np.ones(6, bool) if members == "all" else np.array([1, 1, 1, 1, 0, 0], bool)
    raw = draw(SetPO(members=members), GROUPS).credits[0]
    np.testing.assert_allclose(draw(SetPO(members=members, scale="g_minus_2"), GROUPS).credits[0], raw * (size - 2))
    s = raw[inside]
    for center in (False, True):
        z = draw(SetPO(members=members, scale="zscore", center=center), GROUPS).credits[0]
        np.testing.assert_allclose(z[inside], (s - s.mean()) / s.std(), rtol=1e-9)
        assert (z[~inside] == 0).all()
    centred = draw(SetPO(members=members, center=True, scale="g_minus_2"), GROUPS).credits[0]
    np.testing.assert_allclose(centred[inside], (s - s.mean()) * (size - 2))
    assert (centred[~inside] == 0).all()


def test_malformed_penalty_is_the_least_credit_and_at_most_minus_one():
    shaper = SetPO(members="well_formed", scale="zscore", malformed="min_minus_one")
    # z-scores of one outlier among four: the outlier is the largest, so the least is above -1 and the penalty is -1
    groups = make_groups([list("abcdef")], [["x", "x", "x", "y", None, None]])
    credits = draw(SetPO(kernel="equality_key", members="well_formed", scale="zscore", malformed="min_minus_one"), groups).credits[0]
    np.testing.assert_allclose(credits, [-(3**-0.5)] * 3 + [3**0.5, -1, -1])
    # two common and three rare: the least of the set is below -1
    groups = make_groups([list("abcdef")], [["x", "x", "y", "z", "w", None]])
    credits = draw(SetPO(kernel="equality_key", members="well_formed", scale="zscore", malformed="min_minus_one"), groups).credits[0]
    assert credits[5] == credits[:5].min() < -1
    # raw credits are small: -1
    credits = draw(SetPO(members="well_formed", malformed="min_minus_one"), GROUPS).credits
    np.testing.assert_array_equal(credits[0, 4:], -1)
    # an undefined group has no credits at all, hence no penalty
    groups = make_groups([list("abcd")], [["x", "y", None, None]])
    shaping = draw(shaper, groups)
    assert shaping.credits.tolist() == [[0.0] * 4] and shaping.defined.tolist() == [False]


def test_no_penalty_without_a_verdict():
    status = [[Status.CORRECT] * 3 + [Status.NO_ANSWER, Status.TIMEOUT, Status.ERROR]]
    groups = make_groups([list("abcdef")], [["x", "x", "y", None, None, None]], status_NG=status)
    credits = draw(SetPO(members="well_formed", malformed="min_minus_one", scale="zscore"), groups).credits[0]
    assert credits[3] <= -1 and credits[4] == credits[5] == 0


@pytest.mark.parametrize("size", [3, 7, 64])
def test_zscore_does_not_amplify_rounding(size):
    # members that are all equally similar (a rotated simplex): only rounding of the float32 kernel tells them apart
    rotation = np.linalg.qr(np.random.default_rng(3).normal(size=(size + 1, size + 1)))[0]
    simplex = np.eye(size, size + 1) + np.eye(size + 1)[-1] * 0.8
    shaper = SetPO(embedder=lambda groups: (simplex @ rotation)[None], scale="zscore")
    groups = make_groups([["text"] * size])
    assert np.ptp(draw(SetPO(embedder=shaper.embedder), groups).credits) > 0
    assert (draw(shaper, groups).credits == 0).all()


@pytest.mark.parametrize("embedder", ["ngram", "expression"])
def test_identical_completions_have_no_spread(embedder):
    groups = make_groups([["same"] * 7, [""] * 7], [["1+2"] * 7, [None] * 7])
    assert (draw(SetPO(embedder=embedder, scale="zscore"), groups).credits == 0).all()
    raw = draw(SetPO(embedder=embedder), groups).credits
    assert abs(raw).max() < 1e-7  # one fewer of the same changes no mass


def test_small_groups_and_empty_texts_are_never_nan():
    for size in (1, 2, 3):
        for texts in ([""] * size, ["x", "", "y"][:size]):
            for scale in ("raw", "g_minus_2", "zscore"):
                shaping = draw(SetPO(scale=scale, malformed="min_minus_one", members="well_formed"), make_groups([texts]))
                assert np.isfinite(shaping.credits).all() and np.isfinite(shaping.diversity).all()
                assert shaping.defined.tolist() == [size >= 3]


@pytest.mark.parametrize("option", ["kernel", "g", "members", "apply_to", "scale", "center", "malformed", "embedder"])
def test_unknown_values_are_refused_at_construction(option):
    with pytest.raises(ValueError, match=f"unknown {option} 'nonsense': choose one of "):
        SetPO(**{option: "nonsense"})
    with pytest.raises(ValueError, match="softlog, linear"):
        SetPO(g="log")
    with pytest.raises(ValueError, match="gamma above 0, got 0"):
        SetPO(gamma=0)
    with pytest.raises(ValueError, match="gamma above 0, got nan"):
        SetPO(gamma=float("nan"))
