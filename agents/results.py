"""Read a demo or study folder back: result lines, training curves, stored groups, and the table of the terminal.

A folder holds ``results.jsonl`` (one line an arm, seed and split) and the run folders that its lines name, each with
``config.json``, ``metrics.jsonl`` (one line a step) and ``eval/SPLIT-STEP.groups.jsonl`` (one group a line). The arm
called ``base`` is the policy before reinforcement learning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from setpo_envs.metrics import paired_interval

from .jsonl import read_lines

Row = Mapping[str, Any]

_GROUPS_FILE = re.compile(r"(?P<split>\w+)-(?P<step>\d+)\.groups\.jsonl")


@dataclass(frozen=True)
class GroupsFile:
    """One evaluation of one run: the policy at ``step`` on the problems of ``split``."""

    path: Path
    split: str
    step: int


@dataclass(frozen=True)
class Arm:
    """One method: its result lines on the headline split, one a seed, and the run folders behind them."""

    name: str
    label: str
    rows: Sequence[Row]  # S, sorted by seed
    runs: list[Path]  # S

    def curve(self, key: str) -> tuple[np.ndarray, np.ndarray]:
        """(steps (T,), values (S', T)) of one key of ``metrics.jsonl`` over the runs that logged it, cut to the shortest."""
        paths = [run / "metrics.jsonl" for run in self.runs]
        logs = [[line for line in read_lines(path) if _number(line.get(key))] for path in paths if path.exists()]
        logs = [log for log in logs if log]
        length = min(map(len, logs), default=0)
        values = np.array([[line[key] for line in log[:length]] for log in logs], float).reshape(len(logs), length)
        return np.array([line["step"] for line in logs[0][:length]] if logs else []), values

    def groups_files(self, seed: int = 0) -> list[GroupsFile]:
        """The evaluations of the ``seed``-th run, by split and step."""
        found = [(path, _GROUPS_FILE.fullmatch(path.name)) for path in self.runs[seed].glob("eval/*.groups.jsonl")]
        files = [GroupsFile(path, match["split"], int(match["step"])) for path, match in found if match]
        return sorted(files, key=lambda file: (file.split, file.step))

    def config(self) -> dict[str, Any]:
        """``config.json`` of the first run, or {} where there is none."""
        path = self.runs[0] / "config.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


@dataclass(frozen=True)
class Results:
    """A demo or study folder; ``arms`` leaves the base out."""

    folder: Path
    split: str
    arms: list[Arm]
    base: Arm | None

    @property
    def everyone(self) -> list[Arm]:
        return [self.base, *self.arms] if self.base else self.arms

    @property
    def rows(self) -> list[Row]:
        return [row for arm in self.everyone for row in arm.rows]


def read_results(folder: Path) -> Results:
    """The folder's results on its test split (or the split there is), each arm and seed at its last step.

    Raises:
        ValueError: ``results.jsonl`` is missing, empty or malformed.
    """
    folder = Path(folder)
    path = folder / "results.jsonl"
    rows: Sequence[Row] = list(read_lines(path)) if path.exists() else []
    if not rows:
        raise ValueError(f"expected finished runs in {path}, found none: run 'setpo demo' or 'setpo study' with --out {folder}")
    rows = headline(rows)
    arms = []
    for name in dict.fromkeys(row["arm"] for row in rows):
        own = sorted((row for row in rows if row["arm"] == name), key=lambda row: row["seed"])
        arms.append(Arm(name, own[0]["label"], own, [folder / row.get("run", name) for row in own]))
    base = next((arm for arm in arms if arm.name == "base"), None)
    return Results(folder, rows[0]["split"], [arm for arm in arms if arm is not base], base)


def headline(rows: Sequence[Row]) -> list[Row]:
    """The rows of the test split (of the last split there is, without one): the last step of each arm and seed.

    Arms that share a label (one method with several coefficients) get what tells their names apart behind it.
    """
    splits = [row["split"] for row in rows]
    split = "test" if "test" in splits else splits[-1]
    last: dict[tuple[str, int], Row] = {}
    for row in rows:
        key = row["arm"], row["seed"]
        if row["split"] == split and (key not in last or row.get("step", 0) >= last[key].get("step", 0)):
            last[key] = row
    names: dict[str, set[str]] = {}
    for row in last.values():
        names.setdefault(row.get("label", row["arm"]), set()).add(row["arm"])

    def label(row: Row) -> str:
        name = row.get("label", row["arm"])
        return name if len(names[name]) == 1 else f"{name} {row['arm'].rpartition('-')[2]}"

    return [{**row, "label": label(row)} for row in last.values()]


def spaced(items: Sequence[Any], n: int) -> list[Any]:
    """At most n of the items, evenly spread, the last one always among them."""
    if len(items) <= n:
        return list(items)
    return [items[round((i + 1) * len(items) / n) - 1] for i in range(n)]


def pass_ks(rows: Iterable[Row]) -> list[int]:
    """Every k whose pass@k is in all rows, ascending."""
    keys = [{key for key, value in row.items() if _number(value)} for row in rows]
    return sorted(int(key[5:]) for key in set.intersection(*keys) if key.startswith("pass@"))


def baseline(arm: str, arms: Iterable[str]) -> str | None:
    """The arm that ``arm`` is compared with: plain ``gspo`` for what builds on GSPO, else plain ``grpo``; None for these."""
    name = "gspo" if "gspo" in arm else "grpo"
    return name if name in set(arms) and arm not in (name, "base") else None


# --- the table of the terminal --------------------------------------------------------------------------------------


def format_table(rows: Sequence[Row]) -> str:
    """Result lines as a plain table of at most 80 columns: means over seeds, then each arm minus its own baseline.

    Differences are paired by seed; ± is half of their 95 % t interval (absent with one seed).
    """
    rows = headline(rows)
    ks = pass_ks(rows)
    columns = [f"pass@{k}" for k in sorted({ks[0], min(ks, key=lambda k: abs(k - 8)), ks[-1]})] if ks else []
    columns += [key for key in (f"distinct@{ks[-1]}" if ks else "", "entropy") if any(_number(row.get(key)) for row in rows)]
    by_arm: dict[str, dict[int, Row]] = {}
    for row in rows:
        by_arm.setdefault(row["arm"], {})[row["seed"]] = row
    labels = {row["arm"]: row["label"] for row in rows}
    problems = {len(row["per_problem"]["correct"]) for row in rows if "per_problem" in row}
    steps = sorted({row.get("step", 0) for row in rows if row["arm"] != "base"})
    facts = [f"{rows[0]['split']} split", f"{problems.pop()} problems" if len(problems) == 1 else "", f"step {steps[-1]}" if steps else ""]
    heads = ["distinct" if column.startswith("distinct@") else column for column in columns]
    lines = [", ".join(filter(None, facts)) + "; means over seeds", "", _line("", [*heads, "seeds"], 9)]
    for arm, seeds in by_arm.items():
        lines.append(_line(labels[arm], [*(_cell([row.get(key) for row in seeds.values()]) for key in columns), len(seeds)], 9))
    compared = [(arm, other) for arm in by_arm if (other := baseline(arm, by_arm)) and set(by_arm[arm]) & set(by_arm[other])]
    if compared:
        lines += ["", "Differences, paired by seed (± half the 95 % t interval)"]
    for other in dict.fromkeys(other for _, other in compared):
        lines += ["", _line(f"minus {labels[other]}", heads[:4], 14)]
        for arm in (arm for arm, own in compared if own == other):
            shared = sorted(set(by_arm[arm]) & set(by_arm[other]))
            pairs = [[(by_arm[arm][seed].get(key), by_arm[other][seed].get(key)) for seed in shared] for key in columns[:4]]
            lines.append(_line(labels[arm], [_difference(pair) for pair in pairs], 14))
    if f"distinct@{ks[-1] if ks else 0}" in columns:
        lines += ["", f"distinct: distinct correct solutions of a problem among {ks[-1]} samples"]
    return "\n".join(line.rstrip() for line in lines)


def print_table(rows: Sequence[Row]) -> None:
    """Print :func:`format_table`."""
    print(format_table(rows))


def _line(label: str, cells: Sequence[Any], width: int) -> str:
    room = 80 - width * len(cells)
    label = label if len(label) < room else label[: room - 2] + "…"
    return label.ljust(room) + "".join(str(cell).rjust(width) for cell in cells)


def _cell(values: Sequence[Any]) -> str:
    return f"{np.mean(values):.3f}" if all(map(_number, values)) else "-"


def _difference(pairs: Sequence[tuple[Any, Any]]) -> str:
    if not all(_number(value) for pair in pairs for value in pair):
        return "-"
    mean, low, _ = paired_interval([a - b for a, b in pairs])
    return f"{round(mean, 3) + 0.0:+.3f}" + (f" ±{mean - low:.3f}" if len(pairs) > 1 else "")


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and bool(np.isfinite(value))
