"""Benchmark results as leaderboards: methods ranked in the raw and in the scale-matched comparison, and what changed between them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from setpo_envs.metrics import auc_at_k, paired_interval

from .jsonl import resumable_lines
from .results import pass_ks

Line = Mapping[str, Any]
BASELINE = "grpo"
CONTROLS = ("shuffled", "random_partition", "mean_matched")
CONTROLLED = "setpo_z"
"""The method whose credits the controls deal, at its strength."""
UNRANKED = ("base", BASELINE, *CONTROLS)

_ARM = re.compile(r"(.+?)(?:-x(\d[\d.e+-]*)|-(matched))?", re.DOTALL)


class ArmName(NamedTuple):
    """What the name of an arm says: "gapo-x0.3" is a method at a strength, "gapo-matched" one at the common ratio."""

    method: str
    strength: float | None
    matched: bool


@dataclass(frozen=True)
class Row:
    """One method on one board: means over its seeds, and its differences to GRPO, paired by seed."""

    method: str
    label: str
    rank: int | None
    """By area under pass@k among methods; None for controls, GRPO and the base model, which compete with nobody."""
    strength: float | None
    values: Mapping[str, float | None]
    differences: Mapping[str, tuple[float, float, float] | None]
    """(mean, low, high) of the 95 % t interval over paired seeds (ends nan for one seed); None where a value is missing."""
    seeds: int
    shaping_ratio: float
    overhead: float
    """Seconds that the credit takes over the seconds of the rest of a step."""


def parse_arm(name: str) -> ArmName:
    """The parts of an arm's name; anything that does not end in a strength or in "-matched" is a method alone."""
    method, strength, matched = _ARM.fullmatch(name).groups()  # type: ignore[union-attr]  # it matches any name
    return ArmName(method, None if strength is None else float(strength), matched is not None)


def area(line: Line) -> float:
    """Area under pass@k over log2 k of a result line."""
    return auc_at_k({k: line[f"pass@{k}"] for k in pass_ks([line])})


def chosen_strengths(lines: Sequence[Line]) -> dict[str, float]:
    """{method: strength with the largest area under validation pass@k}, the weakest of equals; the controls take SetPO's, or 1."""
    areas: dict[str, dict[float, float]] = {}
    for line in lines:
        arm = parse_arm(line["arm"])
        if line["split"] == "validation" and arm.strength is not None:
            areas.setdefault(arm.method, {})[arm.strength] = area(line)
    chosen = {method: min(own, key=lambda strength: (-own[strength], strength)) for method, own in areas.items()}
    return {**chosen, **dict.fromkeys(CONTROLS, chosen.get(CONTROLLED, 1.0))}


def boards(lines: Sequence[Line]) -> dict[str, list[Row]]:
    """The test lines of one environment as {"raw": rows, "matched": rows}, each sorted by area under pass@k, best first.

    A method that was tested at several strengths, in calls that chose among other validation results, counts with the one chosen last.
    """
    chosen = chosen_strengths(lines)
    raw, matched = [], []
    for line in lines:
        arm = parse_arm(line["arm"])
        if line["split"] != "test" or (arm.strength is not None and arm.strength != chosen.get(arm.method, arm.strength)):
            continue
        if not arm.matched:
            raw.append(line)
        if arm.matched or arm.method in ("base", BASELINE):
            matched.append(line)
    return {"raw": board(raw), "matched": board(matched)}


def board(lines: Sequence[Line]) -> list[Row]:
    """Rows of one board, best first."""
    by_method: dict[str, list[Line]] = {}
    for line in lines:
        by_method.setdefault(parse_arm(line["arm"]).method, []).append(line)
    baseline = {line["seed"]: line for line in by_method.get(BASELINE, [])}
    rows = sorted((_row(method, own, baseline) for method, own in by_method.items()), key=lambda row: -(row.values["auc"] or 0.0))
    competing = [row.method for row in rows if row.method not in UNRANKED]
    return [replace(row, rank=competing.index(row.method) + 1) if row.method in competing else row for row in rows]


def columns(lines: Sequence[Line]) -> list[str]:
    """The metrics of a leaderboard, as they are named in result lines; "auc" is the area under pass@k."""
    n = lines[0]["n_samples"]
    return ["auc", "pass@1", *(["pass@8"] if n > 8 else []), f"pass@{n}", f"distinct@{n}", "pcmd", "recovery", "entropy"]


def _row(method: str, lines: Sequence[Line], baseline: Mapping[int, Line]) -> Row:
    def value(line: Line, name: str) -> float | None:
        return area(line) if name == "auc" else line.get(name)

    values, differences = {}, {}
    for name in columns(lines):
        known = [v for line in lines if (v := value(line, name)) is not None]
        values[name] = float(np.mean(known)) if known else None
        pairs = [(value(line, name), value(baseline[line["seed"]], name)) for line in lines if line["seed"] in baseline]
        gaps = [ours - theirs for ours, theirs in pairs if ours is not None and theirs is not None]
        own = method in (BASELINE, "base")
        differences[name] = None if own or not gaps else paired_interval(gaps)
    training = [line["training"] for line in lines if "training" in line]
    seconds = [step["seconds"] for step in training]
    credit = sum(part["credit"] for part in seconds)
    return Row(
        method=method,
        label=lines[0]["label"],
        rank=None,
        strength=parse_arm(lines[0]["arm"]).strength,
        values=values,
        differences=differences,
        seeds=len(lines),
        shaping_ratio=float(np.mean([step["shaping_ratio"] for step in training])) if training else 0.0,
        overhead=credit / (sum(sum(part.values()) for part in seconds) - credit) if seconds else 0.0,
    )


def rank_changes(raw: Sequence[Row], matched: Sequence[Row]) -> list[tuple[str, int, int]]:
    """(label, rank among the raw, rank among the matched) of the methods that are on both boards, ranked anew among these."""
    shared = {row.method for row in raw if row.rank} & {row.method for row in matched if row.rank}
    first, second = ([row for row in rows if row.method in shared] for rows in (raw, matched))
    place = {row.method: rank for rank, row in enumerate(second, 1)}
    return [(row.label, rank, place[row.method]) for rank, row in enumerate(first, 1)]


def kendall_tau(changes: Sequence[tuple[str, int, int]]) -> float:
    """Kendall's tau between the two rankings: 1 the same order, -1 the reverse; nan for fewer than two methods."""
    signs = [np.sign(b[1] - a[1]) * np.sign(b[2] - a[2]) for i, a in enumerate(changes) for b in changes[i + 1 :]]
    return float(np.mean(signs)) if signs else float("nan")


def read_boards(folder: Path) -> dict[str, dict[str, list[Row]]]:
    """{environment: boards} of a benchmark folder; ValueError where there is no finished run on test problems."""
    found = {path.parent.name: resumable_lines(path, "arm") for path in sorted(folder.glob("*/results.jsonl"))}
    found = {name: lines for name, lines in found.items() if any(line["split"] == "test" for line in lines)}
    if not found:
        raise ValueError(f"expected finished runs in {folder}/*/results.jsonl, found none: run 'setpo bench' with --out {folder}")
    return {name: boards(lines) for name, lines in found.items()}
