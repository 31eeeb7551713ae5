"""Curves of a demo or study: pure functions from plain arrays to matplotlib figures (Agg; imported when called)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from setpo_envs.metrics import paired_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Curve = tuple[np.ndarray, np.ndarray]  # x (T,), values (S, T): one row a seed

# Okabe and Ito's palette and two of Tol's, safe for colour-blind readers, in the order that separates neighbours best; grey is the base's.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C510A", "#222222", "#882255", "#999933")
BASE_COLOR = "#777777"


def arm_colors(names: Sequence[str]) -> dict[str, str]:
    """One colour an arm, the same in every figure and on the page; more arms than colours start over."""
    return {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(names)}


def band(values_ST: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(mean, low, high), each (T,), over seeds: the 95 % t interval from 3 seeds on, else the range."""
    mean = values_ST.mean(0)
    if len(values_ST) < 3:
        return mean, values_ST.min(0), values_ST.max(0)
    intervals = np.array([paired_interval(column) for column in values_ST.T])
    return mean, intervals[:, 1], intervals[:, 2]


def band_name(n_seeds: int) -> str:
    return {1: "one seed", 2: "band: range of 2 seeds"}.get(n_seeds, f"band: 95 % interval over {n_seeds} seeds")


def pass_at_k_figure(
    panels: Sequence[Mapping[str, Curve]], base: tuple[str, Curve] | None, colors: Mapping[str, str], subtitle: str = ""
) -> Figure:
    """pass@k against k on a log2 axis, one panel a mapping: one line a label, and ``base`` (label, curve) dashed in each."""
    figure, all_axes = new_figure(1, len(panels), (7.6 if len(panels) == 1 else 6.2 * len(panels), 5))
    set_title(figure, "pass@k: problems solved when k samples are drawn", subtitle)
    ends: list[list[tuple[float, float, str, str]]] = []
    for axes, curves in zip(all_axes, panels, strict=True):
        ends.append([])
        for label, (k, values) in curves.items():
            mean = _draw_band(axes, k, values, colors[label], marker="o")
            ends[-1].append((k[-1], mean[-1], label, colors[label]))
        if base is not None:
            label, (k, values) = base
            axes.plot(k, values.mean(0), "--", color=BASE_COLOR, lw=1.8, marker="o", ms=3, clip_on=False)
            ends[-1].append((k[-1], values.mean(0)[-1], label, BASE_COLOR))
        ticks = sorted({int(k) for x, _ in [*curves.values(), *([base[1]] if base else [])] for k in x})
        axes.set_xscale("log", base=2)
        axes.set_xticks(ticks, [str(k) for k in ticks])
        axes.minorticks_off()
        axes.set_xlabel("k, samples drawn a problem")
    all_axes[0].set_ylabel("pass@k: share of problems solved")
    top = min(1.02, max(axes.get_ylim()[1] for axes in all_axes))
    for axes, labels in zip(all_axes, ends, strict=True):
        axes.set_ylim(0, top)
        _label_ends(axes, labels)
    return figure


PANELS = {
    "distinct_correct": "distinct correct solutions in a group",
    "entropy": "entropy, nats per token",
    "all_wrong": "share of groups that are all wrong",
    "shaping_ratio": "shaping ratio, RMS(shaped − base) / RMS(base)",
}


def diversity_figure(curves: Mapping[str, Mapping[str, Curve]], colors: Mapping[str, str], subtitle: str = "") -> Figure:
    """Training curves, one panel a key of ``PANELS``: ``curves[key][label]``. Raw values faint, a running mean bold."""
    from matplotlib.lines import Line2D

    figure, panels = new_figure(2, 2, (11, 7.4))
    set_title(figure, "Diversity over training", subtitle)
    labels = list(dict.fromkeys(label for by_arm in curves.values() for label in by_arm))
    crowded = len(labels) > 5  # names at the ends of the lines would leave the lines no room
    for axes, (key, title) in zip(panels, PANELS.items(), strict=True):
        ends = []
        for label, (steps, values) in curves[key].items():
            axes.plot(steps, values.mean(0), color=colors[label], lw=0.7, alpha=0.3)
            smooth = running_mean(values, max(1, len(steps) // 12))
            mean = _draw_band(axes, steps, smooth, colors[label])
            ends.append((steps[-1], mean[-1], label, colors[label]))
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_xlabel("training step")
        if not ends:
            axes.text(0.5, 0.5, "no arm logged this", ha="center", color=BASE_COLOR, transform=axes.transAxes)
            continue
        values = np.array([end[1] for end in ends])
        if key == "shaping_ratio" and values.min() > 0 and values.max() > 20 * values.min():
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        if not crowded:
            _label_ends(axes, ends)
    if crowded:
        handles = [Line2D([], [], color=colors[label], lw=2, label=label) for label in labels]
        figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    return figure


def running_mean(values_ST: np.ndarray, window: int) -> np.ndarray:
    """Centred mean over ``window`` steps along the last axis, over what there is of the window at the ends."""
    ones = np.ones(window)
    counts = np.convolve(np.ones(values_ST.shape[-1]), ones, "same")
    return np.stack([np.convolve(row, ones, "same") / counts for row in values_ST])


# --- drawing --------------------------------------------------------------------------------------------------------


def new_figure(n_rows: int, n_columns: int, size: tuple[float, float]) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure  # not pyplot: no global state, no display, Agg on saving

    figure = Figure(figsize=size, dpi=150, layout="constrained")
    figure.get_layout_engine().set(wspace=0.04)  # type: ignore[union-attr, call-arg]
    panels = list(figure.subplots(n_rows, n_columns, squeeze=False).flat)
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#e6e6e6", lw=0.6)
        axes.set_axisbelow(True)
    return figure, panels


def set_title(figure: Figure, title: str, subtitle: str) -> None:
    """A bold title and a grey subtitle at the top left; the panels keep below them."""
    height = 72 * figure.get_figheight()  # points
    figure.text(0.01, 1 - 8 / height, title, va="top", fontsize=12, fontweight="bold")
    figure.text(0.01, 1 - 27 / height, subtitle, va="top", fontsize=9, color="#555555", linespacing=1.4)
    room = (34 + 13 * (subtitle.count("\n") + 1)) / height
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - room))  # type: ignore[union-attr, call-arg]


def _draw_band(axes: Axes, x: np.ndarray, values: np.ndarray, color: str, **line: Any) -> np.ndarray:
    mean, low, high = band(values)
    if len(values) > 1:
        axes.fill_between(x, low, high, color=color, alpha=0.15, lw=0)
    axes.plot(x, mean, color=color, lw=2, ms=3.5, clip_on=False, **line)
    return mean


def _label_ends(axes: Axes, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Write each line's name at its right end, moved apart where they would overlap."""
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]  # the layout decides where pixels are
    size = 9.0
    gap = 1.25 * size * axes.figure.dpi / 72
    ordered = sorted(ends, key=lambda end: end[1])
    bottom, top = axes.transAxes.transform([(0, 0), (0, 1)])[:, 1]
    wanted = [axes.transData.transform((x, y))[1] for x, y, _, _ in ordered]
    placed = spread(np.array(wanted), gap, bottom + gap / 2, top)
    right = max(x for x, _, _, _ in ends)
    for (x, y, text, color), pixel in zip(ordered, placed, strict=True):
        offset = (pixel - axes.transData.transform((x, y))[1]) * 72 / axes.figure.dpi
        axes.annotate(
            text,
            (x, y),
            (14, offset),
            textcoords="offset points",
            va="center",
            color=color,
            fontsize=size,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": color, "lw": 0.6, "shrinkA": 1, "shrinkB": 2, "relpos": (0, 0.5)},
        )
    axes.set_xlim(right=right)


def spread(wanted: np.ndarray, gap: float, low: float, high: float) -> np.ndarray:
    """Positions at least ``gap`` apart in the order of the ascending ``wanted``, least squares away; inside [low, high] if they fit."""
    blocks: list[list[float]] = []  # pool adjacent violators on wanted[i] - i * gap, which must not decrease
    for i, position in enumerate(wanted):
        blocks.append([position - i * gap])
        while len(blocks) > 1 and np.mean(blocks[-2]) > np.mean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    pooled = np.concatenate([np.full(len(block), np.mean(block)) for block in blocks])
    return np.clip(pooled, low, max(low, high - gap * (len(wanted) - 1))) + gap * np.arange(len(wanted))
