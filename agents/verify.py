"""Judge a file of completions: one verdict a line, stopped and started again at will, whatever the lines hold."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from setpo_verifiers.pool import VerifierPool
from setpo_verifiers.pool_worker import Item
from setpo_verifiers.verdict import Status, Verdict

from .jsonl import append_lines, keep_lines, resumable_lines
from .progress import progress

_NAMED = 10  # lines without a verdict that are named in the summary


class _Row(NamedTuple):
    number: int
    id: Any
    item: Item | None
    trouble: str  # why there is no item


def verify(source: Path, out: Path, *, workers: int = 2, timeout: float = 5.0, mode: str = "lenient") -> list[str]:
    """Write ``{id, status, reward, answer, mode_key, reason, seconds}`` for every line ``{id, task, gold, completion, mode?, options?}``.

    The lines of ``out`` are in the order of ``source``; a run that was stopped goes on after the last of them. A malformed line, a gold
    that cannot be used and a verifier that fails give a line of status ``error`` whose reason names the line; the run goes on. ``mode`` is
    for lines without one of their own. Returns what a person wants to know, a line at a time.

    Raises ValueError for an ``out`` made from another source.
    """
    with open(source, "rb") as file:
        total = sum(1 for text in file if text.strip())
    rows = _rows(source, mode)
    counts: Counter[str] = Counter()
    troubles: list[str] = []
    seconds = 0.0
    done = _skip(rows, out, counts, troubles)
    keep_lines(out)  # a line that a stopped run left unfinished
    if done < total:
        with VerifierPool(min(workers, total), timeout=timeout) as pool, append_lines(out) as write:
            for row, verdict, spent in progress(_judged(pool, rows), "verify", initial=done, total=total):
                line = {"id": row.id, "status": verdict.status.name.lower(), "reward": verdict.reward, "answer": verdict.answer}
                reason = f"line {row.number}: {verdict.reason}" if verdict.status is Status.ERROR else verdict.reason
                write({**line, "mode_key": verdict.mode_key, "reason": reason, "seconds": round(spent, 6)})
                _count(line["status"], reason, counts, troubles)
                seconds += spent
    return list(_summary(counts, troubles, total - done, seconds))


def _rows(source: Path, mode: str) -> Iterator[_Row]:
    with open(source, "rb") as file:
        for number, text in enumerate(file, 1):
            if text.strip():
                yield _row(number, text, mode)


def _row(number: int, text: bytes, mode: str) -> _Row:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError) as error:
        return _Row(number, None, None, f"expected a JSON object, got {text[:60]!r} ({error})")
    if not isinstance(line, dict):
        return _Row(number, None, None, f"expected a JSON object, got {text[:60]!r}")
    missing = [name for name in ("id", "task", "gold", "completion") if name not in line]
    if missing:
        return _Row(number, line.get("id"), None, f"expected id, task, gold and completion, missing {', '.join(missing)}")
    options = {} if line.get("options") is None else line["options"]
    if not isinstance(options, dict) or not isinstance(line["task"], str):
        return _Row(number, line["id"], None, "expected task as a text and options as a JSON object")
    return _Row(number, line["id"], Item(line["task"], line["completion"], line["gold"], line.get("mode") or mode, options), "")


def _skip(rows: Iterator[_Row], out: Path, counts: Counter[str], troubles: list[str]) -> int:
    """Move ``rows`` past those that ``out`` has; how many."""
    if not out.exists():
        return 0
    done = 0
    for done, line in enumerate(resumable_lines(out, "id"), 1):
        row = next(rows, None)
        if row is None or line.get("id") != row.id:
            raise ValueError(
                f"{out} holds verdicts of another file: its line {done} is {line.get('id')!r}, expected "
                + (f"{row.id!r} (line {row.number} of the input)" if row else "no more lines")
                + "; choose another --out"
            )
        _count(line.get("status"), line.get("reason"), counts, troubles)
    return done


def _judged(pool: VerifierPool, rows: Iterator[_Row]) -> Iterator[tuple[_Row, Verdict, float]]:
    """Every row with its verdict, in order; rows without an item do not go through the pool."""
    waiting: deque[_Row] = deque()

    def items() -> Iterator[Item]:
        for row in rows:
            waiting.append(row)
            if row.item is not None:
                yield row.item

    def without_item() -> Iterator[tuple[_Row, Verdict, float]]:
        while waiting and waiting[0].item is None:
            row = waiting.popleft()
            yield row, Verdict(0.0, Status.ERROR, None, None, row.trouble), 0.0

    for verdict, seconds in pool.stream(items()):
        yield from without_item()
        yield waiting.popleft(), verdict, seconds
    yield from without_item()


def _count(status: Any, reason: Any, counts: Counter[str], troubles: list[str]) -> None:
    counts[str(status)] += 1
    if status == "error" and len(troubles) < _NAMED:
        troubles.append(str(reason))


def _summary(counts: Counter[str], troubles: list[str], judged: int, seconds: float) -> Iterator[str]:
    shares = ", ".join(f"{n} {status} ({n / counts.total():.1%})" for status, n in counts.most_common())
    yield f"{counts.total()} lines: {shares or 'nothing to judge'}"
    if judged:
        yield f"{judged} judged now, {1e3 * seconds / judged:.2f} ms of work each"
    yield from (f"no verdict: {trouble}" for trouble in troubles)
    if counts["error"] > len(troubles):
        yield f"no verdict: and {counts['error'] - len(troubles)} lines more"
