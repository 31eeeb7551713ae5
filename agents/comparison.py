"""A comparison of methods on stored groups, computed once, and its text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setpo_envs.render import cut, printable

from .agreement import (
    QUANTITIES,
    Array,
    Paid,
    ScoredGroup,
    agreement,
    even_pay,
    paid_most_and_least,
    paired_differences,
    positive_signal,
    volume,
)

N_PAID = 2
"""Completions that a method pays most, and as many that it pays least, in the text."""

FEW = 10
"""Agreement over fewer groups than this is marked."""

_LABEL = 32


@dataclass(frozen=True)
class Comparison:
    """M methods on N groups; Q quantities as in ``QUANTITIES``. Undefined numbers are nan."""

    labels: list[str]  # M, the first of them the baseline
    n_defined: list[int]  # M: on how many groups each is defined
    active: Array  # (M,) share of those groups in which it has any signal
    mean_size: Array  # (M,) mean |A|
    shares: Array  # (Q, M)
    even: Array  # (Q,) shares of a method that pays every completion the same
    difference: Array  # (Q, M), to the baseline
    low: Array  # (Q, M) ends of the 95 % intervals
    high: Array
    tau_all: Array  # (M, M) mean tau-b within groups
    tau_correct: Array  # (M, M) the same among correct completions
    n_tau: tuple[np.ndarray, np.ndarray]  # over how many groups, (M, M) each
    n_rare: int  # groups with a rare correct completion
    most: list[list[Paid]]  # M
    least: list[list[Paid]]


def compare_methods(lines: Sequence[Mapping[str, Any]], *, seed: int = 0, n_paid: int = N_PAID) -> Comparison:
    """The comparison of the methods in lines of :func:`~setpo_agents.rescore.rescore_methods`; ``seed`` is that of the bootstrap."""
    labels = list(lines[0]["methods"])
    groups = [ScoredGroup.from_json(line, labels) for line in lines]
    signal = positive_signal(groups)
    (tau_all, n_all), (tau_correct, n_correct) = agreement(groups), agreement(groups, "correct")
    paid = [paid_most_and_least(groups, method, n_paid) for method in range(len(labels))]
    return Comparison(
        labels,
        signal.defined_NM.sum(axis=0).tolist(),
        *volume(groups),
        signal.shares(),
        even_pay(groups),
        *paired_differences(signal, 0, np.random.default_rng(seed)),
        tau_all,
        tau_correct,
        (n_all, n_correct),
        sum(bool((group.rare & group.valid).any()) for group in groups),
        [most for most, _ in paid],
        [least for _, least in paid],
    )


def signal_table(c: Comparison) -> Iterator[str]:
    """Where the positive signal of each method goes, a line at a time."""
    yield "Where the positive signal goes, in % (A = w base(r') + lambda c; summed over the groups where the method is defined)"
    yield "  correct, wrong and no answer add up to 100; rare: of what correct completions get, the part of modes that hold less than"
    yield f"  their equal share, in the {c.n_rare} groups with such modes; active: groups with any signal; |A|: mean size"
    yield f"{'':{_LABEL + 4}} groups  active    |A|" + "".join(f"{name:>11}" for name in QUANTITIES)
    yield f"{'every completion paid the same':{_LABEL + 4}} {'':21}" + "".join(f"{_percent(share):>11}" for share in c.even)
    for m, label in enumerate(c.labels):
        counts = f"{c.n_defined[m]:6d} {_percent(c.active[m]):>7} {c.mean_size[m]:6.3f}"
        yield f"{m + 1:3d} {_clipped(label)} {counts}" + "".join(f"{_percent(share):>11}" for share in c.shares[:, m])


def difference_table(c: Comparison) -> Iterator[str]:
    """The same less the baseline's, with intervals; nothing for one method alone."""
    if len(c.labels) > 1:
        yield f"Difference to 1 ({printable(c.labels[0])}) in percentage points [95 % interval]"
        yield "  paired bootstrap over the groups where both are defined"
        rows = [[f"{m + 1:3d}", *(_interval(c, q, m) for q in range(len(QUANTITIES)))] for m in range(1, len(c.labels))]
        widths = [max(len(row[i]) for row in [["", *QUANTITIES], *rows]) for i in range(len(QUANTITIES) + 1)]
        for row in [["", *QUANTITIES], *rows]:
            yield "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths)).rstrip()


def agreement_table(c: Comparison) -> Iterator[str]:
    """Both matrices in one square: above the diagonal all completions, below it correct ones; nothing for one method alone."""
    if len(c.labels) > 1:
        yield "Agreement: Kendall's tau-b of A within groups, x 100, mean over the groups where both methods are defined and not constant"
        yield f"  above the diagonal among all completions, below it among the correct ones; * of fewer than {FEW} groups, . of none"
        yield "    " + "".join(f"{m + 1:5d}" for m in range(len(c.labels)))
        for i in range(len(c.labels)):
            halves = [(c.tau_all, c.n_tau[0]) if j > i else (c.tau_correct, c.n_tau[1]) for j in range(len(c.labels))]
            cells = ["-" if j == i else _hundredths(tau[i, j], n[i, j]) for j, (tau, n) in enumerate(halves)]
            yield f"{i + 1:3d} " + "".join(f"{cell:>5}" for cell in cells)


def paid_list(c: Comparison, lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Which completions each method pays most and least, each on one line of at most 80 cells."""
    yield "Paid most and least"
    for m, label in enumerate(c.labels):
        yield cut(f"{m + 1:3d} {printable(label)}")
        for name, paid in (("most", c.most[m]), ("least", c.least[m])):
            for one in paid:
                line = lines[one.group]
                key, text = line["mode_keys"][one.member], line["completions"][one.member]
                alike = f" and {one.alike} alike" if one.alike else ""
                head = f"{line['problem_id']} #{one.member + 1}{alike}: {line['status'][one.member]}"
                body = f"{'' if key is None else key + ' | '}{text[:1000]}"
                yield cut(printable(f"    {name:5s} {one.advantage:+.3f} " + " ".join(f"{head} {body}".split())))


def comparison_text(c: Comparison) -> Iterator[str]:
    """The three tables, with a line between them."""
    for number, table in enumerate((signal_table, difference_table, agreement_table)):
        rows = list(table(c))
        yield from ([""] if number and rows else []) + rows


def _clipped(label: str) -> str:
    label = printable(label)
    return f"{label if len(label) <= _LABEL else label[: _LABEL - 3] + '...':{_LABEL}}"


def _percent(share: float) -> str:
    return "." if np.isnan(share) else f"{100 * share:.1f}"


def _hundredths(tau: float, n: int) -> str:
    return "." if not n else f"{100 * tau:.0f}" + ("*" if n < FEW else "")


def _interval(c: Comparison, q: int, m: int) -> str:
    if np.isnan(c.low[q, m]):
        return "."
    difference, low, high = (round(100 * table[q, m], 1) + 0.0 for table in (c.difference, c.low, c.high))  # no -0.0
    return f"{difference:+.1f} [{low:+.1f} {high:+.1f}]"
