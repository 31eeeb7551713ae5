"""What a policy-side regulariser is, what it sees, and the registry of regularisers.

A set shaper sees texts and verdicts; a regulariser sees log-probabilities, entropies and advantages. It has three hooks, and
overrides those it needs: it may change the advantages before an update, the cost of each token within it, and the loss. A new one
is registered with a decorator; its options are the fields of a dataclass (or the parameters of a factory function)::

    @register("length_bonus")
    @dataclass(frozen=True)
    class LengthBonus(Regularizer):
        "Advantage plus a bonus for every token."

        bonus: float = 0.01

        def advantages(self, advantages_BX, old):
            return advantages_BX + self.bonus * old.mask_BT.sum(-1, keepdim=True)

From there on ``TrainConfig(regularizers={"length_bonus": {"bonus": 0.1}})`` knows it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import torch
from torch import Tensor


@dataclass(frozen=True)
class Experience:
    """N groups of G completions as the policy that sampled them sees them: B = N * G sequences, group after group. No gradients.

    log_probs_BT   (B, T) float, under the sampling policy; 0 on padding
    mask_BT        (B, T) float, 1 on sampled tokens
    correct_B      (B,) bool, the verifier accepted the answer
    valid_B        (B,) bool, there is a verdict; the advantage of one without is 0
    modes_B        (B,) int64, which of its group's distinct answers, -1 for none
    entropies_BT   (B, T) float, nats, of the sampling policy; None unless a regulariser asks for the old pass
    importance_BX  (B, T) or (B, 1) float, factor on costs where sampler and trainer disagree; None: 1
    """

    log_probs_BT: Tensor
    mask_BT: Tensor
    correct_B: Tensor
    valid_B: Tensor
    modes_B: Tensor
    group_size: int
    entropies_BT: Tensor | None = None
    importance_BX: Tensor | None = None

    def groups(self, rows: Tensor) -> Experience:
        """The groups ``rows`` (int64 indices) with all their sequences."""
        tensors = {field.name: getattr(self, field.name) for field in fields(self)}
        picked = {
            name: tensor.unflatten(0, (-1, self.group_size))[rows].flatten(0, 1)
            for name, tensor in tensors.items()
            if isinstance(tensor, Tensor)
        }
        return replace(self, **picked)


@dataclass(frozen=True)
class Replay:
    """Completions that the reference policy sampled, as the policy in training scores them.

    log_probs_RT  (R, T) float, differentiable, under the policy
    base_RT       (R, T) float, under the reference policy
    mask_RT       (R, T) float, 1 on sampled tokens
    """

    log_probs_RT: Tensor
    base_RT: Tensor
    mask_RT: Tensor


@dataclass(frozen=True)
class Minibatch:
    """What one optimiser step sees: experience, and the same tokens under the current weights.

    log_probs_BT, entropies_BT  (B, T) float, differentiable; entropies in nats
    advantages_BX               (B, T) or (B, 1) float
    aggregate                   (values_BX, mask_BT) -> scalar: the algorithm's aggregation
    reference_log_probs_BT      (B, T) float; None unless a regulariser asks for them
    replay                      None unless a regulariser asks for it
    """

    old: Experience
    log_probs_BT: Tensor
    entropies_BT: Tensor
    advantages_BX: Tensor
    aggregate: Callable[[Tensor, Tensor], Tensor]
    reference_log_probs_BT: Tensor | None = None
    replay: Replay | None = None


class Regularizer:
    """The three hooks, each neutral here. Attributes say what a regulariser needs; what nobody needs is not computed."""

    needs_old_pass = False
    """``Experience.entropies_BT``, and old log-probabilities that are the trainer's to the last bit: one more forward pass a batch."""
    needs_reference = False
    """``Minibatch.reference_log_probs_BT``: the policy before training scores every minibatch."""
    needs_replay = False
    """``Minibatch.replay``: the policy before training samples as many completions of the batch's prompts."""
    unclipped = False
    """The method is published without a clip, so the surrogate has none beside it."""

    def advantages(self, advantages_BX: Tensor, old: Experience) -> Tensor:
        """Before an update, on the whole batch: new advantages, (B, 1) or (B, T)."""
        return advantages_BX

    def costs(self, costs_BX: Tensor, clipped_BX: Tensor, batch: Minibatch, generator: torch.Generator) -> Tensor:
        """Within an update: new costs of the surrogate's tokens. ``clipped_BX`` is 1 where the clip cut a ratio off."""
        return costs_BX

    def term(self, batch: Minibatch) -> Tensor | None:
        """Within an update: a scalar to add to the loss, or None."""
        return None


Factory = TypeVar("Factory", bound=Callable[..., Any])
_REGULARIZERS: dict[str, Callable[..., Regularizer]] = {}


def register(name: str) -> Callable[[Factory], Factory]:
    """Decorator that makes a regulariser class, or a function that returns a regulariser, known as ``name``."""

    def add(factory: Factory) -> Factory:
        known = _REGULARIZERS.get(name, factory)
        if (known.__module__, known.__qualname__) != (factory.__module__, factory.__qualname__):  # a cell that is run again may
            raise ValueError(f"a regularizer named {name!r} is registered already: choose another name")
        _REGULARIZERS[name] = factory
        return factory

    return add


def registry() -> dict[str, Callable[..., Regularizer]]:
    """Registered regularisers: name -> class or function that makes one from its options."""
    return dict(_REGULARIZERS)


def make_regularizer(name: str, **options: Any) -> Regularizer:
    """The regulariser registered as ``name``; an unknown name or option raises ValueError with the choices."""
    if name not in _REGULARIZERS:
        raise ValueError(f"unknown regularizer {name!r}: choose one of {', '.join(sorted(_REGULARIZERS))}, or register it first")
    known = inspect.signature(_REGULARIZERS[name]).parameters
    unknown = [option for option in options if option not in known]
    if unknown:
        raise ValueError(
            f"unknown option {unknown[0]!r} of regularizer {name!r}: choose among {', '.join(known) or 'none, it has no options'}"
        )
    return _REGULARIZERS[name](**options)


def check_range(**values: tuple[float, float, float]) -> None:
    """Raise ValueError for an option outside its closed range; ``name=(value, least, most)``."""
    for name, (value, least, most) in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
            raise ValueError(f"expected {name} to be a number from {least:g} to {most:g}, got {value!r}")
