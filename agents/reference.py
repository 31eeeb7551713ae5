"""The policy as it was before training."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .distributed import World
from .policies.base import Policy, Samples, Sampling


@dataclass(frozen=True)
class AdaptersOff:
    """A policy with its adapters switched off whenever it is asked: no second model is held."""

    policy: Any

    def log_probs(self, samples: Samples, *, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
        with self.policy.reference():
            return self.policy.log_probs(samples, temperature=temperature)

    def generate(self, prompts: Sequence[str], n: int, sampling: Sampling, generator: torch.Generator) -> Samples:
        with self.policy.reference():
            return self.policy.generate(prompts, n, sampling, generator)


def with_reference(policy: Policy, world: World, needed: bool) -> tuple[Any, Any]:
    """(the policy as it is trained here, the policy as it is now: itself without its adapters, a frozen copy, or None unless needed)."""
    adapters = getattr(policy, "adapters", None) is not None
    frozen = copy.deepcopy(policy) if needed and not adapters else None
    for weight in () if frozen is None else frozen.parameters():
        weight.requires_grad_(False)
    trained = world.prepared(policy)
    if frozen is not None:
        return trained, world.prepared(frozen)
    return trained, AdaptersOff(trained) if needed else None
