"""Credits and rewards from the similarity matrix K of a group: DRA-GRPO, log-determinant and Vendi leave-one-out.

All three look at K as a whole: its row sums (DRA-GRPO), its determinant (log-det), its eigenvalues (Vendi). Each core is a
plain function on (N, G, G) kernels; each shaper makes the kernel of its groups and calls it. Kernels:

- "cosine": k = cos(e_i, e_j), a Gram matrix, hence positive semi-definite; may be negative.
- "rbf": k = exp(-gamma |e_i - e_j|^2) of unit vectors, positive definite.
- "equality_key": 1 for equal mode keys, else 0; uses no embedder, and all members without a mode count as one mode.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..embedders import EmbedderSpec, embed, resolve_embedder
from ..group import Groups
from ..metrics import vendi
from .base import Shaping, register
from .setpo import equality_kernel, rbf_kernel

KERNELS = ("cosine", "rbf", "equality_key")


# --- the formulas --------------------------------------------------------------------------------------------------


def dra_rewards(rewards_NG: np.ndarray, kernel_NGG: np.ndarray, epsilon: float = 1e-6) -> np.ndarray:
    """r'_i = r_i / (sum_j k_ij + epsilon), the sum over the whole group and i itself; (N, G) float64."""
    return np.asarray(rewards_NG, np.float64) / (np.sum(kernel_NGG, axis=2, dtype=np.float64) + epsilon)


def logdet_credits(kernel_NGG: np.ndarray, regularizer: float = 1e-3) -> tuple[np.ndarray, np.ndarray]:
    """Leave-one-out values of log det(K + r I), in O(N G^3) instead of a determinant a member.

    Args:
        kernel_NGG: (N, G, G), symmetric positive semi-definite. Equal rows, a singular kernel, are fine.
        regularizer: r > 0, what keeps the determinant of a singular kernel above zero.

    Returns:
        credits (N, G) float64, log det(K + r I) - log det of the same without row and column i, which is
        -log [(K + r I)^-1]_ii and lies between log r (a copy of others) and log(k_ii + r) (orthogonal to all);
        value (N,) float64, log det(K + r I).
    """
    matrix_NGG = np.array(kernel_NGG, np.float64)
    own = np.arange(matrix_NGG.shape[1])
    matrix_NGG[:, own, own] += regularizer
    residual_NG = np.diagonal(np.linalg.inv(matrix_NGG), axis1=1, axis2=2)
    largest_NG = np.diagonal(matrix_NGG, axis1=1, axis2=2)
    # in exact arithmetic the bounds hold by themselves
    return -np.log(np.clip(residual_NG, 1.0 / largest_NG, 1.0 / regularizer)), np.linalg.slogdet(matrix_NGG)[1]


def vendi_credits(kernel_NGG: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Leave-one-out values VS(S) - VS(S without i) of the Vendi score; at least two members, kernels with ones on the diagonal.

    Returns credits (N, G) float64 and VS of the whole groups (N,) float64. Every smaller set takes its own eigenvalues, so the
    time is O(N G^4): meant for groups of tens, not thousands.
    """
    kernel_NGG = np.asarray(kernel_NGG, np.float64)
    whole_N = np.asarray(vendi(kernel_NGG))
    credits_NG = np.empty(kernel_NGG.shape[:2])
    for i in range(kernel_NGG.shape[1]):
        credits_NG[:, i] = whole_N - vendi(np.delete(np.delete(kernel_NGG, i, axis=1), i, axis=2))
    return credits_NG, whole_N


# --- the shapers ---------------------------------------------------------------------------------------------------


def _check_options(shaper: Any) -> None:
    if shaper.kernel not in KERNELS:
        raise ValueError(f"unknown kernel {shaper.kernel!r}: choose one of {', '.join(KERNELS)}")
    if not (isinstance(shaper.gamma, (int, float)) and 0 < shaper.gamma < np.inf):
        raise ValueError(f"expected a finite gamma above 0, got {shaper.gamma!r}")
    resolve_embedder(shaper.embedder)


def _kernel(shaper: Any, groups: Groups) -> np.ndarray:
    if shaper.kernel == "equality_key":
        return equality_kernel(groups.modes).astype(np.float64)
    embeddings_NGd = embed(groups, shaper.embedder).astype(np.float64)  # so that a Gram matrix has no eigenvalue below -1e-13
    if shaper.kernel == "rbf":
        return rbf_kernel(embeddings_NGd, shaper.gamma)
    return embeddings_NGd @ embeddings_NGd.swapaxes(1, 2)


@register("dra_grpo")
@dataclass(frozen=True)
class DRAGRPO:
    """DRA-GRPO's diversity-aware reward (arXiv 2505.09655; formula as in the authors' released code).

        r'_i = r_i / (sum_{j=1..G} k_ij + 1e-6)

    r_i is the verified reward, k_ij the cosine of the embeddings of completions i and j, G the group's size; the sum holds
    k_ii = 1, so a completion unlike all others keeps its reward and one of G copies gets a G-th of it.

    Stage: reward; then GRPO (``base_advantage``) or Dr.GRPO. All wrong: all r' = 0, no signal. All right: r' differ by
    similarity alone, and after division by their standard deviation the signal is as large as in a mixed group. When the few
    rare members have most of the reward, common correct ones can get an advantage of zero or below.

    The cosine is not clamped, as in the released code: a sum below zero turns the sign of the reward, one near zero makes it huge.
    With embeddings of one prompt's completions that is rare; "rbf" and "equality_key" rule it out, since every sum is at
    least 1. The released code sums over all completions of a device's batch; here the sum stays inside the group. The paper
    embeds with jina-embeddings-v2-small-en; the default here needs no weights. Its derivation (a submodular mutual
    information) was not read for this implementation.

    Args:
        embedder: See :mod:`setpo_envs.embedders`.
        kernel: "cosine", "rbf" or "equality_key".
        gamma: Of the rbf kernel, above 0.
    """

    embedder: EmbedderSpec = "ngram"
    kernel: str = "cosine"
    gamma: float = 1.0
    base_advantage = "grpo"

    def __post_init__(self) -> None:
        _check_options(self)

    def __call__(self, groups: Groups, rng: np.random.Generator) -> Shaping:
        return Shaping(shaped_rewards=dra_rewards(groups.rewards, _kernel(self, groups)))


@register("logdet")
@dataclass(frozen=True)
class LogDet:
    """Leave-one-out contribution to the log-determinant of the similarity matrix, the diversity of a determinantal point process.

        c_i = log det(K + r I) - log det(K_{-i} + r I) = -log [(K + r I)^-1]_ii

    K is the G x G kernel of the group, K_{-i} the same without completion i, r the regularizer. c_i is the log of how much of
    completion i the others do not span: log r for a copy, log(1 + r) for one orthogonal to all.

    Stage: advantage, as a credit. DQO (arXiv 2509.04784) adds a log-determinant to the reward; only its abstract was read, its
    coefficient was not found, and r = 1e-3 is a default of this package. A reward's group mean falls out of the advantage,
    so the credits are centred in the group (``center``). Rewards play no part: all-wrong and all-right groups get credits
    like any other, and so does malformed output. ``diversity`` is log det(K + r I).

    Args:
        embedder: See :mod:`setpo_envs.embedders`.
        kernel: "cosine", "rbf" or "equality_key".
        gamma: Of the rbf kernel, above 0.
        regularizer: r, at least 1e-9.
        center: Subtract the group's mean.
    """

    embedder: EmbedderSpec = "ngram"
    kernel: str = "cosine"
    gamma: float = 1.0
    regularizer: float = 1e-3
    center: bool = True
    min_group_size = 2
    base_advantage = "grpo"

    def __post_init__(self) -> None:
        _check_options(self)
        if not (isinstance(self.regularizer, (int, float)) and self.regularizer >= 1e-9):
            raise ValueError(f"expected a regularizer of at least 1e-9, got {self.regularizer!r}")

    def __call__(self, groups: Groups, rng: np.random.Generator) -> Shaping:
        if groups.group_size < 2:
            return _undefined(groups)
        return _credits(*logdet_credits(_kernel(self, groups), self.regularizer), self.center)


@register("vendi")
@dataclass(frozen=True)
class Vendi:
    """Leave-one-out contribution to the Vendi score, the effective number of distinct completions (score: arXiv 2210.02410).

        c_i = VS(S) - VS(S without i),   VS(S) = exp(-sum_m l_m log l_m)

    l_m are the eigenvalues of K/n for the n x n kernel K of the set, 0 log 0 = 0. No paper was found that uses exactly this
    credit; it is the natural counterpart of SetPO's with another diversity in place of D.

    Stage: advantage, as a credit, raw: at n = 8 a lone outlier among seven copies gets +0.458, each copy -0.049. Rewards play
    no part: all-wrong and all-right groups get credits like any other. ``diversity`` is VS(S). Time O(G^4).

    Args:
        embedder: See :mod:`setpo_envs.embedders`.
        kernel: "cosine", "rbf" or "equality_key".
        gamma: Of the rbf kernel, above 0.
        center: Subtract the group's mean.
    """

    embedder: EmbedderSpec = "ngram"
    kernel: str = "cosine"
    gamma: float = 1.0
    center: bool = False
    min_group_size = 2
    base_advantage = "grpo"

    def __post_init__(self) -> None:
        _check_options(self)

    def __call__(self, groups: Groups, rng: np.random.Generator) -> Shaping:
        if groups.group_size < 2:
            return _undefined(groups)
        return _credits(*vendi_credits(_kernel(self, groups)), self.center)


def _credits(credits_NG: np.ndarray, value_N: np.ndarray, center: bool) -> Shaping:
    if center:
        credits_NG = credits_NG - credits_NG.mean(axis=1, keepdims=True)
    return Shaping(credits=credits_NG, diversity=value_N)


def _undefined(groups: Groups) -> Shaping:
    return Shaping(credits=np.zeros(groups.rewards.shape), defined=np.zeros(groups.n_groups, bool))
