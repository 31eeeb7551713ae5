"""Environments in which the tiny policy is a fair subject: it learns them in minutes, and has several solutions a problem to lose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from setpo_envs.prompts import EDGE_LETTERS

from .policies.tiny import TinyConfig
from .study import ENV_KWARGS
from .warm_start import WarmStartConfig


@dataclass(frozen=True)
class TinyTask:
    """An environment with its arguments, besides the split, and what the policy needs to read and to learn it."""

    env: str
    env_kwargs: dict[str, Any]
    policy: TinyConfig = TinyConfig()
    warm_start: WarmStartConfig = WarmStartConfig()


COUNTDOWN = TinyTask("setpo/Countdown-v0", ENV_KWARGS)
# Seven vertices, ten edges, three colours: 3 to 12 modes a problem.
GRAPH_COLORING = TinyTask(
    env="setpo/GraphColoring-v0",
    env_kwargs={
        "source": "generator",
        "prompt_format": "terse",
        "settings": {
            "min_vertices": 7,
            "max_vertices": 7,
            "edge_range": [10, 10],
            "colors": 3,
            "min_modes": 3,
            "max_modes": 12,
            "size": 4000,
        },
    },
    policy=TinyConfig(alphabet=f"0123>{EDGE_LETTERS[:21]}", max_prompt=12, max_new_tokens=8),
    warm_start=WarmStartConfig(steps=700, learning_rate=3e-3),
)

TINY_TASKS = {"countdown": COUNTDOWN, "graph_coloring": GRAPH_COLORING}
