"""The clipped surrogates and their gradients, against TRL's and verl's published outputs and hand-computed cases."""

import math

import numpy as np
import pytest
import torch

from setpo_agents.losses import grpo_loss, gspo_loss, kl_k3, sequence_mean


def tensors(line):
    logp = torch.tensor(line["in"]["logp"], dtype=torch.float64, requires_grad=True)
    old = torch.tensor(line["in"]["old_logp"], dtype=torch.float64) if "old_logp" in line["in"] else logp.detach()
    mask = (torch.arange(logp.shape[1]) < torch.tensor(line["in"]["lens"])[:, None]).double()
    return logp, old, torch.tensor(line["in"]["advantages"], dtype=torch.float64), mask


@pytest.mark.parametrize(("loss", "key"), [(grpo_loss, "grpo|token"), (gspo_loss, "grpo|sequence")])
def test_equal_to_trl(oracle, loss, key):
    compared = 0
    for line in oracle("trl_loss"):
        given = line["in"]
        if given["delta"] is not None:  # TRL's cap on the unclipped ratio: not part of GRPO or GSPO
            continue
        logp, old, advantages, mask = tensors(line)
        value, _ = loss(logp, old, advantages, mask, clip_low=given["epsilon_low"], clip_high=given["epsilon_high"])
        if given["beta"]:
            value = value + given["beta"] * kl_k3(logp, torch.tensor(given["ref_logp"], dtype=torch.float64), mask)
        value = value / given["gradient_accumulation_steps"]
        value.backward()
        assert value.item() == pytest.approx(line["out"][key]["loss"], rel=1e-8, abs=1e-10)
        np.testing.assert_allclose(logp.grad.numpy(), line["out"][key]["grad"], rtol=1e-4, atol=1e-6)
        compared += 1
    assert compared > 100


def test_k3_equal_to_verl_inside_its_clamps(oracle):
    compared = 0
    for line in oracle("verl_kl_penalty"):
        logp, reference = (torch.tensor(line["in"][name], dtype=torch.float64) for name in ("logp", "ref_logp"))
        expected = torch.tensor(line["out"]["k3"]["value"], dtype=torch.float64)
        inside = ((reference - logp).abs() < 20) & (expected.abs() < 10)
        ours = [kl_k3(a[None, None], b[None, None], torch.ones(1, 1)) for a, b in zip(logp[inside], reference[inside])]
        np.testing.assert_allclose(np.array([x.item() for x in ours]), expected[inside].numpy(), rtol=1e-6, atol=1e-9)
        compared += int(inside.sum())
    assert compared > 500


def test_clip_by_hand():
    old, mask = torch.zeros(2, 1), torch.ones(2, 1)
    logp = torch.tensor([[math.log(1.5)], [math.log(0.5)]], requires_grad=True)
    loss, share = grpo_loss(logp, old, torch.tensor([1.0, -1.0]), mask, clip_low=0.2, clip_high=0.2)
    assert loss.item() == pytest.approx(-(1.2 - 0.8) / 2)
    assert share.item() == 1.0
    loss.backward()
    assert torch.equal(logp.grad, torch.zeros_like(logp))  # both are past their bound: nothing pushes further
    loss, share = grpo_loss(logp, old, torch.tensor([-1.0, 1.0]), mask, clip_low=0.2, clip_high=0.2)
    assert loss.item() == pytest.approx(-(-1.5 + 0.5) / 2)  # moving back is never clipped
    assert share.item() == 0.0


def test_first_update_is_the_policy_gradient():
    logp = torch.log(torch.tensor([[0.2, 0.5], [0.4, 0.9]])).requires_grad_()
    advantages, mask = torch.tensor([2.0, -1.0]), torch.tensor([[1.0, 1.0], [1.0, 0.0]])
    for loss in (grpo_loss, gspo_loss):
        (gradient,) = torch.autograd.grad(loss(logp, logp.detach(), advantages, mask, clip_low=0.2, clip_high=0.2)[0], logp)
        torch.testing.assert_close(gradient, torch.tensor([[-0.5, -0.5], [0.5, 0.0]]))  # -A / (length * B)


def test_padding_and_empty_sequences_count_for_nothing():
    values = torch.tensor([[1.0, 100.0], [5.0, 5.0]])
    torch.testing.assert_close(sequence_mean(values, torch.tensor([[1.0, 0.0], [0.0, 0.0]])), torch.tensor([1.0, 0.0]))
