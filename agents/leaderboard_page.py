"""The leaderboards as Markdown, as JSON, as a figure and as one self-contained HTML page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from math import isnan
from pathlib import Path
from typing import Any

from .leaderboard import Row, kendall_tau, rank_changes, read_boards
from .report import data_uri

Boards = Mapping[str, Mapping[str, Sequence[Row]]]
"""{environment: {"raw" or "matched": rows}}."""
TITLES = {"raw": "raw: strength chosen on validation", "matched": "scale-matched: the same RMS of shaping for all"}
NOTE = (
    "Ranked by AUC, the area under pass@k over log2 k on the test problems; means over seeds. × is the strength chosen on validation, "
    "ratio the RMS of the shaping over the RMS of the base advantage, cost the time of the credit over the rest of a training step. "
    "In brackets: 95 % t interval over paired seeds. Rows without a rank (controls, GRPO, the base model) do not compete."
)
_NAMES = {"auc": "AUC"}
_STYLE = """
body{font:15px/1.45 system-ui,sans-serif;max-width:78rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}
table{border-collapse:collapse;margin:.6rem 0 1.6rem;font-size:13px;font-variant-numeric:tabular-nums}
th,td{padding:.2rem .55rem;text-align:right;border-bottom:1px solid #ddd;white-space:nowrap}
th:nth-child(2),td:nth-child(2){text-align:left}
tr.unranked td{color:#666;font-style:italic}
img{max-width:100%}.wide{overflow-x:auto}
"""


def write_leaderboard(folder: Path) -> list[Path]:
    """Write ``leaderboard.md``, ``.json``, ``.png`` and ``.html`` into a benchmark folder; returns their paths.

    They are made of what is finished so far; ValueError where nothing is on test problems.
    """
    boards = read_boards(folder)
    paths = [folder / f"leaderboard.{kind}" for kind in ("md", "json", "png", "html")]
    paths[0].write_text(markdown(boards) + "\n", encoding="utf-8")
    as_json = {env: {name: [vars(row) for row in rows] for name, rows in both.items()} for env, both in boards.items()}
    paths[1].write_text(json.dumps(_without_nan(as_json), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    draw(boards, paths[2])
    paths[3].write_text(html(boards, paths[2]), encoding="utf-8")
    return paths


def _without_nan(value: Any) -> Any:
    """The ends of an interval of one seed are nan, which JSON does not have: null."""
    if isinstance(value, Mapping):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and isnan(value) else value


# --- tables: a title, a head and rows of cells as text -------------------------------------------------------------------


def tables(boards: Boards) -> list[tuple[str, list[str], list[list[str]]]]:
    """(title, head, rows) of every board, and of the two rankings of each environment side by side."""
    found = []
    for env, both in boards.items():
        for name, rows in both.items():
            metrics = list(rows[0].values)
            head = ["rank", "method", "×", *(_NAMES.get(name, name) for name in metrics), "AUC − GRPO", "ratio", "cost", "seeds"]
            found.append((f"{env}, {TITLES[name]}", head, [_cells(row, metrics) for row in rows]))
        changes = rank_changes(both["raw"], both["matched"])
        if changes:
            title = f"{env}, what scale matching changes (Kendall's tau between the rankings {kendall_tau(changes):+.2f})"
            moved = [[str(raw), label, str(matched), f"{raw - matched:+d}" if raw != matched else "0"] for label, raw, matched in changes]
            found.append((title, ["raw", "method", "matched", "change"], moved))
    return found


def _cells(row: Row, metrics: Sequence[str]) -> list[str]:
    return [
        "" if row.rank is None else str(row.rank),
        row.label,
        "" if row.strength is None else f"{row.strength:g}",
        *("-" if (value := row.values[name]) is None else f"{value:.3f}" for name in metrics),
        _interval(row.differences["auc"]),
        f"{row.shaping_ratio:.2f}",
        f"{row.overhead:.1%}",
        str(row.seeds),
    ]


def _interval(difference: tuple[float, float, float] | None) -> str:
    if difference is None:
        return ""
    mean, low, high = difference
    return f"{mean:+.3f}" + ("" if isnan(low) else f" [{low:+.3f}, {high:+.3f}]")


def markdown(boards: Boards) -> str:
    """Every table as Markdown."""
    parts = [NOTE]
    for title, head, rows in tables(boards):
        lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in cells] for cells in rows)]
        parts += [f"### {title}", "\n".join("| " + " | ".join(cells) + " |" for cells in lines)]
    return "\n\n".join(parts)


def html(boards: Boards, figure: Path) -> str:
    """The page: the figure and every table, without any outside resource. Labels are names that anyone chose: all text is escaped."""
    parts = [f'<h1>Leaderboard</h1><p>{escape(NOTE)}</p><img alt="area under pass@k minus GRPO, by method" src="{data_uri(figure)}">']
    for title, head, rows in tables(boards):
        lines = ["<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>"]
        for cells in rows:
            kind = "" if cells[0] else ' class="unranked"'
            lines.append(f"<tr{kind}>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
        parts.append(f'<h2>{escape(title)}</h2><div class="wide"><table>{"".join(lines)}</table></div>')
    top = f'<head><meta charset="utf-8"><title>Leaderboard</title><style>{_STYLE}</style></head>'
    return f'<!doctype html>\n<html lang="en">{top}<body>{"".join(parts)}</body></html>\n'


# --- the figure ----------------------------------------------------------------------------------------------------------


def draw(boards: Boards, path: Path) -> None:
    """Each method's area under pass@k minus GRPO's, with its 95 % interval: raw beside scale-matched, one row an environment."""
    from matplotlib.figure import Figure  # not pyplot: no global state, no display

    heights = [1 + max(len(rows) for rows in both.values()) for both in boards.values()]
    figure = Figure(figsize=(12, 0.24 * sum(heights) + 0.9 * len(heights)), dpi=150, layout="constrained")
    panels = figure.subplots(len(boards), 2, squeeze=False, sharex="row", height_ratios=heights)
    for (env, both), pair in zip(boards.items(), panels):
        for axes, (name, rows) in zip(pair, both.items()):
            shown = [(row, gap) for row in reversed(rows) if (gap := row.differences["auc"]) is not None]
            for y, (row, (mean, low, high)) in enumerate(shown):
                color = "#777777" if row.rank is None else "#0072B2"
                axes.plot([low, high], [y, y], color=color, lw=1.8, solid_capstyle="butt")
                axes.plot(mean, y, "o", color=color, ms=4.5)
            labels = [f"{row.label}{'' if row.strength is None else f' ×{row.strength:g}'}" for row, _ in shown]
            axes.set_yticks(range(len(shown)), labels, fontsize=8, parse_math=False)  # a "$" in a name is a "$"
            axes.set_ylim(-0.7, max(len(shown), 1) - 0.3)
            axes.axvline(0, color="black", lw=0.8)
            axes.set_title(f"{env}, {TITLES[name]}", loc="left", fontsize=9, parse_math=False)
            axes.set_xlabel("area under pass@k minus GRPO's; bar: 95 % interval over paired seeds", fontsize=8)
            axes.tick_params(axis="x", labelsize=8)
            axes.grid(axis="x", color="#e6e6e6", lw=0.6)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)
