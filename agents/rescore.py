"""Verify and credit stored groups again: completions that were sampled elsewhere, by anyone.

Two kinds of line are read: our own ``groups.jsonl``, and pooled completions of published runs
(``task, problem_id, question, gold_raw, reference_answer, completions: [{text, ...}]``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from setpo_envs import verify_groups
from setpo_envs.completion import stored_completions
from setpo_envs.datasets.problem import Problem
from setpo_envs.shapers.base import Shaper, apply_shaper
from setpo_verifiers import TASKS, verify

from .jsonl import append_lines, keep_lines, read_lines, resumable_lines
from .progress import progress


def rescore(source: Path, out: Path, *, shaper: Shaper, mode: str = "lenient", seed: int = 0) -> list[dict[str, Any]]:
    """Write one line a group of ``source`` to ``out`` (our ``groups.jsonl`` format, ``source_line`` added); returns all lines.

    A run that was stopped goes on after the last group in ``out``.

    Raises:
        ValueError: a malformed line (file and line are named), a task without a verifier, or an ``out`` made from other groups.
    """
    if source.resolve() == out.resolve():
        raise ValueError(f"expected another file for the result than the source {source}")
    inputs = list(enumerate(read_lines(source), 1))
    if not inputs:
        raise ValueError(f"expected at least one group in {source}, which is empty")
    groups = [(number, *_group(line, f"{source}, line {number}")) for number, line in inputs]  # all are read before any work
    out.parent.mkdir(parents=True, exist_ok=True)
    done, scoring = resumable_lines(out, "task"), {"shaper": repr(shaper), "mode": mode, "seed": seed}
    for line, (number, problem, texts, _) in zip(done, groups):
        if line.get("scoring") != scoring:
            raise ValueError(f"{out} was scored otherwise: expected {scoring}, got {line.get('scoring')}. Use another file.")
        if (line["problem_id"], line["completions"]) != (problem.problem_id, texts):
            raise ValueError(
                f"{out} holds groups of another file: its group {number} is {line['problem_id']!r}, expected {problem.problem_id!r}"
            )
    keep_lines(out)
    with append_lines(out) as write:
        for number, problem, texts, extra in progress(groups[len(done) :], "rescore", initial=len(done), total=len(groups)):
            record = verify_groups([problem], [texts], mode=mode)
            apply_shaper(record, shaper, np.random.default_rng([seed, number]))
            done.append(record.to_json(0, source_line=number, scoring=scoring, **extra))
            write(done[-1])
    return done


def _group(line: Mapping[str, Any], where: str) -> tuple[Problem, list[str], dict[str, Any]]:
    """(problem, completions, what the source says of them) of one stored group."""
    missing = {"task", "problem_id", "completions"} - line.keys()
    if missing or not line["completions"]:
        raise ValueError(f"{where}: expected a group with task, problem_id and completions, missing {sorted(missing) or 'any completion'}")
    gold = line["gold"] if "gold" in line else line.get("gold_raw")
    if gold is None:
        raise ValueError(f"{where}: expected a gold answer under 'gold' or 'gold_raw', found neither")
    if not isinstance(line["task"], str) or line["task"] not in TASKS:
        raise ValueError(f"{where}: expected a task out of {', '.join(sorted(TASKS))}, got {line['task']!r}")
    try:
        verify(line["task"], "", gold, **(line.get("options") or {}))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where}: {error}") from error
    prompt, metadata, options = line.get("prompt", line.get("question", "")), line.get("metadata") or {}, line.get("options") or {}
    problem = Problem(line["problem_id"], line["task"], prompt, gold, metadata, options)
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
    credits = np.array([credit for line in lines for credit in line["credits"]])
    distinct = [len({key for key, right in zip(line["mode_keys"], group) if right}) for line, group in zip(lines, correct)]
    accuracy, diversity = sum(map(sum, correct)) / n, np.mean([line["diversity"] for line in lines])
    yield f"{len(lines)} groups, {n} completions: {accuracy:.1%} correct, {np.mean(distinct):.2f} distinct correct modes a group"
    yield f"credit: mean |c| {np.abs(credits).mean():.4f}, from {credits.min():+.4f} to {credits.max():+.4f}; mean D {diversity:+.3f}"
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
