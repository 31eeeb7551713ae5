"""The report of a demo or study folder: figures, the table, and one self-contained page on which to read the groups."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from setpo_envs.group import Groups
from setpo_envs.shapers.setpo import SetPO

from .embedding_map import embedding_map, embedding_map_figure
from .figures import PANELS, Curve, arm_colors, band_name, diversity_figure, pass_at_k_figure
from .jsonl import read_lines
from .page import self_contained
from .results import Arm, GroupsFile, Results, format_table, pass_ks, read_results, spaced

MAX_FILES = 5
"""Evaluations of one arm on the page: the test split and validation steps spread over training."""


def write_report(out_dir: Path, *, problems_per_file: int = 24, max_bytes: int = 12_000_000) -> list[Path]:
    """Write ``pass_at_k.png``, ``diversity.png``, ``embedding_map.png``, ``table.txt`` and ``report.html`` into ``out_dir``.

    A picture whose input is missing is left out, and the page says which command makes it.

    Args:
        problems_per_file: Problems of each stored evaluation that go on the page, the first ones.
        max_bytes: Bound on the page's groups; above it, fewer problems a file are kept.

    Raises:
        ValueError: No results in the folder, or a malformed line (file and line are named).
        OSError: The folder cannot be written.
    """
    results = read_results(Path(out_dir))
    colors = arm_colors([arm.label for arm in results.arms])
    pictures, notes = draw(results, colors)
    written = []
    for name, figure in pictures.items():
        written.append(results.folder / f"{name}.png")
        figure.savefig(written[-1])
    table = format_table(results.rows)
    written.append(results.folder / "table.txt")
    written[-1].write_text(table + "\n", encoding="utf-8")
    arms, kept = bounded_groups(results, problems_per_file, max_bytes)
    page = {
        "title": f"Groups and results of {results.folder.resolve().name}",
        "facts": f"{subtitle(results)}. Groups: the first seed of each arm, the first {kept} problems of each evaluation.",
        "table": table,
        "notes": notes,
        "figures": [{"name": name, "alt": ALTS[name], "src": data_uri(results.folder / f"{name}.png")} for name in pictures],
        "arms": arms,
    }
    written.append(results.folder / "report.html")
    written[-1].write_text(self_contained("report.html", page), encoding="utf-8")
    return written


def data_uri(png: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(png.read_bytes()).decode()


# --- figures --------------------------------------------------------------------------------------------------------

ALTS = {
    "pass_at_k": "pass@k of every arm against k; the table above has the numbers",
    "diversity": "distinct correct solutions, entropy, share of all-wrong groups and shaping ratio over training, by arm",
    "embedding_map": "rollouts of a few problems as dots, by arm and training step",
}


def draw(results: Results, colors: dict[str, str]) -> tuple[dict[str, Any], list[str]]:
    """The figures by name, and a note for every one that could not be drawn."""
    pictures, notes = {}, []
    out = results.folder
    if results.base is None:
        notes.append(f"The base model is not in these results: 'setpo demo --out {out}' evaluates it.")
    ks = pass_ks(results.rows)
    if ks:
        families = [[arm for arm in results.arms if ("gspo" in arm.name) is gspo] for gspo in (False, True)]
        panels: list[dict[str, Curve]] = [{arm.label: pass_curve(arm, ks) for arm in family} for family in families if family] or [{}]
        base = (results.base.label, pass_curve(results.base, ks)) if results.base else None
        pictures["pass_at_k"] = pass_at_k_figure(panels, base, colors, subtitle(results))
    training = {key: {arm.label: curve for arm in results.arms if (curve := arm.curve(key))[1].size} for key in PANELS}
    training["shaping_ratio"] = {label: curve for label, curve in training["shaping_ratio"].items() if curve[1].any()}
    if any(training.values()):
        smooth = f"bold: running mean, faint: each step; {band_name(max(len(arm.rows) for arm in results.arms))}"
        pictures["diversity"] = diversity_figure(training, colors, smooth)
    else:
        notes.append(f"No training curves: no run has metrics.jsonl; 'setpo train' writes it, 'setpo demo --out {out}' makes all.")
    problems, columns, share = embedding_map(results)
    if problems:
        text = (
            "a dot is one mode, its area the share of rollouts; blue: correct, orange: wrong; rings: correct modes found in any panel\n"
            f"one PCA for all panels of a problem ({share} of the variance of its modes); the problems with the most known solutions"
        )
        pictures["embedding_map"] = embedding_map_figure(problems, columns, colors, text)
    else:
        notes.append("No embedding map: no two arms share an evaluation during training; 'setpo demo' stores them under runs/*/eval/.")
    return pictures, notes


def subtitle(results: Results) -> str:
    rows = [row for arm in results.arms for row in arm.rows] or results.rows
    problems = f", {len(rows[0]['per_problem']['correct'])} problems" if "per_problem" in rows[0] else ""
    seeds = max((len(arm.rows) for arm in results.arms), default=1)
    return f"{results.split} split{problems}, step {rows[0].get('step', 0)}; {band_name(seeds)}"


def pass_curve(arm: Arm, ks: Sequence[int]) -> Curve:
    return np.array(ks), np.array([[row[f"pass@{k}"] for k in ks] for row in arm.rows], float)


# --- the groups on the page -----------------------------------------------------------------------------------------


def bounded_groups(results: Results, n_problems: int, max_bytes: int) -> tuple[list[dict[str, Any]], int]:
    """Arms with their evaluations and groups, and how many problems a file were kept to stay below ``max_bytes``."""
    while True:
        arms = [page_arm(arm, results, n_problems) for arm in results.everyone]
        arms = [arm for arm in arms if arm["files"]]
        if n_problems == 1 or len(json.dumps(arms)) <= max_bytes:
            return arms, n_problems
        n_problems = max(1, n_problems // 2)


def page_arm(arm: Arm, results: Results, n_problems: int) -> dict[str, Any]:
    shaper, kernel = similarity_of(arm, results)
    groups = {f"{file.split}, step {file.step}": list(page_groups(file, shaper, n_problems)) for file in chosen_files(arm)}
    return {"label": arm.label, "kernel": kernel, "files": [{"name": name, "groups": own} for name, own in groups.items() if own]}


def chosen_files(arm: Arm) -> list[GroupsFile]:
    files = arm.groups_files()
    splits = sorted({file.split for file in files}, key=lambda split: (split == "test", split))
    last = [[file for file in files if file.split == split] for split in splits]
    return [file for own in last for file in spaced(own, MAX_FILES - len(last) + 1 if own is last[0] else 1)]


def similarity_of(arm: Arm, results: Results) -> tuple[SetPO, str]:
    """The kernel of the arm's shaper (of the folder's first SetPO arm, for an arm without one), and its name."""
    for candidate in [arm, *results.arms]:
        config = candidate.config()
        name, options = config.get("shaper"), config.get("shaper_kwargs") or {}
        if name == "shuffled":
            name, options = options.get("of", "setpo"), options.get("of_kwargs") or {}
        if name == "setpo" and options.get("embedder") != "policy":  # its vectors are not stored with the text
            shaper = SetPO(**options)
            return shaper, shaper.kernel + ("" if shaper.kernel == "equality_key" else f", {shaper.embedder}")
    return SetPO(), "cosine_clamp, ngram"


def page_groups(file: GroupsFile, shaper: SetPO, n_problems: int) -> Iterable[dict[str, Any]]:
    """Stored groups as the page wants them: what repeated completions share is written once, similarities in percent."""
    for line in islice(read_lines(file.path), n_problems):
        keys = list(zip(line["completions"], line["status"], line["reasons"], line["mode_keys"], strict=True))
        first = {key: i for i, key in reversed(list(enumerate(keys)))}
        unique = {key: i for i, key in enumerate(first)}
        similarity = shaper.similarity(Groups.from_json([line]))[0][np.ix_(list(first.values()), list(first.values()))]
        yield {
            "id": line["problem_id"],
            "prompt": line["prompt"],
            "gold": line["gold"] if isinstance(line["gold"], str) else json.dumps(line["gold"], ensure_ascii=False),
            "n_modes": line["metadata"].get("n_modes"),
            "records": [dict(zip(("text", "status", "reason", "mode"), key, strict=True)) for key in unique],
            "members": [unique[key] for key in keys],
            "credits": [round(credit, 6) for credit in line["credits"]],
            "similarity": base64.b64encode(np.rint(100 * similarity).astype(np.uint8).tobytes()).decode(),
            "defined": line["defined"],
            "diversity": line["diversity"] if np.isfinite(line["diversity"]) else None,
        }
