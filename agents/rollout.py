"""One batch of experience: sample a group for each problem, verify, credit; batches of mixed groups; what a batch looks like."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from setpo_envs import verify_groups
from setpo_envs.completion import is_truncated
from setpo_envs.datasets.problem import Problem
from setpo_envs.group import Groups
from setpo_envs.shapers.base import Shaper, apply_shaper
from setpo_verifiers import VerifierPool

from .batches import join_groups, join_samples, pick_groups
from .policies.base import Generates, Samples, Sampling


@dataclass
class Rollout:
    """N groups as text with verdicts and credits, and the same completions as tokens; seconds spent on each part."""

    groups: Groups
    samples: Samples
    seconds: dict[str, float] = field(default_factory=dict)


def rollout(
    policy: Generates,
    problems: Sequence[Problem],
    group_size: int,
    *,
    shaper: Shaper | None,
    generator: torch.Generator,
    rng: np.random.Generator,
    sampling: Sampling,
    mode: str = "lenient",
    pool: VerifierPool | None = None,
) -> Rollout:
    """Sample ``group_size`` completions of each problem and score them exactly as the environment's ``step`` does.

    With a ``pool`` its processes verify all groups as one batch, while this one computes what the shaper needs of the texts;
    what is left of the shaper is then part of the time of verifying.
    """
    clock = time.perf_counter
    start = clock()
    samples = policy.generate([problem.prompt for problem in problems], group_size, sampling, generator)
    generated = clock()
    groups = verify_groups(problems, samples.completions_NG, mode=mode, shaper=shaper if pool else None, rng=rng, pool=pool)
    verified = clock()
    if shaper is not None and pool is None:
        apply_shaper(groups, shaper, rng)
    seconds = {"generate": generated - start, "verify": verified - generated, "credit": clock() - verified}
    return Rollout(groups, samples, seconds)


def join(parts: Sequence[Rollout]) -> Rollout:
    """One batch of several that were made one after another: their seconds add up."""
    if len(parts) == 1:
        return parts[0]
    seconds = {name: sum(part.seconds[name] for part in parts) for name in parts[0].seconds}
    return Rollout(join_groups([part.groups for part in parts]), join_samples([part.samples for part in parts]), seconds)


def mixed(groups: Groups) -> Any:
    """(N,) bool: some of the group's completions were accepted by the verifier and some were not."""
    return groups.correct.any(axis=1) & ~groups.correct.all(axis=1)


def until_mixed(draw: Callable[[], Rollout], n: int, most: int) -> tuple[Rollout, int]:
    """Batches of ``draw`` until ``n`` groups are mixed, at most ``most``: dynamic sampling (DAPO, arXiv 2503.14476 eq. 11).

    Returns the first ``n`` mixed groups and how many batches it took. Where fewer are found, the first of the others fill up.
    """
    parts = [draw()]
    while len(parts) < most and sum(int(mixed(part.groups).sum()) for part in parts) < n:
        parts.append(draw())
    batch = join(parts)
    rows = np.argsort(~mixed(batch.groups), kind="stable")[:n]
    return Rollout(pick_groups(batch.groups, rows.tolist()), batch.samples[torch.as_tensor(rows)], batch.seconds), len(parts)


def describe(batch: Rollout) -> dict[str, Any]:
    """What a batch of rollouts looks like, before the update."""
    groups, correct_NG = batch.groups, batch.groups.correct
    solved_N = correct_NG.sum(axis=1)
    lengths = batch.samples.mask_NGT.sum(-1)
    distinct = [len(set(keys[right])) for keys, right in zip(groups.mode_keys, correct_NG)]
    return {
        "reward": float(groups.rewards.mean()),
        "well_formed": float(groups.well_formed.mean()),
        "truncated": float(np.mean([[is_truncated(text) for text in group] for group in groups.completions_NG])),
        "all_wrong": float((solved_N == 0).mean()),
        "mixed": float(mixed(groups).mean()),
        "all_right": float((solved_N == groups.group_size).mean()),
        "distinct_correct": float(np.mean(distinct)),
        "diversity": float(groups.diversity.mean()),
        "mean_abs_credit": float(np.abs(groups.credits).mean()),
        "mean_credit": float(groups.credits.mean()),
        "length": float(lengths.mean()),
        "tokens": int(lengths.sum()),
        "tokens_per_second": float(lengths.sum()) / max(batch.seconds["generate"], 1e-9),
    }
