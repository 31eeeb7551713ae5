"""A training run small enough for a test: a small policy, a small space, a few steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import torch

import setpo_envs
from setpo_agents.config import TrainConfig
from setpo_agents.policies.tiny import TinyConfig
from setpo_agents.warm_start import WarmStartConfig, warm_start

gym.register_envs(setpo_envs)
torch.set_num_threads(1)

SPACE = {
    "source": "enumerate",
    "prompt_format": "terse",
    "settings": {"min_numbers": 3, "max_numbers": 3, "number_range": [1, 5], "target_range": [1, 12], "min_modes": 1},
}
POLICY = TinyConfig(d_model=32, n_layers=1, n_heads=2)
SETPO = {"embedder": "expression", "members": "well_formed", "scale": "zscore", "malformed": "min_minus_one"}


def dataset(split: str = "train", **space):
    return gym.make("setpo/Countdown-v0", split=split, shaper=None, **(space or SPACE)).unwrapped.dataset


def make_warm_start(path: Path, steps: int = 150) -> Path:
    warm_start(dataset(), WarmStartConfig(steps=steps, problems_per_step=32, learning_rate=5e-3), path, policy_config=POLICY)
    return path


def config(warm_start_path: Path, **fields) -> TrainConfig:
    base = TrainConfig(
        warm_start=str(warm_start_path),
        env_kwargs=SPACE,
        steps=6,
        prompts_per_step=8,
        group_size=8,
        shaper="setpo",
        shaper_kwargs=SETPO,
        credit_coefficient=0.1,
        learning_rate=1e-3,
        checkpoint_every=2,
    )
    return replace(base, **fields)
