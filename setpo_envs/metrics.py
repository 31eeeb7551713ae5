"""Metrics of sampled groups: pure numpy functions over counts, then one summary of ``groups.jsonl`` rows.

Shapes: P problems, n samples a problem, c of them correct, M modes (distinct correct solutions), S seeds. A row of mode
counts ``counts_PM`` holds, for each correct mode, how often it was sampled; zeros are padding. All results are float64.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]


class Interval(NamedTuple):
    """A mean with the ends of its interval."""

    mean: float
    low: float
    high: float


# --- accuracy ----------------------------------------------------------------------------------------------------


def _miss(n: int, k: int) -> Array:
    """(n + 1,): entry c is C(n-c, k) / C(n, k), the chance that k of n samples miss all of c marked ones (0 if n-c < k)."""
    if not 1 <= k <= n:
        raise ValueError(f"expected 1 <= k <= n, got k={k} with n={n} samples; draw at least k samples a problem")
    left = np.arange(n, 0, -1)  # C(m-1, k) / C(m, k) = (m - k) / m for m = n, n-1, ...
    return np.concatenate([[1.0], np.cumprod(np.maximum(left - k, 0) / left)])


def pass_at_k(n: ArrayLike, c: ArrayLike, k: int) -> Array:
    """Unbiased pass@k = 1 - C(n-c, k) / C(n, k) of each problem, (P,); 1 where n - c < k (Chen et al. 2107.03374, eq. 1).

    ``n`` is one number or (P,), ``c`` is (P,) with 0 <= c <= n. Unlike the code of that paper, k > n is a ValueError:
    it would call a problem with no correct sample solved.
    """
    sizes = _whole("n", n)
    n_P, c_P = np.broadcast_arrays(sizes, _whole("c", c))
    if (c_P > n_P).any():
        raise ValueError(f"expected c <= n, got c={c_P[c_P > n_P][0]} correct of n={n_P[c_P > n_P][0]}")
    out = np.empty(n_P.shape)
    for size in np.unique(sizes):  # one table over c a group size: exact, and a lookup for each problem
        out[n_P == size] = 1 - _miss(int(size), k)[c_P[n_P == size]]
    return out


def avg_at_k(k: int, c: ArrayLike) -> Array:
    """avg@k = c / k of each problem, (P,): the mean accuracy over k samples (its mean over problems is pass@1)."""
    c_P = _whole("c", c)
    if k < 1 or (c_P > k).any():
        raise ValueError(f"expected k >= 1 samples of which at most k are correct, got k={k} and c={c_P.tolist()[:5]}")
    return np.asarray(c_P / k)


def auc_at_k(pass_at: Mapping[int, float]) -> float:
    """AUC@K: trapezoid area under pass@k over log2 k, divided by its width, so that it is in [0, 1].

    ``pass_at`` is {k: pass@k} with its largest k = K. One number for accuracy (k = 1) and coverage (k = K); with one k, its
    pass@k. Papers use the name with definitions that they do not print; this one is ours.
    """
    if not pass_at or min(pass_at) < 1:
        raise ValueError(f"expected pass@k for at least one k of at least 1, got {dict(pass_at)!r}")
    ks = sorted(pass_at)
    if len(ks) == 1:
        return float(pass_at[ks[0]])
    x, y = np.log2(ks), np.array([pass_at[k] for k in ks], float)
    return float(((y[1:] + y[:-1]) / 2 * np.diff(x)).sum() / (x[-1] - x[0]))


def maj_at_k(keys: Sequence[str | None], correct: Sequence[bool]) -> float:
    """maj@k of one problem over its k samples: is the most frequent answer right? In [0, 1]; 0 if no sample has an answer.

    ``keys`` are the answers (or mode keys), ``correct`` their verdicts; None does not vote. Ties are broken at random and
    the expected value returned: the mean correctness over the tied answers.
    """
    if len(keys) != len(correct):
        raise ValueError(f"expected as many keys as verdicts, got {len(keys)} and {len(correct)}")
    votes = Counter(key for key in keys if key is not None)
    right = Counter(key for key, verdict in zip(keys, correct, strict=True) if key is not None and verdict)
    top = max(votes.values(), default=0)
    shares = [right[key] / top for key, count in votes.items() if count == top]
    return math.fsum(shares) / len(shares) if shares else 0.0


def potential_at_k(pass_1: ArrayLike, pass_k: ArrayLike) -> float:
    """potential@k = sum pass@k (1 - pass@1) / sum (1 - pass@1) over problems (R1-zero-Div); nan if all are always solved."""
    room, reached = 1 - np.asarray(pass_1, float), np.asarray(pass_k, float)
    return float((reached * room).sum() / room.sum()) if room.sum() else math.nan


def cover_at_tau(rates: ArrayLike, tau: float) -> float:
    """Cover@tau: the share of problems whose success rate (P,) is at least tau (2510.08325); nan without problems."""
    if not 0 < tau <= 1:
        raise ValueError(f"expected 0 < tau <= 1, got {tau}")
    rates = np.asarray(rates, float)
    return float((rates >= tau).mean()) if rates.size else math.nan


# --- diversity of correct samples --------------------------------------------------------------------------------


def distinct_at_k(counts: ArrayLike, n: int, k: int) -> Array:
    """Expected number of distinct correct modes among k of n samples: sum over modes of 1 - C(n-n_m, k) / C(n, k).

    ``counts`` (M,) or (P, M) -> () or (P,). Unbiased; it mixes accuracy and diversity (distinct@1 is pass@1).
    """
    counts = _whole("counts", counts)
    if (counts.sum(-1) > n).any():
        raise ValueError(f"expected mode counts that sum to at most n={n}, got {int(counts.sum(-1).max())}")
    return np.asarray((1 - _miss(n, k)[counts]).sum(-1))


def pcmd(counts: ArrayLike) -> Array:
    """Pairwise correct-mode diversity, 1 - sum n_m (n_m - 1) / (n+ (n+ - 1)): the chance that two correct samples differ.

    ``counts`` (M,) or (P, M) -> () or (P,). Undefined, nan, where fewer than two samples are correct: average with
    ``nanmean`` and report how many problems were eligible.
    """
    counts = _whole("counts", counts)
    total = counts.sum(-1)
    pairs = total * (total - 1)
    return np.where(total >= 2, 1 - (counts * (counts - 1)).sum(-1) / np.maximum(pairs, 1), np.nan)


def width_and_average_mode(distinct: ArrayLike) -> tuple[int, float]:
    """(width, average mode): how many problems have >= 2 distinct correct solutions, and their mean number there (2602.01062).

    ``distinct`` (P,) counts distinct correct modes (or strings, as that paper does); the mean is nan where width is 0.
    """
    distinct = _whole("distinct", distinct)
    wide = distinct[distinct >= 2]
    return len(wide), float(wide.mean()) if len(wide) else math.nan


def recovery_rate(found: ArrayLike, known: ArrayLike) -> Array:
    """Found correct modes / known modes of each problem, (P,); needs a task whose modes can be enumerated."""
    found, known = _whole("found", found), _whole("known", known)
    if (known < 1).any() or (found > known).any():
        raise ValueError("expected 0 <= found <= known and known >= 1 for every problem; was the gold of one problem changed?")
    return found / known


def semantic_entropy(counts: ArrayLike) -> Array:
    """Entropy -sum p log p in nats over the cluster sizes (M,) or (P, M) of all samples; nan where there are none."""
    counts = _whole("counts", counts)
    total = counts.sum(-1, keepdims=True)
    p = counts / np.maximum(total, 1)
    return np.where(total[..., 0] > 0, -(p * np.log(np.where(p > 0, p, 1))).sum(-1) + 0.0, np.nan)


def vendi(kernel: ArrayLike) -> Array:
    """Vendi score exp(-sum l log l), l the eigenvalues of K/n, of kernels (n, n) or (P, n, n) with unit diagonals (2210.02410).

    The effective number of distinct samples, 1..n; () or (P,). Eigenvalues <= 0 (rounding, or a clamped kernel) are left out.
    """
    kernel = np.asarray(kernel, float)
    if kernel.ndim not in (2, 3) or kernel.shape[-1] != kernel.shape[-2] or not kernel.size:
        raise ValueError(f"expected square kernels (n, n) or (P, n, n), got shape {kernel.shape}")
    eigenvalues = np.linalg.eigvalsh(kernel / kernel.shape[-1])
    eigenvalues = np.where(eigenvalues > 0, eigenvalues, 1.0)  # 1 log 1 = 0
    return np.exp(-(eigenvalues * np.log(eigenvalues)).sum(-1))


# --- intervals ---------------------------------------------------------------------------------------------------


def bootstrap_interval(values: ArrayLike, rng: np.random.Generator, level: float = 0.95, n_resamples: int = 10_000) -> Interval:
    """Percentile bootstrap interval of the mean of ``values`` (P,) over problems. Leave undefined (nan) problems out first."""
    return hierarchical_interval(_finite(values, 1)[None], rng, level, n_resamples)


def hierarchical_interval(differences: ArrayLike, rng: np.random.Generator, level: float = 0.95, n_resamples: int = 10_000) -> Interval:
    """Percentile bootstrap interval of the mean of ``differences`` (S, P), paired by seed and problem.

    Every seed meets the same problems, so each resample draws seeds and, independently, problems, both with replacement.
    With few seeds a bootstrap is narrow: give :func:`paired_interval` beside it.
    """
    differences = _finite(differences, 2)
    n_seeds, n_problems = differences.shape
    means = []
    block = max(1, 2_000_000 // n_problems)  # resamples at a time, to bound memory
    for start in range(0, n_resamples, block):
        size = min(block, n_resamples - start)
        seeds = rng.multinomial(n_seeds, np.full(n_seeds, 1 / n_seeds), size) @ differences  # (block, P)
        means.append((seeds * rng.multinomial(n_problems, np.full(n_problems, 1 / n_problems), size)).sum(1) / differences.size)
    low, high = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(differences.mean()), float(low), float(high))


def paired_interval(differences: ArrayLike, level: float = 0.95) -> Interval:
    """Student t interval of the mean of paired ``differences`` (S,), one a seed; its ends are nan for a single seed."""
    differences = _finite(differences, 1)
    mean, seeds = float(differences.mean()), len(differences)
    if seeds < 2:
        return Interval(mean, math.nan, math.nan)
    half = t_quantile(seeds - 1, level) * float(differences.std(ddof=1)) / math.sqrt(seeds)
    return Interval(mean, mean - half, mean + half)


def t_quantile(df: int, level: float = 0.95) -> float:
    """The t with P(|T| <= t) = level for Student's t with integer ``df``: the finite sum of Abramowitz & Stegun 26.7.3-4, bisected."""
    if df < 1 or not 0 < level < 1:
        raise ValueError(f"expected df >= 1 and 0 < level < 1, got df={df}, level={level}")

    def mass(theta: float) -> float:  # P(|T| <= sqrt(df) tan theta)
        term, total = (math.cos(theta), 0.0) if df % 2 else (1.0, 0.0)
        for j in range(3 if df % 2 else 2, df + 1, 2):
            total += term
            term *= math.cos(theta) ** 2 * (j - 1) / j
        return 2 / math.pi * (theta + math.sin(theta) * total) if df % 2 else math.sin(theta) * total

    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if mass(middle) < level else (low, middle)
    return math.sqrt(df) * math.tan(low)


# --- summary of stored groups ------------------------------------------------------------------------------------


def summarize_groups(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """All metrics of ``groups.jsonl`` rows (one group a row) as a JSON-ready dict; means over problems.

    Keys: ``pass@k`` and ``distinct@k`` (k = 1, 2, 4, ... and the group size n), ``avg@n``, ``maj@n``, ``pcmd`` with
    ``pcmd_eligible``, ``width``, ``average_mode``, ``recovery`` (over problems whose metadata has ``n_modes``), the same at
    string level as ``distinct_strings@k``, ``pcmd_strings``, ``width_strings``, ``average_mode_strings``; shares
    ``well_formed`` and ``truncated``; ``entropy`` where rows have it; counts ``n_problems``, ``n_samples``, ``undecided``; and
    ``per_problem`` lists
    ``correct`` and ``distinct``. A metric that is undefined on these rows is None.

    Samples without a verdict (timeout, error) are undecided: they are counted and left out, and a problem with fewer than k
    decided samples is left out of @k. Raises ValueError for no rows, or rows of different group sizes.
    """
    rows = list(rows)
    sizes = {len(row["status"]) for row in rows}
    if len(sizes) != 1 or 0 in sizes:
        raise ValueError(f"expected rows of one group size, got sizes {sorted(sizes)}" if rows else "expected at least one group, got none")
    n = sizes.pop()
    modes, strings, decided = [], [], []
    for row in rows:
        right = [status == "correct" for status in row["status"]]
        modes.append(Counter(key for key, ok in zip(row["mode_keys"], right, strict=True) if ok))
        strings.append(Counter(answer for answer, ok in zip(row["answers"], right, strict=True) if ok))
        decided.append(sum(status not in ("timeout", "error") for status in row["status"]))
    n_P, modes_PM, strings_PM = np.array(decided), _pad(modes), _pad(strings)
    correct_P, distinct_P, known = modes_PM.sum(1), (modes_PM > 0).sum(1), [row.get("metadata", {}).get("n_modes") for row in rows]

    out: dict[str, Any] = {}
    for k in sorted({2**i for i in range(n.bit_length())} | {n}):
        enough = n_P >= k
        out[f"pass@{k}"] = _mean(pass_at_k(n_P[enough], correct_P[enough], k))
        for name, table in (("distinct", modes_PM), ("distinct_strings", strings_PM)):
            out[f"{name}@{k}"] = _mean(np.array([distinct_at_k(table[i], n_P[i], k) for i in np.flatnonzero(enough)]))
    out[f"avg@{n}"] = _mean(correct_P[n_P > 0] / n_P[n_P > 0])
    out[f"maj@{n}"] = _mean(np.array([maj_at_k(row["mode_keys"], [status == "correct" for status in row["status"]]) for row in rows]))
    for suffix, table in (("", modes_PM), ("_strings", strings_PM)):
        diversity = pcmd(table)
        width, average = width_and_average_mode((table > 0).sum(1))
        out |= {f"pcmd{suffix}": _mean(diversity[~np.isnan(diversity)]), f"width{suffix}": width}
        out[f"average_mode{suffix}"] = None if math.isnan(average) else average
    has = [i for i, value in enumerate(known) if value]
    out["pcmd_eligible"] = int((correct_P >= 2).sum())
    found = [_known_modes(rows[i], modes[i], int(distinct_P[i])) for i in has]
    out["recovery"] = _mean(recovery_rate(found, [known[i] for i in has]) if has else np.array([]))
    out["well_formed"] = _mean(np.array([key is not None for row in rows for key in row["mode_keys"]]))
    out["truncated"] = _mean(np.array([status == "truncated" for row in rows for status in row["status"]]))
    out |= {"entropy": _mean(np.array([row["entropy"] for row in rows if "entropy" in row]))}
    out |= {"n_problems": len(rows), "n_samples": n, "undecided": int(n * len(rows) - n_P.sum())}
    out["per_problem"] = {"correct": correct_P.tolist(), "distinct": distinct_P.tolist()}
    return out


def _known_modes(row: Mapping[str, Any], modes: Counter[Any], distinct: int) -> int:
    """How many of the modes that the row lists were found; all distinct ones where it only counts them."""
    listed = row["metadata"].get("modes")
    return distinct if listed is None else len(modes.keys() & set(listed))


def _pad(counters: list[Counter[Any]]) -> Array:
    table = np.zeros((len(counters), max(1, *map(len, counters))), np.int64)
    for row, counter in zip(table, counters, strict=True):
        row[: len(counter)] = list(counter.values())
    return table


def _mean(values: Array) -> float | None:
    return float(values.mean()) if values.size else None


def _whole(name: str, values: ArrayLike) -> Array:
    array = np.asarray(values)
    if array.size and (not np.issubdtype(array.dtype, np.integer) or (array < 0).any()):
        raise ValueError(f"expected whole numbers >= 0 for {name}, got {array.ravel()[:5].tolist()} of dtype {array.dtype}")
    return array.astype(np.int64)


def _finite(values: ArrayLike, ndim: int) -> Array:
    array = np.asarray(values, float)
    if array.ndim != ndim or not array.size or not np.isfinite(array).all():
        raise ValueError(f"expected a non-empty {ndim}-D array of finite numbers, got shape {array.shape}; leave undefined entries out")
    return array
