"""Shapers that train for pass@k, the chance that at least one of k completions is right, instead of pass@1.

C(a, b) is the binomial coefficient, 0 if b > a. Both methods replace the advantage: A = 0 * base + 1 * c, so the agent's
coefficient is 1 and the base advantage does not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb

import numpy as np

from ..group import Groups
from .base import Shaping, register


@register("passk_training")
@dataclass(frozen=True)
class PassKTraining:
    """Analytic advantage of Pass@k Training (arXiv 2508.10751); see :func:`passk_training_advantages` for the formula.

    Stage: credit, in place of the base advantage (weights are 0), to be used with coefficient 1. Only CORRECT counts as right,
    so a completion without a verdict is wrong, as its reward of 0 says. A group without a correct member gets zeros, and so does
    one in which fewer than k members are wrong: every k of them hold a correct one.

    Args:
        k: How many attempts count, at least 1. The paper trains with 4 and 8.
    """

    k: int = 4
    base_advantage = None  # replaced
    credit_coefficient = 1.0

    def __post_init__(self) -> None:
        _check_k(self.k)

    @property
    def min_group_size(self) -> int:
        return self.k

    def __call__(self, groups: Groups, rng: np.random.Generator) -> Shaping:
        return _replacing(groups, self.min_group_size, lambda: passk_training_advantages(groups.correct, self.k))


def passk_training_advantages(correct_NG: np.ndarray, k: int, eps: float = 0.0) -> np.ndarray:
    """Advantages (N, G) float64 of Pass@k Training for ``correct_NG`` (N, G) bool, arXiv 2508.10751.

    Of a group of G with c correct, all C(G, k) subsets of size k are scored by their best member:

        rho   = 1 - C(G-c, k) / C(G, k)                      mean score of a subset: pass@k
        sd    = sqrt(rho (1 - rho))                          its standard deviation
        A_pos = (1 - rho) / sd                               correct members, all of whose subsets score 1
        A_neg = (1 - rho - C(G-c-1, k-1) / C(G-1, k-1)) / sd wrong members

    and zeros where sd = 0. The released code has sd + 1e-6 below the line: ``eps``.

    What is computed is A_neg = -A_pos c / (G-c), the same without a difference of near numbers: the advantages of a group sum to
    zero. k = 1 is GRPO's advantage with the population's standard deviation.

    Raises:
        ValueError: k is not between 1 and G.
    """
    correct_NG = np.asarray(correct_NG, bool)
    size = correct_NG.shape[1]
    _check_k(k, size)
    every = comb(size, k)
    missed_C = np.array([comb(size - c, k) / every for c in range(size + 1)])  # 1 - rho by c: exact integers, one rounding
    c_N1 = correct_NG.sum(axis=1, keepdims=True)
    missed_N1 = missed_C[c_N1]
    sd_N1 = np.sqrt(missed_N1 * (1.0 - missed_N1))
    right_N1 = missed_N1 / np.where(sd_N1 > 0, sd_N1 + eps, np.inf)
    return np.where(correct_NG, right_N1, 0.0 - right_N1 * c_N1 / np.maximum(size - c_N1, 1))


@register("pkpo")
@dataclass(frozen=True)
class PKPO:
    """Pass@k policy optimisation (arXiv 2505.15201): rewards whose policy gradient is that of max@k (pass@k for rewards 0 and 1).

    See :func:`pkpo_rewards` for the formulas. The paper gives them as rewards in place of r in the plain policy gradient, that is
    without normalisation; here they are credits in place of the base advantage (weights are 0), to be used with coefficient 1.
    Real-valued rewards are allowed. A completion without a verdict counts with its reward, 0.

    For rewards 0 and 1: a group all of whose members are wrong gets zeros from each variant; one all of whose members are right
    gets k/G from "s", -k/(G (G-1)) from "sloo" and, for k > 1, zeros from "sloo_minus_one" (for k = 1 1/G).

    Args:
        k: How many attempts count. (Third-party code uses 4; the paper's schedule for annealing k was not found.)
        variant: "s" without a baseline, "sloo" and "sloo_minus_one" with leave-one-out baselines; the last has the least variance.
    """

    k: int = 4
    variant: str = "sloo_minus_one"
    base_advantage = None  # replaced
    credit_coefficient = 1.0

    def __post_init__(self) -> None:
        _check_k(self.k)
        _check_variant(self.variant)

    @property
    def min_group_size(self) -> int:
        return self.k + (self.variant == "sloo")

    def __call__(self, groups: Groups, rng: np.random.Generator) -> Shaping:
        return _replacing(groups, self.min_group_size, lambda: pkpo_rewards(groups.rewards, self.k, self.variant))


def pkpo_rewards(rewards_NG: np.ndarray, k: int, variant: str = "sloo_minus_one") -> np.ndarray:
    """PKPO's transformed rewards (N, G) float64 of ``rewards_NG`` (N, G), in O(N G log G); arXiv 2505.15201.

    With g the rewards of a group of G, I its subsets of size k, and rho(n, k) the mean of max_I g over subsets of n members:

        s_i              = 1/C(G, k) sum_{I containing i} max_I g
        sloo_i           = s_i - k/(G-1) rho(G-1, k) of the others                                    needs k < G
        sloo_minus_one_i = 1/C(G, k) sum_{I containing i} (max_I g - max_{I without i} g)             k = 1: s_i

    For rewards 0 and 1 with c right: s is k/G for a right member and (k/G)(1 - C(G-1-c, k-1)/C(G-1, k-1)) for a wrong one;
    sloo_minus_one is r_i C(G-c, k-1)/C(G, k).

    Sorted upwards, member m (from 0) is the largest of C(m, k-1) subsets, and of C(m-1, k-2) that hold a given smaller one:
    sums from the top give s. In the last formula the steps g_(m) - g_(m-1) up to member i each count C(m, k-1) times.

    Raises:
        ValueError: Unknown variant, or a k that does not fit G.
    """
    rewards_NG = np.asarray(rewards_NG, np.float64)
    size = rewards_NG.shape[1]
    _check_variant(variant)
    _check_k(k, size - (variant == "sloo"), "the group size less one, as the baseline leaves one out" if variant == "sloo" else "")
    every = comb(size, k)
    largest_G = np.array([comb(m, k - 1) / every for m in range(size)])
    order_NG = np.argsort(rewards_NG, axis=1, kind="stable")
    g_NG = np.take_along_axis(rewards_NG, order_NG, axis=1)
    if variant == "sloo_minus_one":
        steps_NG = np.diff(g_NG, axis=1, prepend=0.0)  # the first counts only for k = 1, where the largest of none is 0
        sorted_NG = np.cumsum(steps_NG * largest_G, axis=1)
    else:
        with_smaller_G = np.array([comb(m - 1, k - 2) / every if m and k > 1 else 0.0 for m in range(size)])
        from_top_NG = np.cumsum((g_NG * with_smaller_G)[:, ::-1], axis=1)[:, ::-1]
        sorted_NG = g_NG * largest_G + from_top_NG - g_NG * with_smaller_G
        if variant == "sloo":  # rho(G-1, k) of the others = G/(G-k) (rho(G, k) - s_i), and rho(G, k) = G/k mean(s)
            rho_N1 = sorted_NG.mean(axis=1, keepdims=True) * (size / k)
            sorted_NG = sorted_NG - (k / (size - 1)) * (size / (size - k)) * (rho_N1 - sorted_NG)
    out_NG = np.empty_like(sorted_NG)
    np.put_along_axis(out_NG, order_NG, sorted_NG, axis=1)
    return out_NG


def _replacing(groups: Groups, least: int, advantages_of: Callable[[], np.ndarray]) -> Shaping:
    """Shaping with ``advantages_of()`` in place of the base advantage; undefined in groups of fewer than ``least``."""
    if groups.group_size < least:
        return Shaping(defined=np.zeros(groups.n_groups, bool))
    return Shaping(credits=advantages_of(), weights=np.zeros(groups.rewards.shape))


def _check_k(k: int, largest: int | None = None, what: str = "") -> None:
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise ValueError(f"expected k to be an integer of at least 1, got {k!r}")
    if largest is not None and k > largest:
        raise ValueError(f"expected k to be at most {what or 'the group size'}, {largest}, got {k}: lower k or sample larger groups")


def _check_variant(variant: str) -> None:
    if variant not in ("s", "sloo", "sloo_minus_one"):
        raise ValueError(f"unknown variant {variant!r}: choose one of s, sloo, sloo_minus_one")
