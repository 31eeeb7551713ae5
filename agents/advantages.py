"""Base advantages as pure functions of verified rewards, and their combination with set-level credit.

Every function takes ``rewards_NG`` (N prompts, G completions each) and returns advantages of the same shape, float64.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def grpo(rewards_NG: ArrayLike, *, eps: float = 1e-6, ddof: int = 1) -> Array:
    """(r - mean) / (std + eps) in each group: GRPO, arXiv 2402.03300.

    ``ddof=1`` is what verl, TRL and oat compute; the paper's std does not say. A group of equal rewards gives zeros.
    """
    rewards = np.asarray(rewards_NG, dtype=np.float64)
    return dr_grpo(rewards) / (rewards.std(axis=1, ddof=ddof, keepdims=True) + eps)


def dr_grpo(rewards_NG: ArrayLike) -> Array:
    """r - mean in each group: Dr.GRPO, arXiv 2503.20783."""
    rewards = np.asarray(rewards_NG, dtype=np.float64)
    return rewards - rewards.mean(axis=1, keepdims=True)


def rloo(rewards_NG: ArrayLike) -> Array:
    """r_i minus the mean of the others, = G/(G-1) (r - mean): RLOO, arXiv 2402.14740."""
    rewards = np.asarray(rewards_NG, dtype=np.float64)
    group_size = rewards.shape[1]
    return dr_grpo(rewards) * (group_size / (group_size - 1))


def maxrl(rewards_NG: ArrayLike) -> Array:
    """G r_i / sum(r) - 1, zeros where nothing succeeded: MaxRL."""
    rewards = np.asarray(rewards_NG, dtype=np.float64)
    total = rewards.sum(axis=1, keepdims=True)
    return np.where(total > 0, rewards.shape[1] * rewards / np.where(total > 0, total, 1.0) - 1.0, 0.0)


def grpo_passk(rewards_NG: ArrayLike, *, normalize: bool = False, eps: float = 1e-6) -> Array:
    """r_max - r_second for the best member of each group, 0 for the others: best-only pass@k, arXiv 2503.19595.

    A group with two best members gives zeros: under rewards of 0 and 1 only a sole success is reinforced. ``normalize=True`` divides by
    the group's std (ddof 1) + eps, which is the default of verl's ``grpo_passk``.
    """
    rewards = np.asarray(rewards_NG, dtype=np.float64)
    ranked = np.sort(rewards, axis=1)
    advantages = np.zeros_like(rewards)
    advantages[np.arange(len(rewards)), rewards.argmax(axis=1)] = ranked[:, -1] - ranked[:, -2]
    return advantages / (rewards.std(axis=1, ddof=1, keepdims=True) + eps) if normalize else advantages


BASE_ADVANTAGES: dict[str, Callable[[ArrayLike], Array]] = {
    "grpo": grpo,
    "dr_grpo": dr_grpo,
    "rloo": rloo,
    "maxrl": maxrl,
    "grpo_passk": grpo_passk,
}
"""By name. OPO and the REINFORCE++ baseline, which need lengths, are ``dr_grpo`` with the regulariser ``opo`` or ``whiten``."""


def among_valid(base: Callable[[ArrayLike], Array], rewards_NG: ArrayLike, valid_NG: ArrayLike) -> Array:
    """``base`` of the members with a verdict (``valid_NG`` (N, G) bool), as if their group had no others; zero for those without one.

    A time-out or a failed verifier says nothing about a completion, so it must neither be punished nor move the group's baseline.
    A single valid member has nothing to be compared with: zero.
    """
    rewards, valid = np.asarray(rewards_NG, dtype=np.float64), np.asarray(valid_NG, dtype=bool)
    if valid.all():
        return base(rewards)
    advantages = np.zeros_like(rewards)
    whole = valid.all(axis=1)
    if whole.any():
        advantages[whole] = base(rewards[whole])
    for n in np.flatnonzero(~whole & (valid.sum(axis=1) > 1)):
        advantages[n, valid[n]] = base(rewards[n : n + 1, valid[n]])[0]
    return advantages


def combine(base_NG: ArrayLike, credits_NG: ArrayLike, coefficient: float, weights_NG: ArrayLike = 1.0) -> Array:
    """A = w * base(r') + coefficient * c: how every set shaper meets every base advantage.

    For SetPO (arXiv 2602.01062) w = 1 and c = s, the leave-one-out credit, added after the base normalisation.
    """
    return np.asarray(weights_NG) * np.asarray(base_NG) + coefficient * np.asarray(credits_NG)


def scale_shaping(base_NG: ArrayLike, shaped_NG: ArrayLike, strength: float = 1.0, ratio: float | None = None) -> Array:
    """base + strength * (shaped - base): the same method, weaker or stronger; strength 1 is the method as it is, 0 the base alone.

    Args:
        base_NG: base(r), the advantages without any shaper.
        shaped_NG: w * base(r') + lambda * c, those with it.
        strength: Factor on what the shaper changes. For a method that only adds credit it is a factor on lambda.
        ratio: Instead of ``strength``, the :func:`shaping_ratio` that the result has, so that methods can be compared whose
            formulas differ in scale. A method that changes nothing here, or a base of zeros, leaves the base.
    """
    base, shaped = np.asarray(base_NG, dtype=np.float64), np.asarray(shaped_NG, dtype=np.float64)
    if ratio is not None:
        own = shaping_ratio(base, shaped)
        strength = ratio / own if own > 0 else 0.0
    return shaped if strength == 1 else base + strength * (shaped - base)


def shaping_ratio(base_NG: ArrayLike, shaped_NG: ArrayLike) -> float:
    """RMS(shaped - base) / RMS(base) over all N * G: how loud a shaper is beside the reward; 0.0 where the base is all zero.

    Where a method only adds credit this is lambda * RMS(c) / RMS(base).
    """
    base, shaped = np.asarray(base_NG, dtype=np.float64), np.asarray(shaped_NG, dtype=np.float64)
    base_rms = float(np.sqrt(np.mean(np.square(base))))
    return float(np.sqrt(np.mean(np.square(shaped - base)))) / base_rms if base_rms > 0 else 0.0
