"""DRA-GRPO, log-determinant and Vendi credit: golden vectors, the released code's results, definitions, singular kernels."""

import numpy as np
import pytest
from group_factory import make_groups
from naive_setpo import label_kernel

from setpo_envs import metrics
from setpo_envs.completion import Completion
from setpo_envs.shapers import apply_shaper, dra_rewards, logdet_credits, make_shaper, vendi_credits

LABELS = [0, 0, 0, 1, 2, 3]
EQUAL = label_kernel([0] * 6)[None]


def golden():
    return make_groups([list("abcdef")], [LABELS], [[1, 1, 1, 1, 0, 0]])


def shaped(name, groups=None, **options):
    groups = golden() if groups is None else groups
    apply_shaper(groups, make_shaper(name, **options), np.random.default_rng(0))
    return groups


def gram(rng, size, dimensions):
    vectors = rng.normal(size=(size, dimensions)) + 0.5
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors @ vectors.T


# --- DRA-GRPO ---


def grpo(rewards_NG, eps):
    centred = rewards_NG - rewards_NG.mean(axis=1, keepdims=True)
    return centred / (rewards_NG.std(axis=1, ddof=1, keepdims=True) + eps)


def test_dra_golden():
    rewards = shaped("dra_grpo", kernel="equality_key").shaped_rewards
    np.testing.assert_allclose(rewards[0], [0.333333] * 3 + [0.999999, 0, 0], atol=1e-6)
    np.testing.assert_allclose(grpo(rewards, 1e-4)[0], [0] * 3 + [1.825242] + [-0.912621] * 2, atol=1e-6)


def test_dra_equals_the_released_code(oracle):
    lines = compared = 0
    for line in oracle("dra_grpo"):
        given, out = line["in"], line["out"]
        vectors = np.array(given["embeddings"])
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        rewards = np.array(given["rewards"], float)[None]
        kernel = (vectors @ vectors.T)[None]
        sums = kernel.sum(axis=2)
        near_zero = np.abs(sums).min() < 0.05  # float32 rounding is amplified there
        np.testing.assert_allclose(sums[0], out["similarity_sums"], rtol=1e-4, atol=1e-5)
        got = dra_rewards(rewards, kernel)
        np.testing.assert_allclose(got[0], out["shaped"], rtol=1e-2 if near_zero else 1e-4, atol=1e-6)
        groups_NG = got.reshape(given["n_groups_in_device_batch"], given["num_generations"])
        if groups_NG.std(axis=1).min() > 1e-3 and not near_zero:
            np.testing.assert_allclose(grpo(groups_NG, 1e-4).ravel(), out["adv_grpo"], rtol=1e-3, atol=1e-4)
            compared += 1
        lines += 1
    assert lines == 300 and compared > 100


def test_dra_divides_by_the_cosines_of_the_group():
    vectors = [[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]]
    groups = make_groups([[Completion(str(i), embedding=np.array(v)) for i, v in enumerate(vectors)]])
    rewards = shaped("dra_grpo", groups, embedder="policy").shaped_rewards[0]
    np.testing.assert_allclose(rewards, [1 / 1.6, 1 / 2.4, 1 / 1.8], rtol=1e-5)


def test_dra_of_one_colour_groups():
    texts = [["same", "same", "other thing"]]
    assert shaped("dra_grpo", make_groups(texts, correct_NG=[[0, 0, 0]])).shaped_rewards.tolist() == [[0, 0, 0]]
    right = shaped("dra_grpo", make_groups(texts)).shaped_rewards[0]
    assert right[0] == right[1] < 0.6 < right[2]


# --- log-determinant ---


def naive_logdet(kernel, regularizer):
    matrix = kernel + regularizer * np.eye(len(kernel))
    rest = [np.delete(np.arange(len(kernel)), i) for i in range(len(kernel))]
    whole = np.linalg.slogdet(matrix)[1]
    return whole - np.array([np.linalg.slogdet(matrix[np.ix_(keep, keep)])[1] for keep in rest]), whole


@pytest.mark.parametrize("regularizer", [1e-3, 0.5])
def test_logdet_equals_the_definition(regularizer):
    rng = np.random.default_rng(0)
    for size in (1, 2, 5, 16):
        kernels = np.stack([gram(rng, size, 8) for _ in range(10)])
        credits, values = logdet_credits(kernels, regularizer)
        assert credits.dtype == values.dtype == np.float64
        for n, kernel in enumerate(kernels):
            expected, whole = naive_logdet(kernel, regularizer)
            np.testing.assert_allclose(credits[n], expected, rtol=0, atol=1e-8)
            np.testing.assert_allclose(values[n], whole, rtol=0, atol=1e-9)


def test_logdet_by_hand():
    credits, value = logdet_credits(np.array([[[1, 0.6], [0.6, 1]]]), 0.25)  # det 1.25^2 - .36 = 1.2025, without one 1.25
    np.testing.assert_allclose(value, [np.log(1.2025)])
    np.testing.assert_allclose(credits, [[np.log(1.2025 / 1.25)] * 2])


def test_logdet_of_equal_and_orthogonal_completions():
    copies = logdet_credits(EQUAL, 1e-3)[0][0]  # (n + r) r^(n-1) over ((n-1) + r) r^(n-2)
    np.testing.assert_allclose(copies, np.log(1e-3 * 6.001 / 5.001), atol=1e-9)
    np.testing.assert_allclose(logdet_credits(np.eye(6)[None], 1e-3)[0], np.log(1.001), atol=1e-12)
    for regularizer in (1e-3, 1e-9):
        large = logdet_credits(np.ones((1, 300, 300)), regularizer)[0]
        np.testing.assert_allclose(large, np.log(regularizer * 300 / 299), atol=1e-3)


def test_logdet_shaper_centres_and_pays_the_odd_one_out():
    texts = [["try 1+2 first"] * 5 + ["an unrelated second idea"]]
    groups = shaped("logdet", make_groups(texts))
    np.testing.assert_allclose(groups.credits.sum(), 0, atol=1e-9)
    assert groups.credits[0, 5] > 5 and np.ptp(groups.credits[0, :5]) < 1e-6 and groups.diversity[0] < -20
    raw = shaped("logdet", make_groups(texts), center=False)
    assert (raw.credits[0] < 0.01).all()
    np.testing.assert_allclose(raw.credits - raw.credits.mean(), groups.credits, atol=1e-12)


# --- Vendi ---


def test_vendi_golden_and_definition():
    groups = shaped("vendi", kernel="equality_key")
    np.testing.assert_allclose(groups.diversity, [3.464102], atol=5e-7)
    expected = [3.464102 - metrics.vendi(label_kernel(LABELS[:i] + LABELS[i + 1 :])) for i in range(6)]
    np.testing.assert_allclose(groups.credits[0], expected, atol=5e-7)
    assert groups.credits[0, 0] < 0 < groups.credits[0, 3]
    outlier = shaped("vendi", make_groups([list("abcdefgh")], [[0] * 7 + [1]]), kernel="equality_key").credits[0]
    np.testing.assert_allclose(outlier, [-0.0494] * 7 + [0.4576], atol=5e-5)


def test_vendi_by_hand():
    rho = 0.6  # eigenvalues of K/2: .8 and .2
    credits, value = vendi_credits(np.array([[[1, rho], [rho, 1]]]))
    np.testing.assert_allclose(value, [0.8**-0.8 * 0.2**-0.2])
    np.testing.assert_allclose(credits, [[value[0] - 1] * 2])


def test_vendi_of_equal_and_orthogonal_completions():
    credits, value = vendi_credits(EQUAL)
    np.testing.assert_allclose(credits, 0, atol=1e-9)
    np.testing.assert_allclose(value, 1)
    credits, value = vendi_credits(np.eye(5)[None])
    np.testing.assert_allclose(credits, 1)
    np.testing.assert_allclose(value, 5)


def test_vendi_values_equal_the_reference(oracle):
    lines = 0
    for line in oracle("vendi"):
        given, kind = line["in"], line["kind"]
        if kind == "equality":
            kernel = label_kernel(given["labels"])
        else:
            x = np.array(given["embeddings"])
            unit = x / np.linalg.norm(x, axis=1, keepdims=True)
            kernel = unit @ unit.T if kind != "rbf" else np.exp(-given["gamma"] * ((x[:, None] - x) ** 2).sum(axis=2))
            kernel = kernel.clip(0, 1) if kind == "cosine_clamped" else kernel
            np.fill_diagonal(kernel, 1)
        credits, value = vendi_credits(np.stack([kernel, kernel]))
        np.testing.assert_allclose(value, [line["out"]["q1"]] * 2, rtol=1e-8)
        keep = np.arange(1, len(kernel))
        np.testing.assert_allclose(credits[1, 0], line["out"]["q1"] - metrics.vendi(kernel[np.ix_(keep, keep)]), atol=1e-8)
        lines += 1
    assert lines == 300


# --- all three ---


@pytest.mark.parametrize("name", ["dra_grpo", "logdet", "vendi"])
@pytest.mark.parametrize("kernel", ["cosine", "rbf", "equality_key"])
def test_permuting_members_permutes_what_they_get(name, kernel):
    texts, keys = ["1+2", "2+1", "1+2", "a long other way to it", "3"], ["a", "a", "a", "b", None]
    order = [4, 2, 0, 3, 1]
    there = shaped(name, make_groups([texts], [keys]), kernel=kernel)
    back = shaped(name, make_groups([[texts[i] for i in order]], [[keys[i] for i in order]]), kernel=kernel)
    for field in ("credits", "shaped_rewards"):
        np.testing.assert_allclose(getattr(back, field)[0], getattr(there, field)[0, order], atol=1e-7)
    changed = there.shaped_rewards if name == "dra_grpo" else there.credits
    assert np.ptp(changed[0]) > 0.1


@pytest.mark.parametrize("name", ["logdet", "vendi"])
def test_wrong_and_right_groups_get_the_same_credit(name):
    texts = [["1+2", "3", "1+2", "another"]]
    right, wrong = (shaped(name, make_groups(texts, correct_NG=[[flag] * 4])).credits for flag in (1, 0))
    np.testing.assert_array_equal(right, wrong)
    assert right.any()


def test_unknown_options_are_named():
    with pytest.raises(ValueError, match="unknown kernel 'cosines': choose one of cosine, rbf, equality_key"):
        make_shaper("vendi", kernel="cosines")
    with pytest.raises(ValueError, match="regularizer of at least 1e-9, got 0"):
        make_shaper("logdet", regularizer=0)
    with pytest.raises(ValueError, match="finite gamma above 0, got -1"):
        make_shaper("dra_grpo", gamma=-1)
    with pytest.raises(ValueError, match="unknown embedder"):
        make_shaper("dra_grpo", embedder="bert")
