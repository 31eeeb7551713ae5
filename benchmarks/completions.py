"""What the verifier benchmarks judge, and a process to judge it in: model outputs of the folder SETPO_TEST_DATA, or generated ones."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

from setpo_envs import Completion, Groups, verify_groups
from setpo_envs.datasets import Problem
from setpo_verifiers import verify
from setpo_verifiers.pool_worker import Item

Judge = Callable[[Item], bool]
Pass = list[tuple[bool, float]]  # verdict and CPU seconds of each item

TASKS = {"aime24": "aime", "gsm8k": "gsm8k", "olympiadbench": "olympiad", "rg_countdown": "countdown", "rg_knights_knaves": "kk"}


def files(maths_only: bool = False) -> dict[str, list[Item]]:
    """Items by file of model outputs; one generated file without SETPO_TEST_DATA."""
    if "SETPO_TEST_DATA" not in os.environ:
        print("SETPO_TEST_DATA is not set: the completions are generated")
        return {"generated": generated(1_000)}
    found = {}
    for path in sorted((Path(os.environ["SETPO_TEST_DATA"]) / "data" / "completions").glob("*_g*.jsonl")):
        if maths_only and path.name.startswith("rg_"):
            continue
        with open(path, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        found[path.stem] = [
            Item(TASKS.get(row["task"], "math"), completion["text"], row["reference_answer"])
            for row in rows
            for completion in row["completions"]
        ]
    return found


def groups() -> dict[str, Groups]:
    """The completions of each file as verified groups, all of one size; a completion counts a quarter of its characters as tokens."""
    found = {}
    for path in sorted((Path(os.environ["SETPO_TEST_DATA"]) / "data" / "completions").glob("*_g*.jsonl")):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        found[path.stem] = verify_groups(
            [Problem(row["problem_id"], TASKS.get(row["task"], "math"), row["question"], row["reference_answer"]) for row in rows],
            [[Completion(each["text"], n_tokens=len(each["text"]) // 4) for each in row["completions"]] for row in rows],
        )
    return found


def generated(n: int, seed: int = 0) -> list[Item]:
    """``n`` different maths completions of about a thousand characters, every third of them right."""
    rng = random.Random(seed)
    words = "so we add the two sides and then the value of x must be between them because f is even".split()
    items = []
    for i in range(n):
        a, b, c = rng.randrange(1, 10**6), rng.randrange(2, 99), rng.randrange(2, 99)
        answer = f"\\frac{{{a * b}}}{{{c * b}}} + \\sqrt{{{b * b}}}" if i % 3 == 0 else f"\\frac{{{a}}}{{{c}}} - {b}"
        thoughts = " ".join(rng.choices(words, k=200))
        items.append(Item("math", f"<think>{thoughts}</think> Therefore it is $\\boxed{{{answer}}}$.", f"\\frac{{{a + b * c}}}{{{c}}}"))
    return items


def ours(item: Item) -> bool:
    return verify(item.task, item.completion, item.gold).reward == 1.0


def in_fork(judge: Judge, items: list[Item], before: Callable[[], None] = lambda: None) -> Pass:
    """Judge all ``items`` in a process of their own, with ``before`` called before each, outside the time."""
    receiver, sender = get_context("fork").Pipe(duplex=False)

    def work() -> None:
        found = []
        for item in items:
            before()
            start = time.process_time()
            verdict = judge(item)
            found.append((verdict, time.process_time() - start))
        sender.send(found)

    process = get_context("fork").Process(target=work)
    process.start()
    found: Pass = receiver.recv()
    process.join()
    return found
