"""The losses and their gradients, against TRL's, verl's and GMPO's published outputs and hand-computed cases."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from token_batches import drawn, mask_of, tensor, tensors

from setpo_agents.losses import AGGREGATIONS, LOSSES, aggregate, gmpo, gspo_token, importance_weights, make_loss, ppo, sequence_mean

EXACT = {"rtol": 1e-8, "atol": 1e-10}  # of a loss
GRADIENT = {"rtol": 1e-6, "atol": 2e-8}  # printed with 7 to 9 digits


def check(value, logp, expected):
    np.testing.assert_allclose(value.item(), expected["loss"], **EXACT)
    (gradient,) = torch.autograd.grad(value, logp)
    np.testing.assert_allclose(gradient.numpy(), expected["grad"], **GRADIENT)


def non_empty(mask):
    return mask.any(-1).sum().clamp(min=1)


# --- against published outputs -------------------------------------------------------------------------------------

TRL = {"grpo": "seq-mean-token-mean", "bnpo": "token-mean", "dr_grpo": "seq-mean-token-sum-norm", "dapo": "token-mean"}


@pytest.mark.parametrize(("level", "name"), [("token", "grpo"), ("sequence", "gspo")])
def test_equal_to_trl(oracle, level, name):
    lines = oracle("trl_loss")
    for line in lines:
        given = line["in"]
        logp, old, advantages, mask = tensors(line)
        length = given["max_completion_length"]
        clip = given["epsilon_low"], given["epsilon_high"]
        for kind, aggregation in TRL.items():
            loss = make_loss(name, clip=clip, aggregation=aggregation, dual_clip=given["delta"], length=length)

            def add_kl(costs, clipped, logp=logp, given=given):
                if not given["beta"]:
                    return costs
                d = tensor(given["ref_logp"]) - logp
                return costs + given["beta"] * (torch.exp(d) - d - 1)

            value, _ = loss(logp, old, advantages, mask, add_kl)
            if kind == "dapo":  # divides by the tokens of the whole batch, one optimiser step's worth of micro-batches
                costs, _ = loss.surrogate(logp, old, advantages, mask, clip)
                if given["delta"]:
                    costs = torch.where(advantages < 0, torch.minimum(costs, -given["delta"] * advantages), costs)
                value = aggregate(add_kl(costs, None), mask, aggregation, n_tokens=given["num_items_in_batch"])
                value = value * given["steps_per_generation"]
            check(value / given["gradient_accumulation_steps"], logp, line["out"][f"{kind}|{level}"])
    assert len(lines) == 300


def with_verls_mean(loss, logp, old, advantages, mask):
    """The loss averaged over sequences that have a token, as in verl; ours counts the empty ones too."""
    value, share = loss(logp, old, advantages, mask)
    return (value * len(mask) / non_empty(mask) if loss.aggregation.startswith("seq-mean") else value), share


def test_equal_to_verl(oracle):
    lines = oracle("verl_policy_loss")
    for line in lines:
        given, out = line["in"], line["out"]
        logp, old, advantages, mask = tensors(line)
        clip, width = (given["clip_low"], given["clip_high"]), logp.shape[1]
        loss = make_loss("grpo", clip=clip, dual_clip=given["clip_ratio_c"], aggregation=given["agg"], length=width)
        value, share = with_verls_mean(loss, logp, old, advantages, mask)
        np.testing.assert_allclose(share.item(), out["vanilla"]["metrics"]["pg_clipfrac"], atol=1e-6)
        check_verl(value, logp, out["vanilla"])
        loss = make_loss("gspo_token", clip=clip, aggregation=out["gspo"]["agg"], length=width)
        check_verl(with_verls_mean(loss, logp, old, advantages, mask)[0], logp, out["gspo"])
        check_verl(make_loss("gmpo", clip=clip)(logp, old, advantages, mask)[0], logp, out["geo_mean"])  # counts every row, as ours
    assert len(lines) == 300


def check_verl(value, logp, expected):
    """verl adds 1e-8 to lengths."""
    np.testing.assert_allclose(value.item(), expected["loss"], rtol=1e-6, atol=1e-7)
    (gradient,) = torch.autograd.grad(value, logp)
    np.testing.assert_allclose(gradient.numpy(), expected["grad"], rtol=1e-6, atol=1e-7)


def test_aggregation_equal_to_verl(oracle):
    lines = oracle("verl_agg_loss")
    compared = 0
    for line in lines:
        given = line["in"]
        values = tensor(given["loss_mat"]).requires_grad_()
        mask = mask_of(given["lens"], values.shape[1])
        for key, expected in line["out"].items():
            mode, scope = key.split("|")
            length = values.shape[1] if scope == "local" else given["loss_scale_factor"]
            n_tokens, n_sequences, factor = None, non_empty(mask), 1.0
            if scope == "global":  # the numbers of the whole batch, of which this is one of dp_size parts
                n_tokens, n_sequences = (given[n] / given["dp_size"] for n in ("batch_num_tokens", "global_batch_size"))
                factor = given["dp_size"] if mode == "token-sum" else 1.0
            found = factor * aggregate(values, mask, mode, length=length, n_tokens=n_tokens, n_sequences=n_sequences)
            np.testing.assert_allclose(found.item(), expected["loss"], rtol=1e-7, atol=1e-9)
            if "grad_first_token_per_row" in expected:
                (gradient,) = torch.autograd.grad(found, values)
                np.testing.assert_allclose(gradient[:, 0], expected["grad_first_token_per_row"], rtol=1e-6, atol=1e-8)
            compared += 1
    assert compared > 300 * 10


def test_equal_to_gmpo(oracle):
    lines = oracle("gmpo")
    for line in lines:
        given, out = line["in"], line["out"]
        logp = tensor([given["logp"]]).requires_grad_()
        old, advantages, mask = tensor([given["old_logp"]]), tensor([[given["advantage"]]]), mask_of([given["length"]], logp.shape[1])
        for key, bound in (("gmpo", given["cliprange"]), ("gmpo_noclip", math.inf)):
            value, _ = make_loss("gmpo", clip=(bound, bound))(logp, old, advantages, mask)
            np.testing.assert_allclose(value.item(), out[key]["loss"], rtol=1e-6)
            (gradient,) = torch.autograd.grad(value, logp)
            np.testing.assert_allclose(gradient[0].numpy(), out[key]["grad"], rtol=1e-5, atol=1e-7)
        if given["advantage"]:  # the ablation without 1/len: our ratio to the power len
            ratio = make_loss("gmpo", clip=(given["cliprange"],) * 2)(logp, old, advantages, mask)[0].item() / -given["advantage"]
            np.testing.assert_allclose(-given["advantage"] * ratio ** given["length"], out["gmpo_without_norm"]["loss"], rtol=1e-6)
    assert len(lines) == 320


def test_equal_to_prime(oracle):
    lines = oracle("prime_entropy")
    for line in lines:
        given, out = line["in"], line["out"]["vanilla"]
        logp, old, advantages, mask = tensors(line)
        clip = given["cliprange_low"], given["cliprange_high"]
        loss = make_loss("grpo", clip=clip, aggregation=given["agg"], length=logp.shape[1])
        value, share = loss(logp, old, advantages, mask)
        if given["agg"] == "seq-mean-token-sum-norm":  # there it is not divided by the number of sequences
            value = value * len(mask)
        np.testing.assert_allclose(value.item(), out["loss"], rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(share.item(), out["clipfrac"], atol=1e-6)
    assert len(lines) == 300


# --- by hand -------------------------------------------------------------------------------------------------------


def test_clip_by_hand():
    old, mask = torch.zeros(2, 1), torch.ones(2, 1)
    logp = torch.tensor([[math.log(1.5)], [math.log(0.5)]], requires_grad=True)
    loss, share = LOSSES["grpo"](logp, old, torch.tensor([[1.0], [-1.0]]), mask)
    assert loss.item() == pytest.approx(-(1.2 - 0.8) / 2)
    assert share.item() == 1.0
    loss.backward()
    assert torch.equal(logp.grad, torch.zeros_like(logp))  # both are past their bound: nothing pushes further
    loss, share = LOSSES["grpo"](logp, old, torch.tensor([[-1.0], [1.0]]), mask)
    assert loss.item() == pytest.approx(-(-1.5 + 0.5) / 2)  # moving back is never clipped
    assert share.item() == 0.0


def test_dual_clip_by_hand():
    logp = torch.tensor([[math.log(7.0)], [math.log(7.0)]], requires_grad=True)
    loss = make_loss("grpo", dual_clip=3.0, aggregation="token-sum")
    value, _ = loss(logp, torch.zeros(2, 1), torch.tensor([[-2.0], [1.0]]), torch.ones(2, 1))
    assert value.item() == pytest.approx(2.0 * 3.0 - 1.2)
    value.backward()
    assert not logp.grad.any()


def test_first_update_is_the_policy_gradient():
    logp = torch.log(torch.tensor([[0.2, 0.5], [0.4, 0.9]])).requires_grad_()
    advantages, mask = torch.tensor([[2.0], [-1.0]]), torch.tensor([[1.0, 1.0], [1.0, 0.0]])
    expected = {
        "seq-mean-token-mean": [[-0.5, -0.5], [0.5, 0.0]],  # -A / (length * B)
        "token-mean": [[-2 / 3, -2 / 3], [1 / 3, 0.0]],
        "seq-mean-token-sum": [[-1.0, -1.0], [0.5, 0.0]],
        "seq-mean-token-sum-norm": [[-0.1, -0.1], [0.05, 0.0]],
    }
    for name, loss in LOSSES.items():
        value, _ = replace(loss, length=10)(logp, logp.detach(), advantages, mask)
        (gradient,) = torch.autograd.grad(value, logp)
        torch.testing.assert_close(gradient, torch.tensor(expected[loss.aggregation]), msg=name)


def test_advantages_by_token():
    logp, old, advantages, mask = drawn()
    by_token = advantages.expand_as(logp)
    for name, loss in LOSSES.items():
        loss = replace(loss, length=7)
        one, each = (torch.autograd.grad(loss(logp, old, a, mask)[0], logp)[0] for a in (advantages, by_token))
        torch.testing.assert_close(one, each, msg=name)
    halves = torch.where(torch.arange(logp.shape[1]) < 2, advantages, 0.0)
    (gradient,) = torch.autograd.grad(LOSSES["grpo"](logp, old, halves, mask)[0], logp)
    assert gradient[0, :2].any() and not gradient[:, 2:].any()


def test_gspo_token_spreads_the_gradient_as_gspo_does():
    logp, old, advantages, mask = drawn()
    a, b = (LOSSES[name](logp, old, advantages, mask)[0] for name in ("gspo", "gspo_token"))
    torch.testing.assert_close(a, b)
    torch.testing.assert_close(*(torch.autograd.grad(x, logp)[0] for x in (a, b)))


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_those_of_the_value(name):
    logp, old, advantages, mask = drawn()
    loss = make_loss(name, length=7, dual_clip=None if name == "reinforce" else 2.0)
    if loss.surrogate is gspo_token:  # its value moves with the whole sequence, its gradient with the token alone
        return
    assert torch.autograd.gradcheck(lambda x: loss(x, old, advantages, mask)[0], logp)


@pytest.mark.parametrize("name", LOSSES)
def test_padding_says_nothing(name):
    logp, old, advantages, mask = drawn()
    loss = make_loss(name, length=7)
    expected, share = loss(logp, old, advantages, mask)
    odd = torch.where(mask > 0, logp, 300.0)
    found, same_share = loss(odd, old, advantages, mask)
    assert torch.equal(found, expected) and torch.equal(share, same_share)
    assert torch.isfinite(torch.autograd.grad(found, logp)[0]).all()


def test_sequences_that_are_empty_count_for_nothing():
    values = torch.tensor([[1.0, 100.0], [5.0, 5.0]])
    mask = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    torch.testing.assert_close(sequence_mean(values, mask), torch.tensor([1.0, 0.0]))
    torch.testing.assert_close(sequence_mean(values[:, :1], mask), torch.tensor([1.0, 0.0]))
    for mode, expected in zip(AGGREGATIONS, (1.0, 1.0, 0.5, 0.5, 0.05)):
        assert aggregate(values, mask, mode, length=10).item() == pytest.approx(expected), mode
        assert aggregate(values, torch.zeros(2, 2), mode, length=10).item() == 0.0, mode


def test_gmpo_by_hand():
    logp = torch.log(torch.tensor([[4.0, 1.0], [4.0, 0.25]]))
    costs, clipped = gmpo(logp, torch.zeros(2, 2), torch.tensor([[2.0], [-1.0]]), torch.ones(2, 2), (math.log(3.0), math.log(2.0)))
    np.testing.assert_allclose(costs, [[-2.0 * math.sqrt(2.0)], [math.sqrt(4.0 / 3.0)]], rtol=1e-6)
    assert clipped.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_ratio_beyond_all_bounds_is_finite():
    costs, _ = ppo(torch.tensor([[0.0]]), torch.tensor([[-2000.0]]), torch.tensor([[-1.0]]), torch.ones(1, 1), (0.2, 0.2))
    assert costs.item() == pytest.approx(math.exp(20), rel=1e-6)


def test_importance_weights_by_hand():
    trainer, sampler = torch.log(tensor([[0.2, 0.6], [0.5, 0.9]])), torch.log(tensor([[0.1, 0.1], [0.5, 0.1]]))
    mask = tensor([[1, 1], [1, 0]])
    weights, logged = importance_weights(trainer.requires_grad_(), sampler, mask, cap=3.0)
    np.testing.assert_allclose(weights, [[2.0, 3.0], [1.0, 1.0]])
    assert not weights.requires_grad
    assert logged["importance_mean"] == pytest.approx(2.0) and logged["importance_capped"] == pytest.approx(1 / 3)
    assert logged["sampler_max_difference"] == pytest.approx(math.log(6))
    assert logged["sampler_kl"] == pytest.approx((2 - math.log(2) - 1 + 6 - math.log(6) - 1) / 3)
    weights, _ = importance_weights(trainer, sampler, mask, cap=100.0, level="sequence")
    np.testing.assert_allclose(weights, [[12.0], [1.0]])


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ppo", {}, "algorithm to be one of grpo"),
        ("grpo", {"aggregation": "mean"}, "an aggregation among token-mean"),
        ("dr_grpo", {}, "a length above 0"),
        ("grpo", {"clip": (0.2, -1.0)}, "a pair"),
        ("grpo", {"dual_clip": 0.5}, "dual_clip to be above 1"),
        ("reinforce", {"clip": (0.2, 0.2)}, "no ratio to clip"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        make_loss(name, **options)
