"""From rows to problems: a data set's copies on the hub and in files, its columns, and what is done with a row that is no problem."""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from setpo_verifiers import verify

from ..prompts import question_prompt
from .problem import Dataset, Problem, Problems, fingerprint, is_dataset
from .sources import SUFFIXES, rows

Row = Mapping[str, Any]
EMBEDDED = Path(__file__).parent / "embedded"
_ID_COLUMNS = ("unique_id", "id", "ID", "problem_idx")


@dataclass(frozen=True)
class HubSet:
    """A data set of the Hugging Face hub: its splits, the default one first, and its configurations, all of which are read."""

    hub_id: str
    splits: tuple[str, ...] = ()  # () where nobody has written them down: any is tried, by default "train"
    configs: tuple[str | None, ...] = (None,)
    metadata: Mapping[str, Any] = field(default_factory=dict)  # of every problem in it


@dataclass
class Question:
    """What a task makes of a row: the question, its gold answer, the verifier's options and the problem's metadata."""

    text: str
    gold: Any
    options: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """Where a task's rows come from and how they become problems.

    ``columns`` holds the pairs (question, answer) under which copies keep them; the first pair that a row has is used, so
    that a file is read whichever copy it is of. ``read`` makes a question of a row and raises ValueError for one that has none.
    """

    name: str
    task: str  # of the verifier
    hub: tuple[HubSet, ...]  # what source="hub" reads
    columns: tuple[tuple[str, str], ...]
    read: Callable[[Row, str, Any], Question] = lambda row, text, answer: Question(text, answer)
    copies: tuple[HubSet, ...] = ()  # what source="owner/name" reads besides
    embedded: Mapping[str, str] = field(default_factory=dict)  # split -> file of problems written for this repository
    id_column: str | None = None  # names the problems; by default their questions do


def load(
    table: Table,
    source: Any = "hub",
    *,
    split: str | None = None,
    prompt_format: str = "boxed",
    where: Mapping[str, Any] | None = None,
) -> Dataset:
    """The problems of ``source`` in their order, each checked: it has its columns, a question, and a gold that the verifier takes.

    Args:
        table: The task's table.
        source: "hub"; the hub id of another copy in the table; "embedded"; a path (``sources.rows``); a ``datasets.Dataset``;
            or a data set of ``Problem``, which is returned as it is.
        split: None is "train" where the source has it, else the source's only split.
        prompt_format: Name of a prompt, or a template that contains ``{question}``.
        where: Metadata that problems must have: a value, or a list of values, for each key; None values are no condition.

    Returns:
        The problems. Rows that cannot be used are left out, listed in ``left_out``, and a warning counts them.

    Raises:
        ValueError: An argument out of its choices, or no row that can be used.
        ConnectionError, FileNotFoundError, ImportError: As ``sources.rows``.
    """
    prompt = question_prompt(prompt_format)
    if is_dataset(source):
        return source
    problems: list[Problem] = []
    left_out: list[tuple[str, str]] = []
    times: Counter[str] = Counter()
    wanted = {key: value for key, value in (where or {}).items() if value is not None}
    seen: dict[str, set[Any]] = {key: set() for key in wanted}
    for place, row, shared in _rows(table, source, split):
        try:
            name, question = _question(table, row, shared)
        except (ValueError, TypeError) as error:
            left_out.append((place, str(error)))
            continue
        for key in wanted:
            seen[key].add(question.metadata.get(key))
        if all(question.metadata.get(key) in (value if isinstance(value, (list, tuple)) else [value]) for key, value in wanted.items()):
            times[name] += 1
            if times[name] > 1:  # the same question twice
                name = f"{name}-{times[name]}"
            problems.append(Problem(name, table.task, prompt(question.text), question.gold, question.metadata, question.options))
    if left_out:
        some = "; ".join(f"{place}: {reason}" for place, reason in left_out[:3])
        if not problems and not any(seen.values()):
            raise ValueError(f"no row of source={source!r} can be used: {some}")
        warnings.warn(f"{len(left_out)} rows of source={source!r} are left out, all named in dataset.left_out: {some}", stacklevel=3)
    if not problems:
        found = "; ".join(f"{key} is among {sorted(values, key=str)}" for key, values in seen.items())
        raise ValueError(f"expected problems with {wanted}, found none: {found}")
    return Problems(problems, left_out)


def _rows(table: Table, source: Any, split: str | None) -> Iterator[tuple[str, Row, Mapping[str, Any]]]:
    """(where, row, metadata that its data set shares)."""
    name = source if isinstance(source, str) else None
    if name == "embedded":
        if not table.embedded:
            raise ValueError(
                "expected a hub id, a path or a datasets.Dataset as source: there are no embedded problems for this environment"
            )
        path = EMBEDDED / table.embedded[_chosen_split(split, tuple(table.embedded), "source='embedded'")]
        yield from ((where, row, {}) for where, row in rows(path, hub_id=""))
        return
    known = [hub_set for hub_set in (*table.hub, *table.copies) if hub_set.hub_id == name] or (table.hub if name == "hub" else [])
    for hub_set in known:
        chosen = _chosen_split(split, hub_set.splits, hub_set.hub_id)
        offline = "source='embedded'" if table.embedded else "a datasets.Dataset"
        for config in hub_set.configs:
            found = rows("hub", hub_id=hub_set.hub_id, config=config, split=chosen, offline=offline)
            yield from ((where, row, hub_set.metadata) for where, row in found)
    if not known and is_hub_id(source):
        ids = ", ".join(hub_set.hub_id for hub_set in (*table.hub, *table.copies))
        raise ValueError(f"expected source 'hub', 'embedded', a file or folder that exists, or a hub id among {ids}, got {source!r}")
    if not known:
        yield from ((where, row, {}) for where, row in rows(source, hub_id="", split=split))


def is_hub_id(source: Any) -> bool:
    """Whether ``source`` is written as ``owner/name`` and no file or folder is called so."""
    named = isinstance(source, str) and re.fullmatch(r"[\w.-]+/[\w.-]+", source) is not None
    return named and not source.endswith(SUFFIXES) and not os.path.exists(source)


def _chosen_split(split: str | None, splits: tuple[str, ...], source: str) -> str:
    if split is None or not splits:
        return split or (splits[0] if splits else "train")
    if split not in splits:
        only = "only the split" if len(splits) == 1 else "the splits"
        raise ValueError(f"expected split among {', '.join(splits)}: {source} has {only} {', '.join(map(repr, splits))}, got {split!r}")
    return split


def _question(table: Table, row: Row, shared: Mapping[str, Any]) -> tuple[str, Question]:
    """(problem id, what the task makes of the row)."""
    columns = next((pair for pair in table.columns if all(_has(row, name) for name in pair)), None)
    if columns is None:
        expected = ", or ".join(" and ".join(pair) for pair in table.columns)
        raise ValueError(f"expected columns {expected}, got {', '.join(map(str, row)) or 'none'}")
    text, answer = _text(_cell(row, columns[0])), _cell(row, columns[1])
    question = table.read(row, text, answer)
    verify(table.task, "", question.gold, **question.options)  # raises for a gold or an option that it cannot use
    given = next((row[name] for name in _ID_COLUMNS if row.get(name) is not None), None)
    question.metadata = {**({} if given is None else {"id": str(given)}), **shared, **question.metadata}
    if table.id_column is None:
        return f"{table.name}/{fingerprint(text)}", question
    if not _has(row, table.id_column) or (name := _cell(row, table.id_column)) is None:
        raise ValueError(f"expected an id in the column {table.id_column!r}, got columns {', '.join(map(str, row))}")
    return str(name), question


def _text(cell: Any) -> str:
    """The question: a text, or the last user message of a list of chat messages."""
    if isinstance(cell, list) and all(isinstance(message, Mapping) for message in cell):
        cell = next((message.get("content") for message in reversed(cell) if message.get("role") == "user"), None)
    if not isinstance(cell, str) or not cell.strip():
        raise ValueError(f"expected a question as text, got {repr(cell)[:80]}")
    return cell.strip()


def _has(row: Row, name: str) -> bool:
    try:
        _cell(row, name)
    except KeyError:
        return False
    return True


def _cell(row: Row, name: str) -> Any:
    """The value of a column; ``reward_model.ground_truth`` is a field of a column of records. Raises KeyError."""
    if name in row:
        return row[name]
    head, dot, rest = name.partition(".")
    if not dot or not isinstance(row.get(head), Mapping):
        raise KeyError(name)
    return _cell(row[head], rest)
