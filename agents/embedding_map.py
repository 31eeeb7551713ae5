"""The embedding map: where the rollouts of a few problems lie, arm beside arm, over training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setpo_envs.embedders import embed
from setpo_envs.group import Groups

from .figures import new_figure, set_title
from .jsonl import read_lines
from .results import Arm, Results, baseline, spaced

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CORRECT, WRONG, RING = "#0072B2", "#E69F00", "#999999"


@dataclass(frozen=True)
class MapPanel:
    """The rollouts of one arm at one step on one problem: M distinct modes, each one dot."""

    points: np.ndarray  # (M, 2)
    counts: np.ndarray  # (M,) how many rollouts
    correct: np.ndarray  # (M,) bool
    n_rollouts: int  # with those that have no mode


@dataclass(frozen=True)
class MapProblem:
    """One problem of the embedding map; all its panels share coordinates."""

    title: str
    rows: dict[str, list[MapPanel]]  # label of the arm -> one panel a column
    rings: np.ndarray  # (R, 2) the correct modes of any panel


def embedding_map(results: Results, n_problems: int = 2, n_columns: int = 4) -> tuple[list[MapProblem], list[str], str]:
    """Panels of the first seed of an arm with a shaper beside its baseline, on the problems with the most known solutions."""
    arms = compared_arms(results)
    steps_by_arm = [{(file.split, file.step): file for file in arm.groups_files() if file.step > 0} for arm in arms]
    shared = sorted(set.intersection(*map(set, steps_by_arm))) if arms else []
    split = shared[-1][0] if shared else ""  # "validation" sorts after "test"
    columns: list[tuple[str, list[Path]]] = [
        (f"step {key[1]}", [files[key].path for files in steps_by_arm])
        for key in spaced([key for key in shared if key[0] == split], n_columns)
    ]
    before = [file.path for file in results.base.groups_files() if file.split == split] if results.base else []
    if results.base and columns and before:
        columns.insert(0, (results.base.label, before[:1] * len(arms)))
    lines = [[{line["problem_id"]: line for line in read_lines(path)} for path in paths] for _, paths in columns]
    common = [line for key, line in lines[0][0].items() if all(key in table for tables in lines for table in tables)] if lines else []
    common.sort(key=lambda line: -line["metadata"].get("n_modes", 0))  # stable: else the first ones
    problems, shares = [], []
    for line in common[:n_problems]:
        rows = {arm.label: [tables[i][line["problem_id"]] for tables in lines] for i, arm in enumerate(arms)}
        known = line["metadata"].get("n_modes")
        problem, share = map_problem(f"problem {line['problem_id']}" + (f", {known} solutions exist" if known else ""), rows)
        problems.append(problem)
        shares.append(f"{share:.0%}")
    return problems, [name for name, _ in columns], " and ".join(shares)


def compared_arms(results: Results) -> list[Arm]:
    """GRPO and SetPO+GRPO where both are there; else the first arm that has a baseline, with it; else the first two."""
    by_name = {arm.name: arm for arm in results.arms}
    for name in sorted(by_name, key=lambda name: not name.startswith("setpo_grpo")):  # stable
        if other := baseline(name, by_name):
            return [by_name[other], by_name[name]]
    return results.arms[:2]


def map_problem(title: str, rows: dict[str, list[dict[str, Any]]]) -> tuple[MapProblem, float]:
    """Joint PCA of the distinct modes in stored groups of one problem; also the share of variance that two axes explain."""
    lines = [line for row in rows.values() for line in row]
    members = ("completions", "truncated", "rewards", "status", "answers", "mode_keys", "reasons", "shaped_rewards", "weights", "credits")
    # one group of all rollouts: an embedder may choose its space by group, and the panels need a common one
    everything = {**lines[0], "n_tokens": None, **{name: [value for line in lines for value in line[name]] for name in members}}
    vectors = embed(Groups.from_json([everything]), "expression" if lines[0]["task"] == "countdown" else "ngram")[0]
    first = {key: i for i, key in reversed(list(enumerate(everything["mode_keys"]))) if key is not None}
    points, share = pca(vectors[list(first.values())]) if first else (np.empty((0, 2)), 1.0)
    place = dict(zip(first, points, strict=True))
    right = {key: everything["status"][i] == "correct" for key, i in first.items()}

    def panel(line: dict[str, Any]) -> MapPanel:
        keys = [key for key in line["mode_keys"] if key is not None]
        own = list(dict.fromkeys(keys))
        return MapPanel(
            points=np.array([place[key] for key in own]).reshape(-1, 2),
            counts=np.array([keys.count(key) for key in own], int),
            correct=np.array([right[key] for key in own], bool),
            n_rollouts=len(line["mode_keys"]),
        )

    rings = np.array([place[key] for key in first if right[key]]).reshape(-1, 2)
    return MapProblem(title, {label: [panel(line) for line in row] for label, row in rows.items()}, rings), share


def pca(vectors_Md: np.ndarray) -> tuple[np.ndarray, float]:
    """(M, 2) coordinates on the first two principal axes, and the share of the variance they explain."""
    centred = np.asarray(vectors_Md, float) - np.mean(vectors_Md, 0, dtype=float)
    left, scale, _ = np.linalg.svd(centred, full_matrices=False)
    points = np.zeros((len(centred), 2))
    points[:, : min(2, len(scale))] = (left * scale)[:, :2]
    total = float((scale**2).sum())
    return points, float((scale[:2] ** 2).sum()) / total if total else 1.0


def embedding_map_figure(problems: Sequence[MapProblem], columns: Sequence[str], colors: Mapping[str, str], subtitle: str = "") -> Figure:
    """Rollouts over training: for every problem one row an arm, one column a step; dot area is the share of rollouts."""
    n_rows = sum(len(problem.rows) for problem in problems)
    figure, panels = new_figure(n_rows, len(columns), (0.5 + 2.35 * len(columns), 0.9 + 1.85 * n_rows))
    set_title(figure, "Where the rollouts are, over training", subtitle)
    grid = iter(np.array(panels, object).reshape(n_rows, len(columns)))
    for problem in problems:
        origin = np.zeros((1, 2))  # where no rollout of a problem has a mode, there is nothing else to show
        everything = np.concatenate([panel.points for row in problem.rows.values() for panel in row if len(panel.points)] or [origin])
        low, high = everything.min(0), everything.max(0)
        margin = 0.12 * np.maximum(high - low, 0.1)
        for label, row in problem.rows.items():
            line = next(grid)
            for axes, panel in zip(line, row, strict=True):
                draw_panel(axes, panel, problem.rings)
                axes.set(xlim=(low[0] - margin[0], high[0] + margin[0]), ylim=(low[1] - margin[1], high[1] + 2.5 * margin[1]))
            line[0].set_ylabel(label, color=colors.get(label, "black"), fontsize=10, fontweight="bold")
            if row is next(iter(problem.rows.values())):
                line[0].set_title(problem.title, loc="left", fontsize=9, fontweight="bold")
    for axes, name in zip(panels, columns, strict=False):
        axes.annotate(name, (0.5, 1), (0, 22), xycoords="axes fraction", textcoords="offset points", ha="center", fontsize=10)
    return figure


def draw_panel(axes: Axes, panel: MapPanel, rings: np.ndarray) -> None:
    axes.grid(False)
    axes.spines[:].set(visible=True, color="#cccccc")
    axes.set(xticks=[], yticks=[])
    axes.scatter(rings[:, 0], rings[:, 1], s=26, facecolors="none", edgecolors=RING, linewidths=0.8)
    for ok, color in ((False, WRONG), (True, CORRECT)):
        chosen = panel.correct == ok
        area = np.maximum(1300 * panel.counts[chosen] / panel.n_rollouts, 14)
        axes.scatter(panel.points[chosen, 0], panel.points[chosen, 1], s=area, color=color, alpha=0.75, edgecolors="white", linewidths=0.4)
    right = int(panel.counts[panel.correct].sum())
    text = f"{right} of {panel.n_rollouts} correct, {int(panel.correct.sum())} distinct"
    axes.text(0.03, 0.97, text, transform=axes.transAxes, va="top", fontsize=7.5, color="#333333")
