"""One batch of experience: draw problems, sample a group for each, verify, credit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from setpo_envs import verify_groups
from setpo_envs.datasets.problem import Problem
from setpo_envs.group import Groups
from setpo_envs.shapers.base import Shaper, apply_shaper
from setpo_verifiers import VerifierPool

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
