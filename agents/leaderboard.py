"""Benchmark results as leaderboards: methods ranked in the raw and in the scale-matched comparison, and what changed between them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from setpo_envs.metrics import auc_at_k, paired_interval

from .jsonl import read_lines
from .results import pass_ks

Line = Mapping[str, Any]
BASELINE = "grpo"


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
    """(mean, low, high) of the 95 % t interval over paired seeds; None where a value is missing."""
    seeds: int
    shaping_ratio: float
    overhead: float
    """Seconds that the credit takes over the seconds of the rest of a step."""


def area(line: Line) -> float:
    """Area under pass@k over log2 k of a result line."""
    return auc_at_k({k: line[f"pass@{k}"] for k in pass_ks([line])})


def boards(lines: Sequence[Line]) -> dict[str, list[Row]]:
    """The test lines of one environment as {"raw": rows, "matched": rows}, each sorted by area under pass@k, best first."""
    lines = [line for line in lines if line["split"] == "test"]
    matched = [line for line in lines if line["arm"].endswith("-matched")]
    raw = [line for line in lines if not line["arm"].endswith("-matched")]
    shared = [line for line in raw if method_of(line) in (BASELINE, "base")]
    return {"raw": board(raw), "matched": board([*shared, *matched])}


def board(lines: Sequence[Line]) -> list[Row]:
    """Rows of one board, best first."""
    by_method: dict[str, list[Line]] = {}
    for line in lines:
        by_method.setdefault(method_of(line), []).append(line)
    baseline = {line["seed"]: line for line in by_method.get(BASELINE, [])}
    rows = [_row(method, own, baseline) for method, own in by_method.items()]
    rows.sort(key=lambda row: -(row.values["auc"] or 0.0))
    place, ranked = 0, []
    for row in rows:
        competes = not (row.label.startswith("control") or row.method in (BASELINE, "base"))
        place += competes
        ranked.append(row if not competes else Row(**{**vars(row), "rank": place}))
    return ranked


def method_of(line: Line) -> str:
    """The method of an arm's name: what stands before its last "-x3" or "-matched"."""
    name = line["arm"]
    return name.rpartition("-")[0] if "-" in name else name


def columns(lines: Sequence[Line]) -> list[str]:
    """The metrics of a leaderboard, as they are named in result lines; "auc" is the area under pass@k."""
    n = lines[0]["n_samples"]
    return ["auc", "pass@1", *(["pass@8"] if n > 8 else []), f"pass@{n}", f"distinct@{n}", "pcmd", "recovery", "entropy"]


def _row(method: str, lines: Sequence[Line], baseline: Mapping[int, Line]) -> Row:
    names = columns(lines)

    def value(line: Line, name: str) -> float | None:
        return area(line) if name == "auc" else line.get(name)

    values, differences = {}, {}
    for name in names:
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
        strength=_strength(lines[0]),
        values=values,
        differences=differences,
        seeds=len(lines),
        shaping_ratio=float(np.mean([step["shaping_ratio"] for step in training])) if training else 0.0,
        overhead=credit / (sum(sum(part.values()) for part in seconds) - credit) if seconds else 0.0,
    )


def _strength(line: Line) -> float | None:
    _, _, after = line["arm"].rpartition("-x")
    return float(after) if "-x" in line["arm"] else None


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


def read_rows(folder: Path) -> dict[str, dict[str, list[Row]]]:
    """{environment: boards} of a benchmark folder; ValueError where there is no finished run."""
    paths = sorted(folder.glob("*/results.jsonl"))
    found = {path.parent.name: list(read_lines(path)) for path in paths}
    found = {name: lines for name, lines in found.items() if any(line["split"] == "test" for line in lines)}
    if not found:
        raise ValueError(f"expected finished runs in {folder}/*/results.jsonl, found none: run 'setpo bench' with --out {folder}")
    return {name: boards(lines) for name, lines in found.items()}


def markdown(rows_of: Mapping[str, Mapping[str, Sequence[Row]]]) -> str:
    """Every board as a Markdown table, and the two rankings of each environment side by side."""
    parts = []
    for env, both in rows_of.items():
        for name, rows in both.items():
            title = "raw: strength chosen on validation" if name == "raw" else "scale-matched: the same RMS of shaping for all"
            parts += [f"### {env}, {title}", table(rows)]
        changes = rank_changes(both["raw"], both["matched"])
        tau = kendall_tau(changes)
        parts.append(f"### {env}, what scale matching changes (Kendall's tau between the rankings {tau:+.2f})")
        parts.append(
            _table(["method", "raw", "matched", "change"], [[label, a, b, f"{a - b:+d}" if a != b else "0"] for label, a, b in changes])
        )
    return "\n\n".join(parts)


def table(rows: Sequence[Row]) -> str:
    """One board as a Markdown table: means, and the area's difference to GRPO with its interval."""
    names = list(rows[0].values)
    head = ["", "method", "×", *("AUC" if name == "auc" else name for name in names), "AUC − GRPO", "ratio", "cost", "seeds"]
    return _table(head, [_cells(row, names) for row in rows])


def _cells(row: Row, names: Sequence[str]) -> list[Any]:
    gap = row.differences["auc"]
    return [
        row.rank or "",
        row.label,
        "" if row.strength is None else f"{row.strength:g}",
        *("-" if row.values[name] is None else f"{row.values[name]:.3f}" for name in names),
        "" if gap is None else f"{gap[0]:+.3f} [{gap[1]:+.3f}, {gap[2]:+.3f}]",
        f"{row.shaping_ratio:.2f}",
        f"{row.overhead:.1%}",
        row.seeds,
    ]


def _table(head: Sequence[Any], rows: Sequence[Sequence[Any]]) -> str:
    return "\n".join("| " + " | ".join(map(str, cells)) + " |" for cells in [head, ["---"] * len(head), *rows])


def write_leaderboard(folder: Path) -> list[Path]:
    """Write ``leaderboard.md``, ``.json``, ``.png`` and ``.html`` into a benchmark folder; returns their paths."""
    from .leaderboard_page import draw, page

    rows_of = read_rows(folder)
    text = markdown(rows_of)
    as_json = {env: {name: [vars(row) for row in rows] for name, rows in both.items()} for env, both in rows_of.items()}
    (folder / "leaderboard.md").write_text(text + "\n", encoding="utf-8")
    (folder / "leaderboard.json").write_text(json.dumps(as_json, indent=1) + "\n", encoding="utf-8")
    draw(rows_of, folder / "leaderboard.png")
    (folder / "leaderboard.html").write_text(page(rows_of, folder / "leaderboard.png"), encoding="utf-8")
    return [folder / f"leaderboard.{kind}" for kind in ("md", "json", "png", "html")]
