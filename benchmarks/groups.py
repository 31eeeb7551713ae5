"""Throughput of 64 groups of 16 real completions: 64 steps of an environment against one call of verify_groups, with and without a pool.

    OMP_NUM_THREADS=1 python benchmarks/groups.py FOLDER

FOLDER holds lines {task, problem_id, question, gold_raw, completions: [{text}, ...]} in *.jsonl; groups of 16 are cut from lines
that have as many. Every repetition starts with empty verifier caches, here and in the workers, so that each text is new; they have
run before, as in training. "cpu" is processor time: of the busiest process, or half of all together if that is more. So it says what the
wall clock would say on two cores on which nothing else runs, with a perfect schedule. With a shaper this process has work of its own
while it waits, so that on two cores one worker beside it may do as well as two.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when numpy loads

import functools  # noqa: E402
import gc  # noqa: E402
import json  # noqa: E402
import random  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections import Counter  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

from setpo_envs import GroupEnv, verify_groups  # noqa: E402
from setpo_envs.datasets import Problem  # noqa: E402
from setpo_envs.shapers import make_shaper  # noqa: E402
from setpo_verifiers import TASKS, Status, Verdict, VerifierPool, register  # noqa: E402

N, G, REPEATS = 64, 16, 15


def verify_clearing(completion: str, gold: Any, *, mode: str = "lenient") -> Verdict:
    """Not a verifier: empties the verifiers' caches of the process it runs in, and says which that is."""
    clear_caches()
    time.sleep(0.05)  # long enough for the other worker to take the next
    return Verdict(1.0, Status.CORRECT, str(os.getpid()), None, "correct")


def clear_caches() -> None:
    for thing in gc.get_objects():
        if isinstance(thing, functools._lru_cache_wrapper) and (getattr(thing, "__module__", "") or "").startswith("setpo_"):
            thing.cache_clear()


def load(folder: Path) -> tuple[list[Problem], list[list[str]]]:
    groups = []
    for path in sorted(folder.glob("*.jsonl")):
        for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            texts = [completion["text"] for completion in line.get("completions", [])]
            for start in range(0, len(texts) - G + 1, G):
                task = line["task"] if line["task"] in TASKS else "math"
                groups.append((Problem(line["problem_id"], task, line["question"], line["gold_raw"]), texts[start : start + G]))
    random.Random(0).shuffle(groups)
    if len(groups) < N:
        raise SystemExit(f"expected at least {N} groups of {G} completions in {folder}, found {len(groups)}")
    problems, completions = zip(*groups[:N])
    return list(problems), list(completions)


def cpu_ms(pids: list[str]) -> list[float]:
    """Milliseconds of processor time of each process; zeros where the system does not say."""
    try:
        return [int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6 for pid in pids]
    except OSError:
        return [0.0] * len(pids)


def fresh(pool: VerifierPool) -> list[str]:
    """Empty caches everywhere; the workers' process ids."""
    pids: set[str] = set()
    while len(pids) < pool.workers:
        pids = {verdict.answer or "" for verdict, _ in pool.verify_many([("clearing", "", None)] * pool.workers)}
    for _ in range(5):  # so that the pool's idea of what an item costs forgets these
        pool.verify_many([("format", str(i), "boxed") for i in range(256)])
    clear_caches()
    return sorted(pids)


def measure(problems: list[Problem], completions: list[list[str]], name: str | None, n_workers: int) -> None:
    shaper = make_shaper(name) if name else None
    env = GroupEnv(problems, group_size=G, shaper=shaper)
    rows = []
    with VerifierPool(n_workers) as pool:
        verify_groups(problems, completions, shaper=shaper, pool=pool)
        for _ in range(REPEATS):
            times = []
            for way in ("steps", "batch", "pool"):
                pids = fresh(pool)
                before, cpu, wall = cpu_ms(pids), time.process_time(), time.perf_counter()
                if way == "steps":
                    for n, group in enumerate(completions):
                        env.reset(options={"index": n})
                        env.step(group)
                else:
                    verify_groups(problems, completions, shaper=shaper, pool=pool if way == "pool" else None)
                wall, cpu = (time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3
                workers = [after - start for start, after in zip(before, cpu_ms(pids))] if way == "pool" else []
                times += [wall, max(cpu, *workers, (cpu + sum(workers)) / 2) if workers else cpu]
                times += [cpu, sum(workers)] if workers else []
            rows.append(times)
    steps, steps_cpu, batch, batch_cpu, pooled, pooled_cpu, main, workers_ms = np.median(rows, axis=0)
    best = np.min(rows, axis=0)
    print(f"shaper={name}, {n_workers} workers: milliseconds, median of {REPEATS} (best)")
    for label, at, wall, cpu in (
        ("64 steps", 0, steps, steps_cpu),
        ("one batch", 2, batch, batch_cpu),
        ("one batch, pool", 4, pooled, pooled_cpu),
    ):
        ratio = f"{steps / wall:5.2f}x ({best[0] / best[at]:.2f}x), by cpu {steps_cpu / cpu:.2f}x"
        print(f"  {label:22} wall {wall:6.1f} ({best[at]:.1f})  cpu {cpu:6.1f}   {ratio}")
    print(f"  of the last: this process {main:.1f} ms cpu, the workers together {workers_ms:.1f}\n")


def main() -> None:
    register("clearing", verify_clearing)
    problems, completions = load(Path(sys.argv[1]))
    texts = {text for group in completions for text in group}
    print(f"{N} groups of {G}: {dict(Counter(problem.task for problem in problems))}, {len(texts)} distinct texts\n")
    for shaper, n_workers in ((None, 2), ("setpo", 2), ("setpo", 1)):
        measure(problems, completions, shaper, n_workers)


if __name__ == "__main__":
    from groups import main  # workers import the module of a verifier, and cannot import __main__

    main()
