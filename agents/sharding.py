"""Weights, gradients and optimiser states split over processes (FSDP2), for policies that are a transformers model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .policies.base import Samples, Sampling


class ShardedPolicy:
    """A ``TransformersPolicy`` of which each process holds a part. Every call is made by all processes together.

    Each block's weights are gathered where they are used; while completions are sampled, all weights are there, since processes sample
    different numbers of tokens. Gradients are summed, not averaged: the objective's denominators are the whole batch's.
    """

    def __init__(self, policy: Any) -> None:
        from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

        root: Any = getattr(policy, "model", None)
        adapters = getattr(policy, "adapters", None)
        if not hasattr(getattr(root, "base_model", None), "layers"):
            raise ValueError(f"expected a transformers policy to shard, got {type(policy).__name__}: launch it without FSDP")
        if not hasattr(FSDPModule, "set_force_sum_reduction_for_comms"):
            raise ImportError("sharded weights need a newer torch: its FSDP cannot sum gradients without dividing them")
        self.policy, self.adapters, self.root = policy, adapters, root
        for block in root.base_model.layers:
            fully_shard(block)
        fully_shard(root)
        self.units = [module for module in root.modules() if isinstance(module, FSDPModule)]
        for unit in self.units:
            unit.set_gradient_divide_factor(1.0)
            unit.set_force_sum_reduction_for_comms(True)
        # the policy calls parts of its model, and FSDP has to know where a forward pass begins
        for name in ("log_probs", "generate"):
            setattr(root, f"setpo_{name}", getattr(policy, name))
            register_fsdp_forward_method(root, f"setpo_{name}")

    def log_probs(self, samples: Samples, *, temperature: float) -> tuple[Tensor, Tensor]:
        return self.root.setpo_log_probs(samples, temperature=temperature)

    def generate(self, prompts: Sequence[str], n: int, sampling: Sampling, generator: torch.Generator) -> Samples:
        for unit in self.units:
            unit.set_reshard_after_forward(False, recurse=False)
        try:
            return self.root.setpo_generate(prompts, n, sampling, generator)
        finally:
            for unit in self.units:
                unit.reshard()
                unit.set_reshard_after_forward(True, recurse=False)

    def reference(self) -> Any:
        """As ``TransformersPolicy.reference``: adapters are off within it, and this policy is what is called."""
        return self.policy.adapters.disable_adapter()

    def parameters(self) -> Any:
        return self.policy.parameters()

    def state_dict(self) -> dict[str, Tensor]:
        """Whole weights, in every process."""
        return whole(self.policy.state_dict())

    def load_state_dict(self, state_dict: dict[str, Tensor]) -> None:
        own = self.policy.state_dict()
        self.policy.load_state_dict({name: _as_part(weight, own.get(name)) for name, weight in state_dict.items()})


def whole(value: Any) -> Any:
    """Nested values with whole tensors in place of parts; what has none comes back as it is."""
    if isinstance(value, dict):
        return {key: whole(item) for key, item in value.items()}
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def parted(state: dict[str, Any], parameters: Sequence[Tensor]) -> dict[str, Any]:
    """An optimiser's whole state, split as its parameters are."""
    states = {
        i: {name: _as_part(x, parameters[i]) if isinstance(x, Tensor) and x.shape == parameters[i].shape else x for name, x in each.items()}
        for i, each in state["state"].items()
    }
    return {**state, "state": states}


def _as_part(tensor: Tensor, like: Any) -> Tensor:
    if not hasattr(like, "full_tensor"):  # not a DTensor
        return tensor
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(tensor.to(like.device), like.device_mesh, like.placements)
