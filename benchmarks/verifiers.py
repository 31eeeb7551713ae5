"""The maths verifier against math-verify, and the memory of a worker after 100,000 verdicts.

    pip install "setpo-envs[bench]"
    SETPO_TEST_DATA=... OMP_NUM_THREADS=1 python benchmarks/verifiers.py speed
    SETPO_TEST_DATA=... OMP_NUM_THREADS=1 python benchmarks/verifiers.py memory

speed: CPU seconds of both on the same texts, golds and core, each pass in a fork of a process that has judged nothing; in turn and then
the other way round, medians. math-verify as its README has it: the gold in a box, the whole text parsed with the default extraction and
time limits. "new" is ours with its caches cleared before every verdict: policies repeat their answers, and we judge a repeated answer
once. "w/o slow" leaves out, for both, the texts that took math-verify over a second. "differ" counts verdicts.

memory: one worker of a pool judges 100,000 completions, those of the files again and again, and then 100,000 that are all different.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import sys
from collections.abc import Callable, Iterable
from typing import Any

import completions
from completions import Judge, Pass, in_fork, ours

from setpo_verifiers import Verdict, VerifierPool
from setpo_verifiers.pool_worker import Item


def math_verify() -> Judge:
    try:
        from math_verify import LatexExtractionConfig, parse, verify
    except ImportError:
        sys.exit('expected math-verify to compare with; pip install "setpo-envs[bench]"')
    logging.getLogger("math_verify").setLevel(logging.CRITICAL)  # it quotes every text that it gives up on

    def judge(item: Item) -> bool:
        return bool(verify(parse(f"\\boxed{{{item.gold}}}", extraction_config=[LatexExtractionConfig()]), parse(item.completion)))

    return judge


def clear_caches() -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("setpo_verifiers"):
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def speed(repeats: int) -> dict[str, Any]:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    peer = math_verify()
    columns = ("ours", "new", "peer", "ratio", "new ratio", "slow", "w/o slow", "differ")
    print(f"{'verdicts per CPU second':24}{'texts':>6}" + "".join(f"{column:>10}" for column in columns))
    lines = {}
    for name, items in completions.files(maths_only=True).items():
        passes: dict[str, list[Pass]] = {"ours": [], "new": [], "peer": []}
        for repeat in range(repeats):
            for key in sorted(passes, reverse=bool(repeat % 2)):
                passes[key].append(in_fork(peer if key == "peer" else ours, items, clear_caches if key == "new" else lambda: None))
        slow = {i for i in range(len(items)) if statistics.median(one[i][1] for one in passes["peer"]) > 1.0}
        seconds = {key: total(some) for key, some in passes.items()}
        line = {"texts": len(items), **{key: round(len(items) / spent, 1) for key, spent in seconds.items()}}
        line |= {"ratio": round(seconds["peer"] / seconds["ours"], 1), "ratio_new": round(seconds["peer"] / seconds["new"], 1)}
        line |= {"slow": len(slow), "ratio_without_slow": round(total(passes["peer"], slow) / total(passes["ours"], slow), 1)}
        line["differ"] = sum(a != b for (a, _), (b, _) in zip(passes["ours"][0], passes["peer"][0]))
        lines[name] = line
        print(f"{name:24}{len(items):6}" + "".join(f"{value:10}" for key, value in line.items() if key != "texts"), flush=True)
    return lines


def total(passes: list[Pass], without: Iterable[int] = ()) -> float:
    """CPU seconds of a pass, median over the passes."""
    return statistics.median(sum(spent for i, (_, spent) in enumerate(one) if i not in without) for one in passes)


def memory(n: int) -> dict[str, Any]:
    lines = {}
    repeated = [item for items in completions.files().values() for item in items]
    with VerifierPool(1, timeout=60.0) as pool:
        first = [verdict for verdict, _ in pool.verify_many(repeated)]  # warm-up: modules, caches, arenas
        lines["repeated"] = grow(pool, n, len(repeated), lambda number: repeated, first)
        lines["different"] = grow(pool, n, 5_000, lambda number: completions.generated(5_000, seed=number))
    for name, line in lines.items():
        print(f"{name:10} {line}")
    return lines


def grow(
    pool: VerifierPool, n: int, block: int, items: Callable[[int], list[Item]], expected: list[Verdict] | None = None
) -> dict[str, Any]:
    """Judge about ``n`` items; megabytes of the worker before, in between and after, and verdicts unlike those ``expected``."""
    sizes, failed, changed = [resident(pool)], 0, 0
    for number in range(-(-n // block)):
        found = [verdict for verdict, _ in pool.verify_many(items(number))]
        failed += sum(not verdict.valid for verdict in found)
        changed += sum(a != b for a, b in zip(found, expected or found))
        sizes.append(resident(pool))
    marks = [sizes[i * (len(sizes) - 1) // 4] for i in range(5)]
    growth = round(marks[-1] - marks[0], 1)
    return {"verdicts": block * (len(sizes) - 1), "MB": marks, "growth_MB": growth, "changed": changed, "without_verdict": failed}


def resident(pool: VerifierPool) -> float:
    """Resident megabytes of the pool's one worker."""
    worker = pool._crew.foremen[0].worker
    assert worker is not None
    with open(f"/proc/{worker.pid}/statm") as file:
        return round(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["speed", "memory"])
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--verdicts", type=int, default=100_000)
    arguments = parser.parse_args()
    found = speed(arguments.repeats) if arguments.what == "speed" else memory(arguments.verdicts)
    print(json.dumps({arguments.what: found}))


if __name__ == "__main__":
    main()
