"""One self-contained page for a rescored file: the comparison of methods, and every group with what each method pays its completions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .agreement import Paid
from .comparison import FEW, Comparison, difference_table, signal_table
from .methods import Method
from .page import self_contained

VALUES = ("advantages", "credits", "shaped_rewards", "weights")
"""What the page can show of a completion under a method."""


def write_page(
    path: Path,
    comparison: Comparison,
    lines: Sequence[Mapping[str, Any]],
    methods: Sequence[Method],
    *,
    name: str,
    max_bytes: int = 12_000_000,
) -> Path:
    """Write the page of ``lines`` (of :func:`~setpo_agents.rescore.rescore_methods`) and their comparison; returns ``path``.

    Args:
        name: What was rescored, for the title.
        max_bytes: Bound on the page's groups; above it, the first ones that fit are kept, at least one, and the page says so.

    Raises:
        OSError: The file cannot be written.
    """
    groups: list[dict[str, Any]] = []
    size = 0
    for line in lines:
        groups.append(page_group(line, comparison.labels))
        size += len(json.dumps(groups[-1]))
        if size > max_bytes and len(groups) > 1:
            groups.pop()
            break
    kept = "" if len(groups) == len(lines) else f" The first {len(groups)} of them are on this page."
    page = {
        "title": f"Methods compared on {name}",
        "facts": f"{len(lines)} groups, {sum(len(line['completions']) for line in lines)} completions, {len(methods)} methods.{kept}",
        "table": "\n".join([*signal_table(comparison), "", *difference_table(comparison)]).strip(),
        "methods": [{"label": method.label, **method.spec()} for method in methods],
        "tau": {"all": _numbers(comparison.tau_all), "correct": _numbers(comparison.tau_correct)},
        "n_tau": {"all": comparison.n_tau[0].tolist(), "correct": comparison.n_tau[1].tolist()},
        "few": FEW,
        "paid": [
            {"most": [_paid(one, lines) for one in most], "least": [_paid(one, lines) for one in least]}
            for most, least in zip(comparison.most, comparison.least)
        ],
        "groups": groups,
    }
    path.write_text(self_contained("rescore.html", page), encoding="utf-8")
    return path


def page_group(line: Mapping[str, Any], labels: Sequence[str]) -> dict[str, Any]:
    """A stored line as the page wants it: what repeated completions share is written once, numbers to four digits."""
    keys = list(zip(line["completions"], line["status"], line["reasons"], line["mode_keys"], strict=True))
    unique = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    return {
        "id": line["problem_id"],
        "task": line["task"],
        "prompt": line["prompt"],
        "gold": line["gold"] if isinstance(line["gold"], str) else json.dumps(line["gold"], ensure_ascii=False),
        "records": [dict(zip(("text", "status", "reason", "mode"), key, strict=True)) for key in unique],
        "members": [unique[key] for key in keys],
        "methods": [
            {
                **{name: [float(f"{value:.4g}") for value in line["methods"][label][name]] for name in VALUES},
                "defined": line["methods"][label]["defined"],
                "diversity": line["methods"][label]["diversity"],
            }
            for label in labels
        ],
    }


def _paid(one: Paid, lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    line = lines[one.group]
    status = line["status"][one.member]
    return {"group": one.group, "member": one.member, "id": line["problem_id"], "status": status, "pay": one.advantage, "alike": one.alike}


def _numbers(table: np.ndarray) -> list[list[float | None]]:
    return [[None if np.isnan(value) else round(value, 4) for value in row] for row in table.tolist()]
