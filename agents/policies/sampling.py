"""The distribution that tokens are drawn from."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from .base import Sampling


def sampling_log_probs(logits_BV: Tensor, sampling: Sampling) -> Tensor:
    """(B, V) log-probabilities of the sampling distribution; -inf on tokens that ``top_k`` or ``top_p`` leaves out.

    ``top_k`` keeps that many tokens (equally likely ones by order of their number), then ``top_p`` the fewest of the likeliest
    of them that hold at least that mass, of the distribution as ``top_k`` left it.
    """
    logits_BV = logits_BV / sampling.temperature
    if sampling.top_k and sampling.top_k < logits_BV.shape[-1]:
        kept_BK, ids_BK = logits_BV.topk(sampling.top_k, dim=-1)
        logits_BV = logits_BV.new_full(logits_BV.shape, -math.inf).scatter(-1, ids_BK, kept_BK)
    log_p_BV = F.log_softmax(logits_BV, dim=-1)
    if sampling.top_p < 1:
        sorted_BV, ids_BV = log_p_BV.sort(dim=-1, descending=True, stable=True)
        mass_BV = sorted_BV.exp()
        outside_BV = mass_BV.cumsum(-1) - mass_BV >= sampling.top_p  # the mass before a token already suffices
        log_p_BV = F.log_softmax(log_p_BV.masked_fill(outside_BV.scatter(-1, ids_BV, outside_BV), -math.inf), dim=-1)
    return log_p_BV


def draw(log_p_BV: Tensor, uniform_BM: Tensor) -> Tensor:
    """(B, M) int64: M tokens of each row's distribution, by inversion of its cumulative distribution.

    ``uniform_BM`` is float64 in [0, 1). One number a token, drawn anywhere: the same tokens on every device, whatever else is
    in the batch, and no random number for each entry of the vocabulary.
    """
    cumulative_BV = log_p_BV.exp().cumsum(-1, dtype=torch.float64)
    return torch.searchsorted(cumulative_BV, uniform_BM * cumulative_BV[:, -1:], right=True)
