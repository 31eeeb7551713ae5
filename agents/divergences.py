"""Divergences between policies, estimated token by token from log-probabilities of sampled tokens; pure functions."""

from __future__ import annotations

import math

import torch
from torch import Tensor

KL_ESTIMATORS = ("k1", "abs", "k2", "k3", "k3+")
F_DIVERGENCES = ("forward", "alpha", "js_low_var", "js")


def kl_estimate(log_probs: Tensor, reference: Tensor, estimator: str = "k3", *, clamp: bool = False) -> Tensor:
    """Estimate of KL(policy || reference) at each token that the policy sampled; any shape.

    With d = logp_ref - logp (J. Schulman, "Approximating KL divergence", 2020):

    ``k1``   -d, unbiased
    ``abs``  abs(d)
    ``k2``   d^2 / 2; its gradient is the one of the KL divergence
    ``k3``   exp(d) - d - 1: unbiased and >= 0
    ``k3+``  the value of k3 with the gradient of k2 (verl's straight-through form)

    ``clamp=True`` cuts, in k3, d at +-20 and the value at 10, as verl does. A cut value has no gradient, so a token whose
    divergence exceeds 10 is no longer pulled back; that is why it is not the default.

    Raises:
        ValueError: an unknown estimator.
    """
    d = reference - log_probs
    if estimator == "k1":
        return -d
    if estimator == "abs":
        return d.abs()
    if estimator == "k2":
        return 0.5 * d.square()
    if estimator == "k3":
        return (torch.exp(d.clamp(-20, 20)) - d.clamp(-20, 20) - 1).clamp(max=10) if clamp else torch.exp(d) - d - 1
    if estimator == "k3+":
        k2 = 0.5 * d.square()
        return k2 - k2.detach() + kl_estimate(log_probs, reference, "k3", clamp=clamp).detach()
    raise ValueError(f"expected an estimator among {', '.join(KL_ESTIMATORS)}, got {estimator!r}")


def f_divergence(log_probs: Tensor, base: Tensor, kind: str = "forward", *, alpha: float = 0.5) -> Tensor:
    """f(u), u = exp(logp - logp_base), at each token that the BASE policy sampled, whose mean is a divergence; any shape.

    The forms of DPH-RL (arXiv 2509.07430) as its code has them; f(1) = 0, f >= 0:

    ``forward``     u - log u - 1: KL(base || policy), k3 seen from the base
    ``alpha``       (u^(1-a) - (1-a) u - a) / (a (a-1)), a = ``alpha`` in (0, 1)
    ``js_low_var``  u log u - (u + 1) log((u + 1) / 2): twice the Jensen-Shannon divergence
    ``js``          m - log m - 1, m = (u + 1) / 2: KL(base || mean of the two), the half of the Jensen-Shannon divergence that the
                    base's tokens can tell; the other half takes the policy's own tokens

    verl's clamps on ``forward`` and ``js`` (log u at +-20, the value at 10) are kept, since u has no bound on another policy's tokens.

    Raises:
        ValueError: an unknown kind, or alpha outside (0, 1).
    """
    if kind == "forward":
        return kl_estimate(base, log_probs, "k3", clamp=True)
    log_u = log_probs - base
    if kind == "js":
        log_m = torch.logaddexp(log_u, torch.zeros_like(log_u)) - math.log(2)
        return kl_estimate(torch.zeros_like(log_m), log_m, "k3", clamp=True)
    u = torch.exp(log_u)
    if kind == "js_low_var":
        return u * log_u - (u + 1) * torch.log((u + 1) / 2)
    if kind == "alpha":
        if not 0 < alpha < 1:
            raise ValueError(f"expected alpha between 0 and 1, got {alpha!r}")
        return (torch.exp((1 - alpha) * log_u) - (1 - alpha) * u - alpha) / (alpha * (alpha - 1))
    raise ValueError(f"expected a divergence among {', '.join(F_DIVERGENCES)}, got {kind!r}")
