"""Supervised warm start of the tiny policy on listed solutions: the base model that reinforcement learning starts from."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from setpo_envs.datasets.problem import Dataset

from .checkpoint import load, save
from .losses import sequence_mean
from .policies.tiny import TinyConfig, TinyPolicy
from .progress import progress


@dataclass(frozen=True)
class WarmStartConfig:
    """Maximum likelihood on uniformly drawn modes, each written as the data set's ``write_mode`` does."""

    steps: int = 3000
    problems_per_step: int = 64
    solutions_per_problem: int = 4
    learning_rate: float = 2e-3
    """Peak; falls linearly to a tenth."""
    seed: int = 0


def warm_start(dataset: Dataset, config: WarmStartConfig, path: Path, *, policy_config: TinyConfig | None = None) -> TinyPolicy:
    """Train a policy on ``dataset`` (problems whose metadata holds their ``modes``), or load it from ``path``.

    ``dataset.write_mode(problem, mode, rng)`` gives a mode as a text, in one of the ways to write it that ``rng`` (``random.Random``)
    draws.

    ``path`` is reused only if it was made by the same configuration on the same problems; it is written atomically.
    """
    policy = TinyPolicy(policy_config, seed=config.seed)
    problems = [dataset[i] for i in range(len(dataset))]
    if not problems or "modes" not in problems[0].metadata:
        raise ValueError("expected a data set whose problems list their solutions in metadata['modes'] (source='enumerate')")
    if not hasattr(dataset, "write_mode"):
        raise ValueError(f"expected a data set with write_mode(problem, mode, rng), got {type(dataset).__name__}")
    # JSON turns tuples into lists: compare what a file would hold
    identity = json.loads(json.dumps({"warm_start": asdict(config), "policy": policy.describe(), "problems": fingerprint(problems)}))
    saved = load(path) if path.exists() else None
    if saved is not None and saved.get("identity") != identity:
        raise ValueError(f"{path} holds another policy than this configuration trains; choose another file or delete it")
    if saved is not None:
        policy.load_state_dict(saved["policy"])
        return policy
    rng = random.Random(config.seed)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=config.learning_rate, betas=(0.9, 0.95), fused=True)
    bar = progress(range(config.steps), f"warm start, seed {config.seed}")
    for step in bar:
        for group in optimizer.param_groups:
            group["lr"] = config.learning_rate * (1 - 0.9 * step / config.steps)
        picked = [problems[rng.randrange(len(problems))] for _ in range(config.problems_per_step)]
        texts = [
            [dataset.write_mode(problem, rng.choice(problem.metadata["modes"]), rng) for _ in range(config.solutions_per_problem)]
            for problem in picked
        ]
        samples = policy.supervised([problem.prompt for problem in picked], texts)
        log_probs, _ = policy.log_probs(samples)
        loss = -sequence_mean(log_probs, samples.mask_NGT).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 0 or step == config.steps - 1:
            bar.set_postfix(nats_per_token=f"{loss.item():.3f}")
    save(path, {"identity": identity, "policy": policy.state_dict()})
    return policy


def fingerprint(problems: list[Any]) -> str:
    """Short hash of the problems a policy was trained on."""
    import hashlib

    return hashlib.sha256("\n".join(problem.problem_id for problem in problems).encode()).hexdigest()[:16]
