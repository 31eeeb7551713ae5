"""Evaluation along the way: which weights are the best so far, and whether it still gets better."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from setpo_envs.datasets.problem import Dataset
from setpo_envs.metrics import summarize_groups
from setpo_verifiers import VerifierPool

from .config import TrainConfig
from .evaluate import evaluate
from .microbatches import Scoring
from .policies.base import Generates, Policy, Samples, Sampling


@dataclass
class Watch:
    """The best value of a metric so far (larger is better), the step it was reached at, and how many values came after it."""

    best: float | None = None
    step: int = 0
    since: int = 0

    def see(self, value: float | None, step: int) -> bool:
        """Take a new value, None where the metric is undefined; returns whether it is the best."""
        better = value is not None and (self.best is None or value > self.best)
        self.best, self.step, self.since = (value, step, 0) if better else (self.best, self.step, self.since + 1)
        return better


@dataclass(frozen=True)
class Sampled:
    """A policy whose completions come from a sampler with its weights."""

    policy: Policy
    sampler: Generates

    def generate(self, prompts: Any, n: int, sampling: Sampling, generator: torch.Generator) -> Samples:
        return self.sampler.generate(prompts, n, sampling, generator)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.policy, name)


def validate(
    policy: Policy, dataset: Dataset, config: TrainConfig, folder: Path, *, step: int, mode: str, pool: VerifierPool | None
) -> dict[str, Any]:
    """The metrics of ``eval_samples`` completions of the first ``eval_problems`` problems, sampled as in training.

    The groups stay in ``folder``; an evaluation that was killed goes on where it stopped.
    """
    # at temperature 1, within the memory and in the precision of training
    scoring = Scoring(policy, None, 1.0, config.micro_batch_tokens, config.precision)
    path = folder / "eval" / f"{config.eval_split}-{step:06d}.groups.jsonl"
    with scoring.autocast(next(iter(policy.parameters())).device):
        lines = evaluate(
            policy,
            dataset,
            path,
            n=config.eval_samples,
            seed=config.seed,
            indices=range(min(config.eval_problems, len(dataset))),
            sampling=config.sampling,
            entropies=lambda samples: scoring.current(samples)[1],
            mode=mode,
            label=f"evaluate at step {step}",
            pool=pool,
        )
    summary = summarize_groups(lines)
    return {name: value for name, value in summary.items() if isinstance(value, (int, float))}


def in_step(evaluate: Callable[[Path], dict[str, Any]], folder: Path, main: bool) -> dict[str, Any]:
    """``evaluate`` from the beginning, as all processes do at once; the groups of the main process are put into ``folder``."""
    with tempfile.TemporaryDirectory() as scratch:
        summary = evaluate(Path(scratch))
        if main:
            shutil.copytree(Path(scratch) / "eval", folder / "eval", dirs_exist_ok=True)
    return summary


def metric_names(n: int) -> list[str]:
    """What can be watched in evaluations of ``n`` completions a problem."""
    row = {"status": ["correct"] * n, "mode_keys": [""] * n, "answers": [""] * n, "metadata": {"n_modes": 1}, "entropy": 0.0}
    return [name for name in summarize_groups([row]) if name != "per_problem"]
