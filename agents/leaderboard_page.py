"""The leaderboard as a figure and as one self-contained HTML page."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from .leaderboard import Row, _cells, kendall_tau, rank_changes

Boards = Mapping[str, Mapping[str, Sequence[Row]]]

_STYLE = """body{font:15px/1.45 system-ui,sans-serif;max-width:76rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}
table{border-collapse:collapse;margin:.6rem 0 1.6rem;font-size:13px}th,td{padding:.2rem .55rem;text-align:right;border-bottom:1px solid #ddd}
th:nth-child(2),td:nth-child(2){text-align:left}tr.fixed td{color:#666;font-style:italic}img{max-width:100%}"""


def draw(rows_of: Boards, path: Path) -> None:
    """Each method's area under pass@k minus GRPO's, with its 95 % interval: raw beside scale-matched, one row an environment."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    height = max(len(rows) for both in rows_of.values() for rows in both.values())
    figure, axes = plt.subplots(len(rows_of), 2, figsize=(11, 0.27 * height * len(rows_of) + 1), squeeze=False, sharex="row")
    for (env, both), pair in zip(rows_of.items(), axes):
        for axis, (name, rows) in zip(pair, both.items()):
            shown = [row for row in rows if row.differences["auc"] is not None][::-1]
            for y, row in enumerate(shown):
                mean, low, high = row.differences["auc"] or (0.0, 0.0, 0.0)
                colour = "tab:blue" if row.rank else "tab:gray"
                axis.plot([low, high], [y, y], color=colour, lw=1.6)
                axis.plot(mean, y, "o", color=colour, ms=4)
            axis.axvline(0, color="black", lw=0.8)
            axis.set_yticks(range(len(shown)), [row.label for row in shown], fontsize=8)
            axis.set_title(f"{env}, {'raw' if name == 'raw' else 'scale-matched'}", fontsize=10)
            axis.set_xlabel("area under pass@k, minus GRPO", fontsize=8)
            axis.tick_params(axis="x", labelsize=8)
            axis.grid(axis="x", alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)


def page(rows_of: Boards, figure: Path) -> str:
    """The page: the figure and every table, without any outside resource."""
    parts = [f'<img alt="differences to GRPO" src="data:image/png;base64,{base64.b64encode(figure.read_bytes()).decode()}">']
    for env, both in rows_of.items():
        for name, rows in both.items():
            parts.append(f"<h2>{escape(env)}, {'raw' if name == 'raw' else 'scale-matched'}</h2>{_html(rows)}")
        changes = rank_changes(both["raw"], both["matched"])
        moved = "".join(f"<tr><td>{a}</td><td>{escape(label)}</td><td>{b}</td></tr>" for label, a, b in changes)
        parts.append(
            f"<h2>{escape(env)}, rankings side by side</h2><p>Kendall's tau {kendall_tau(changes):+.2f}</p>"
            f"<table><tr><th>raw</th><th>method</th><th>matched</th></tr>{moved}</table>"
        )
    note = (
        "Ranked by the area under pass@k over log2 k on the test problems, mean over seeds. × is the strength chosen on validation; "
        "ratio is RMS of shaping over RMS of the base advantage; cost is the time of the credit over the rest of a step. "
        "Rows in italics do not compete."
    )
    body = "".join(parts)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Leaderboard</title><style>{_STYLE}</style>'
        f"<body><h1>Leaderboard</h1><p>{note}</p>{body}</body></html>\n"
    )


def _html(rows: Sequence[Row]) -> str:
    names = list(rows[0].values)
    head = ["", "method", "×", *("AUC" if name == "auc" else name for name in names), "AUC − GRPO", "ratio", "cost", "seeds"]
    lines = ["<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>"]
    for row in rows:
        cells = "".join(f"<td>{escape(str(cell))}</td>" for cell in _cells(row, names))
        lines.append(f"<tr{'' if row.rank else ' class=fixed'}>{cells}</tr>")
    return f"<table>{''.join(lines)}</table>"
