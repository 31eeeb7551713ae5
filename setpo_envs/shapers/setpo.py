"""SetPO: the leave-one-out contribution of each completion to the diversity of its group (arXiv 2602.01062).

For a set S of n completions with a symmetric similarity k in [0, 1], k(y, y) = 1:

    m(y; S) = 1/(n-1) * sum_{z in S, z != y} k(y, z)        local mass, self excluded                      (eq. 3)
    D(S)    = 1/n * sum_{y in S} g(m(y; S))                 set diversity; g(x) = -log(1 + x) or 1 - x     (eq. 3)
    s_i     = D(S) - D(S without i)                         credit; masses recomputed in the smaller set   (eq. 4)

Facts worth knowing before using it (symbols as above):

- s_i shrinks like 1/n, so a weight lambda tuned at one group size means something else at another (``scale`` helps).
- g convex (softlog): sum_i s_i <= 0, a slight push down on the whole group. g linear: sum_i s_i = 0 exactly.
- Dominance (theorem 4.5): if k(r, j) <= k(c, j) for all other j, one of them strictly, then s_r > s_c. The shorter
  "smaller mass, larger credit" is false in general: what r touches may be sparse, where g is steep, and what c touches dense.
  Five completions r, c, a, p, q with k(r, a) = .6, k(c, p) = k(c, q) = .31, k(p, q) = 1 and 0 elsewhere: the masses are
  m_r = .150 < m_c = .155, and the credits s_r = .030 < s_c = .037.
- With the equality kernel the members of a smaller cluster always have the strictly larger credit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..embedders import EmbedderSpec, embed, ngrams_of, resolve_embedder
from ..group import Groups
from .base import Shaper, Shaping, register

_TILE = 1 << 16  # matrix entries in work at a time: stays in cache, and bounds the float64 copy of the kernel
_MIN_SPREAD = 1e-6  # of n * s: a float32 kernel's rounding (6e-8 an entry) cannot move s by more than this / n


# --- the credit ----------------------------------------------------------------------------------------------------


def setpo_credits(
    kernel_NGG: np.ndarray, members_NG: np.ndarray | None = None, g: str = "softlog"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """SetPO credits of N groups of G, exactly equations 3 and 4, in O(N G^2) time and memory.

    Args:
        kernel_NGG: (N, G, G) similarities in [0, 1], symmetric, float32 or float64. The diagonal is not read.
        members_NG: (N, G) bool, the set inside each group (default: all). What is outside enters no sum and gets credit 0.
        g: "softlog" for -log(1 + x), "linear" for 1 - x.

    Returns:
        credits (N, G) float64; diversity (N,) float64, D of the set, 0.0 for a set of fewer than two; defined (N,) bool,
        False where the set has fewer than three members (its credits are zero). Never NaN.

    The credits are of order 1/G and their differences smaller still, while D is of order 1, so a difference of two D would
    lose digits as G grows. Theorem 4.3 splits it into terms that are small themselves, with m_j' = m(j; S without i):

        s_i = g(m_i)/n + (1/n - 1/(n-1)) sum_{j != i} g(m_j) + 1/(n-1) sum_{j != i} [g(m_j) - g(m_j')]

    where the first two terms are together (g(m_i) - D(S))/(n-1), and m_j' = m_j + (m_j - k_ji)/(n-2) (lemma D.1). For softlog
    the last sum is the log of prod_j (1 + m_j')/(1 + m_j): one logarithm a completion instead of G. Each factor is within
    1/(n-2) of 1, so the product stays in [e^-2, e^2] at any G.
    """
    kernel_NGG, n_N1 = _checked_set(kernel_NGG, members_NG)
    m_NG = _masses(kernel_NGG, n_N1)
    g_NG = _g(m_NG, g)
    diversity_N1 = _mean_over_set(g_NG, members_NG, n_N1)
    if g == "softlog":
        external_NG = np.log(_product_of_ratios(kernel_NGG, m_NG, _at_least(1, n_N1 - 2)))
    else:
        sums_NG = m_NG.sum(axis=1, keepdims=True) - m_NG
        external_NG = (sums_NG - _sum_without_self(kernel_NGG, axis=1)) / _at_least(1, n_N1 - 2)
    credits_NG = (g_NG - diversity_N1 + external_NG) / _at_least(1, n_N1 - 1)
    defined_N1 = np.broadcast_to(np.asarray(n_N1) >= 3, diversity_N1.shape)
    if members_NG is not None:
        credits_NG = np.where(members_NG & defined_N1, credits_NG, 0.0)
    elif not defined_N1.all():
        credits_NG = np.zeros(m_NG.shape)
    return credits_NG, diversity_N1[:, 0], defined_N1[:, 0].copy()


def set_diversity(kernel_NGG: np.ndarray, members_NG: np.ndarray | None = None, g: str = "softlog") -> np.ndarray:
    """Set diversity D (eq. 3) of N groups, (N,) float64; arguments as in :func:`setpo_credits`."""
    kernel_NGG, n_N1 = _checked_set(kernel_NGG, members_NG)
    return _mean_over_set(_g(_masses(kernel_NGG, n_N1), g), members_NG, n_N1)[:, 0]


def _checked_set(kernel_NGG: np.ndarray, members_NG: np.ndarray | None) -> tuple[np.ndarray, int | np.ndarray]:
    """The kernel with zeros for every pair that is not in the set, and the set's size n: (N, 1), or one number for whole groups.

    On one group of usual size a call of numpy takes longer than what it computes; whole groups need fewer of them.
    """
    kernel_NGG = np.asarray(kernel_NGG)
    if kernel_NGG.ndim != 3 or kernel_NGG.shape[1] != kernel_NGG.shape[2]:
        raise ValueError(f"expected a kernel of shape (N, G, G), got {kernel_NGG.shape}")
    shape = kernel_NGG.shape[:2]
    if members_NG is None:
        return kernel_NGG, shape[1]
    members_NG = np.asarray(members_NG, bool)
    if members_NG.shape != shape:
        raise ValueError(f"expected members of shape {shape}, as the kernel of shape {kernel_NGG.shape} has, got {members_NG.shape}")
    if not members_NG.all():
        kernel_NGG = np.where(members_NG[:, :, None] & members_NG[:, None, :], kernel_NGG, 0)
    return kernel_NGG, members_NG.sum(axis=1, keepdims=True)


def _at_least(least: int, n: int | np.ndarray) -> Any:
    return max(least, n) if isinstance(n, int) else np.maximum(least, n)


def _g(x: np.ndarray, g: str) -> np.ndarray:
    if g == "softlog":
        return 0.0 - np.log1p(x)  # 0.0 at 0, where a minus sign would write -0.0
    if g == "linear":
        return 1.0 - x
    raise ValueError(f"unknown g {g!r}: choose one of softlog, linear")


def _diagonal(matrix_NGG: np.ndarray) -> np.ndarray:
    """(N, G) view of the diagonals, to read and to write."""
    return np.einsum("nii->ni", matrix_NGG)


def _sum_without_self(kernel_NGG: np.ndarray, axis: int) -> np.ndarray:
    return kernel_NGG.sum(axis=axis, dtype=np.float64) - _diagonal(kernel_NGG)


def _masses(kernel_NGG: np.ndarray, n_N1: int | np.ndarray) -> np.ndarray:
    return _sum_without_self(kernel_NGG, axis=2) / _at_least(1, n_N1 - 1)


def _mean_over_set(g_NG: np.ndarray, members_NG: np.ndarray | None, n_N1: int | np.ndarray) -> np.ndarray:
    """(N, 1) mean of g over the set; 0.0 for a set of fewer than two."""
    if members_NG is not None:
        g_NG = g_NG * np.asarray(members_NG, bool)
    mean_N1 = g_NG.sum(axis=1, keepdims=True) / _at_least(1, n_N1)
    return mean_N1 if isinstance(n_N1, int) and n_N1 >= 2 else np.where(np.asarray(n_N1) >= 2, mean_N1, 0.0)


def _product_of_ratios(kernel_NGG: np.ndarray, m_NG: np.ndarray, fewer_N1: int | np.ndarray) -> np.ndarray:
    """prod_{j != i} (1 + m_j')/(1 + m_j), (N, G) over i, as prod_j (a_j - b_j k_ji); rows outside the set give factors of 1."""
    groups, size = m_NG.shape
    b_NG = 1.0 / (fewer_N1 * (1.0 + m_NG))
    a_NG = 1.0 + m_NG * b_NG
    product_NG = np.ones((groups, size))
    rows = max(1, _TILE // max(1, groups * size))
    for start in range(0, size, rows):
        j = slice(start, start + rows)
        factors = kernel_NGG[:, j, :] * -b_NG[:, j, None]  # float64: b is
        factors += a_NG[:, j, None]
        _diagonal(factors[:, :, j])[...] = 1.0  # j = i
        product_NG *= factors.prod(axis=1)
    return product_NG


# --- kernels -------------------------------------------------------------------------------------------------------


def cosine_kernel(embeddings_NGd: np.ndarray) -> np.ndarray:
    """clamp(cos(e_i, e_j), 0, 1) of unit rows, (N, G, G) in the rows' dtype, with ones on the diagonal."""
    kernel_NGG = embeddings_NGd @ embeddings_NGd.swapaxes(1, 2)
    kernel_NGG.clip(0.0, 1.0, out=kernel_NGG)
    _diagonal(kernel_NGG)[...] = 1.0
    return kernel_NGG


def rbf_kernel(embeddings_NGd: np.ndarray, gamma: float) -> np.ndarray:
    """exp(-gamma |e_i - e_j|^2) of unit rows, (N, G, G); on the unit sphere the squared distance is 2 - 2 cos."""
    kernel_NGG = embeddings_NGd @ embeddings_NGd.swapaxes(1, 2)
    np.clip(kernel_NGG, -1.0, 1.0, out=kernel_NGG)
    kernel_NGG = np.exp((2.0 * gamma) * (kernel_NGG - 1.0))
    _diagonal(kernel_NGG)[...] = 1.0
    return kernel_NGG


def equality_kernel(modes_NG: np.ndarray) -> np.ndarray:
    """1 for two members of the same mode, else 0, (N, G, G) float32; all members without a mode (-1) count as one."""
    return (modes_NG[:, :, None] == modes_NG[:, None, :]).astype(np.float32)


# --- the shaper ----------------------------------------------------------------------------------------------------

_CHOICES: dict[str, tuple[Any, ...]] = {
    "kernel": ("cosine_clamp", "equality_key", "rbf"),
    "g": ("softlog", "linear"),
    "members": ("all", "well_formed", "correct"),
    "apply_to": ("all", "correct", "mixed_groups"),
    "scale": ("raw", "g_minus_2", "zscore"),
    "center": (False, True),
    "malformed": ("zero", "min_minus_one"),
}


@register("setpo")
@dataclass(frozen=True)
class SetPO:
    """SetPO credit s_i = D(S) - D(S without i) of every completion; see this module's docstring for the formula.

    The defaults are the paper's: the set S is the whole group, k the clamped cosine, g = -log(1 + x), and the credit is used
    as it is for every completion, right or wrong. (The paper embeds with a language model; the default here needs no weights.)
    The agent adds lambda times the credit to its advantage after normalising that. Since rewards play no part, groups that are
    all wrong or all right get credits like any other, and there they are the only gradient. The sizes to expect: at n = 8 a
    lone outlier among seven identical completions has s = +0.152, each of the seven -0.022; at n = 16, +0.075 and -0.005.

    What worked on Countdown with a small policy is ``members="well_formed", scale="zscore", malformed="min_minus_one"`` with
    lambda 0.1, and the equality kernel on modes a little better than the cosine of expressions: malformed output is rare and
    unlike the rest, hence "diverse", so over the whole group the policy is paid for breaking the format; and raw credit is too
    small beside advantages of order one to change much.

    Args:
        embedder: Name of an embedder, alone or with options, or a callable; see :mod:`setpo_envs.embedders`.
        kernel: "cosine_clamp" clamp(cos, 0, 1); "rbf" exp(-gamma |e_i - e_j|^2) of unit vectors; "equality_key" 1 for equal
            mode keys, else 0 (uses no embedder; all members without a mode count as one mode, so they are redundant).
        gamma: Of the rbf kernel, above 0.
        g: "softlog" or "linear".
        members: The set S: "all", "well_formed" (members with a mode) or "correct".
        apply_to: Who receives what was computed, others get 0: "all", "correct" members, or members of "mixed_groups" (those
            with a correct member and one that is not).
        scale: "raw"; "g_minus_2", times n - 2, about free of n; "zscore", over the set, with the population's standard
            deviation. A spread that rounding of a float32 kernel can explain (below 1e-6 / n) counts as none: zeros.
        center: Subtract the mean over the set before scaling.
        malformed: Members outside the set get "zero", or with "min_minus_one" the least credit of the set after scaling and
            at most -1. Those without a verdict (time-out, grader error) get 0 in any case: they may be well formed.

    In a group whose set has fewer than three members all credits are zero and ``defined`` is False.

    Raises:
        ValueError: Unknown value of an option, or a gamma that is not above 0.
    """

    embedder: EmbedderSpec = "ngram"
    kernel: str = "cosine_clamp"
    gamma: float = 1.0
    g: str = "softlog"
    members: str = "all"
    apply_to: str = "all"
    scale: str = "raw"
    center: bool = False
    malformed: str = "zero"
    min_group_size = 3

    def __post_init__(self) -> None:
        for option, choices in _CHOICES.items():
            if getattr(self, option) not in choices:
                raise ValueError(f"unknown {option} {getattr(self, option)!r}: choose one of {', '.join(map(str, choices))}")
        if not (isinstance(self.gamma, (int, float)) and self.gamma > 0):
            raise ValueError(f"expected gamma above 0, got {self.gamma!r}")
        resolve_embedder(self.embedder)

    def similarity(self, groups: Groups) -> np.ndarray:
        """Kernel matrices of the groups, (N, G, G) float32 in [0, 1] with ones on the diagonal."""
        if self.kernel == "equality_key":
            return equality_kernel(groups.modes)
        return self._kernel(embed(groups, self.embedder))

    def _kernel(self, embeddings_NGd: np.ndarray) -> np.ndarray:
        return rbf_kernel(embeddings_NGd, self.gamma) if self.kernel == "rbf" else cosine_kernel(embeddings_NGd)

    def before_verdicts(self, completions_NG: Sequence[Sequence[str]]) -> Shaper:
        """The same shaper with the kernel of these texts computed already, where texts are all that it needs."""
        if self.embedder != "ngram" or self.kernel == "equality_key":
            return self
        return partial(self, kernel_NGG=self._kernel(ngrams_of(completions_NG)))

    def __call__(self, groups: Groups, rng: np.random.Generator, *, kernel_NGG: np.ndarray | None = None) -> Shaping:
        members_NG = {"all": np.ones_like(groups.valid), "well_formed": groups.well_formed, "correct": groups.correct}[self.members]
        credits_NG, diversity_N, defined_N = setpo_credits(
            self.similarity(groups) if kernel_NGG is None else kernel_NGG, members_NG, self.g
        )
        credits_NG = self._scaled(credits_NG, members_NG)
        if self.malformed == "min_minus_one":
            least_N1 = np.where(members_NG, credits_NG, -1.0).min(axis=1, keepdims=True)
            outside_NG = ~members_NG & groups.valid & defined_N[:, None]
            credits_NG = np.where(outside_NG, least_N1, credits_NG)
        if self.apply_to == "correct":
            credits_NG = np.where(groups.correct, credits_NG, 0.0)
        elif self.apply_to == "mixed_groups":
            correct_N1 = groups.correct.sum(axis=1, keepdims=True)
            credits_NG = np.where((correct_N1 > 0) & (correct_N1 < groups.group_size), credits_NG, 0.0)
        return Shaping(credits=credits_NG, defined=defined_N, diversity=diversity_N)

    def _scaled(self, credits_NG: np.ndarray, members_NG: np.ndarray) -> np.ndarray:
        """``credits_NG`` centred and scaled over the set; zeros outside it stay zeros."""
        n_N1 = np.maximum(members_NG.sum(axis=1, keepdims=True), 1)
        if self.center or self.scale == "zscore":
            credits_NG = np.where(members_NG, credits_NG - credits_NG.sum(axis=1, keepdims=True) / n_N1, 0.0)
        if self.scale == "g_minus_2":
            credits_NG = credits_NG * (n_N1 - 2)
        elif self.scale == "zscore":
            spread_N1 = np.sqrt((credits_NG**2).sum(axis=1, keepdims=True) / n_N1)
            spread_N1 = np.where(spread_N1 * n_N1 > _MIN_SPREAD, spread_N1, np.inf)  # x / inf = 0
            credits_NG = credits_NG / spread_N1
        return credits_NG
