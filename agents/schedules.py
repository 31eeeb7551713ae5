"""Learning-rate schedules: factors on the peak rate as pure functions of the progress after warm-up."""

from __future__ import annotations

import math
from collections.abc import Callable

SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda progress: 1.0,
    "linear": lambda progress: 1.0 - progress,
    "cosine": lambda progress: 0.5 * (1.0 + math.cos(math.pi * progress)),  # without restarts: SGDR, arXiv 1608.03983 eq. 5
}
"""Name -> factor, from 1 at progress 0; linear and cosine fall to 0 at progress 1."""


def learning_rate_factor(step: int, *, steps: int, schedule: str = "constant", warmup_steps: int = 0) -> float:
    """Factor on the learning rate in step ``step`` (0 is the first) of ``steps``.

    It rises linearly over ``warmup_steps``, whose last has the full rate, then follows ``SCHEDULES[schedule]``.
    """
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    return SCHEDULES[schedule]((step - warmup_steps) / max(steps - warmup_steps, 1))
