"""Append-only JSON Lines: whole lines are kept, a line cut short by a killed process is not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file, one a line; ValueError names file and line where one is not a JSON object."""
    with open(path, encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            try:
                line = json.loads(text)
            except json.JSONDecodeError as error:
                raise ValueError(f"{path}, line {number}: expected a JSON object, got {text[:60]!r} ({error})") from error
            if not isinstance(line, dict):
                raise ValueError(f"{path}, line {number}: expected a JSON object, got {text[:60]!r}")
            yield line


def read_value(text: str) -> Any:
    """A JSON value of the command line; a bare word is a string."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def resumable_lines(path: Path, first_key: str) -> list[dict[str, Any]]:
    """The whole lines of a file that an earlier run may have left, without changing it; [] where there is none.

    Raises ValueError for anything that such a run cannot have written, so that a foreign file is never cut or added to.
    """
    if not path.exists():
        return []
    if not path.is_file():
        raise ValueError(f"expected {path} to be a regular file or absent: results are appended to it and read back")
    head = f'{{"{first_key}": '.encode()
    raw = path.read_bytes().splitlines(keepends=True)
    for number, line in enumerate(raw, 1):
        if line[: len(head)] != head[: len(line)]:
            raise ValueError(f"{path}, line {number}: expected results of an earlier run, got {line[:60]!r}; choose another file")
    return [json.loads(line) for line in raw if line.endswith(b"\n")]


def keep_lines(path: Path, n: int | None = None) -> int:
    """Cut a file down to its first ``n`` whole lines (all whole lines by default); returns how many are left."""
    if not path.exists():
        return 0
    lines = path.read_bytes().splitlines(keepends=True)
    whole = [line for line in lines if line.endswith(b"\n")][:n]
    if len(whole) < len(lines):
        with open(path, "rb+") as file:
            file.truncate(sum(map(len, whole)))
    return len(whole)


@contextmanager
def append_lines(path: Path) -> Iterator[Callable[..., None]]:
    """Open a file for appending and yield ``write(*objects)``, which hands whole lines to the system at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:

        def write(*objects: dict[str, Any]) -> None:
            file.write("".join(json.dumps(item) + "\n" for item in objects))
            file.flush()

        yield write
