"""Micro-batches hold what they may, and their gradient is that of the one big batch, whatever is minimised."""

from dataclasses import replace

import pytest
import torch
from tiny_transformers import make_model, make_tokenizer

from setpo_agents.losses import AGGREGATIONS, LOSSES, make_loss
from setpo_agents.microbatches import Scoring, micro_batches, pick
from setpo_agents.objective import Objective
from setpo_agents.policies.base import Sampling
from setpo_agents.policies.transformers import TransformersPolicy
from setpo_agents.regularizers import Experience, Minibatch, Replay, registry

torch.set_num_threads(1)
N, G = 3, 4
OPTIONS = {"clip_cov": {"share": 0.2, "low": 0.0}, "kl_cov": {"share": 0.2}}


@pytest.fixture(scope="module")
def policy():
    return TransformersPolicy(make_model(dtype=torch.float64), make_tokenizer(), max_new_tokens=6)


@pytest.fixture(scope="module")
def samples(policy):
    return policy.generate(["1+2=", "12*3=", "7="], G, Sampling(temperature=2.0), torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def old(policy, samples):
    """Log-probabilities that are not the current ones, so that some ratios are clipped; verdicts and an importance weight a token."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        log_probs, entropies = policy.log_probs(samples)
    noise = 0.3 * torch.randn(log_probs.shape, generator=generator, dtype=torch.float64)
    mask_BT = samples.mask_NGT.flatten(0, 1)
    right_B = torch.tensor([True, False, False, True] * N)
    shifted_BT = ((log_probs + noise) * samples.mask_NGT).flatten(0, 1)
    importance_BT = torch.rand(mask_BT.shape, generator=generator, dtype=torch.float64)
    modes_B = torch.arange(N * G) % 2
    return Experience(shifted_BT, mask_BT, right_B, torch.ones_like(right_B), modes_B, G, entropies.flatten(0, 1), importance_BT)


def gradients(policy, samples, old, objective, tokens, known=None):
    """Value and flat gradient of an objective, from micro-batches of so many tokens."""
    scoring = Scoring(policy, policy, 1.0, tokens)
    advantages_BX, _ = objective.advantages(torch.linspace(-1, 1, N * G, dtype=torch.float64), old)
    now, replayed = scoring.differentiable(samples, known), scoring.differentiable(samples)
    replay = Replay(replayed.log_probs_NGT.flatten(0, 1), old.log_probs_BT, old.mask_BT)
    scores = now.log_probs_NGT.flatten(0, 1), now.entropies_NGT.flatten(0, 1)
    value, _, _ = objective(Minibatch(old, *scores, advantages_BX, objective.loss.aggregate, old.log_probs_BT, replay))
    for weight in policy.parameters():
        weight.grad = None
    value.backward()
    now.backward()
    if replayed.log_probs_NGT.grad is not None:
        replayed.backward()
    return value.item(), torch.cat([weight.grad.flatten() for weight in policy.parameters() if weight.grad is not None])


def assert_equal_gradients(policy, samples, old, loss, regularizers):
    def made():  # of what draws at random, with the same draws
        return Objective.make(loss, regularizers, torch.Generator().manual_seed(2))

    value, whole = gradients(policy, samples, old, made(), None)
    for tokens in (9, 30):  # members of a group, and whole groups
        assert len(micro_batches(samples, tokens)) > 1
        part_value, parts = gradients(policy, samples, old, made(), tokens)
        assert part_value == pytest.approx(value, rel=1e-9)
        assert (parts - whole).norm() <= 1e-6 * whole.norm() and whole.norm() > 0


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("algorithm", LOSSES)
def test_gradient_of_every_loss_and_aggregation(policy, samples, old, algorithm, aggregation):
    assert_equal_gradients(policy, samples, old, make_loss(algorithm, aggregation=aggregation, length=6), {})


@pytest.mark.parametrize("name", registry())
def test_gradient_of_every_regularizer(policy, samples, old, name):
    assert_equal_gradients(policy, samples, old, make_loss("dapo"), {name: OPTIONS.get(name, {})})


def test_scores_that_are_known_are_not_computed_again(policy, samples, old, monkeypatch):
    objective = Objective.make(make_loss("grpo"), {}, torch.Generator())
    _, expected = gradients(policy, samples, old, objective, 30)
    known = Scoring(policy, None, 1.0, 30).current(samples)
    scored, score = [], policy.log_probs
    monkeypatch.setattr(policy, "log_probs", lambda part, **kwargs: scored.append(part) or score(part, **kwargs))
    _, got = gradients(policy, samples, old, objective, 30, known)
    assert torch.equal(got, expected)
    n_parts = len(micro_batches(samples, 30))
    assert len(scored) == 2 * n_parts  # one pass for the gradient here, one without for the replay


def test_parts_hold_every_member_once_and_no_more_tokens_than_allowed(samples):
    lengths_NG, prompts_N = samples.mask_NGT.sum(-1), samples.prompt_mask_NP.sum(-1)
    for tokens in range(1, 90):
        seen = torch.zeros(N, G)
        for rows, members in micro_batches(samples, tokens):
            seen[rows, members] += 1
            held = int(prompts_N[rows].sum() + lengths_NG[rows, members].sum())
            single = seen[rows, members].numel() == 1
            assert held <= tokens or single
        assert torch.equal(seen, torch.ones(N, G))
    assert micro_batches(samples, None) == [(slice(0, N), slice(0, G))]


def test_a_part_scores_as_the_whole_does_there(policy, samples):
    with torch.no_grad():
        whole, _ = policy.log_probs(samples)
        part = pick(samples, (slice(1, 2), slice(1, 3)))
        log_probs, _ = policy.log_probs(part)
    T = log_probs.shape[-1]
    torch.testing.assert_close(log_probs, whole[1:2, 1:3, :T])
    assert (whole[1:2, 1:3, T:] == 0).all()


def test_groups_without_a_token_to_train_on_have_no_gradient(policy, samples, old):
    mask = samples.mask_NGT.clone()
    mask[1] = 0
    emptied = replace(samples, mask_NGT=mask)
    objective = Objective.make(make_loss("dapo"), {}, torch.Generator())
    past = replace(old, mask_BT=mask.flatten(0, 1), log_probs_BT=old.log_probs_BT * mask.flatten(0, 1))
    _, whole = gradients(policy, emptied, past, objective, None)
    _, parts = gradients(policy, emptied, past, objective, 30)
    assert torch.isfinite(whole).all() and (parts - whole).norm() <= 1e-6 * whole.norm()
