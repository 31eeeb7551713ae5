"""Kill a training run at random moments: does it end in the weights of the run that was left alone, and how much was done twice?

    python benchmarks/kill.py --kills 20

The tiny policy is trained with a checkpoint every step. Each process is killed (SIGKILL) at a moment drawn uniformly over its start and
its first few steps; the last one may finish. Printed is one JSON line: the kills that hit, the most steps that one of them undid, and
whether weights, optimiser and metrics are those of the undisturbed run to the bit.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from setpo_agents import checkpoint
from setpo_agents.config import TrainConfig
from setpo_agents.study import DEMO_SETPO, ENV_KWARGS, packaged_warm_start, setpo_arm
from setpo_agents.trainer import Trainer

UNSTABLE = ("seconds", "tokens_per_second", "peak_memory_mib")


def config(steps: int) -> TrainConfig:
    start = packaged_warm_start()
    if start is None:
        raise FileNotFoundError("the warm start that comes with the package is missing or altered")
    sizes = {"steps": steps, "prompts_per_step": 4, "group_size": 8, "checkpoint_every": 1}
    return TrainConfig(warm_start=str(start), env_kwargs={**ENV_KWARGS, "split": "train"}, **sizes, **setpo_arm(*DEMO_SETPO).settings)


def begin(steps: int, folder: Path) -> int:
    """Start (or resume) the run in a child process that has all modules already; returns its id."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        code = 1
        try:
            Trainer(config(steps), folder).run()
            code = 0
        finally:
            os._exit(code)
    return child


def lines(folder: Path) -> int:
    path = folder / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def saved_step(folder: Path) -> int:
    path = folder / "checkpoint.safetensors"
    return checkpoint.load(path)["step"] if path.exists() else 0


def finish(child: int) -> bool:
    """Wait for a child; whether it was killed. Any other end but success raises."""
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    if not killed and os.waitstatus_to_exitcode(status) != 0:
        raise RuntimeError(f"the run failed by itself with status {status}")
    return killed


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(equal, a, b))
    return a == b


def metrics(folder: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if key not in UNSTABLE} for row in rows]


def kill_often(folder: Path, *, kills: int, steps: int, seed: int) -> dict[str, Any]:
    rng, whole, killed = random.Random(seed), folder / "whole", folder / "killed"
    start = time.monotonic()
    child = begin(steps, whole)
    while not lines(whole):
        time.sleep(0.001)
    started = time.monotonic()
    finish(child)
    window = started - start + 3 * (time.monotonic() - started) / steps  # a start and a few steps
    hits, most_undone = 0, 0
    for _ in range(kills):
        child = begin(steps, killed)
        time.sleep(rng.uniform(0, window))
        os.kill(child, signal.SIGKILL)
        if finish(child):
            hits += 1
            most_undone = max(most_undone, lines(killed) - saved_step(killed))
    before = saved_step(killed)
    finish(begin(steps, killed))
    states = [checkpoint.load(path / "checkpoint.safetensors") for path in (whole, killed)]
    return {
        "kills": hits,
        "step_after_the_kills": before,
        "steps": steps,
        "most_logged_steps_undone": most_undone,
        "same_checkpoint": equal(*states),
        "same_metrics": metrics(whole) == metrics(killed),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--seed", type=int, default=0)
    arguments = vars(parser.parse_args())
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(kill_often(Path(folder), **arguments)))


if __name__ == "__main__":
    main()
