"""SetPO credit: golden vectors, definition, the paper's theorems and numerics."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from group_factory import make_groups
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from naive_setpo import G_FUNCTIONS, label_kernel, naive_credits, naive_diversity, random_kernel

from setpo_envs.shapers import SetPO, set_diversity, setpo_credits
from setpo_envs.shapers.setpo import cosine_kernel, equality_kernel

RNG = np.random.default_rng(0)


def draw(shaper, groups):
    return shaper(groups, np.random.default_rng(0))


# --- golden vectors ---

LABELS = [0, 0, 0, 1, 2, 3]
GOLDEN = make_groups([list("abcdef")], [LABELS], [[1, 1, 1, 1, 0, 0]])


@pytest.mark.parametrize("g, expected", [("softlog", [-0.078979] * 3 + [0.075043] * 3), ("linear", [-0.1] * 3 + [0.1] * 3)])
def test_golden_equality_kernel(g, expected):
    shaping = draw(SetPO(kernel="equality_key", g=g), GOLDEN)
    np.testing.assert_allclose(shaping.credits[0], expected, atol=5e-7)


def test_golden_correct_subset_only():
    shaping = draw(SetPO(kernel="equality_key", members="correct"), GOLDEN)
    np.testing.assert_allclose(shaping.credits[0], [-0.112809] * 3 + [0.310028, 0, 0], atol=5e-7)
    assert shaping.defined.tolist() == [True]


def test_golden_soft_kernel():
    kernel = np.array([[1, 0.9, 0.2, 0.1], [0.9, 1, 0.3, 0], [0.2, 0.3, 1, 0.4], [0.1, 0, 0.4, 1]])
    credits, diversity, _ = setpo_credits(kernel[None])
    np.testing.assert_allclose((kernel.sum(axis=1) - 1) / 3, [0.4, 0.4, 0.3, 0.166667], atol=5e-7)
    np.testing.assert_allclose(diversity, [-0.272365], atol=5e-7)
    np.testing.assert_allclose(credits[0], [-0.064969, -0.063942, 0.002908, 0.104769], atol=5e-7)


@pytest.mark.parametrize("size, outlier, other", [(3, 0.423, -0.270), (8, 0.152, -0.022), (16, 0.075, -0.005), (32, 0.037, -0.001)])
def test_size_of_the_credit_of_a_lone_outlier(size, outlier, other):
    credits = setpo_credits(label_kernel([1] + [0] * (size - 1))[None])[0][0]
    np.testing.assert_allclose(credits, [outlier] + [other] * (size - 1), atol=6e-4)


def test_oracle_file():
    if "SETPO_TEST_DATA" not in os.environ:
        pytest.skip("SETPO_TEST_DATA is not set: the folder that holds oracles/setpo_definition.jsonl")
    lines = (Path(os.environ["SETPO_TEST_DATA"]) / "oracles" / "setpo_definition.jsonl").read_text().splitlines()
    assert len(lines) == 500
    for line in map(json.loads, lines):
        given_, kind = line["in"], line["kind"]
        if kind == "cosine_clamped":
            vectors = np.array(given_["embeddings"])
            kernel = cosine_kernel((vectors / np.linalg.norm(vectors, axis=1, keepdims=True))[None])
        elif kind == "equality":
            kernel = equality_kernel(np.array([given_["labels"]]))
        else:
            assert kind == "uniform"
            kernel = np.zeros((1, given_["G"], given_["G"]))
            kernel[0][np.triu_indices(given_["G"], 1)] = given_["upper_triangle_rowmajor"]
            kernel += kernel.swapaxes(1, 2)
        for g, out in line["out"].items():
            credits, diversity, defined = setpo_credits(kernel, g=g)
            assert defined.all()
            np.testing.assert_allclose(credits[0], out["s"], rtol=0, atol=1e-10, err_msg=f"line {line['id']}, {g}")
            np.testing.assert_allclose(diversity[0], out["D"], rtol=0, atol=1e-10, err_msg=f"line {line['id']}, {g}")
            np.testing.assert_allclose(set_diversity(kernel, g=g)[0], out["D"], rtol=0, atol=1e-10)


# --- fast equals definition ---


@pytest.mark.parametrize("g", G_FUNCTIONS)
def test_fast_equals_naive_with_masks_over_a_batch(g):
    rng = np.random.default_rng(1)
    for size in (1, 2, 3, 4, 7, 16):
        kernel = np.stack([random_kernel(size, rng) for _ in range(12)])
        members = rng.random((12, size)) < rng.random((12, 1))
        members[0] = True
        kernel[:, np.arange(size), np.arange(size)] = 7.0  # the diagonal is not read
        untouched = kernel.copy()
        for mask in (None, members):
            credits, diversity, defined = setpo_credits(kernel, mask, g)
            assert credits.dtype == diversity.dtype == np.float64
            np.testing.assert_array_equal(diversity, set_diversity(kernel, mask, g))
            for n in range(12):
                inside = list(range(size)) if mask is None else np.flatnonzero(mask[n]).tolist()
                np.testing.assert_allclose(credits[n], naive_credits(kernel[n], inside, G_FUNCTIONS[g]), rtol=0, atol=1e-12)
                expected = naive_diversity(kernel[n], inside, G_FUNCTIONS[g]) if len(inside) >= 2 else 0.0
                np.testing.assert_allclose(diversity[n], expected, rtol=0, atol=1e-12)
                assert defined[n] == (len(inside) >= 3)
        np.testing.assert_array_equal(kernel, untouched)


def test_what_is_outside_the_set_enters_no_sum():
    kernel, members = random_kernel(8, RNG)[None], np.array([[True] * 5 + [False] * 3])
    hostile = kernel.copy()
    hostile[:, 5:], hostile[:, :, 5:] = np.nan, np.inf
    np.testing.assert_array_equal(setpo_credits(hostile, members)[0], setpo_credits(kernel, members)[0])


@pytest.mark.parametrize("size", [1, 2])
def test_fewer_than_three_members_are_undefined_and_zero(size):
    kernel = np.full((1, size, size), 0.5)
    credits, diversity, defined = setpo_credits(kernel)
    assert credits.tolist() == [[0.0] * size] and defined.tolist() == [False]
    np.testing.assert_allclose(diversity, [0.0 if size < 2 else -np.log(1.5)])
    credits, diversity, defined = setpo_credits(np.ones((1, 5, 5)), np.zeros((1, 5), bool))
    assert credits.tolist() == [[0.0] * 5] and diversity.tolist() == [0.0] and defined.tolist() == [False]


@pytest.mark.parametrize("size", [1024, 4096])
def test_float32_kernel_is_accurate_at_large_groups(size):
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(1, size, 32)).astype(np.float32) + 1.5
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    kernel = cosine_kernel(vectors)
    assert kernel.dtype == np.float32
    credits = setpo_credits(kernel)[0][0]
    columns = rng.choice(size, 8, replace=False)
    sums = kernel[0].sum(axis=1, dtype=np.longdouble) - 1
    whole = -np.log1p(sums / (size - 1)).mean()
    for i in columns:  # the definition, in extended precision so that its own rounding does not count
        smaller = (np.delete(sums, i) - np.delete(kernel[0, :, i], i)) / (size - 2)
        expected = whole + np.log1p(smaller).mean()
        assert abs(credits[i] - expected) <= 1e-8 * credits.std()


# --- the paper's theorems ---


def masses_of(kernel):
    return (kernel.sum(axis=1) - kernel.diagonal()) / (len(kernel) - 1)


@pytest.mark.parametrize("g", G_FUNCTIONS)
def test_theorem_4_3_decomposition_and_lemma_d_1(g):
    g_of = G_FUNCTIONS[g]
    for size in (3, 6, 11):
        kernel = random_kernel(size, RNG)
        m = masses_of(kernel)
        credits = setpo_credits(kernel[None], g=g)[0][0]
        for i in range(size):
            others = [j for j in range(size) if j != i]
            recomputed = (kernel[np.ix_(others, others)].sum(axis=1) - 1) / (size - 2)
            smaller = m[others] + (m[others] - kernel[others, i]) / (size - 2)  # lemma D.1
            np.testing.assert_allclose(smaller, recomputed, rtol=0, atol=1e-14)
            own, baseline = g_of(m[i]) / size, (1 / size - 1 / (size - 1)) * g_of(m[others]).sum()
            external = (g_of(m[others]) - g_of(smaller)).sum() / (size - 1)
            np.testing.assert_allclose(credits[i], own + baseline + external, rtol=0, atol=1e-14)


def test_theorem_4_4_more_similarity_costs_credit_at_this_rate():
    step = 1e-5
    for size in (3, 6, 12):
        kernel = random_kernel(size, RNG) * 0.9 + 0.05
        m = masses_of(kernel)
        for i, t in ((0, 1), (2, 0)):
            ends = []
            for change in (step, -step):
                moved = kernel.copy()
                moved[i, t] += change
                moved[t, i] += change
                ends.append(setpo_credits(moved[None])[0][0, i])
            slope = -1 / (1 + m)  # g' of softlog
            expected = (slope[i] + slope[t]) / (size * (size - 1))
            assert expected < 0
            np.testing.assert_allclose((ends[0] - ends[1]) / (2 * step), expected, rtol=1e-6)


@st.composite
def kernel_with_a_dominated_pair(draw_):
    """A kernel in which member 0 is at most as similar to every other member as member 1, and once strictly less."""
    size = draw_(st.integers(3, 9))
    entries = st.integers(0, 20).map(lambda v: v / 20)
    kernel = np.eye(size)
    for i in range(size):
        for j in range(i):
            kernel[i, j] = kernel[j, i] = draw_(entries)
    smaller, larger = np.minimum(kernel[0, 2:], kernel[1, 2:]), np.maximum(kernel[0, 2:], kernel[1, 2:])
    assume((smaller < larger).any())
    kernel[0, 2:] = kernel[2:, 0] = smaller
    kernel[1, 2:] = kernel[2:, 1] = larger
    return kernel


@given(kernel_with_a_dominated_pair(), st.sampled_from(sorted(G_FUNCTIONS)))
@settings(deadline=None, max_examples=200)
def test_theorem_4_5_dominance(kernel, g):
    credits = setpo_credits(kernel[None], g=g)[0][0]
    assert credits[0] > credits[1]


@given(st.lists(st.integers(0, 4), min_size=3, max_size=16), st.sampled_from(sorted(G_FUNCTIONS)))
@settings(deadline=None, max_examples=200)
def test_equality_kernel_pays_the_smaller_cluster_strictly_more(labels, g):
    credits = setpo_credits(label_kernel(labels)[None], g=g)[0][0]
    counts = [labels.count(label) for label in labels]
    for i, j in ((i, j) for i in range(len(labels)) for j in range(len(labels))):
        if counts[i] < counts[j]:
            assert credits[i] > credits[j] + 1e-9
        elif counts[i] == counts[j]:
            assert abs(credits[i] - credits[j]) < 1e-12


@given(st.integers(3, 12), st.integers(0, 2**32 - 1), st.sampled_from(sorted(G_FUNCTIONS)))
@settings(deadline=None, max_examples=50)
def test_symmetries_and_sign_of_the_sum(size, seed, g):
    rng = np.random.default_rng(seed)
    kernel = random_kernel(size, rng)
    credits = setpo_credits(kernel[None], g=g)[0][0]
    order = rng.permutation(size)
    np.testing.assert_allclose(setpo_credits(kernel[np.ix_(order, order)][None], g=g)[0][0], credits[order], rtol=0, atol=1e-14)
    if g == "linear":
        assert abs(credits.sum()) < 1e-13
    else:
        assert credits.sum() < 1e-13


def test_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match=r"shape \(N, G, G\), got \(3, 3\)"):
        setpo_credits(np.eye(3))
    with pytest.raises(ValueError, match=r"members of shape \(1, 3\)"):
        setpo_credits(np.eye(3)[None], np.ones(3, bool))
    with pytest.raises(ValueError, match="choose one of softlog, linear"):
        setpo_credits(np.eye(3)[None], g="log")
