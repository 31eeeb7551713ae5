"""KL estimators and DPH-RL's divergences, against verl's and DPH-RL's published outputs and exact sums over a vocabulary."""

import numpy as np
import pytest
import torch
from token_batches import mask_of, tensor

from setpo_agents.divergences import F_DIVERGENCES, KL_ESTIMATORS, f_divergence, kl_estimate
from setpo_agents.losses import make_loss
from setpo_agents.regularizers import Minibatch, Replay, make_regularizer


def test_kl_equal_to_verl(oracle):
    lines = oracle("verl_kl_penalty")
    beyond = 0
    for line in lines:
        logp, reference = tensor(line["in"]["logp"]).requires_grad_(), tensor(line["in"]["ref_logp"])
        for name in KL_ESTIMATORS:
            values = kl_estimate(logp, reference, name, clamp=True)
            (gradient,) = torch.autograd.grad(values.sum(), logp)
            np.testing.assert_allclose(values.detach(), line["out"][name]["value"], rtol=1e-8, atol=1e-9)
            np.testing.assert_allclose(gradient, line["out"][name]["grad"], rtol=1e-6, atol=1e-7)
        d = (reference - logp).detach()
        exact = torch.exp(d) - d - 1
        np.testing.assert_allclose(kl_estimate(logp, reference).detach(), exact)  # ours is not cut by default
        cut = exact > 10
        assert (tensor(line["out"]["k3"]["value"])[cut] == 10).all()
        beyond += int(cut.sum())
    assert len(lines) == 300 and beyond > 30


def test_equal_to_dph_rl(oracle):
    lines = oracle("dph_rl")
    names = {"forward_low_var_kl": "forward", "alpha": "alpha", "js_low_var": "js_low_var", "js": "js"}
    for line in lines:
        given = line["in"]
        base, mask = tensor(given["base_logp"]), mask_of(given["lens"], len(given["logp"][0]))
        for theirs, ours in names.items():
            logp = tensor(given["logp"]).requires_grad_()
            loss = make_loss("grpo", aggregation=given["agg"])
            empty = torch.zeros(1, 1)
            batch = Minibatch(None, empty, empty, empty, loss.aggregate, replay=Replay(logp, base, mask))
            value = make_regularizer("dph_rl", coefficient=1.0, divergence=ours, alpha=given["alpha"]).term(batch)
            np.testing.assert_allclose(value.item(), line["out"][theirs]["loss"], rtol=1e-7, atol=1e-10)
            (gradient,) = torch.autograd.grad(value, logp)
            np.testing.assert_allclose(gradient, line["out"][theirs]["grad"], rtol=1e-6, atol=1e-8)
    assert len(lines) == 300


def two_policies():
    generator = torch.Generator().manual_seed(0)
    return (torch.log_softmax(torch.randn(7, generator=generator, dtype=torch.float64), 0) for _ in range(2))


def test_estimators_are_unbiased():
    """In expectation over the vocabulary k1 and k3 are the divergence, and so is the k3 of the base's tokens."""
    policy, base = two_policies()
    forward, reverse = ((p.exp() * (p - q)).sum() for p, q in ((base, policy), (policy, base)))
    for name in ("k1", "k3", "k3+"):
        torch.testing.assert_close((policy.exp() * kl_estimate(policy, base, name)).sum(), reverse)
    torch.testing.assert_close((base.exp() * f_divergence(policy, base, "forward")).sum(), forward)
    mean = torch.log((policy.exp() + base.exp()) / 2)
    half_of_base, half_of_policy = ((p.exp() * (p - mean)).sum() for p in (base, policy))
    torch.testing.assert_close((base.exp() * f_divergence(policy, base, "js")).sum(), half_of_base)
    torch.testing.assert_close((base.exp() * f_divergence(policy, base, "js_low_var")).sum(), half_of_base + half_of_policy)


@pytest.mark.parametrize("kind", F_DIVERGENCES)
def test_divergences_are_zero_at_one_and_never_below(kind):
    policy, base = two_policies()
    assert (f_divergence(policy, base, kind) > 0).all()
    torch.testing.assert_close(f_divergence(base, base, kind), torch.zeros_like(base), atol=1e-12, rtol=0)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="an estimator among k1"):
        kl_estimate(torch.zeros(1), torch.zeros(1), "k4")
    with pytest.raises(ValueError, match="a divergence among forward"):
        f_divergence(torch.zeros(1), torch.zeros(1), "reverse")
    with pytest.raises(ValueError, match="alpha between 0 and 1"):
        f_divergence(torch.zeros(1), torch.zeros(1), "alpha", alpha=1.0)
