"""Regularisers that add a term to the loss."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from ..divergences import F_DIVERGENCES, KL_ESTIMATORS, f_divergence, kl_estimate
from ..losses import sequence_mean, token_ratio
from .base import Minibatch, Regularizer, check_range, register


@register("entropy")
@dataclass(frozen=True)
class EntropyBonus(Regularizer):
    """-coefficient times the entropy of the policy's token distributions (nats), aggregated as the loss is: A3C, arXiv 1602.01783.

    The exact entropy of every sampled token's distribution, in all groups alike, right or wrong.
    """

    coefficient: float = 0.001

    def __post_init__(self) -> None:
        check_range(coefficient=(self.coefficient, 0, math.inf))

    def term(self, batch: Minibatch) -> Tensor:
        return -self.coefficient * batch.aggregate(batch.entropies_BT, batch.old.mask_BT)


@register("kl")
@dataclass(frozen=True)
class ReferenceKL(Regularizer):
    """coefficient * KL(policy || policy before training), estimated on the sampled tokens and aggregated as the loss is.

    In the loss, not in the reward, as in GRPO (arXiv 2402.03300 eq. 4: k3) and SetPO. In all groups alike, right or wrong. The tokens
    are the sampling policy's: after the first minibatch of a batch the estimate is slightly off, as in the published trainers.

    Args:
        coefficient: GRPO's beta; .001 in the paper of DeepSeek-R1.
        estimator: As :func:`~setpo_agents.divergences.kl_estimate`.
        clamp: The same.
    """

    coefficient: float = 0.001
    estimator: str = "k3"
    clamp: bool = False
    needs_reference = True

    def __post_init__(self) -> None:
        check_range(coefficient=(self.coefficient, 0, math.inf))
        if self.estimator not in KL_ESTIMATORS:
            raise ValueError(f"expected an estimator among {', '.join(KL_ESTIMATORS)}, got {self.estimator!r}")

    def term(self, batch: Minibatch) -> Tensor:
        assert batch.reference_log_probs_BT is not None
        estimates_BT = kl_estimate(batch.log_probs_BT, batch.reference_log_probs_BT, self.estimator, clamp=self.clamp)
        return self.coefficient * batch.aggregate(estimates_BT, batch.old.mask_BT)


@register("r1_zero_div")
@dataclass(frozen=True)
class R1ZeroDiv(Regularizer):
    """R1-zero-Div (arXiv 2505.23433): -coefficient * J, J the mean over correct completions of -(1/len) sum_t rho_t log pi_t.

    J estimates the token entropy from the sampled tokens, rho_t correcting for the policy that sampled them. The mean is over the
    correct completions of the minibatch; whether the paper's is over those of each prompt first is not known here.

    All-wrong groups have no part in it; all-right ones, whose GRPO advantage is 0, are trained by it alone. ``apply_to="all"`` is the
    paper's other variant, over right and wrong completions with a verdict (its 7B average: 63.2, against 64.4 correct only).

    Args:
        coefficient: .01 was best in the paper, of .01, .02 and .05.
        apply_to: "correct" or "all".
    """

    coefficient: float = 0.01
    apply_to: str = "correct"

    def __post_init__(self) -> None:
        check_range(coefficient=(self.coefficient, 0, math.inf))
        if self.apply_to not in ("correct", "all"):
            raise ValueError(f"expected apply_to to be 'correct' or 'all', got {self.apply_to!r}")

    def term(self, batch: Minibatch) -> Tensor:
        members_B = (batch.old.correct_B if self.apply_to == "correct" else batch.old.valid_B).to(batch.log_probs_BT.dtype)
        surprise_BT = -token_ratio(batch.log_probs_BT, batch.old.log_probs_BT) * batch.log_probs_BT
        diversity = (sequence_mean(surprise_BT, batch.old.mask_BT) * members_B).sum() / members_B.sum().clamp(min=1)
        return -self.coefficient * diversity


@register("dph_rl")
@dataclass(frozen=True)
class DPHRL(Regularizer):
    """DPH-RL (arXiv 2509.07430): coefficient * a divergence that covers the policy before training, estimated on ITS completions.

    At each token of a completion that the base policy sampled, f(u) with u = pi / pi_base, aggregated as the loss is; every f is large
    where the policy has given up what the base does. The policy's own completions, right or wrong, have no part in it.

    The paper samples once, before training, keeps correct completions of prompts that the base nearly always solves, and takes those
    prompts out of the reward's training. Here the base samples a new group for each prompt of the batch, right or wrong, beside the
    reward's training: the expectation over the base, at the price of sampling twice as much. "js" is one half of its divergence; the
    paper adds the other with a KL term on the policy's own completions.

    Args:
        coefficient: .01-.05 for "forward" and "alpha", .05-.2 for "js" and "js_low_var" in the released code's table.
        divergence: As :func:`~setpo_agents.divergences.f_divergence`: "forward", "alpha", "js_low_var" or "js".
        alpha: Of "alpha", between 0 and 1.
    """

    coefficient: float = 0.01
    divergence: str = "forward"
    alpha: float = 0.5
    needs_replay = True

    def __post_init__(self) -> None:
        check_range(coefficient=(self.coefficient, 0, math.inf))
        if self.divergence not in F_DIVERGENCES:
            raise ValueError(f"expected a divergence among {', '.join(F_DIVERGENCES)}, got {self.divergence!r}")
        if not 0 < self.alpha < 1:
            raise ValueError(f"expected alpha between 0 and 1, got {self.alpha!r}")

    def term(self, batch: Minibatch) -> Tensor:
        assert batch.replay is not None
        values_RT = f_divergence(batch.replay.log_probs_RT, batch.replay.base_RT, self.divergence, alpha=self.alpha)
        return self.coefficient * batch.aggregate(values_RT, batch.replay.mask_RT)
