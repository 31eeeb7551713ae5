"""Policy-side regularisers against published outputs, hand-computed cases and their formulas as they read."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from token_batches import drawn, experience, mask_of, minibatch, tensor, tensors

from setpo_agents.advantages import dr_grpo
from setpo_agents.losses import LOSSES, make_loss
from setpo_agents.objective import Objective
from setpo_agents.regularizers import ClipCov, KLCov, Regularizer, Replay, make_regularizer, register, registry
from setpo_agents.regularizers.advantages import ucpo_weights
from setpo_agents.regularizers.costs import token_covariances
from setpo_envs.shapers.frequency import edas_weights

GENERATOR = torch.Generator()


# --- costs ---------------------------------------------------------------------------------------------------------


class GivenClipCov(ClipCov):
    """Drops what the published code drew."""

    def candidates(self, clipped_BX, batch):
        return self.given

    def holding(self, given):
        object.__setattr__(self, "given", torch.tensor(given, dtype=torch.int64).view(-1, 2))
        return self


class GivenKLCov(KLCov):
    """Holds back what the published code chose: among equal covariances the choice is free."""

    def chosen(self, batch):
        return self.given

    def holding(self, given):
        object.__setattr__(self, "given", torch.tensor(given, dtype=torch.int64))
        return self


def objective_of(loss, regularizer):
    return Objective(loss, {"it": regularizer}, GENERATOR)


def check(objective, batch, scale, expected):
    value, _, _ = objective(batch)
    value = value * scale
    np.testing.assert_allclose(value.item(), expected["loss"], rtol=1e-6, atol=1e-7)  # theirs add 1e-8 to counts
    (gradient,) = torch.autograd.grad(value, batch.log_probs_BT)
    np.testing.assert_allclose(gradient, expected["grad"], rtol=1e-6, atol=1e-7)


def check_clip_cov(line, loss, share, low, high, scale):
    logp, old, advantages, mask = tensors(line)
    batch, expected = minibatch(logp, old, advantages, mask, loss), line["out"]["clip_cov"]
    ours = ClipCov(share, low, high)
    _, clipped = loss.surrogate(logp, old, advantages, mask, loss.clip)
    assert ours.candidates(clipped, batch).tolist() == expected["candidates"]
    dropped = (ours.costs(torch.ones_like(logp), clipped, batch, GENERATOR) == 0).nonzero().tolist()
    assert len(dropped) == len(expected["selected"]) == min(expected["clip_num"], len(expected["candidates"]))
    assert all(token in expected["candidates"] for token in dropped)
    check(objective_of(loss, GivenClipCov(share, low, high).holding(expected["selected"])), batch, scale, expected)


def check_kl_cov(line, loss, coefficient, share, scale):
    logp, old, advantages, mask = tensors(line)
    batch, expected = minibatch(logp, old, advantages, mask, loss), line["out"]["kl_cov"]
    ours, covariances = KLCov(coefficient, share), token_covariances(logp, advantages, mask).flatten()
    chosen, theirs = ours.chosen(batch), torch.tensor(expected["selected_flat"])
    if not expected["tie"]:
        assert sorted(chosen.tolist()) == sorted(theirs.tolist())
    torch.testing.assert_close(covariances[chosen].sort().values, covariances[theirs].sort().values, atol=1e-7, rtol=1e-6)
    check(objective_of(loss, GivenKLCov(coefficient, share).holding(expected["selected_flat"])), batch, scale, expected)


def test_equal_to_verl(oracle):
    lines = oracle("verl_policy_loss")
    for line in lines:
        given = line["in"]
        mask = mask_of(given["lens"], len(given["logp"][0]))
        kind = {"aggregation": given["agg"], "length": mask.shape[1]}
        scale = len(mask) / mask.any(-1).sum().item() if given["agg"].startswith("seq-mean") else 1.0  # verl leaves empty rows out
        clipped = make_loss("grpo", clip=(given["clip_low"], given["clip_high"]), **kind)
        check_clip_cov(line, clipped, given["clip_cov_ratio"], given["clip_cov_lb"], given["clip_cov_ub"], scale)
        unclipped = Objective.make(clipped, {"kl_cov": {}}, GENERATOR).loss
        assert unclipped.clip is None
        check_kl_cov(line, unclipped, given["ppo_kl_coef"], given["kl_cov_ratio"], scale)
    assert len(lines) == 300


def test_equal_to_prime(oracle):
    lines = oracle("prime_entropy")
    for line in lines:
        given = line["in"]
        kind = {"aggregation": given["agg"], "length": len(given["logp"][0])}
        scale = len(given["logp"]) if given["agg"] == "seq-mean-token-sum-norm" else 1.0  # not a mean over sequences there
        clipped = make_loss("grpo", clip=(given["cliprange_low"], given["cliprange_high"]), **kind)
        check_clip_cov(line, clipped, given["clip_cov_ratio"], given["clip_cov_lb"], given["clip_cov_ub"], scale)
        unclipped = Objective.make(clipped, {"kl_cov": {}}, GENERATOR).loss
        percent = min(given["k_percent"], sum(given["lens"]))  # a percentage cut at the number of tokens: no matter from 100 on
        check_kl_cov(line, unclipped, given["ppo_kl_coef"], percent / 100, scale)
        if "cov_valid" in line["out"]["kl_cov"]:
            logp, _, advantages, mask = tensors(line)
            found = token_covariances(logp, advantages, mask)[mask > 0]
            np.testing.assert_allclose(found, line["out"]["kl_cov"]["cov_valid"], rtol=1e-6, atol=1e-6)
    assert len(lines) == 300


def test_clip_cov_draws_from_the_generator_alone():
    logp, old, advantages, mask = drawn(T=40)
    batch = minibatch(logp, old, advantages, mask, LOSSES["grpo"])
    ones, zeros = torch.ones_like(logp), torch.zeros_like(logp)
    draw = [ClipCov(0.1, -9.0, 9.0).costs(ones, zeros, batch, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)]
    assert torch.equal(draw[0], draw[1]) and not torch.equal(draw[0], draw[2])
    assert {int((x == 0).sum()) for x in draw} == {int(0.1 * mask.sum())}


# --- advantages ----------------------------------------------------------------------------------------------------


def test_ucpo_golden_vector():
    probabilities = torch.log(tensor([0.3, 0.3, 0.3, 0.05, 0.9, 0.01]))
    correct = torch.tensor([True] * 4 + [False] * 2)
    weights = ucpo_weights(probabilities, correct, 6)
    np.testing.assert_allclose(weights / 4, [0.222222] * 3 + [0.333333] + [0.25] * 2, atol=5e-7)
    assert ucpo_weights(probabilities, ~correct | correct, 6, t=0.0).tolist() == [1.0] * 6
    assert ucpo_weights(probabilities, torch.zeros(6, dtype=torch.bool), 6).tolist() == [1.0] * 6


def test_ucpo_keeps_the_mean_whatever_the_probabilities():
    log_probs = -1000.0 * torch.rand(12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    correct = torch.tensor([True, True, False, True] * 3)
    weights = ucpo_weights(log_probs, correct, 4, 0.7).view(3, 4)
    np.testing.assert_allclose(weights[:, [0, 1, 3]].sum(1), [3.0] * 3)
    old = experience(log_probs[:, None], torch.ones(12, 1), correct=correct, group_size=4)
    advantages = torch.where(correct, 0.5, -1.5)[:, None].double()
    np.testing.assert_allclose(make_regularizer("ucpo", t=0.7).advantages(advantages, old)[:, 0], (advantages[:, 0] * weights.flatten()))


def test_entropy_advantage_by_hand():
    old = experience(torch.zeros(3, 2), torch.ones(3, 2), entropies=tensor([[0.5, 5.0], [0.5, 5.0], [1.0, 1.0]]))
    found = make_regularizer("entropy_advantage").advantages(tensor([[2.0], [-2.0], [0.0]]), old)
    np.testing.assert_allclose(found, [[2.2, 3.0], [-1.8, -1.0], [0.0, 0.0]])


def edas_as_it_reads(advantages, modes, wrong, alpha, beta, kappa):
    """The formula on one group."""
    found, members = list(advantages), [i for i, w in enumerate(wrong) if w]
    if len(members) <= 1:
        return found
    share = {i: sum(modes[i] == modes[j] for j in members) / len(members) for i in members}
    mean_surprise = sum(-math.log(share[i]) for i in members) / len(members)
    size = sum(abs(advantages[i]) for i in members) / len(members)
    for i in members:
        one_answer = len({modes[j] for j in members}) == 1
        d = -beta * size if one_answer else alpha * size * (-math.log(share[i]) - mean_surprise) / math.log(len(members))
        found[i] += math.copysign(min(abs(d), abs(advantages[i]) / kappa), d)
    return found


def test_edas_is_its_formula_and_the_shaper_where_wrong_members_are_alike():
    rng = np.random.default_rng(0)
    options = {"alpha": 0.9, "beta": 0.3, "kappa": 1.5}
    for _ in range(60):
        modes, status = rng.integers(-1, 3, 8), rng.integers(0, 3, 8)  # 0 wrong, 1 correct, 2 without a verdict
        advantages = rng.normal(size=8) * (status < 2)
        old = experience(torch.zeros(8, 2), torch.ones(8, 2), correct=status == 1, valid=status < 2, modes=modes)
        found = make_regularizer("edas", **options).advantages(tensor(advantages.tolist())[:, None], old)[:, 0]
        np.testing.assert_allclose(found, edas_as_it_reads(advantages, modes, status == 0, **options), atol=1e-12)
        alike = np.where(status == 0, -0.7, 0.4) * (status < 2)
        found = make_regularizer("edas", **options).advantages(tensor(alike.tolist())[:, None], old)[:, 0]
        np.testing.assert_allclose(found, alike * edas_weights(modes[None], (status == 0)[None], **options)[0], atol=1e-12)


def test_opo_and_whitening_equal_to_verl(oracle):
    lines = oracle("verl_advantages")
    groups = 0
    for line in lines:
        given, out = line["in"], line["out"]
        rewards, index, mask = np.array(given["rewards"], float), np.array(given["index"]), mask_of(given["lens"], given["T"])
        centred = rewards.copy()
        for group in np.unique(index):
            rows = np.flatnonzero(index == group)
            if len(rows) > 1:  # verl takes a baseline of 0 for a group of one
                centred[rows] = dr_grpo(rewards[rows][None])[0]
                old = experience(torch.zeros(len(rows), given["T"]), mask[rows])
                found = make_regularizer("opo").advantages(tensor(centred[rows].tolist())[:, None], old)
                np.testing.assert_allclose(found[:, 0], np.array(out["opo"])[rows], rtol=1e-4, atol=2e-6)
                groups += 1
        old = experience(torch.zeros(len(mask), given["T"]), mask)
        found = make_regularizer("whiten").advantages(tensor(centred.tolist())[:, None], old)[:, 0]
        if found.std() > 1e-3:  # elsewhere float32 rounding over 1e-4
            np.testing.assert_allclose(found, out["reinforce_plus_plus_baseline"], rtol=1e-3, atol=1e-4)
    assert len(lines) == 300 and groups > 300


@pytest.mark.parametrize("name", ["entropy_advantage", "ucpo", "edas", "opo", "whiten"])
def test_completions_without_a_verdict_keep_advantage_zero_and_move_no_other(name):
    valid, advantages = torch.tensor([True, False, True, True]), tensor([[1.0], [0.0], [-2.0], [1.0]])
    correct, modes = torch.tensor([True, False, False, True]), torch.tensor([0, -1, 1, 0])
    log_probs, entropies = -torch.rand(4, 3, dtype=torch.float64), torch.rand(4, 3, dtype=torch.float64)
    found = []
    for length in (1, 3):  # however long the one without a verdict is
        mask = mask_of([2, length, 3, 1], 3)
        old = experience(log_probs, mask, correct=correct, valid=valid, modes=modes, entropies=entropies)
        found.append(make_regularizer(name).advantages(advantages, old))
        assert not found[-1][1].any()
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("name", ["entropy_advantage", "ucpo", "edas", "opo"])
@pytest.mark.parametrize("right", [True, False])
def test_groups_of_equal_rewards_keep_advantage_zero(name, right):
    logp, old_logp, _, mask = drawn()
    old = experience(old_logp, mask, correct=[right] * 6, modes=[0, 0, 1, -1, 2, 2], group_size=3, entropies=torch.ones_like(old_logp))
    assert not make_regularizer(name).advantages(torch.zeros(6, 1, dtype=torch.float64), old).any()


# --- terms ---------------------------------------------------------------------------------------------------------


def test_r1_zero_div_by_hand():
    old_logp, mask = torch.log(tensor([[0.5, 0.5], [0.1, 0.9], [0.2, 0.2]])), mask_of([2, 1, 2], 2)
    logp = torch.log(tensor([[0.25, 0.5], [0.2, 0.9], [0.2, 0.4]]))
    first = -(0.5 * math.log(0.25) + math.log(0.5)) / 2
    second, third = -2 * math.log(0.2), -(math.log(0.2) + 2 * math.log(0.4)) / 2
    for correct, valid, apply_to, expected in (
        ([1, 0, 1], [1, 1, 1], "correct", (first + third) / 2),
        ([1, 0, 1], [1, 1, 0], "all", (first + second) / 2),
        ([0, 0, 0], [1, 1, 1], "correct", 0.0),
    ):
        old = experience(old_logp, mask, correct=correct, valid=valid)
        batch = minibatch(logp, old_logp, torch.zeros(3, 1), mask, LOSSES["grpo"], old=old)
        found = make_regularizer("r1_zero_div", coefficient=0.1, apply_to=apply_to).term(batch)
        assert found.item() == pytest.approx(-0.1 * expected), (correct, apply_to)


def test_r1_zero_div_is_the_entropy_in_expectation():
    """Summed over a vocabulary with the old policy's probabilities, value and gradient are those of the entropy."""
    logits = torch.randn(5, generator=torch.Generator().manual_seed(1), dtype=torch.float64).requires_grad_()
    old = torch.log_softmax(torch.arange(5, dtype=torch.float64) / 3, 0)
    logp = torch.log_softmax(logits, 0)
    entropy = -(logp.exp() * logp).sum()
    mask = torch.ones(5, 1, dtype=torch.float64)
    losses = []
    for token in range(5):
        batch = minibatch(logp[token].view(1, 1), old[token].view(1, 1), torch.zeros(1, 1), mask[:1], LOSSES["grpo"])
        losses.append(old[token].exp() * make_regularizer("r1_zero_div", coefficient=1.0).term(batch))
    estimate = -torch.stack(losses).sum()
    torch.testing.assert_close(estimate, entropy)
    torch.testing.assert_close(*(torch.autograd.grad(x, logits, retain_graph=True)[0] for x in (estimate, entropy)))


def test_entropy_and_kl_are_aggregated_as_the_loss_is():
    logp, old, advantages, mask = drawn()
    reference = old - 0.3
    d = reference - logp
    for name, loss in LOSSES.items():
        loss = make_loss(name, length=7)
        batch = minibatch(logp, old, advantages, mask, loss, entropies=-logp, reference_log_probs_BT=reference)
        entropy, kl = (make_regularizer(name, coefficient=0.5).term(batch) for name in ("entropy", "kl"))
        torch.testing.assert_close(entropy, 0.5 * loss.aggregate(logp, mask))
        torch.testing.assert_close(kl, 0.5 * loss.aggregate(torch.exp(d) - d - 1, mask))


# --- all of them ---------------------------------------------------------------------------------------------------

OPTIONS = {"clip_cov": {"share": 0.2, "low": 0.01}, "kl_cov": {"share": 0.2}}


@pytest.mark.parametrize("name", registry())
def test_gradients_are_those_of_the_value(name):
    logp, old_logp, advantages, mask = drawn()
    replay_mask = mask_of([5, 2, 1, 3, 4, 5], 5)
    old = experience(old_logp, mask, correct=[1, 0, 1, 1, 0, 0], modes=[0, 1, 0, 2, 1, 1], group_size=3, entropies=-old_logp)

    def value(x):
        objective = Objective.make(LOSSES["grpo"], {name: OPTIONS.get(name, {})}, torch.Generator().manual_seed(0))
        changed, _ = objective.advantages(advantages[:, 0], old)
        replay = Replay(x * 1.1 - 0.1, old_logp, replay_mask)
        batch = minibatch(x, old_logp, changed, mask, objective.loss, old=old, entropies=-x, reference_log_probs_BT=old_logp, replay=replay)
        return objective(batch)[0]

    assert torch.autograd.gradcheck(value, logp, eps=1e-7, atol=1e-4)
    plain, _ = LOSSES["grpo"](logp, old_logp, advantages, mask)
    assert value(logp).item() != pytest.approx(plain.item(), abs=1e-9)  # it does something


def test_what_is_logged_says_who_did_what():
    logp, old_logp, advantages, mask = drawn()
    old = experience(old_logp, mask, entropies=-old_logp)
    objective = Objective.make(
        LOSSES["grpo"], {"entropy_advantage": {}, "kl_cov": {"share": 0.3}, "entropy": {"coefficient": 0.1}}, GENERATOR
    )
    changed, effects = objective.advantages(advantages[:, 0], old)
    assert list(effects) == ["entropy_advantage"] and effects["entropy_advantage"] > 0
    value, logged, added = objective(minibatch(logp, old_logp, changed, mask, objective.loss, old=old, entropies=-logp))
    plain, _ = objective.loss(logp, old_logp, changed, mask)
    assert set(added) == {"kl_cov", "entropy"} and logged["loss"].item() == pytest.approx(plain.item() + added["kl_cov"].item())
    assert value.item() == pytest.approx(plain.item() + added["kl_cov"].item() + added["entropy"].item())


def test_importance_weights_scale_the_costs():
    logp, old_logp, advantages, mask = drawn()
    objective = Objective.make(LOSSES["grpo"], {}, GENERATOR)
    old = experience(old_logp, mask)
    values = []
    for weights in (None, torch.full_like(logp, 0.5), torch.full_like(logp[:, :1], 0.5)):
        batch = minibatch(logp, old_logp, advantages, mask, objective.loss, old=replace(old, importance_BX=weights))
        values.append(objective(batch)[0].item())
    assert values[1] == values[2] == pytest.approx(values[0] / 2)


def test_groups_are_picked_whole():
    old = experience(torch.arange(6.0)[:, None], torch.ones(6, 1), correct=[1, 0, 1, 0, 1, 0], group_size=2)
    picked = old.groups(torch.tensor([2, 0]))
    assert picked.log_probs_BT[:, 0].tolist() == [4.0, 5.0, 0.0, 1.0]
    assert picked.correct_B.tolist() == [True, False, True, False] and picked.entropies_BT is None and picked.group_size == 2


# --- registry ------------------------------------------------------------------------------------------------------


def test_the_registry_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="unknown regularizer 'nothing': choose one of clip_cov"):
        make_regularizer("nothing")
    with pytest.raises(ValueError, match="unknown option 'beta' of regularizer 'kl_cov': choose among coefficient, share"):
        make_regularizer("kl_cov", beta=1.0)
    with pytest.raises(ValueError, match="registered already"):
        register("kl_cov")(ClipCov)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("entropy", {"coefficient": -1.0}),
        ("entropy_advantage", {"kappa": 0.5}),
        ("ucpo", {"t": 1.5}),
        ("clip_cov", {"low": 6.0}),
        ("kl_cov", {"share": "all"}),
        ("kl", {"estimator": "k4"}),
        ("r1_zero_div", {"apply_to": "wrong"}),
        ("dph_rl", {"divergence": "reverse"}),
        ("dph_rl", {"alpha": 0.0}),
    ],
)
def test_options_out_of_range_are_refused(name, options):
    with pytest.raises(ValueError, match="expected"):
        make_regularizer(name, **options)


@pytest.mark.parametrize("name", registry())
def test_defaults_work_and_every_formula_has_a_source(name):
    made = make_regularizer(name)
    assert isinstance(made, Regularizer)
    assert "arXiv" in type(made).__doc__
