"""Verify and credit stored groups again: completions that were sampled elsewhere, by anyone.

Two kinds of line are read: our own ``groups.jsonl``, and pooled completions of published runs
(``task, problem_id, question, gold_raw, reference_answer, completions: [{text, ...}]``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from setpo_envs import verify_groups
from setpo_envs.completion import stored_completions
from setpo_envs.datasets.problem import Problem
from setpo_envs.group import Groups
from setpo_envs.shapers.base import Shaper, apply_shaper
from setpo_verifiers import TASKS, verify

from .jsonl import append_lines, keep_lines, read_lines, resumable_lines
from .methods import Method
from .progress import progress


@dataclass(frozen=True)
class Reading:
    """Which verifier judges a stored group, and by which gold.

    Args:
        tasks: Verifier by name of task in the file, where the two differ; the key "*" stands for every other task.
        gold: The field that holds the gold; by default ``gold``, else ``gold_raw``.
    """

    tasks: Mapping[str, str] = field(default_factory=dict)
    gold: str | None = None

    @classmethod
    def from_texts(cls, tasks: Iterable[str], gold: str | None) -> Reading:
        """From ``TASK=VERIFIER``, or ``VERIFIER`` for every other task."""
        pairs = [text.rpartition("=") for text in tasks]
        return cls({task or "*": verifier for task, _, verifier in pairs}, gold)

    def task_of(self, line: Mapping[str, Any]) -> Any:
        task = line["task"]
        return self.tasks.get(task, self.tasks.get("*", task)) if isinstance(task, str) else task

    def gold_of(self, line: Mapping[str, Any]) -> Any:
        return line.get("gold", line.get("gold_raw")) if self.gold is None else line.get(self.gold)


AS_STORED = Reading()

Shape = Callable[[Groups, int], dict[str, Any]]
"""Shapes the one group of a record, in place, given its line number in the source; returns further fields of its line."""


def rescore(
    source: Path, out: Path, *, shaper: Shaper, mode: str = "lenient", seed: int = 0, reading: Reading = AS_STORED
) -> list[dict[str, Any]]:
    """Write one line a group of ``source`` to ``out`` (our ``groups.jsonl`` format, ``source_line`` added); returns all lines.

    A run that was stopped goes on after the last group in ``out``.

    Raises:
        ValueError: a malformed line (file and line are named), a task without a verifier, or an ``out`` made from other groups.
    """

    def shape(record: Groups, number: int) -> dict[str, Any]:
        apply_shaper(record, shaper, np.random.default_rng([seed, number]))
        return {}

    scoring = {"shaper": repr(shaper), "mode": mode, "seed": seed}
    return _score(source, out, shape, scoring, reading, remembers=hasattr(shaper, "state"))


def rescore_methods(
    source: Path, out: Path, *, methods: Sequence[Method], mode: str = "lenient", seed: int = 0, reading: Reading = AS_STORED
) -> list[dict[str, Any]]:
    """The same with any number of methods: every group is verified once and shaped by each.

    A line has ``methods``, {label: ``shaped_rewards``, ``weights``, ``credits``, ``defined``, ``diversity``, ``advantages``}; the
    fields of these names beside the verdicts are those without a shaper. Each method draws what :func:`rescore` would draw.

    Raises:
        ValueError: as :func:`rescore`, and for a group that a method cannot shape.
    """

    def shape(record: Groups, number: int) -> dict[str, Any]:
        found = {}
        for method in methods:
            try:
                found[method.label] = method.record(method.shape(record, np.random.default_rng([seed, number])))
            except ValueError as error:
                raise ValueError(f"{source}, line {number}, method {method.label!r}: {error}") from error
        return {"methods": found}

    scoring = {"methods": {method.label: method.spec() for method in methods}, "mode": mode, "seed": seed}
    return _score(source, out, shape, scoring, reading, remembers=any(hasattr(method.shaper, "state") for method in methods))


def usable(
    source: Path, methods: Sequence[Method], *, mode: str = "lenient", reading: Reading = AS_STORED
) -> tuple[list[Method], list[str]]:
    """The methods that can shape the first group of ``source``, and why each other one cannot."""
    line = next(read_lines(source), None)
    if line is None:
        return list(methods), []  # rescoring says what is wrong with the file
    problem, texts, _ = _group(line, f"{source}, line 1", reading)
    record = verify_groups([problem], [texts], mode=mode)
    able, reasons = [], []
    for method in methods:
        try:
            deepcopy(method).shape(record, np.random.default_rng(0))  # a shaper that remembers must not remember this
            able.append(method)
        except ValueError as error:
            reasons.append(f"left out {method.label}: {error}")
    return able, reasons


def with_method(line: Mapping[str, Any], method: Method) -> dict[str, Any]:
    """A line of :func:`rescore` as :func:`rescore_methods` would have it with ``method`` alone."""
    return {**line, "methods": {method.label: method.record(Groups.from_json([line]))}}


def _score(source: Path, out: Path, shape: Shape, scoring: dict[str, Any], reading: Reading, *, remembers: bool) -> list[dict[str, Any]]:
    if source.resolve() == out.resolve():
        raise ValueError(f"expected another file for the result than the source {source}")
    inputs = list(enumerate(read_lines(source), 1))
    if not inputs:
        raise ValueError(f"expected at least one group in {source}, which is empty")
    groups = [(number, *_group(line, f"{source}, line {number}", reading)) for number, line in inputs]  # all are read before any work
    out.parent.mkdir(parents=True, exist_ok=True)
    done = resumable_lines(out, "task")
    for line, (number, problem, texts, _) in zip(done, groups):
        if line.get("scoring") != scoring:
            raise ValueError(f"{out} was scored otherwise: expected {scoring}, got {line.get('scoring')}. Use another file.")
        if (line["problem_id"], line["completions"]) != (problem.problem_id, texts):
            raise ValueError(
                f"{out} holds groups of another file: its group {number} is {line['problem_id']!r}, expected {problem.problem_id!r}"
            )
        if (line["task"], line["gold"]) != (problem.task, problem.gold):
            raise ValueError(
                f"{out} was verified otherwise: expected task {problem.task!r} and gold {problem.gold!r:.80} for its group {number}, "
                f"got {line['task']!r} and {line['gold']!r:.80}. Use another file."
            )
    if remembers:  # what was shown before the stop is shown again
        for line, (number, *_) in zip(done, groups):
            shape(Groups.from_json([line]), number)
    keep_lines(out)
    with append_lines(out) as write:
        for number, problem, texts, extra in progress(groups[len(done) :], "rescore", initial=len(done), total=len(groups)):
            record = verify_groups([problem], [texts], mode=scoring["mode"])
            fields = shape(record, number)
            done.append({**record.to_json(0, source_line=number, scoring=scoring, **extra), **fields})
            write(done[-1])
    return done


def _group(line: Mapping[str, Any], where: str, reading: Reading) -> tuple[Problem, list[str], dict[str, Any]]:
    """(problem, completions, what the source says of them) of one stored group."""
    missing = {"task", "problem_id", "completions"} - line.keys()
    if missing or not line["completions"]:
        raise ValueError(f"{where}: expected a group with task, problem_id and completions, missing {sorted(missing) or 'any completion'}")
    gold, task = reading.gold_of(line), reading.task_of(line)
    if gold is None:
        fields = "'gold' or 'gold_raw'" if reading.gold is None else repr(reading.gold)
        raise ValueError(f"{where}: expected a gold answer under {fields}, found none")
    if not isinstance(task, str) or task not in TASKS:
        raise ValueError(f"{where}: expected a task out of {', '.join(sorted(TASKS))}, got {task!r}; name the verifier of another task")
    try:
        verify(task, "", gold, **(line.get("options") or {}))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where}: {error}") from error
    prompt, metadata, options = line.get("prompt", line.get("question", "")), line.get("metadata") or {}, line.get("options") or {}
    problem = Problem(line["problem_id"], task, prompt, gold, metadata, options)
    items = line["completions"]
    texts: list[Any] = [item.get("text") if isinstance(item, Mapping) else item for item in items]
    sizes = {len(line.get(name) or texts) for name in ("truncated", "n_tokens")}
    if not isinstance(items, list) or not all(isinstance(text, str) for text in texts) or sizes != {len(texts)}:
        raise ValueError(f"{where}: expected completions to be a list of texts or of objects with a 'text', got {str(items)[:80]}")
    texts = stored_completions(texts, line)
    extra = {
        key: [item.get(key) for item in items]
        for key in ("model", "source_verdict", "check_verdict")
        if isinstance(items[0], Mapping) and key in items[0]
    }
    return problem, texts, extra


def summary(lines: list[dict[str, Any]]) -> Iterator[str]:
    """What a person wants to know of rescored groups, a line at a time."""
    correct = [[status == "correct" for status in line["status"]] for line in lines]
    n = sum(map(len, correct))
    distinct = [len({key for key, right in zip(line["mode_keys"], group) if right}) for line, group in zip(lines, correct)]
    accuracy = sum(map(sum, correct)) / n
    yield f"{len(lines)} groups, {n} completions: {accuracy:.1%} correct, {np.mean(distinct):.2f} distinct correct modes a group"
    if "methods" not in lines[0]:
        credits = np.array([credit for line in lines for credit in line["credits"]])
        diversity = np.mean([line["diversity"] for line in lines])
        low, high = credits.min(), credits.max()
        yield f"credit: mean |c| {np.abs(credits).mean():.4f}, from {low:+.4f} to {high:+.4f}; mean D {diversity:+.3f}"
    for name in ("check_verdict", "source_verdict"):
        pairs = [
            (line["problem_id"], i, verdict, right)
            for line, group in zip(lines, correct)
            for i, (verdict, right) in enumerate(zip(line.get(name, []), group))
            if verdict is not None
        ]
        if pairs:
            unlike = [pair for pair in pairs if pair[2] != pair[3]]
            yield f"{name}: agrees on {len(pairs) - len(unlike)} of {len(pairs)}"
            yield from (f"  {problem_id} completion {i}: source {theirs}, here {ours}" for problem_id, i, theirs, ours in unlike[:20])
