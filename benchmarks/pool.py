"""A pool of verifiers: what it costs, and what hostile completions and killed workers cost it.

    SETPO_TEST_DATA=... OMP_NUM_THREADS=1 python benchmarks/pool.py

dispatch: CPU seconds of this process and of one worker, less those of the same verdicts without a pool, as a share of the latter; for model
outputs by a process that has judged nothing, for the same outputs again, and for texts that are all different.

bombs: a batch of 2,000 through two workers, where 5 % are (a) mathematics that no computer can finish, (b) a verifier that hangs in C code
and has to be killed, (c) one that takes all memory; ratio to the batch with plain items in their place, in turn, medians. For (b) nothing
can take less than 100 deadlines over two workers: "beyond_deadlines" is the rest.

kills: a worker is killed (SIGKILL) 100 times in the middle of a batch. Every verdict is compared with that of a direct call.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import completions  # noqa: E402
import odd_verifiers  # noqa: E402

from setpo_verifiers import VerifierPool, register, verify  # noqa: E402
from setpo_verifiers.pool_worker import Item  # noqa: E402

WORKERS, BATCH, SHARE = 2, 2_000, 0.05
TIMEOUT = 1.0  # seconds; the slowest honest completion takes a hundredth of it, but on a busy machine it may have to wait
MATHS_BOMBS = (
    "9^{9^{9^{9}}}",
    "((9!)!)!",
    "{" * 20_000,
    "9" * 10**6,
    "\\binom{10^9}{5 \\cdot 10^8}",
    "\\sum_{k=1}^{10^{12}} k!",
    "2^{2^{64}}",
)

register("odd", odd_verifiers.verify_odd)


def honest() -> list[Item]:
    """The batch: model outputs (or generated ones) in random order."""
    items = [item for some in completions.files(maths_only=True).values() for item in some]
    return random.Random(0).choices(items, k=BATCH)


def dispatch(repeats: int) -> dict[str, Any]:
    outputs = [item for some in completions.files(maths_only=True).values() for item in some]
    batches: dict[str, Callable[[int], list[Item]]] = {
        "outputs, first time": lambda repeat: outputs,
        "outputs, again": lambda repeat: outputs,
        "all different": lambda repeat: completions.generated(BATCH, seed=repeat),
    }
    found = {}
    for name, batch in batches.items():
        parts = []
        for repeat in range(repeats):
            items, before = batch(repeat), outputs if name == "outputs, again" else []
            work = sum(seconds for _, seconds in completions.in_fork(completions.ours, before + items)[len(before) :])
            with VerifierPool(1, timeout=60.0) as pool:  # a new worker has judged nothing
                pool.verify_many([*before, Item("math", "0", "0")])
                start = time.process_time() + worker_seconds(pool)
                pool.verify_many(items)
                spent = time.process_time() + worker_seconds(pool) - start
            parts.append((1e6 * work / len(items), 1e6 * (spent - work) / len(items)))
        work, beyond = (statistics.median(column) for column in zip(*parts))
        found[name] = {"work_us": round(work, 1), "dispatch_us": round(beyond, 1), "share": round(beyond / work, 3)}
        print(f"dispatch, {name}: {found[name]}", flush=True)
    return found


def worker_seconds(pool: VerifierPool) -> float:
    """CPU seconds that the pool's one worker has taken."""
    worker = pool._crew.foremen[0].worker
    assert worker is not None
    with open(f"/proc/{worker.pid}/schedstat") as file:
        return int(file.read().split()[0]) / 1e9


def bombs(repeats: int) -> dict[str, Any]:
    plain = honest()
    places = sorted(random.Random(1).sample(range(BATCH), int(SHARE * BATCH)))
    kinds: dict[str, Callable[[int], Item]] = {
        "maths": lambda i: Item("math", f"It is \\boxed{{{MATHS_BOMBS[i % len(MATHS_BOMBS)]}}}.", "17"),
        "hanging": lambda i: Item("odd", "hang", "17"),
        "memory": lambda i: Item("odd", "memory 2000", "17"),
    }
    expected = [verify(*item[:3]) for item in plain]
    found = {}
    with VerifierPool(WORKERS, timeout=TIMEOUT, memory_mb=512) as pool:
        pool.verify_many(plain + [Item("odd", "a", "a")])
        for name, bomb in kinds.items():
            mixed = list(plain)
            for i, place in enumerate(places):
                mixed[place] = bomb(i)
            seconds: dict[bool, list[float]] = {False: [], True: []}
            wrong, late, statuses = 0, 0, Counter[str]()
            for repeat in range(1 if name == "hanging" else repeats):
                for bombed in (False, True) if repeat % 2 == 0 else (True, False):
                    start = time.perf_counter()
                    results = pool.verify_many(mixed if bombed else plain)
                    seconds[bombed].append(time.perf_counter() - start)
                    for place, (verdict, _) in enumerate(results):
                        if bombed and mixed[place] is not plain[place]:
                            statuses[verdict.status.name] += 1
                        else:
                            late += not verdict.valid
                            wrong += verdict.valid and verdict != expected[place]
            without, with_bombs = statistics.median(seconds[False]), statistics.median(seconds[True])
            line = {"without_s": round(without, 3), "with_s": round(with_bombs, 3), "ratio": round(with_bombs / without, 2)}
            if name == "hanging":
                line["beyond_deadlines_s"] = round(with_bombs - without - len(places) * TIMEOUT / WORKERS, 3)
            found[name] = {**line, "honest_wrong": wrong, "honest_without_verdict": late, "bombs": dict(statuses)}
            print(f"{len(places)} bombs in {BATCH}, {name}: {found[name]}", flush=True)
    return found


def kills(n: int) -> dict[str, Any]:
    items = honest()
    expected = [verify(*item[:3]) for item in items]
    rng, done, killed = random.Random(0), threading.Event(), 0
    with VerifierPool(WORKERS, timeout=30.0) as pool:
        pool.verify_many(items)

        def kill() -> None:
            nonlocal killed
            while killed < n:
                time.sleep(0.01 * rng.random())
                worker = pool._crew.foremen[rng.randrange(WORKERS)].worker
                if worker is not None and worker.running()[0] is not None:  # in the middle of an item
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(worker.pid, signal.SIGKILL)
                        killed += 1
            done.set()

        killer = threading.Thread(target=kill)
        killer.start()
        batches = lost = wrong = 0
        while not done.is_set():
            results = pool.verify_many(items)
            batches += 1
            lost += len(items) - len(results) + sum(not verdict.valid for verdict, _ in results)
            wrong += sum(verdict.valid and verdict != right for right, (verdict, _) in zip(expected, results))
        killer.join()
    found = {"kills": killed, "verdicts": batches * len(items), "lost": lost, "wrong": wrong}
    print(f"kills: {found}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--kills", type=int, default=100)
    arguments = parser.parse_args()
    found = {"dispatch": dispatch(arguments.repeats), "bombs": bombs(arguments.repeats), "kills": kills(arguments.kills)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
