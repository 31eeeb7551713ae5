"""A group as text for people: at most 80 terminal cells wide, nothing that a terminal would take for a command."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from setpo_verifiers import Status

from .group import Groups

COLUMNS = 80


def render_group(groups: Groups, n: int) -> str:
    """Group ``n`` for people: verdict, credit and mode of each completion above its text."""
    undefined = "" if groups.defined[n] else " (credits undefined)"
    lines = [f"reward {groups.mean_rewards[n]:.3f}, diversity {groups.diversity[n]:+.3f}{undefined}"]
    for g, text in enumerate(groups.completions_NG[n]):
        status = Status(int(groups.status[n, g])).name.lower()
        head = f"{g + 1:3d} {status:9s} reward {groups.rewards[n, g]:g}"
        if groups.shaped_rewards[n, g] != groups.rewards[n, g]:
            head += f" shaped {groups.shaped_rewards[n, g]:.3g}"
        head += f"  credit {groups.credits[n, g]:+.4f}"
        if (mode := groups.mode_keys[n, g]) is not None:
            head += f"  mode {groups.modes[n, g]}: {mode}"
        lines += [cut(printable(head.replace("\n", " "))), wrapped(text, "    ", max_lines=6)]
    return "\n".join(lines)


def wrapped(text: str, indent: str, max_lines: int | None = None) -> str:
    """``text`` in lines of at most 80 cells, indented; what does not fit ``max_lines`` is counted in the last of them."""
    lines = [part for line in printable(text).split("\n") for part in _wrap(line, COLUMNS - len(indent))]
    if max_lines is not None and len(lines) > max_lines:
        lines = [*lines[: max_lines - 1], f"... ({len(lines) - max_lines + 1} more lines)"]
    return "\n".join(indent + line if line else "" for line in lines)


def printable(text: str) -> str:
    """``text`` without control sequences, which model output may hold, and with a space for a tab."""
    return "".join(c if c.isprintable() or c == "\n" else " " if c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def cells(text: str) -> int:
    """How many terminal cells ``text`` takes: two for a wide character (East Asian, emoji), none for a combining mark."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _wrap(line: str, width: int) -> Iterator[str]:
    """Lines of at most ``width`` cells, broken at spaces where there are any; at least one."""
    start = 0
    while (end := _fitting(line, start, width)) < len(line):
        space = line.rfind(" ", start + 1, end + 1)
        stop = space if line[start : max(space, start)].strip() else end
        yield line[start:stop].rstrip()
        start = next((place for place in range(stop, len(line)) if line[place] != " "), len(line))
    if start < len(line) or not start:
        yield line[start:].rstrip()


def _fitting(line: str, start: int, width: int) -> int:
    """The end of the longest piece from ``start`` that takes at most ``width`` cells; at least one character."""
    if line.isascii():
        return min(start + width, len(line))
    used = 0
    for end in range(start, len(line)):
        used += _cells(line[end])
        if used > width:
            return max(end, start + 1)
    return len(line)


def cut(line: str) -> str:
    """``line``, its end replaced by dots where it takes more than 80 cells."""
    return line if cells(line) <= COLUMNS else line[: _fitting(line, 0, COLUMNS - 3)] + "..."
