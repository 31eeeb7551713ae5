"""What an update minimises: an algorithm's loss, and what regularisers make of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from .divergences import kl_estimate
from .losses import Loss, importance_weights, sequence_mean
from .regularizers import Experience, Minibatch, Regularizer, make_regularizer
from .rollout import Rollout


@dataclass(frozen=True)
class Objective:
    """A loss and its regularisers by name, which act in their order. Draws from nothing but ``generator``."""

    loss: Loss
    regularizers: Mapping[str, Regularizer]
    generator: torch.Generator

    @classmethod
    def make(cls, loss: Loss, regularizers: Mapping[str, Mapping[str, Any]], generator: torch.Generator) -> Objective:
        """From names of registered regularisers with their options; ValueError as :func:`make_regularizer`."""
        made = {name: make_regularizer(name, **options) for name, options in regularizers.items()}
        unclipped = any(regularizer.unclipped for regularizer in made.values())
        return cls(replace(loss, clip=None) if unclipped else loss, made, generator)

    def needs(self, what: str) -> bool:
        """Whether a regulariser has ``needs_<what>``: "old_pass", "reference" or "replay"."""
        return any(getattr(regularizer, f"needs_{what}") for regularizer in self.regularizers.values())

    def advantages(self, advantages_B: Tensor, old: Experience) -> tuple[Tensor, dict[str, float]]:
        """The advantages after every regulariser, (B, 1) or (B, T), and the mean absolute change that each made, by token."""
        advantages_BX, changes = advantages_B[:, None], {}
        for name, regularizer in self.regularizers.items():
            changed_BX = regularizer.advantages(advantages_BX, old)
            if changed_BX is not advantages_BX:
                change_BT = (changed_BX - advantages_BX).abs() * old.mask_BT
                changes[name] = (change_BT.sum() / old.mask_BT.sum().clamp(min=1)).item()
                advantages_BX = changed_BX
        return advantages_BX, changes

    def __call__(self, batch: Minibatch) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
        """(objective, to be minimised; what is logged; what each regulariser added to the objective).

        Logged: the loss without terms, the mean entropy in nats, the k3 estimate of KL(policy || reference) (0 without a reference),
        and the share of ratios that the clip cuts off.
        """
        old, added = batch.old, {}

        def adjust(costs_BX: Tensor, clipped_BX: Tensor) -> Tensor:
            for name, regularizer in self.regularizers.items():
                changed_BX = regularizer.costs(costs_BX, clipped_BX, batch, self.generator)
                if changed_BX is not costs_BX:
                    added[name] = (self.loss.aggregate(changed_BX, old.mask_BT) - self.loss.aggregate(costs_BX, old.mask_BT)).detach()
                    costs_BX = changed_BX
            return costs_BX if old.importance_BX is None else costs_BX * old.importance_BX

        loss, clipped = self.loss(batch.log_probs_BT, old.log_probs_BT, batch.advantages_BX, old.mask_BT, adjust)
        objective = loss
        for name, regularizer in self.regularizers.items():
            term = regularizer.term(batch)
            if term is not None:
                objective = objective + term
                added[name] = added.get(name, 0.0) + term.detach()
        with torch.no_grad():
            kl = torch.zeros(())
            if batch.reference_log_probs_BT is not None:
                kl = sequence_mean(kl_estimate(batch.log_probs_BT, batch.reference_log_probs_BT), old.mask_BT).mean()
            entropy = sequence_mean(batch.entropies_BT, old.mask_BT).mean()
        return objective, {"loss": loss, "entropy": entropy, "kl": kl, "clip_fraction": clipped}, added


def experience(
    batch: Rollout, scored: tuple[Tensor, Tensor] | None = None, importance_cap: float | None = None
) -> tuple[Experience, dict[str, float]]:
    """The tokens and verdicts of a rollout, and what is logged of the importance weights.

    ``scored`` holds the log-probabilities and entropies, each (N, G, T), that the trainer itself gives the tokens under the weights
    that sampled them; without it the sampler's log-probabilities are taken for them. ``importance_cap`` corrects for the difference.

    Raises:
        ValueError: an importance cap without the trainer's scores.
    """
    samples, groups = batch.samples, batch.groups
    mask_BT, sampler_BT = samples.mask_NGT.flatten(0, 1), samples.log_probs_NGT.flatten(0, 1)
    correct_B, valid_B, modes_B = (torch.as_tensor(x).flatten().to(mask_BT.device) for x in (groups.correct, groups.valid, groups.modes))
    log_probs_BT, entropies_BT, importance_BX = sampler_BT, None, None
    statistics: dict[str, float] = {}
    if scored is not None:
        log_probs_BT, entropies_BT = (x.flatten(0, 1) for x in scored)
    if importance_cap is not None:
        if scored is None:
            raise ValueError("expected the trainer's own log-probabilities beside importance_cap: there is nothing to compare")
        importance_BX, statistics = importance_weights(log_probs_BT, sampler_BT, mask_BT, cap=importance_cap)
    old = Experience(log_probs_BT, mask_BT, correct_B, valid_B, modes_B, groups.group_size, entropies_BT, importance_BX)
    return old, statistics
