"""Shapers that count how often an outcome occurs in its group: rare outcomes are paid more, common ones less.

The outcome of a completion is its mode, the verifier's key of its answer; all members without a mode share one outcome, so that
repeated non-answers are common and never rare. A member without a verdict (time-out, grader error) is in no count and is left
neutral: it keeps its reward and weight and gets credit 0, which is its advantage where credits replace it. (Poly-EPO, whose sets
need k members, counts it as wrong.) Symbols: G members, n of them with a verdict, n_i of these with the outcome of member i (i among
them), L valid outcomes, c correct members.

On a group of which every member is valid four of these are one method up to scale, after centring in the group:

    (G-2) SetPO (equality kernel, linear g) = MaD-RL (uniform target) = 2G/(G-1) batch exploration = 2G/(G-1) GAPO
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from setpo_verifiers import Status

from ..group import Groups
from .base import Shaping, register


def outcome_counts(modes_NG: np.ndarray, members_NG: np.ndarray | None = None) -> np.ndarray:
    """n_i: how many members of the group have i's mode, (N, G) int64; with ``members_NG`` among these alone, 0 outside."""
    modes_NG = np.asarray(modes_NG)
    members_NG = np.ones(modes_NG.shape, bool) if members_NG is None else np.asarray(members_NG, bool)
    same_NGG = (modes_NG[:, :, None] == modes_NG[:, None, :]) & members_NG[:, None, :]
    return same_NGG.sum(axis=2) * members_NG


def _valid_outcomes(groups: Groups) -> np.ndarray:
    """L (N,): the problem's ``n_modes`` where its metadata has it, else the distinct correct modes in the group, at least 1."""
    counts_NG = outcome_counts(groups.modes, groups.correct)
    found_N = np.rint((1.0 / np.maximum(counts_NG, 1) * groups.correct).sum(axis=1))
    known = [problem.metadata.get("n_modes") for problem in groups.problems]
    return np.array([max(1, found if count is None else count) for count, found in zip(known, found_N)], np.float64)


# --- rewards -------------------------------------------------------------------------------------------------------


@register("gapo")
@dataclass(frozen=True)
class GAPO:
    """GAPO (arXiv 2511.12596): r'_i = 1 - (f_i - 1/L) for a valid completion, -1 for another.

    f_i is the frequency of i's outcome among the valid members of its group, and 1/L that of the uniform distribution over the L
    valid outcomes; valid is CORRECT here. Stage: reward, under GRPO's advantage. The formula is known from secondary sources only,
    one of which writes an absolute value around the bracket; the paper's form for open lists is not here.

    L is the problem's ``n_modes`` where it knows it. Else it is the number of distinct valid outcomes in the group, which is this
    repository's choice. An all-wrong group has equal rewards, so no gradient; in an all-right one rarer outcomes are preferred.
    """

    base_advantage = "grpo"

    def __call__(self, groups: Groups, rng: np.random.Generator) -> Shaping:
        shaped_NG = gapo_rewards(groups.modes, groups.correct, _valid_outcomes(groups))
        return Shaping(shaped_rewards=np.where(groups.valid, shaped_NG, groups.rewards))


def gapo_rewards(modes_NG: np.ndarray, correct_NG: np.ndarray, n_outcomes_N: np.ndarray) -> np.ndarray:
    """1 - (f_i - 1/L) for the correct members of N groups, -1 for others, (N, G) float64; ``n_outcomes_N`` (N,) is L."""
    correct_NG = np.asarray(correct_NG, bool)
    frequencies_NG = outcome_counts(modes_NG, correct_NG) / np.maximum(correct_NG.sum(axis=1, keepdims=True), 1)
    return np.where(correct_NG, 1.0 - (frequencies_NG - 1.0 / np.asarray(n_outcomes_N)[:, None]), -1.0)


@register("ips")
@dataclass(frozen=True)
class IPS:
    """IPS-GRPO (arXiv 2601.21669): r'_i = r_i / max(p_i, floor), p_i = n_i / n the frequency of i's outcome in its group.

    Inverse propensity scores: what a mode of m correct members earns in total does not depend on m. Stage: reward, under GRPO's
    advantage. Known from secondary sources. An all-wrong group keeps zeros; in an all-right one rarer outcomes are preferred.

    Args:
        floor: The paper's epsilon, whose value was not found. p_i is at least 1/n, so 0 is safe; a larger floor bounds r'.
    """

    floor: float = 0.0
    base_advantage = "grpo"

    def __post_init__(self) -> None:
        if not 0 <= self.floor <= 1:
            raise ValueError(f"expected a floor between 0 and 1, as frequencies are, got {self.floor!r}")

    def __call__(self, groups: Groups, rng: np.random.Generator) -> Shaping:
        return Shaping(shaped_rewards=ips_rewards(groups.rewards, groups.modes, groups.valid, self.floor))


def ips_rewards(rewards_NG: np.ndarray, modes_NG: np.ndarray, members_NG: np.ndarray | None = None, floor: float = 0.0) -> np.ndarray:
    """r_i / max(p_i, floor) with p_i the frequency of i's mode among ``members_NG``, (N, G) float64; others keep their reward."""
    counts_NG = outcome_counts(modes_NG, members_NG)
    n_N1 = counts_NG.shape[1] if members_NG is None else np.asarray(members_NG).sum(axis=1, keepdims=True)
    frequencies_NG = np.maximum(counts_NG / np.maximum(n_N1, 1), floor)
    return np.asarray(rewards_NG, np.float64) / np.where(counts_NG > 0, frequencies_NG, 1.0)


# --- weights -------------------------------------------------------------------------------------------------------


@register("rarity_aware")
@dataclass(frozen=True)
class RarityAware:
    """Rarity-aware credit of Cue-GRPO (arXiv 2608.03467): the advantage of correct members times w_i, which favours rare modes.

    w_i = c n_i^-a / sum_j n_j^-a over the c correct members, whose mean weight is 1; wrong members keep weight 1. Stage: weight
    on GRPO's advantage, so all-wrong and all-right groups, whose advantage is 0, do not change. Known from secondary sources.
    The paper tells strategies by textual cues, here a strategy is a mode. a = .8 is a third party's; so is a clip of the
    weights to [.3, 3], which is left out.

    Args:
        power: a, at least 0; 0 gives equal weights.
        random_partition: The paper's control: the modes are dealt at random among the correct members, so the weights are the same
            numbers for other members.
    """

    power: float = 0.8
    random_partition: bool = False
    base_advantage = "grpo"

    def __post_init__(self) -> None:
        if not 0 <= self.power < np.inf:
            raise ValueError(f"expected a power of at least 0, got {self.power!r}")

    @property
    def draws(self) -> bool:
        return self.random_partition

    def __call__(self, groups: Groups, rng: np.random.Generator) -> Shaping:
        modes_NG = groups.modes
        if self.random_partition:
            modes_NG = modes_NG.copy()
            for modes_G, correct_G in zip(modes_NG, groups.correct):
                modes_G[correct_G] = rng.permutation(modes_G[correct_G])
        return Shaping(weights=rarity_weights(modes_NG, groups.correct, self.power))


def rarity_weights(modes_NG: np.ndarray, correct_NG: np.ndarray, power: float = 0.8) -> np.ndarray:
    """c n_i^-power / sum_j n_j^-power for the c correct members of each of N groups, 1 for others, (N, G) float64."""
    correct_NG = np.asarray(correct_NG, bool)
    counts_NG = outcome_counts(modes_NG, correct_NG)
    raised_NG = np.where(correct_NG, np.maximum(counts_NG, 1).astype(np.float64) ** -power, 0.0)
    total_N1 = raised_NG.sum(axis=1, keepdims=True)
    scale_N1 = correct_NG.sum(axis=1, keepdims=True) / np.where(total_N1 > 0, total_N1, 1.0)
    return np.where(correct_NG, raised_NG * scale_N1, 1.0)


@register("edas")
@dataclass(frozen=True)
class EDAS:
    """Error-diversity shaping (arXiv 2605.17333): among wrong members, rare wrong answers are punished less.

    With K distinct answers among the N_w wrong members, p_i the share of i's answer among them, I_i = -ln p_i, H the mean of I
    (the entropy) and S the mean of abs A over them, the advantage of a wrong member becomes A_i + sgn(d_i) min(abs d_i, abs(A_i)/kappa),

        d_i = 0 if N_w <= 1;    -beta S if K = 1;    alpha S (I_i - H) / ln N_w else.

    Stage: weight on GRPO's advantage (the paper also uses DAPO). Where all wrong members have the same advantage -S <= 0, as
    rewards of 0 and 1 give, the formula is exactly the factor w_i = 1 - sgn(u_i) min(abs u_i, 1/kappa) with u = d/S. A wrong
    member is one with a verdict that is not CORRECT. All-wrong groups have A = 0 and so do not change, nor do all-right ones.
    Known from the README of the authors' repository.

    Args:
        alpha: .4 in the paper; the released code's default is .2.
        beta: .2 in the paper; .3 with DAPO.
        kappa: The advantage changes by at most its size over kappa; above 1, so that it keeps its sign.
    """

    alpha: float = 0.4
    beta: float = 0.2
    kappa: float = 2.0
    base_advantage = "grpo"

    def __post_init__(self) -> None:
        if not (self.alpha >= 0 and self.beta >= 0 and self.kappa > 1):
            raise ValueError(f"expected alpha >= 0, beta >= 0 and kappa > 1, got {self.alpha!r}, {self.beta!r} and {self.kappa!r}")

    def __call__(self, groups: Groups, rng: np.random.Generator) -> Shaping:
        wrong_NG = groups.valid & (groups.status != Status.CORRECT)
        return Shaping(weights=edas_weights(groups.modes, wrong_NG, self.alpha, self.beta, self.kappa))


def edas_weights(modes_NG: np.ndarray, wrong_NG: np.ndarray, alpha: float = 0.4, beta: float = 0.2, kappa: float = 2.0) -> np.ndarray:
    """EDAS as a factor on the common advantage of the wrong members of N groups, 1 for others, (N, G) float64; see :class:`EDAS`."""
    wrong_NG = np.asarray(wrong_NG, bool)
    counts_NG, n_N1 = outcome_counts(modes_NG, wrong_NG), wrong_NG.sum(axis=1, keepdims=True)
    surprise_NG = np.log(np.maximum(n_N1, 1) / np.maximum(counts_NG, 1)) * wrong_NG
    above_NG = surprise_NG - surprise_NG.sum(axis=1, keepdims=True) / np.maximum(n_N1, 1)
    several_N1 = (counts_NG * wrong_NG).max(axis=1, keepdims=True) < n_N1  # K > 1
    u_NG = np.where(several_N1, alpha * above_NG / np.log(np.maximum(n_N1, 2)), -beta)
    return np.where(wrong_NG & (n_N1 > 1), 1.0 - np.clip(u_NG, -1.0 / kappa, 1.0 / kappa), 1.0)


@register("seed_grpo")
@dataclass(frozen=True)
class SEEDGRPO:
    """SEED-GRPO (arXiv 2505.12346): every advantage of a group times w = 1 / (1 + a H / ln n), less where answers disagree.

    H is the semantic entropy of the group, -sum p ln p over its outcomes, p the share of each among the n members with a verdict;
    ln n is its largest value. It scales prompts and tells no completion from another. Stage: weight on GRPO's advantage, so
    all-wrong and all-right groups do not change.

    Known from secondary sources: that the factor is a decreasing function f(a H / H_max), of which the paper tries a linear, an
    exponential and a focal one, and (one source) the form here with a = .04. Not confirmed: f and a of the paper's results, and
    whether its advantage is divided by the standard deviation. The paper clusters completions by meaning; here a cluster is a mode.
    With a = .04 no advantage changes by more than 4 %.

    Args:
        strength: a, at least 0; 0 gives weights of one.
    """

    strength: float = 0.04
    base_advantage = "grpo"

    def __post_init__(self) -> None:
        if not 0 <= self.strength < np.inf:
            raise ValueError(f"expected a strength of at least 0, got {self.strength!r}")

    def __call__(self, groups: Groups, rng: np.random.Generator) -> Shaping:
        return Shaping(weights=seed_weights(groups.modes, groups.valid, self.strength))


def seed_weights(modes_NG: np.ndarray, members_NG: np.ndarray | None = None, strength: float = 0.04) -> np.ndarray:
    """1 / (1 + strength H / ln n) for the members of N groups, 1 for others, (N, G) float64; see :class:`SEEDGRPO`."""
    modes_NG = np.asarray(modes_NG)
    members_NG = np.ones(modes_NG.shape, bool) if members_NG is None else np.asarray(members_NG, bool)
    counts_NG, n_N1 = outcome_counts(modes_NG, members_NG), members_NG.sum(axis=1, keepdims=True)
    surprise_NG = np.log(np.maximum(n_N1, 1) / np.maximum(counts_NG, 1)) * members_NG
    entropy_N1 = surprise_NG.sum(axis=1, keepdims=True) / np.maximum(n_N1, 1)  # a mean over members is a sum p ... over outcomes
    return np.where(members_NG, 1.0 / (1.0 + strength * entropy_N1 / np.log(np.maximum(n_N1, 2))), 1.0)


# --- credits -------------------------------------------------------------------------------------------------------


@register("madrl")
@dataclass(frozen=True)
class MaDRL:
    """MaD-RL (arXiv 2609.31644): A_i = a_i - mean(a), a_i = 2 (q(x_i) - p_-i(x_i)), towards the uniform distribution over solutions.

    q is the target distribution over outcomes, p_-i(x_i) = (n_i - 1)/(n - 1) the frequency of i's outcome x_i among the other
    members. The target here is 1/L for each valid outcome, 0 for wrong answers. Stage: credit, in place of the base advantage
    (weights are 0), to be used with coefficient 1.

    L is the problem's ``n_modes`` where it knows it, else the number of distinct correct outcomes in the group (this repository's
    choice). A group of one outcome gets zeros; another all-wrong group is pushed away from its repeated answers, and an all-right
    one towards its rare ones.
    """

    min_group_size = 2
    base_advantage = None  # replaced
    credit_coefficient = 1.0

    def __call__(self, groups: Groups, rng: np.random.Generator) -> Shaping:
        target_NG = groups.correct / _valid_outcomes(groups)[:, None]
        defined_N = groups.valid.sum(axis=1) >= self.min_group_size
        return Shaping(madrl_advantages(groups.modes, target_NG, groups.valid), weights=np.zeros(target_NG.shape), defined=defined_N)


def madrl_advantages(modes_NG: np.ndarray, target_NG: np.ndarray, members_NG: np.ndarray | None = None) -> np.ndarray:
    """2 (q_i - p_-i), less its mean over the members, of N groups, (N, G) float64; ``target_NG`` (N, G) is q_i. 0 outside."""
    modes_NG = np.asarray(modes_NG)
    members_NG = np.ones(modes_NG.shape, bool) if members_NG is None else np.asarray(members_NG, bool)
    n_N1 = members_NG.sum(axis=1, keepdims=True)
    others_NG = (outcome_counts(modes_NG, members_NG) - members_NG) / np.maximum(n_N1 - 1, 1)
    raw_NG = np.where(members_NG, 2.0 * (np.asarray(target_NG, np.float64) - others_NG), 0.0)
    return np.where(members_NG, raw_NG - raw_NG.sum(axis=1, keepdims=True) / np.maximum(n_N1, 1), 0.0)


@register("poly_epo")
@dataclass(frozen=True)
class PolyEPO:
    """Poly-EPO (arXiv 2604.17654): the value of the sets that a member is in, less that of all sets.

    f(S) = mean reward of S times d(S)/k over all subsets S of k members, d(S) the number of distinct strategies in S, degenerate
    completions not counted; A_i = mean of f over the S that contain i, less the mean of f over all S. Stage: credit, in place of the
    base advantage (weights are 0), to be used with coefficient 1.

    Known from a third party's account of the paper's appendix A.1. There a language model names the strategies; here a strategy is a
    mode, of a right or a wrong answer, and a completion without a mode (or a verdict) is degenerate. An all-wrong group gets zeros;
    an all-right one is trained towards rare modes.

    Args:
        k: Size of the sets; the paper takes 4 of groups of 8. k = 1 is r - mean(r).
    """

    k: int = 4
    base_advantage = None  # replaced
    credit_coefficient = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.k, int) or isinstance(self.k, bool) or self.k < 1:
            raise ValueError(f"expected k to be an integer of at least 1, got {self.k!r}")

    @property
    def min_group_size(self) -> int:
        return self.k

    def __call__(self, groups: Groups, rng: np.random.Generator) -> Shaping:
        if groups.group_size < self.k:
            return Shaping(defined=np.zeros(groups.n_groups, bool))
        advantages_NG = poly_epo_advantages(groups.rewards, groups.modes, self.k)
        return Shaping(credits=advantages_NG, weights=np.zeros(advantages_NG.shape))


def poly_epo_advantages(rewards_NG: np.ndarray, modes_NG: np.ndarray, k: int = 4) -> np.ndarray:
    """Poly-EPO's advantages of N groups, (N, G) float64, in O(G^2) instead of a sum over C(G, k) subsets; see :class:`PolyEPO`.

    ``modes_NG`` (N, G) int, -1 for no mode. k^2 f(S) is the sum of r_j over pairs of a member j and a mode m that are both in S.
    Among the subsets that contain i and j, or i alone where j = i, those without a mode of n_m members that neither has are subsets
    of G - 2 - n_m others, or G - 1 - n_m.

    Raises:
        ValueError: k is not between 1 and G.
    """
    rewards_NG, modes_NG = np.asarray(rewards_NG, np.float64), np.asarray(modes_NG)
    size = rewards_NG.shape[1]
    if not 1 <= k <= size:
        raise ValueError(f"expected k between 1 and the group size, {size}, got {k}")
    has_mode_NG = modes_NG >= 0
    counts_NG = np.maximum(outcome_counts(modes_NG, has_mode_NG), 1)
    share_NG = has_mode_NG / counts_NG  # of its mode: sums over modes are sums of these
    alone_NG, pair_NG = (_missing_share(size, k, held)[counts_NG] * has_mode_NG for held in (1, 2))
    n_modes_N1 = share_NG.sum(axis=1, keepdims=True)
    own_NG = n_modes_N1 - (alone_NG * share_NG).sum(axis=1, keepdims=True) + alone_NG  # E[d(S) | i in S]
    # E[d(S) 1(j in S) | i in S] for two members of different modes is strangers + pair_i + pair_j; of one mode, pair_i counts once
    strangers_N1 = n_modes_N1 * ((k - 1) / max(size - 1, 1)) - (pair_NG * share_NG).sum(axis=1, keepdims=True)
    same_NGG = modes_NG[:, :, None] == modes_NG[:, None, :]
    of_mode_NG = (same_NGG * rewards_NG[:, None, :]).sum(axis=2)
    total_N1, weighted_N1 = (x.sum(axis=1, keepdims=True) for x in (rewards_NG, rewards_NG * pair_NG))
    of_others_NG = (total_N1 - rewards_NG) * (strangers_N1 + pair_NG) + weighted_N1 - of_mode_NG * pair_NG
    values_NG = (rewards_NG * own_NG + of_others_NG) / k**2
    return values_NG - values_NG.mean(axis=1, keepdims=True)


def _missing_share(size: int, k: int, held: int) -> np.ndarray:
    """By n_m (size + 1,): of the subsets of k that hold i, the share that holds ``held`` given members, i among them, and no m."""
    every = comb(size - 1, k - 1)
    return np.array([comb(max(size - held - n, 0), k - held) / every if held <= k and n <= size - held else 0.0 for n in range(size + 1)])
