"""Problems a CPU second, beside reasoning-gym at the same settings in the same process; and a check of 10,000 puzzles.

    pip install reasoning-gym
    OMP_NUM_THREADS=1 python benchmarks/generators.py
    python benchmarks/generators.py --check 10000

Every problem comes from ``dataset[i]``, one at a time, with its prompt and gold, split "train". Ours and theirs take turns; the
ratio is the median over rounds. ``--check`` needs no other package: it solves Knights and Knaves puzzles by going through all
assignments with the evaluator of the tests, and looks for keys that two splits have in common.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when numpy loads

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from puzzle_reader import solutions  # noqa: E402

from setpo_envs.datasets.countdown import countdown_dataset  # noqa: E402
from setpo_envs.datasets.knights_and_knaves import knights_and_knaves_dataset  # noqa: E402

SIZE = 10**6
ROUNDS = 7


def countdown(numbers: int, values: tuple[int, int], targets: tuple[int, int]) -> tuple[str, Any, Callable[[Any], Any]]:
    ours = countdown_dataset(
        settings={"min_numbers": numbers, "max_numbers": numbers, "number_range": values, "target_range": targets, "size": SIZE}
    )

    def theirs(module: Any) -> Any:
        limits = {"min_value": values[0], "max_value": values[1], "min_target": targets[0], "max_target": targets[1]}
        return module.create_dataset("countdown", min_numbers=numbers, max_numbers=numbers, **limits, size=SIZE, seed=0)

    return f"Countdown, {numbers} numbers {values[0]}-{values[1]}, targets {targets[0]}-{targets[1]}", ours, theirs


def knights_and_knaves(people: int) -> tuple[str, Any, Callable[[Any], Any]]:
    ours = knights_and_knaves_dataset(settings={"min_people": people, "max_people": people, "depth": 2, "width": 2, "size": SIZE})

    def theirs(module: Any) -> Any:
        return module.create_dataset("knights_knaves", n_people=people, depth_constraint=2, width_constraint=2, size=SIZE, seed=0)

    return f"Knights and Knaves, {people} people, depth 2, width 2", ours, theirs


def rate(dataset: Any, start: int, seconds: float) -> tuple[float, int]:
    """(items a CPU second, the next index)."""
    index, begun, clock = start, time.process_time(), 0.0
    while clock < seconds or index < start + 5:
        try:
            dataset[index]
        except ValueError:  # reasoning-gym gives up on some items; the time counts, as a user waits for it
            pass
        index += 1
        clock = time.process_time() - begun
    return (index - start) / clock, index


def compare() -> None:
    try:
        import reasoning_gym
    except ImportError:
        raise SystemExit("this comparison needs reasoning-gym: `pip install reasoning-gym`, or run with --check 10000") from None
    print(f"{'items a CPU second':48}{'ours':>10}{'reasoning-gym':>16}{'ratio':>9}")
    contests = [countdown(3, (1, 100), (100, 999)), countdown(4, (1, 100), (100, 999)), countdown(4, (1, 99), (10, 100))]
    contests += [knights_and_knaves(people) for people in (2, 3, 5, 8)]
    for name, ours, make_theirs in contests:
        theirs = make_theirs(reasoning_gym)
        at_ours, at_theirs, rates = 0, 0, []
        for _ in range(ROUNDS):
            ours_rate, at_ours = rate(ours, at_ours, 0.5)
            theirs_rate, at_theirs = rate(theirs, at_theirs, 1.0)
            rates.append((ours_rate, theirs_rate))
        ratio = median(a / b for a, b in rates)
        print(f"{name:48}{median(a for a, _ in rates):10.0f}{median(b for _, b in rates):16.0f}{ratio:8.0f}x")


def check(count: int) -> None:
    """Exactly one solution, the recorded one, for ``count`` puzzles of 2 to 8 people and several depths and widths; disjoint splits."""
    keys: dict[str, set[str]] = {}
    settings = [{"min_people": 2, "max_people": 8}, {"depth": 3, "width": 3}, {"min_people": 2, "max_people": 4, "depth": 4, "width": 4}]
    shares = {"train": 0.8, "validation": 0.1, "test": 0.1}
    for split, share in shares.items():
        for number, chosen in enumerate(settings):
            data = knights_and_knaves_dataset(split=split, settings={**chosen, "size": SIZE}, seed=number)
            for index in range(round(count * share / len(settings))):
                puzzle = data.puzzle(index)  # type: ignore[attr-defined]
                found = solutions(puzzle.statements)
                if found != [puzzle.solution]:
                    raise SystemExit(f"{split} item {index} of {chosen}: recorded {puzzle.solution}, found {found}")
                keys.setdefault(split, set()).add(puzzle.key)
    for one, other in (("train", "validation"), ("train", "test"), ("validation", "test")):
        if common := keys[one] & keys[other]:
            raise SystemExit(f"{len(common)} keys are in both {one} and {other}")
    print(f"about {count} puzzles: each has exactly one solution, the recorded one")
    print("distinct keys: " + ", ".join(f"{split} {len(keys[split])}" for split in shares) + "; none in two splits")


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the generators beside reasoning-gym, or a check of their puzzles.")
    parser.add_argument("--check", type=int, metavar="N", help="check N puzzles in place of measuring")
    count = parser.parse_args().check
    check(count) if count else compare()


if __name__ == "__main__":
    main()
