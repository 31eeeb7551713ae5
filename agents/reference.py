"""The policy as it was before training."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .policies.base import Policy, Samples, Sampling


@dataclass(frozen=True)
class AdaptersOff:
    """A policy with its adapters switched off whenever it is asked: no second model is held."""

    policy: Any

    def log_probs(self, samples: Samples, *, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
        with self.policy.reference() as before:
            return before.log_probs(samples, temperature=temperature)

    def generate(self, prompts: Sequence[str], n: int, sampling: Sampling, generator: torch.Generator) -> Samples:
        with self.policy.reference() as before:
            return before.generate(prompts, n, sampling, generator)


def make_reference(policy: Policy) -> Any:
    """A frozen copy of ``policy``, or ``policy`` itself without its adapters; called before training."""
    if getattr(policy, "adapters", None) is not None:
        return AdaptersOff(policy)
    frozen = copy.deepcopy(policy)
    for weight in frozen.parameters():
        weight.requires_grad_(False)
    return frozen
