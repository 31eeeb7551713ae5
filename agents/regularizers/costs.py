"""Regularisers that change what single tokens cost, by how much each moves the policy's entropy (arXiv 2505.22617).

The covariance of advantage and log-probability over the tokens of a minibatch drives entropy down; it is carried by a few tokens,
cov_t = (A_t - mean A)(log pi_t - mean log pi), means over the minibatch's sampled tokens, log pi under the current weights. Both
methods act on those: an all-right or all-wrong group has A = 0 and acts through the means alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .base import Minibatch, Regularizer, check_range, register


def token_covariances(log_probs_BT: Tensor, advantages_BX: Tensor, mask_BT: Tensor) -> Tensor:
    """cov_t (B, T), a constant; -inf on padding."""
    log_probs_BT, advantages_BT = log_probs_BT.detach(), advantages_BX.expand_as(log_probs_BT)
    n = mask_BT.sum().clamp(min=1)
    mean_advantage, mean_log_prob = ((x * mask_BT).sum() / n for x in (advantages_BT, log_probs_BT))
    return ((advantages_BT - mean_advantage) * (log_probs_BT - mean_log_prob)).masked_fill(mask_BT == 0, -math.inf)


@register("clip_cov")
@dataclass(frozen=True)
class ClipCov(Regularizer):
    """Clip-Cov (arXiv 2505.22617): the cost of a few tokens of high covariance counts for nothing.

    Among the tokens with low < cov_t < high that the surrogate's clip has not cut off, max(1, floor(share * n)) are drawn at random, n
    the number of tokens in the minibatch (all of them, if there are fewer), and cost 0; the others are averaged with them as before.

    Args:
        share: 2e-4 in the paper.
        low: 1 in the released code.
        high: 5 in the released code. It trains with a clip of 1, which is ``TrainConfig.clip`` here.
    """

    share: float = 2e-4
    low: float = 1.0
    high: float = 5.0

    def __post_init__(self) -> None:
        check_range(share=(self.share, 0, 1), low=(self.low, -math.inf, self.high))

    def costs(self, costs_BX: Tensor, clipped_BX: Tensor, batch: Minibatch, generator: torch.Generator) -> Tensor:
        candidates = self.candidates(clipped_BX, batch)
        n_dropped = max(int(self.share * batch.old.mask_BT.sum().item()), 1)
        order = torch.randperm(len(candidates), generator=generator, device=generator.device)[:n_dropped].to(candidates.device)
        kept_BT = torch.ones_like(batch.log_probs_BT)
        kept_BT[tuple(candidates[order].T)] = 0.0
        return costs_BX * kept_BT

    def candidates(self, clipped_BX: Tensor, batch: Minibatch) -> Tensor:
        """(C, 2) int64: row and position of each token that may be dropped."""
        covariances_BT = token_covariances(batch.log_probs_BT, batch.advantages_BX, batch.old.mask_BT)
        return ((covariances_BT > self.low) & (covariances_BT < self.high) & (clipped_BX == 0)).nonzero()


@register("kl_cov")
@dataclass(frozen=True)
class KLCov(Regularizer):
    """KL-Cov (arXiv 2505.22617): coefficient * abs(log pi_t - log pi_old_t) is added to the cost of the tokens of highest covariance.

    They are the max(1, floor(share * n)) tokens with the highest cov_t of the n in the minibatch. As published the surrogate is not
    clipped: those tokens alone are held back. In the first minibatch of a batch log pi = log pi_old, so the penalty and, with torch's
    derivative of 0 for abs at 0, its gradient are 0; a sampler's rounding would give it a gradient of random sign, so the trainer
    scores the batch once more before the update.

    Args:
        coefficient: 1 in the paper.
        share: 2e-3 (7B) or 2e-4 (32B) in the paper. (Its code takes percent, and no more percent than there are tokens.)
    """

    coefficient: float = 1.0
    share: float = 2e-3
    unclipped = True
    needs_old_pass = True

    def __post_init__(self) -> None:
        check_range(coefficient=(self.coefficient, 0, math.inf), share=(self.share, 0, 1))

    def costs(self, costs_BX: Tensor, clipped_BX: Tensor, batch: Minibatch, generator: torch.Generator) -> Tensor:
        chosen_BT = torch.zeros_like(batch.log_probs_BT).flatten()
        chosen_BT[self.chosen(batch)] = 1.0
        distance_BT = (batch.log_probs_BT - batch.old.log_probs_BT).abs()
        return costs_BX + self.coefficient * distance_BT * chosen_BT.view_as(distance_BT)

    def chosen(self, batch: Minibatch) -> Tensor:
        """(k,) int64: row * T + position of the tokens of highest covariance."""
        n_tokens = int(batch.old.mask_BT.sum().item())
        covariances_BT = token_covariances(batch.log_probs_BT, batch.advantages_BX, batch.old.mask_BT)
        return covariances_BT.flatten().topk(min(max(1, int(n_tokens * self.share)), n_tokens)).indices
