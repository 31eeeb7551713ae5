"""Methods of credit side by side on the same groups: rank agreement, where their signal goes, and paired intervals. Pure functions.

A group is described by A (M, G), the signal of M methods on its G members, and by who the members are. Shapes: M methods, N groups,
G members of one group (each group has its own G), Q quantities.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

QUANTITIES = ("correct", "rare", "wrong", "no answer")
"""Where the positive signal goes: to correct completions; to rare ones among the correct, of what the correct get in groups that have
both; to well-formed answers that are wrong; to completions without an answer."""

_TIE = 1e-9  # signals that differ by less than this share of the group's largest are equal: the rest is rounding


@dataclass(frozen=True)
class ScoredGroup:
    """One group as M methods see it."""

    advantages: Array  # A (M, G)
    defined: Mask  # (M,) False where a method is undefined on this group
    valid: Mask  # (G,) a verdict was reached
    correct: Mask  # (G,)
    well_formed: Mask  # (G,) the answer has a mode
    rare: Mask  # (G,) see rare_correct

    @classmethod
    def from_json(cls, line: Mapping[str, Any], labels: Sequence[str]) -> ScoredGroup:
        """From a stored line with the methods of these labels."""
        correct = np.array([status == "correct" for status in line["status"]])
        return cls(
            np.array([line["methods"][label]["advantages"] for label in labels], np.float64),
            np.array([line["methods"][label]["defined"] for label in labels], bool),
            np.array([status not in ("timeout", "error") for status in line["status"]]),
            correct,
            np.array([key is not None for key in line["mode_keys"]]),
            rare_correct(line["mode_keys"], correct),
        )


def rare_correct(mode_keys: Sequence[str | None], correct_G: Mask) -> Mask:
    """(G,) bool: correct members whose mode holds less than its equal share of the correct ones.

    With c correct members of m distinct modes, a mode of n members is rare where n < c / m; none is where all are equally frequent.
    """
    counts = Counter(key for key, right in zip(mode_keys, correct_G) if right)
    fair = sum(counts.values()) / max(len(counts), 1)
    return np.array([bool(right) and counts[key] < fair for key, right in zip(mode_keys, correct_G)])


# --- rank agreement -------------------------------------------------------------------------------------------------


def kendall_tau_b(values_MG: Array) -> Array:
    """(M, M) Kendall's tau-b of the rows of ``values_MG``; nan where a row is constant (or has fewer than two values).

    Over all pairs of members, with x and y the signs of their differences in two rows: sum x y / sqrt(sum x^2 sum y^2). A pair tied
    in a row has sign 0 there: it counts neither for nor against, and shrinks that row's norm alone (Kendall 1945). So tau-b is 1
    only where both rows order, and tie, the same pairs. Values closer than 1e-9 of the row's largest count as tied.
    """
    values_MG = np.asarray(values_MG, np.float64)
    first, second = np.triu_indices(values_MG.shape[1], 1)
    differences_MP = values_MG[:, first] - values_MG[:, second]
    tolerance_M1 = _TIE * np.abs(values_MG).max(axis=1, initial=0.0, keepdims=True)
    signs_MP = np.where(np.abs(differences_MP) > tolerance_M1, np.sign(differences_MP), 0.0)
    norms_M = np.sqrt((signs_MP**2).sum(axis=1))
    norms_M[norms_M == 0] = np.nan
    return np.clip(signs_MP @ signs_MP.T / np.outer(norms_M, norms_M), -1.0, 1.0)


def agreement(groups: Sequence[ScoredGroup], among: str = "all") -> tuple[Array, NDArray[np.int64]]:
    """Mean tau-b over groups of every two methods, (M, M) with nan where there is none, and over how many groups, (M, M).

    A group counts for two methods where both are defined and neither is constant. ``among`` "all" compares the members with a
    verdict, "correct" the correct ones alone.
    """
    if among not in ("all", "correct"):
        raise ValueError(f"expected among to be 'all' or 'correct', got {among!r}")
    m = len(groups[0].defined)
    total_MM, count_MM = np.zeros((m, m)), np.zeros((m, m), np.int64)
    for group in groups:
        members_G = group.valid if among == "all" else group.correct & group.valid
        tau_MM = kendall_tau_b(group.advantages[:, members_G])
        tau_MM[~group.defined, :] = tau_MM[:, ~group.defined] = np.nan
        found_MM = ~np.isnan(tau_MM)
        total_MM += np.where(found_MM, tau_MM, 0.0)
        count_MM += found_MM
    return np.where(count_MM > 0, total_MM / np.maximum(count_MM, 1), np.nan), count_MM


# --- where the signal goes ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Signal:
    """Positive signal by QUANTITIES: a share is a sum of ``part`` over groups, divided by that of ``whole``."""

    part_QNM: Array
    whole_QNM: Array
    defined_NM: Mask

    def shares(self) -> Array:
        """(Q, M): over the groups where the method is defined; nan where it pays nothing."""
        return _ratio(self.part_QNM.sum(axis=1), self.whole_QNM.sum(axis=1))


def positive_signal(groups: Sequence[ScoredGroup]) -> Signal:
    """What each method gives its members with a positive signal, group by group; zeros where it is undefined."""
    defined_NM = np.array([group.defined for group in groups])
    part, whole = [], []
    for group in groups:
        pay_MG = np.maximum(group.advantages, 0.0) * group.valid * group.defined[:, None]
        correct_G, wrong_G = group.correct, ~group.correct & group.well_formed
        sums = [pay_MG[:, members_G].sum(axis=1) for members_G in (correct_G, group.rare, wrong_G, ~correct_G & ~wrong_G)]
        total_M = pay_MG.sum(axis=1)
        part.append(sums)
        whole.append([total_M, sums[0] if group.rare.any() else np.zeros_like(total_M), total_M, total_M])
    return Signal(np.array(part).transpose(1, 0, 2), np.array(whole).transpose(1, 0, 2), defined_NM)


def volume(groups: Sequence[ScoredGroup]) -> tuple[Array, Array]:
    """(share of the groups where the method is defined in which any member has a signal, mean |A| over their members), (M,) each."""
    defined_NM = np.array([group.defined for group in groups])
    size_NM = np.array([np.abs(group.advantages[:, group.valid]).sum(axis=1) for group in groups]) * defined_NM
    n_NM = np.array([group.valid.sum() for group in groups])[:, None] * defined_NM
    return _ratio((size_NM > 0).sum(axis=0), defined_NM.sum(axis=0)), _ratio(size_NM.sum(axis=0), n_NM.sum(axis=0))


def even_pay(groups: Sequence[ScoredGroup]) -> Array:
    """(Q,): the shares of a method that would pay every completion with a verdict the same."""
    even = [ScoredGroup(np.ones((1, len(g.valid))), np.ones(1, bool), g.valid, g.correct, g.well_formed, g.rare) for g in groups]
    return positive_signal(even).shares()[:, 0]


def paired_differences(
    signal: Signal, baseline: int, rng: np.random.Generator, *, level: float = 0.95, n_resamples: int = 10_000
) -> tuple[Array, Array, Array]:
    """Shares less those of method ``baseline``, (Q, M), with the ends of their percentile bootstrap intervals, each (Q, M).

    Both shares of a difference are of the groups where both methods are defined. A resample draws as many groups as there are, with
    replacement, the same ones for both (and for all methods); one in which either pays nothing is left out. nan without any.
    """
    n = len(signal.defined_NM)
    both_NM = signal.defined_NM & signal.defined_NM[:, [baseline]]
    parts_2QNM = np.stack([signal.part_QNM, np.broadcast_to(signal.part_QNM[:, :, [baseline]], signal.part_QNM.shape)]) * both_NM
    wholes_2QNM = np.stack([signal.whole_QNM, np.broadcast_to(signal.whole_QNM[:, :, [baseline]], signal.whole_QNM.shape)]) * both_NM
    counts_BN = rng.multinomial(n, np.full(n, 1 / n), size=n_resamples).astype(np.float64)

    def differences(weights_BN: Array) -> Array:  # (B, Q, M)
        shares_2BQM = _ratio(*(np.einsum("bn,tqnm->tbqm", weights_BN, sums, optimize=True) for sums in (parts_2QNM, wholes_2QNM)))
        return shares_2BQM[0] - shares_2BQM[1]

    [difference_QM], resampled_BQM = differences(np.ones((1, n))), differences(counts_BN)
    ends_2QM = np.full((2, *difference_QM.shape), np.nan)
    tail = 100 * (1 - level) / 2
    for q, method in np.argwhere(~np.isnan(difference_QM) & ~np.isnan(resampled_BQM).all(axis=0)):
        ends_2QM[:, q, method] = np.nanpercentile(resampled_BQM[:, q, method], [tail, 100 - tail])
    return difference_QM, *ends_2QM


def _ratio(part: Array, whole: Array) -> Array:
    """part / whole, nan where the whole is 0."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), np.nan)


# --- who is paid most and least -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Paid:
    """A member that a method pays most, or least, over all groups."""

    group: int
    member: int
    advantage: float
    alike: int  # how many further members get the same


def paid_most_and_least(groups: Sequence[ScoredGroup], method: int, n: int) -> tuple[list[Paid], list[Paid]]:
    """The ``n`` highest and the ``n`` lowest distinct signals of one method where it is defined, each with its first member."""
    found: dict[float, list[tuple[int, int]]] = {}
    for place, group in enumerate(groups):
        if group.defined[method]:
            for member in np.flatnonzero(group.valid).tolist():
                found.setdefault(float(f"{group.advantages[method, member]:.9g}"), []).append((place, member))
    paid = [Paid(*members[0], value, len(members) - 1) for value, members in sorted(found.items(), reverse=True)]
    return paid[:n], paid[::-1][: min(n, len(paid) - min(n, len(paid)))]
