"""Paired comparisons between the arms of a study."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from setpo_envs.metrics import hierarchical_interval, paired_interval

PAIRS = (
    ("setpo_grpo", "grpo"),
    ("shuffled", "grpo"),
    ("setpo_grpo", "shuffled"),
    ("setpo_raw", "grpo"),
    ("entropy", "grpo"),
    ("setpo_grpo", "entropy"),
    ("kl", "grpo"),
    ("setpo_grpo", "kl"),
    ("setpo_kl", "kl"),
    ("gspo", "grpo"),
    ("setpo_gspo", "gspo"),
)
"""Arms (the part of their names before the first "-") whose difference a study reports: arm, baseline."""


def compare(lines: Sequence[dict[str, Any]], arm: str, baseline: str, metric: str) -> dict[str, Any]:
    """Arm minus baseline, paired by seed: ``mean``, 95 % t interval over seeds (``low``, ``high``), each seed's difference.

    ``problem_interval`` resamples seeds and problems together, for the metrics that are stored per problem. Seeds in which
    the metric is undefined are left out; where none is left, the numbers are None. Raises ValueError without common seeds.
    """
    by_seed = {(line["arm"], line["seed"]): line for line in lines}
    seeds = sorted(seed for name, seed in by_seed if name == arm and (baseline, seed) in by_seed)
    if not seeds:
        raise ValueError(f"expected results of {arm!r} and {baseline!r} with the same seeds, got {sorted({name for name, _ in by_seed})}")
    pairs = [(by_seed[arm, seed], by_seed[baseline, seed]) for seed in seeds]
    differences = [a[metric] - b[metric] for a, b in pairs if a[metric] is not None and b[metric] is not None]
    mean, low, high = paired_interval(differences) if differences else (None, None, None)
    result = {"arm": arm, "baseline": baseline, "metric": metric, "mean": mean, "low": low, "high": high, "seeds": differences}
    n = lines[0]["n_samples"]
    stored = {"pass@1": ("correct", n), f"distinct@{n}": ("distinct", 1)}.get(metric)
    if stored is not None:
        name, scale = stored
        table = np.array([np.subtract(a["per_problem"][name], b["per_problem"][name]) / scale for a, b in pairs])
        result["problem_interval"] = list(hierarchical_interval(table, np.random.default_rng(0)))
    return result


def comparisons(lines: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Every pair of PAIRS that ``lines`` has, with every metric of :func:`metrics`."""
    names = {line["arm"].split("-")[0]: line["arm"] for line in lines}
    return [[compare(lines, names[a], names[b], metric) for metric in metrics(lines)] for a, b in PAIRS if a in names and b in names]


def metrics(lines: Sequence[dict[str, Any]]) -> list[str]:
    """What is compared: accuracy at small and large k, and diversity of the correct samples."""
    n = lines[0]["n_samples"]
    return ["pass@1", *(["pass@8"] if n > 8 else []), f"pass@{n}", f"distinct@{n}", "recovery", "pcmd"]


def comparison_table(lines: Sequence[dict[str, Any]]) -> str:
    """The comparisons as a Markdown table: mean difference and 95 % t interval over paired seeds."""
    rows = [[f"{_label(lines, row[0]['arm'])} − {_label(lines, row[0]['baseline'])}", *map(_difference, row)] for row in comparisons(lines)]
    return _markdown(["difference, paired by seed", *metrics(lines)], rows)


def summary_table(lines: Sequence[dict[str, Any]]) -> str:
    """Mean and standard deviation over seeds of every arm as a Markdown table."""
    rows = []
    for arm in dict.fromkeys(line["arm"] for line in lines):
        own = [line for line in lines if line["arm"] == arm]
        rows.append([own[0]["label"], str(len(own)), *(_mean([line[metric] for line in own]) for metric in [*metrics(lines), "entropy"])])
    return _markdown(["", "seeds", *metrics(lines), "entropy"], rows)


def write_tables(lines: Sequence[dict[str, Any]], out: Path) -> str:
    """Write ``comparisons.json`` and ``tables.md`` into ``out``; returns the tables."""
    tables = f"{summary_table(lines)}\n\n{comparison_table(lines)}"
    (out / "comparisons.json").write_text(json.dumps(comparisons(lines), indent=1) + "\n", encoding="utf-8")
    (out / "tables.md").write_text(tables + "\n", encoding="utf-8")
    return tables


def _label(lines: Sequence[dict[str, Any]], arm: str) -> str:
    return next(line["label"] for line in lines if line["arm"] == arm)


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows])


def _difference(item: dict[str, Any]) -> str:
    return "-" if item["mean"] is None else f"{item['mean']:+.3f} [{item['low']:+.3f}, {item['high']:+.3f}]"


def _mean(values: Sequence[float | None]) -> str:
    defined = [value for value in values if value is not None]
    if not defined:
        return "-"
    return f"{np.mean(defined):.3f}" + (f" ± {np.std(defined, ddof=1):.3f}" if len(defined) > 1 else "")
