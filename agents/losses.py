"""Policy-gradient losses as pure functions on token tensors: a surrogate times an aggregation.

B sequences of T tokens; ``mask_BT`` is 1 on sampled tokens. A surrogate gives every token a cost, -J, to be minimised; an
aggregation makes one number of the costs. ``LOSSES`` says which two make up an algorithm, and its clip range::

    loss = make_loss("dapo", clip=(0.2, 0.28))
    value, clip_fraction = loss(log_probs_BT, old_log_probs_BT, advantages_B1, mask_BT)

rho_t = exp(logp_t - logp_old_t). An index X stands for T, or for 1 where all tokens of a sequence share one number: advantages are
(B, 1) or (B, T), and surrogates with one ratio a sequence return (B, 1). Log-ratios are cut at +-20 before exp, as in verl.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

Clip = tuple[float, float]
LOG_RATIO_BOUND = 20.0


# --- aggregation ---------------------------------------------------------------------------------------------------

AGGREGATIONS = ("token-mean", "token-sum", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm")


def sequence_mean(values_BX: Tensor, mask_BT: Tensor) -> Tensor:
    """Mean over the tokens of each sequence, (B,); an empty sequence counts as zero."""
    if values_BX.shape[-1] == 1:
        return values_BX[:, 0] * mask_BT.any(-1)
    return (values_BX * mask_BT).sum(-1) / mask_BT.sum(-1).clamp(min=1)


def aggregate(
    values_BX: Tensor,
    mask_BT: Tensor,
    mode: str,
    *,
    length: float | None = None,
    n_tokens: float | Tensor | None = None,
    n_sequences: float | Tensor | None = None,
) -> Tensor:
    """One number of token values, by verl's names:

    ``token-mean``               sum over all tokens / their number: DAPO, arXiv 2503.14476
    ``token-sum``                sum over all tokens
    ``seq-mean-token-mean``      mean over sequences of their token means: GRPO, arXiv 2402.03300 eq. 3
    ``seq-mean-token-sum``       mean over sequences of their token sums: REINFORCE with the sequence as the action
    ``seq-mean-token-sum-norm``  the same / ``length``, a constant number of tokens: Dr.GRPO, arXiv 2503.20783

    Every one of the B sequences is counted, empty ones too, as in TRL; verl leaves empty ones out of their number. ``n_tokens`` and
    ``n_sequences`` replace the numbers that are divided by: those of a whole batch where this is a part of it.

    Raises:
        ValueError: an unknown mode, or no ``length`` where one is needed.
    """
    if mode == "seq-mean-token-mean":
        per_sequence_B = sequence_mean(values_BX, mask_BT)
    else:
        per_sequence_B = (values_BX * mask_BT).sum(-1)
    if mode in ("token-sum", "token-mean"):
        number = 1.0 if mode == "token-sum" else mask_BT.sum().clamp(min=1) if n_tokens is None else n_tokens
        return per_sequence_B.sum() / number
    value = per_sequence_B.mean() if n_sequences is None else per_sequence_B.sum() / n_sequences
    return value / _checked(mode, length) if mode == "seq-mean-token-sum-norm" else value


def _checked(mode: str, length: float | None) -> float:
    if mode not in AGGREGATIONS:
        raise ValueError(f"expected an aggregation among {', '.join(AGGREGATIONS)}, got {mode!r}")
    if mode == "seq-mean-token-sum-norm" and not (length and length > 0):
        raise ValueError(f"expected a length above 0 with {mode}, got {length!r}: give the most tokens that a completion may have")
    return length or 1.0


# --- surrogates ----------------------------------------------------------------------------------------------------

Surrogate = Callable[[Tensor, Tensor, Tensor, Tensor, Clip], tuple[Tensor, Tensor]]
"""f(logp_BT, old_logp_BT, advantages_BX, mask_BT, (low, high)) -> (costs_BX, 1 where the clip cuts off)."""


def ppo(logp_BT: Tensor, old_logp_BT: Tensor, advantages_BX: Tensor, mask_BT: Tensor, clip: Clip) -> tuple[Tensor, Tensor]:
    """-min(rho_t A, clip(rho_t, 1 - low, 1 + high) A): PPO, arXiv 1707.06347 eq. 7; GRPO, DAPO (high > low) and Dr.GRPO use it."""
    return _clipped(token_ratio(logp_BT, old_logp_BT), advantages_BX, clip)


def gspo(logp_BT: Tensor, old_logp_BT: Tensor, advantages_BX: Tensor, mask_BT: Tensor, clip: Clip) -> tuple[Tensor, Tensor]:
    """-min(s A, clip(s, 1 - low, 1 + high) A), s = exp(mean_t log rho_t): GSPO, arXiv 2507.18071 eq. 5. (B, 1).

    The gradient of s gives each token 1/len of the sequence's, as in TRL. Advantages by token, which the paper leaves to GSPO-token,
    give (B, T): the same s with each.
    """
    return _clipped(_exp(sequence_mean(logp_BT - old_logp_BT, mask_BT)[:, None]), advantages_BX, clip)


def gspo_token(logp_BT: Tensor, old_logp_BT: Tensor, advantages_BX: Tensor, mask_BT: Tensor, clip: Clip) -> tuple[Tensor, Tensor]:
    """-min(s_t A_t, clip(s_t, 1 - low, 1 + high) A_t), s_t = sg[s] pi_t / sg[pi_t]: GSPO-token, arXiv 2507.18071 section 4.3.

    It has the value of GSPO, and its gradient where advantages are (B, 1) and sequences are averaged by token; verl's ``gspo`` is this
    one (there, log s is cut at 10 from above only).
    """
    log_s_B1 = sequence_mean(logp_BT - old_logp_BT, mask_BT)[:, None]
    return _clipped(_exp(log_s_B1.detach() + logp_BT - logp_BT.detach()), advantages_BX, clip)


def gmpo(logp_BT: Tensor, old_logp_BT: Tensor, advantages_BX: Tensor, mask_BT: Tensor, clip: Clip) -> tuple[Tensor, Tensor]:
    """-A exp(mean_t c_t), c_t = min(log rho_t, high) where A > 0, max(log rho_t, -low) where A < 0: GMPO, arXiv 2507.20673. (B, 1).

    The clip is a range of the LOG-ratio here: (0.4, 0.4) in the paper. With advantages by token, their signs clip and their mean
    multiplies, as in verl's ``geo_mean``. The paper's ablations, a clip of the sum and no 1/len, are not here.
    """
    low, high = clip
    log_ratio_BT = (logp_BT - old_logp_BT).clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND)
    one_sided_BT = torch.where(advantages_BX < 0, log_ratio_BT.clamp(min=-low), log_ratio_BT.clamp(max=high))
    mean_advantage_B1 = sequence_mean(advantages_BX, mask_BT)[:, None]
    clipped_BT = (one_sided_BT != log_ratio_BT) & (advantages_BX != 0)
    return -mean_advantage_B1 * torch.exp(sequence_mean(one_sided_BT, mask_BT)[:, None]), clipped_BT.to(logp_BT.dtype)


def reinforce(logp_BT: Tensor, old_logp_BT: Tensor, advantages_BX: Tensor, mask_BT: Tensor, clip: Clip) -> tuple[Tensor, Tensor]:
    """-A log pi_t: REINFORCE (Williams 1992); RLOO (arXiv 2402.14740) and MaxRL are this with their base advantages.

    No ratio corrects for a policy that has changed since it sampled: use one minibatch a step, or a clipped surrogate.
    """
    return -advantages_BX * logp_BT, torch.zeros_like(logp_BT)


def token_ratio(logp_BT: Tensor, old_logp_BT: Tensor) -> Tensor:
    """rho_t = exp(logp - logp_old), (B, T), between exp(-20) and exp(20)."""
    return _exp(logp_BT - old_logp_BT)


def _exp(log_ratio: Tensor) -> Tensor:
    return torch.exp(log_ratio.clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND))


def _clipped(ratio_BX: Tensor, advantages_BX: Tensor, clip: Clip) -> tuple[Tensor, Tensor]:
    plain, bounded = ratio_BX * advantages_BX, ratio_BX.clamp(1 - clip[0], 1 + clip[1]) * advantages_BX
    return -torch.minimum(plain, bounded), (bounded < plain).to(plain.dtype)


def dual_clip(costs_BX: Tensor, advantages_BX: Tensor, bound: float) -> Tensor:
    """min(cost, -bound A) where A < 0: dual-clip PPO, arXiv 1912.09729 eq. 5; ``clip_ratio_c`` in verl (3), ``delta`` in TRL.

    However likely a bad token has become, its cost ends at ``bound`` > 1 times its advantage, and with it its gradient.
    """
    return torch.where(advantages_BX < 0, torch.minimum(costs_BX, -bound * advantages_BX), costs_BX)


# --- algorithms ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Loss:
    """A surrogate, how its costs are aggregated, and where ratios are clipped."""

    surrogate: Surrogate
    aggregation: str
    clip: Clip | None
    """(low, high), how far below and above 1 a ratio counts; None: nowhere."""
    dual_clip: float | None = None
    length: float | None = None
    """The constant of ``seq-mean-token-sum-norm``, tokens."""

    def __call__(
        self,
        logp_BT: Tensor,
        old_logp_BT: Tensor,
        advantages_BX: Tensor,
        mask_BT: Tensor,
        adjust: Callable[[Tensor, Tensor], Tensor] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """(loss, share of the ratios that the clip cuts off). ``adjust(costs_BX, clipped_BX) -> costs_BX`` acts before aggregation."""
        clip = (math.inf, math.inf) if self.clip is None else self.clip
        costs_BX, clipped_BX = self.surrogate(logp_BT, old_logp_BT, advantages_BX, mask_BT, clip)
        if self.dual_clip is not None:
            costs_BX = dual_clip(costs_BX, advantages_BX, self.dual_clip)
        if adjust is not None:
            costs_BX = adjust(costs_BX, clipped_BX)
        if clipped_BX.shape[-1] == 1:
            share = (clipped_BX * mask_BT.any(-1, keepdim=True)).mean()
        else:
            share = (clipped_BX * mask_BT).sum() / mask_BT.sum().clamp(min=1)
        return self.aggregate(costs_BX, mask_BT), share

    def aggregate(self, values_BX: Tensor, mask_BT: Tensor) -> Tensor:
        return aggregate(values_BX, mask_BT, self.aggregation, length=self.length)


LOSSES: dict[str, Loss] = {
    "grpo": Loss(ppo, "seq-mean-token-mean", (0.2, 0.2)),
    "dr_grpo": Loss(ppo, "seq-mean-token-sum-norm", (0.2, 0.2)),
    "dapo": Loss(ppo, "token-mean", (0.2, 0.28)),
    "gspo": Loss(gspo, "seq-mean-token-mean", (0.02, 0.02)),
    "gspo_token": Loss(gspo_token, "seq-mean-token-mean", (0.02, 0.02)),
    "gmpo": Loss(gmpo, "seq-mean-token-mean", (0.4, 0.4)),
    "reinforce": Loss(reinforce, "seq-mean-token-sum", None),
}
"""Algorithms: surrogate, aggregation, clip range. That of GSPO is wide (3e-4 and 4e-4 in its paper): short sequences average less."""


def make_loss(
    name: str, *, clip: Clip | None = None, aggregation: str | None = None, dual_clip: float | None = None, length: float | None = None
) -> Loss:
    """The algorithm of that name; what is given replaces its own settings.

    Raises:
        ValueError: an unknown name, a setting out of range, or one that the algorithm has no use for.
    """
    if name not in LOSSES:
        raise ValueError(f"expected algorithm to be one of {', '.join(LOSSES)}, got {name!r}")
    loss = LOSSES[name]
    if loss.clip is None and (clip is not None or dual_clip is not None):
        raise ValueError(f"expected neither clip nor dual_clip with {name!r}, which has no ratio to clip, got {clip!r} and {dual_clip!r}")
    if clip is not None and not (len(clip) == 2 and min(clip) >= 0):
        raise ValueError(f"expected clip to be a pair (low, high) of numbers of at least 0, got {clip!r}")
    if dual_clip is not None and not dual_clip > 1:
        raise ValueError(f"expected dual_clip to be above 1, got {dual_clip!r}")
    aggregation = loss.aggregation if aggregation is None else aggregation
    _checked(aggregation, length)
    return replace(
        loss, clip=loss.clip if clip is None else (clip[0], clip[1]), aggregation=aggregation, dual_clip=dual_clip, length=length
    )


# --- sampler and trainer -------------------------------------------------------------------------------------------


def importance_weights(
    old_logp_BT: Tensor, sampler_logp_BT: Tensor, mask_BT: Tensor, *, cap: float = 2.0, level: str = "token"
) -> tuple[Tensor, dict[str, float]]:
    """min(exp(logp_old - logp_sampler), cap), a constant factor on costs: truncated importance sampling (Yao et al. 2025).

    An engine that samples and the trainer that scores the same weights disagree a little on every token; ``old_logp_BT`` is the
    trainer's log-probability under the weights that sampled. ``level="sequence"``: one weight a sequence, of the summed log-ratio.

    Returns the weights (B, T), or (B, 1) by sequence, and what to log: their mean, the share that was cut off, the k3 estimate of
    KL(sampler || trainer) by token and the largest difference of two log-probabilities. Padding counts for nothing.

    Raises:
        ValueError: a level other than the two.
    """
    if level not in ("token", "sequence"):
        raise ValueError(f"expected level to be 'token' or 'sequence', got {level!r}")
    with torch.no_grad():
        log_ratio_BT = (old_logp_BT - sampler_logp_BT) * mask_BT
        ratio_BX = _exp(log_ratio_BT if level == "token" else log_ratio_BT.sum(-1, keepdim=True))
        counted_BX = mask_BT if level == "token" else mask_BT.any(-1, keepdim=True).to(ratio_BX.dtype)
        number = counted_BX.sum().clamp(min=1)
        weights_BX = ratio_BX.clamp(max=cap)
        statistics = {
            "importance_mean": (weights_BX * counted_BX).sum() / number,
            "importance_capped": ((ratio_BX > cap) * counted_BX).sum() / number,
            "sampler_kl": ((_exp(log_ratio_BT) - log_ratio_BT - 1) * mask_BT).sum() / mask_BT.sum().clamp(min=1),
            "sampler_max_difference": log_ratio_BT.abs().max() if log_ratio_BT.numel() else torch.zeros(()),
        }
        return weights_BX, {name: value.item() for name, value in statistics.items()}
