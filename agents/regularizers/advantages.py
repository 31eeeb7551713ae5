"""Regularisers that change advantages, given what the sampling policy thought of its own completions.

Each works on the whole batch before an update. A completion without a verdict has advantage 0 and keeps it. What a shaper has
added to the advantage by then is changed with the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..losses import sequence_mean
from .base import Experience, Regularizer, check_range, register


@register("entropy_advantage")
@dataclass(frozen=True)
class EntropyAdvantage(Regularizer):
    """Entropy-shaped advantage (arXiv 2506.14758): A_t + min(alpha H_t, abs(A_t) / kappa).

    H_t is the entropy in nats of the policy's distribution of token t, a constant. The bonus is at most the advantage's size over
    kappa > 1, so no advantage changes its sign. H_t is the sampling policy's here, which the paper equals in the first minibatch; its
    text does not tell the later ones apart. The paper trains with rewards of +-1.

    All-right and all-wrong groups have A = 0 under GRPO's advantage and keep it.

    Args:
        alpha: .4 with GRPO, .1 with PPO in the paper.
        kappa: 2 in the paper.
    """

    alpha: float = 0.4
    kappa: float = 2.0
    needs_old_pass = True

    def __post_init__(self) -> None:
        check_range(alpha=(self.alpha, 0, math.inf), kappa=(self.kappa, 1, math.inf))

    def advantages(self, advantages_BX: Tensor, old: Experience) -> Tensor:
        assert old.entropies_BT is not None
        return advantages_BX + torch.minimum(self.alpha * old.entropies_BT, advantages_BX.abs() / self.kappa)


@register("ucpo")
@dataclass(frozen=True)
class UCPO(Regularizer):
    """UCPO (arXiv 2605.00365): the advantage of correct members, A_i = n w_i A+, shared out towards the unlikely ones.

    Of the n correct members of a group, w_i = (1 - t)/n + t v_i / sum_j v_j with v_i = 1/q_i and q_i = pi(y_i) / sum_j pi(y_j), the
    probability of the whole completion among them; the weights sum to 1, so the group's mean advantage stays. Others are untouched.

    pi(y) is a product over tokens, so among completions of many tokens nearly all of t goes to the least likely one. That is the
    formula; no length normalisation was found in the paper.

    All-right groups have A = 0 under GRPO's advantage and keep it; all-wrong ones have no correct member.

    Args:
        t: .2 in the paper; 0 changes nothing.
    """

    t: float = 0.2

    def __post_init__(self) -> None:
        check_range(t=(self.t, 0, 1))

    def advantages(self, advantages_BX: Tensor, old: Experience) -> Tensor:
        sequence_log_probs_B = (old.log_probs_BT * old.mask_BT).sum(-1)
        return advantages_BX * ucpo_weights(sequence_log_probs_B, old.correct_B, old.group_size, self.t)[:, None]


def ucpo_weights(sequence_log_probs_B: Tensor, correct_B: Tensor, group_size: int, t: float = 0.2) -> Tensor:
    """n w_i of the n correct members of each group, 1 for others, (B,); see :class:`UCPO`."""
    correct_NG = correct_B.view(-1, group_size)
    inverse_NG = (-sequence_log_probs_B).view(-1, group_size).masked_fill(~correct_NG, -math.inf)
    share_NG = torch.softmax(inverse_NG, dim=1).masked_fill(~correct_NG, 0.0)  # v_i / sum v without leaving logarithms
    weights_NG = (1 - t) + t * correct_NG.sum(1, keepdim=True) * share_NG
    return torch.where(correct_NG, weights_NG, torch.ones_like(weights_NG)).flatten()


@register("edas")
@dataclass(frozen=True)
class EDAS(Regularizer):
    """Error-diversity shaping (arXiv 2605.17333) on any advantage: A_i + sgn(d_i) min(abs d_i, abs(A_i)/kappa), wrong members only.

    With K distinct answers among the N_w wrong members, p_i the share of i's answer among them, I_i = -ln p_i, H the mean of I and S
    the mean of abs A over them,

        d_i = 0 if N_w <= 1;    -beta S if K = 1;    alpha S (I_i - H) / ln N_w else.

    The shaper of this name is the same where all wrong members of a group have one advantage, as rewards of 0 and 1 give; this one
    caps by each member's own. An answer is a mode; completions without one share a mode. A wrong member has a verdict that is not
    correct. All-wrong groups have A = 0 under GRPO's advantage and keep it, as do all-right ones. Known from the README of the
    authors' repository.

    Args:
        alpha: .4 in the paper; the released code's default is .2.
        beta: .2 in the paper; .3 with DAPO.
        kappa: 2 in the paper; at least 1, so that no advantage changes its sign.
    """

    alpha: float = 0.4
    beta: float = 0.2
    kappa: float = 2.0

    def __post_init__(self) -> None:
        check_range(alpha=(self.alpha, 0, math.inf), beta=(self.beta, 0, math.inf), kappa=(self.kappa, 1, math.inf))

    def advantages(self, advantages_BX: Tensor, old: Experience) -> Tensor:
        wrong_NG = (old.valid_B & ~old.correct_B).view(-1, old.group_size)
        modes_NG = old.modes_B.view(-1, old.group_size)
        n_wrong_N1 = wrong_NG.sum(1, keepdim=True).to(advantages_BX.dtype)
        same_NGG = (modes_NG[:, :, None] == modes_NG[:, None, :]) & wrong_NG[:, None, :] & wrong_NG[:, :, None]
        counts_NG = same_NGG.sum(2).to(advantages_BX.dtype)
        surprise_NG = torch.log(n_wrong_N1.clamp(min=1) / counts_NG.clamp(min=1)) * wrong_NG
        size_NG = sequence_mean(advantages_BX.abs(), old.mask_BT).view(-1, old.group_size) * wrong_NG
        entropy_N1, size_N1 = (x.sum(1, keepdim=True) / n_wrong_N1.clamp(min=1) for x in (surprise_NG, size_NG))
        several_NG = self.alpha * (surprise_NG - entropy_N1) / torch.log(n_wrong_N1.clamp(min=2))
        one_answer_N1 = counts_NG.amax(1, keepdim=True) == n_wrong_N1
        d_NG = size_N1 * torch.where(one_answer_N1, torch.full_like(several_NG, -self.beta), several_NG)
        d_B1 = (d_NG * (wrong_NG & (n_wrong_N1 > 1))).flatten()[:, None]
        return advantages_BX + torch.sign(d_B1) * torch.minimum(d_B1.abs(), advantages_BX.abs() / self.kappa)


@register("opo")
@dataclass(frozen=True)
class OPO(Regularizer):
    """OPO (arXiv 2505.23585): A_i - sum_j len_j A_j / sum_j len_j over the group, in place of the plain mean as the baseline.

    On ``base_advantage="dr_grpo"``, r_i - mean, it gives r_i - sum_j len_j r_j / sum_j len_j: the baseline of least variance where a
    sequence's score has a squared norm in proportion to its length. Members with a verdict only. Groups of equal rewards keep 0.
    """

    def advantages(self, advantages_BX: Tensor, old: Experience) -> Tensor:
        lengths_NG = (old.mask_BT.sum(-1) * old.valid_B).view(-1, old.group_size)
        weights_NG = lengths_NG / lengths_NG.sum(1, keepdim=True).clamp(min=1)
        mean_B = sequence_mean(advantages_BX, old.mask_BT)
        baseline_N1 = (weights_NG * mean_B.view(-1, old.group_size)).sum(1, keepdim=True)
        return (advantages_BX - baseline_N1.expand(-1, old.group_size).reshape(-1, 1)) * old.valid_B[:, None]


@register("whiten")
@dataclass(frozen=True)
class Whiten(Regularizer):
    """(A - mean) / sqrt(var + 1e-8) over all sampled tokens of the batch: on ``base_advantage="dr_grpo"``, the REINFORCE++ baseline.

    The mean and the variance (with Bessel's correction) weigh a sequence by its length, as in verl's
    ``reinforce_plus_plus_baseline`` (arXiv 2501.03262). Completions without a verdict are left out and keep 0. All-right and
    all-wrong groups get minus the batch's mean, which is not 0 where lengths differ.
    """

    def advantages(self, advantages_BX: Tensor, old: Experience) -> Tensor:
        valid_B1 = old.valid_B[:, None].to(advantages_BX.dtype)
        counted_BT = old.mask_BT * valid_B1
        n = counted_BT.sum()
        mean = (advantages_BX * counted_BT).sum() / n.clamp(min=1)
        variance = ((advantages_BX - mean).square() * counted_BT).sum() / (n - 1).clamp(min=1)
        return (advantages_BX - mean) * torch.rsqrt(variance + 1e-8) * valid_B1
