"""Arms x seeds on one environment, in parallel and resumable: the machinery of ``setpo demo`` and ``setpo study``.

An arm is a set of training settings; a job is one arm with one seed. Each job trains in its own folder, samples the
validation and test problems at the end, and leaves one summary line a split in ``results.jsonl``. Everything that was
finished is kept when the command is stopped and started again.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import platform
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch

import setpo_envs
from setpo_envs.datasets.problem import Dataset
from setpo_envs.metrics import summarize_groups
from setpo_envs.shapers import load_shaper_file, make_shaper

from .config import TrainConfig
from .evaluate import evaluate
from .jsonl import append_lines, keep_lines, read_lines, resumable_lines
from .policies.base import Policy, Sampling
from .policies.load import load_policy
from .policies.tiny import TinyConfig
from .progress import progress
from .trainer import Trainer
from .warm_start import WarmStartConfig, warm_start

gym.register_envs(setpo_envs)

OBSERVER = {"kernel": "equality_key", "members": "well_formed"}
"""Credit stored with evaluated groups, the same for every arm, so that diversity is comparable between them."""


@dataclass(frozen=True)
class Arm:
    """A named training method: what it changes in :class:`TrainConfig`."""

    name: str
    label: str
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """What every job of a study shares."""

    out: Path
    env_kwargs: dict[str, Any]
    """Arguments of ``gym.make(env)`` besides the split."""
    env: str = "setpo/Countdown-v0"
    policy: dict[str, Any] = field(default_factory=dict)
    """What differs from :class:`TinyConfig`'s defaults."""
    train: dict[str, Any] = field(default_factory=dict)
    """What all arms change in :class:`TrainConfig`."""
    runs: str = "runs"
    """Folder of the runs within ``out``."""
    steps: int = 400
    eval_samples: int = 64
    snapshots: int = 4
    """Evaluations of a few validation problems along the way, for the pictures."""
    snapshot_problems: int = 24
    eval_problems: int | None = None
    """Problems of each split at the end; None is all."""
    warm_start_steps: int = WarmStartConfig.steps
    warm_start: dict[str, Any] = field(default_factory=dict)
    """What else differs from :class:`WarmStartConfig`'s defaults."""
    packaged_warm_start: bool = False
    """Whether seed 0 begins with the checkpoint that comes with the package."""

    def dataset(self, split: str) -> Dataset:
        env = gym.make(self.env, split=split, shaper=None, **self.env_kwargs)
        return env.unwrapped.dataset  # type: ignore[attr-defined]

    def warm_start_path(self, seed: int) -> Path:
        return self.out / "warm_start" / f"seed{seed}.pt"


@dataclass(frozen=True)
class Job:
    """One arm with one seed; ``arm=None`` evaluates the warm start itself."""

    plan: Plan
    arm: Arm | None
    seed: int
    warm_start_seed: int
    splits: tuple[str, ...]
    temperature: float = 1.0
    """At which the splits are sampled in the end."""
    plugins: tuple[str, ...] = ()
    """Files that register shapers of the arm's, loaded where the job runs."""

    @property
    def folder(self) -> Path:
        if self.arm is None:
            return self.plan.out / "base" / f"seed{self.warm_start_seed}"
        return self.plan.out / self.plan.runs / f"{self.arm.name}-seed{self.seed}"

    @property
    def run(self) -> str:
        """The run's folder within the study's, which names it in ``results.jsonl``."""
        return str(self.folder.relative_to(self.plan.out))

    @property
    def config(self) -> TrainConfig:
        assert self.arm is not None
        return TrainConfig(
            warm_start=str(self.plan.warm_start_path(self.warm_start_seed)),
            env=self.plan.env,
            env_kwargs={**self.plan.env_kwargs, "split": "train"},
            seed=self.seed,
            **{"steps": self.plan.steps, **self.plan.train, **self.arm.settings},
        )

    def groups_path(self, split: str, step: int) -> Path:
        warmth = "" if self.temperature == 1 else f"-T{self.temperature:g}"
        return self.folder / f"eval{warmth}" / f"{split}-{step:06d}.groups.jsonl"

    @property
    def final_step(self) -> int:
        return 0 if self.arm is None else self.plan.steps


def run_warm_start(plan: Plan, seed: int) -> None:
    """Train (or find) the warm start of one seed."""
    config = WarmStartConfig(seed=seed, steps=plan.warm_start_steps, **plan.warm_start)
    warm_start(plan.dataset("train"), config, plan.warm_start_path(seed), policy_config=TinyConfig(**plan.policy))


def run_job(job: Job) -> None:
    """Train with snapshots along the way, then evaluate each split; whatever is already on disk is not done again."""
    for path in job.plugins:
        load_shaper_file(path)
    plan, observer = job.plan, make_shaper("setpo", **OBSERVER)
    validation = plan.dataset("validation")
    few = range(min(plan.snapshot_problems, len(validation)))

    def snapshot(policy: Policy, step: int) -> None:
        if step < job.final_step or "validation" not in job.splits:  # the whole split is sampled below
            path = job.groups_path("validation", step)
            evaluate(policy, validation, path, n=plan.eval_samples, seed=0, indices=few, shaper=observer, label=f"snapshot {step}")

    if job.arm is None:
        policy = load_policy(plan.warm_start_path(job.warm_start_seed))
        snapshot(policy, 0)
    else:
        trainer = Trainer(job.config, job.folder)
        policy = trainer.policy
        for step in sorted({round(plan.steps * i / plan.snapshots) for i in range(1, plan.snapshots + 1)}):
            if trainer.step <= step:
                trainer.run(until=step, signals=())  # a worker is ended at once, and resumes
                snapshot(policy, step)
    for split in job.splits:
        dataset = plan.dataset(split)
        indices = range(len(dataset) if plan.eval_problems is None else min(plan.eval_problems, len(dataset)))
        evaluate(
            policy,
            dataset,
            job.groups_path(split, job.final_step),
            n=plan.eval_samples,
            seed=0,
            indices=indices,
            shaper=observer,
            sampling=Sampling(job.temperature),
            label=f"evaluate on {split}",
        )


def result_lines(job: Job) -> Iterable[dict[str, Any]]:
    """The summary lines of a finished job, one a split."""
    for split in job.splits:
        rows = list(read_lines(job.groups_path(split, job.final_step)))
        temperature = {} if job.temperature == 1 else {"temperature": job.temperature}
        yield {
            "arm": job.arm.name if job.arm else "base",
            "label": job.arm.label if job.arm else "base model",
            "seed": job.seed,
            "warm_start_seed": job.warm_start_seed,
            "split": split,
            "step": job.final_step,
            **temperature,
            **summarize_groups(rows),
            "entropy": sum(row["entropy"] for row in rows) / len(rows),
            "run": job.run,
            "settings": job.arm.settings if job.arm else {},
            **({"training": _training(job.folder / "metrics.jsonl")} if job.arm else {}),
        }


def _training(path: Path) -> dict[str, Any]:
    """Means over the steps of a run: the shaping ratio, and the seconds of each part of a step."""
    steps = list(read_lines(path))
    seconds = {name: round(float(np.mean([step["seconds"][name] for step in steps])), 5) for name in steps[0]["seconds"]}
    return {"shaping_ratio": round(float(np.mean([step["shaping_ratio"] for step in steps])), 6), "seconds": seconds}


def run_jobs(jobs: Sequence[Job], *, workers: int = 2) -> list[dict[str, Any]]:
    """Run jobs in single-thread processes side by side, with one progress bar over all steps; returns their result lines.

    New lines are appended to ``results.jsonl`` in the study's folder. The output of each job is in its ``log.txt``.
    """
    path = jobs[0].plan.out / "results.jsonl"
    known = {_key(line): line for line in resumable_lines(path, "arm")}
    keep_lines(path)
    todo = [job for job in jobs if any((job.run, split, job.temperature) not in known for split in job.splits)]
    if todo:
        with append_lines(path) as write:
            for job in _finished(todo, workers, already=len(jobs) - len(todo)):
                for line in result_lines(job):
                    if known.setdefault(_key(line), line) is line:
                        write(line)
    return [known[job.run, split, job.temperature] for job in jobs for split in job.splits]


def _key(line: dict[str, Any]) -> tuple[str, str, float]:
    return line["run"], line["split"], line.get("temperature", 1.0)


def _finished(todo: Sequence[Job], workers: int, already: int) -> Iterator[Job]:
    """Run jobs and yield each when it is done; the first that fails, or an interrupt, cancels those not begun."""
    trained = [job for job in todo if job.arm is not None]
    total, waiting = already + len(todo), list(reversed(todo))
    pending: dict[Future[None], Job] = {}
    with _pool(workers) as pool:
        bar = progress((), f"{already} of {total} runs done", total=todo[0].plan.steps * len(trained) or 1)
        try:
            while pending or waiting:
                while waiting and len(pending) < workers:  # no more than run at once: what a pool has queued cannot be cancelled
                    pending[pool.submit(_logged, run_job, waiting[-1].folder, waiting[-1])] = waiting[-1]
                    waiting.pop()
                for future in wait(pending, timeout=0.5, return_when=FIRST_COMPLETED).done:
                    job = pending.pop(future)
                    if future.exception() is not None:
                        print(f"\n{job.run} failed; its log is {job.folder / 'log.txt'}", file=sys.stderr)
                    future.result()
                    yield job
                    bar.set_description(f"{total - len(pending) - len(waiting)} of {total} runs done")
                bar.update(sum(_count_lines(job.folder / "metrics.jsonl") for job in trained) - bar.n)
        except BaseException:
            for worker in multiprocessing.active_children():
                worker.terminate()  # every file is written whole: the same command goes on from the last checkpoint
            raise
        finally:
            bar.close()


def run_warm_starts(plan: Plan, seeds: Sequence[int], *, workers: int = 2) -> None:
    """Make the warm starts that are missing; a single one shows its own progress bar."""
    if len(seeds) == 1 or workers == 1:
        single_thread()
        for seed in seeds:
            run_warm_start(plan, seed)
        return
    with _pool(workers) as pool:
        futures = [pool.submit(_logged, run_warm_start, plan.warm_start_path(seed).parent / f"seed{seed}", plan, seed) for seed in seeds]
        for future in progress(futures, "warm starts", total=len(futures)):
            future.result()


def single_thread() -> None:
    """One thread a process: two single-thread processes use two cores best, and results do not depend on the core count."""
    torch.set_num_threads(1)


def _pool(workers: int) -> ProcessPoolExecutor:
    # spawn: a forked child would inherit torch's thread state
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"), initializer=_begin_worker)


def _begin_worker() -> None:
    """A worker ends with its parent: one that outlived it would go on writing into a run that the next call resumes."""
    single_thread()
    threading.Thread(target=_end_after, args=(multiprocessing.parent_process(),), daemon=True).start()


def _end_after(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _logged(function: Any, folder: Path, *args: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "log.txt", "a", encoding="utf-8") as log, contextlib.redirect_stderr(log):
        try:
            function(*args)
        except Exception:
            traceback.print_exc()
            raise


def _count_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def save_plan(plan: Plan) -> None:
    """Write ``study.json``: what is run, and the versions it is run with. A folder of another plan is refused (ValueError)."""
    path = plan.out / "study.json"
    mine = json.loads(json.dumps({key: value for key, value in asdict(plan).items() if key != "out"}))
    if path.exists():
        saved = {**_defaults(Plan), **json.loads(path.read_text(encoding="utf-8"))["plan"]}  # an older plan lacks newer fields
        differing = [f"{key}: saved {saved.get(key)!r}, asked {mine[key]!r}" for key in mine if saved.get(key) != mine[key]]
        if differing:
            raise ValueError(f"{plan.out} holds runs of another plan ({'; '.join(differing)}). Use another folder or delete it.")
    versions = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__, "gymnasium": gym.__version__}
    plan.out.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"plan": mine, "versions": versions}, indent=2) + "\n", encoding="utf-8")


def _defaults(config: type) -> dict[str, Any]:
    made = {f.name: f.default_factory() for f in fields(config) if f.default_factory is not MISSING}
    return {**made, **{f.name: f.default for f in fields(config) if f.default is not MISSING}}
