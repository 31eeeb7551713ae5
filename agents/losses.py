"""Clipped surrogates and their regularisers as pure functions on token tensors.

B sequences of T tokens; ``mask_BT`` is 1 on sampled tokens. Every loss is to be minimised. The ratio is
rho = exp(logp - logp_old); the advantage is one number a sequence.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def sequence_mean(values_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Mean over the tokens of each sequence, (B,); an empty sequence counts as zero."""
    return (values_BT * mask_BT).sum(-1) / mask_BT.sum(-1).clamp(min=1)


def grpo_loss(
    logp_BT: Tensor, old_logp_BT: Tensor, advantages_B: Tensor, mask_BT: Tensor, *, clip_low: float, clip_high: float
) -> tuple[Tensor, Tensor]:
    """-mean_i mean_t min(rho A, clip(rho, 1 - low, 1 + high) A): GRPO, arXiv 2402.03300 eq. 3 (clip-higher: DAPO).

    Returns (loss, share of tokens that the clip cuts off).
    """
    ratio = torch.exp(logp_BT - old_logp_BT)
    surrogate, clipped = _clip(ratio, advantages_B[:, None], clip_low, clip_high)
    return -sequence_mean(surrogate, mask_BT).mean(), (clipped * mask_BT).sum() / mask_BT.sum().clamp(min=1)


def gspo_loss(
    logp_BT: Tensor, old_logp_BT: Tensor, advantages_B: Tensor, mask_BT: Tensor, *, clip_low: float, clip_high: float
) -> tuple[Tensor, Tensor]:
    """-mean_i min(s A, clip(s, 1 - low, 1 + high) A), s_i = exp(mean_t log rho): GSPO, arXiv 2507.18071 eq. 5.

    Returns (loss, share of sequences that the clip cuts off).
    """
    ratio = torch.exp(sequence_mean(logp_BT - old_logp_BT, mask_BT))
    surrogate, clipped = _clip(ratio, advantages_B, clip_low, clip_high)
    sampled = mask_BT.any(-1)  # a fully masked sequence counts as zero, as in GRPO
    return -(surrogate * sampled).mean(), (clipped * sampled).mean()


def _clip(ratio: Tensor, advantage: Tensor, low: float, high: float) -> tuple[Tensor, Tensor]:
    plain, bounded = ratio * advantage, ratio.clamp(1 - low, 1 + high) * advantage
    return torch.minimum(plain, bounded), (bounded < plain).to(plain.dtype)


def kl_k3(logp_BT: Tensor, reference_logp_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """mean_i mean_t exp(d) - d - 1 with d = logp_ref - logp: the k3 estimator of KL(policy || reference), >= 0."""
    d = reference_logp_BT - logp_BT
    return sequence_mean(torch.exp(d) - d - 1, mask_BT).mean()


LOSSES: dict[str, Callable[..., tuple[Tensor, Tensor]]] = {"grpo": grpo_loss, "gspo": gspo_loss}
CLIP: dict[str, tuple[float, float]] = {"grpo": (0.2, 0.2), "gspo": (0.02, 0.02)}
"""Default clip range (low, high) of each loss: a sequence ratio varies far less than a token ratio."""
