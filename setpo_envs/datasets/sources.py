"""Rows from files and folders, from the Hugging Face hub or from a ``datasets.Dataset``, each with words for where it stands."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

SUFFIXES = (".jsonl", ".json", ".parquet")
_SPLIT = re.compile(r"(train|validation|test)(?![a-z])")  # how a file's name says its split: test.jsonl, train-00000-of-00001.parquet
GENERATOR = "source='generator'"


def rows(
    source: Any, *, hub_id: str, config: str | None = None, split: str | None = "train", offline: str = GENERATOR
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (where, row) for every row of ``source``; ``where`` names file and line for error messages.

    Args:
        source: Path of a local file (JSON lines in .jsonl or .json, a JSON array in .json, or .parquet), of which all rows are used
            whatever the split is called; a folder, of which every .jsonl and .parquet file below it is read, or only those of the split
            where files are named by split; "hub" for the data set ``hub_id``; or a ``datasets.Dataset``.
        hub_id: Data set on the Hugging Face hub.
        config: Its configuration, where it has several.
        split: Its split. None is for folders: "train" if there is one, else the only split.
        offline: What an error offers in place of the hub, besides a file.

    Raises:
        ValueError: Unknown kind of source, an empty one, a line that is not a JSON object, or no such split.
        FileNotFoundError: There is no such file.
        ConnectionError: The hub data set can be neither read from the cache nor downloaded.
        ImportError: ``datasets`` or ``pyarrow`` is needed and not installed.
    """
    if is_table(source):
        return _table_rows("the datasets.Dataset", source)
    if isinstance(source, Mapping):
        raise ValueError(f"expected one table of rows as source, got several: choose one, as in source[{next(iter(source), 'train')!r}]")
    if isinstance(source, str) and source == "hub":
        name = " ".join(filter(None, (hub_id, config, split)))
        return _table_rows(name, _load_hub(hub_id, config, split or "train", offline))
    if isinstance(source, (str, os.PathLike)) and os.path.isdir(source):
        return _folder_rows(Path(source), split)
    if isinstance(source, (str, os.PathLike)) and os.fspath(source).endswith(SUFFIXES):
        path = Path(source)
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {path}: check the path of source")
        return _file_rows(path)
    raise ValueError(f"expected source='hub', a folder, a path that ends in {', '.join(SUFFIXES)}, or a datasets.Dataset, got {source!r}")


def is_table(source: Any) -> bool:
    """Whether ``source`` is a ``datasets.Dataset``, found without importing that library."""
    return isinstance(getattr(source, "column_names", None), list) and hasattr(source, "to_list")


def _folder_rows(folder: Path, split: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".jsonl", ".parquet"))
    if not files:
        raise FileNotFoundError(f"there is no .jsonl or .parquet file in the folder {folder}")
    split_of = {path: match[1] for path in files if (match := _SPLIT.match(path.name))}
    if split_of:
        found = sorted(set(split_of.values()))
        split = split or ("train" if "train" in found else found[0] if len(found) == 1 else None)
        if split not in found:
            raise ValueError(f"expected split among {', '.join(found)}, which the files in {folder} are named by, got {split!r}")
        files = [path for path in files if split_of.get(path) == split]
    return (row for path in files for row in _file_rows(path))


def _file_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    return _parquet_rows(path) if path.suffix == ".parquet" else _json_rows(path)


def _json_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    text = _read_text(path).rstrip()
    if path.suffix == ".json" and text.startswith("["):
        return _array_rows(path, text)
    return _line_rows(path, text)


def _array_rows(path: Path, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{path}: expected a JSON array of objects ({error})") from None
    for where, row in _numbered(str(path), found):
        if not isinstance(row, dict):
            raise ValueError(f"{where}: expected a JSON object, got {str(row)[:80]!r}")
        yield where, row


def _line_rows(path: Path, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    # split("\n"), not splitlines(): U+2028 may stand unescaped inside a JSON string
    lines = text.split("\n")
    if lines == [""]:
        raise ValueError(f"{path}: expected one JSON object a line, got an empty file")
    for number, line in enumerate(lines, start=1):
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{where}: expected one JSON object a line, got {line[:80]!r} ({error})") from None
        if not isinstance(row, dict):
            raise ValueError(f"{where}: expected a JSON object, got {line[:80]!r}")
        yield where, row


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected UTF-8 text ({error})") from None


def _parquet_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        import pyarrow.parquet
    except ImportError:
        raise ImportError(f"reading {path} needs pyarrow: `pip install pyarrow`, or save the rows as JSON lines") from None
    try:
        table = pyarrow.parquet.read_table(path)
    except pyarrow.ArrowInvalid as error:
        raise ValueError(f"{path}: expected a Parquet file ({error})") from None
    return _numbered(str(path), table.to_pylist())


def _table_rows(name: str, table: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    return _numbered(name, table.to_list())


def _numbered(name: str, found: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    if not found:
        raise ValueError(f"{name}: expected at least one row, got none")
    return ((f"{name}, row {number}", row) for number, row in enumerate(found, start=1))


def _load_hub(hub_id: str, config: str | None, split: str, offline: str) -> Any:
    instead = f"pass the path of a local copy (JSON lines or Parquet) as source, or use {offline}"
    try:
        import datasets
    except ImportError:
        raise ImportError(f"loading {hub_id} needs the library datasets: `pip install datasets`, {instead}") from None
    try:
        return datasets.load_dataset(hub_id, config, split=split)
    except Exception as error:  # the libraries below raise a dozen types for "not there and not cached"
        if isinstance(error, ValueError) and re.match(r"Unknown split|Bad split|Config name is missing|BuilderConfig", str(error)):
            raise ValueError(f"{hub_id} has no split {split!r} in configuration {config!r}: {error}") from error
        raise ConnectionError(f"could not load {hub_id} from the hub or its cache ({error}): go online once, {instead}") from error
