"""The tiny policy: sampling and scoring are the same distribution, groups share a prompt without changing anything."""

import pytest
import torch

from setpo_agents.policies.base import Sampling
from setpo_agents.policies.tiny import EOS, PAD, TinyConfig, TinyPolicy

PROMPTS = ["1,2,5,7=15>", "1,1,1,2=03>", "3>"]


@pytest.fixture(scope="module")
def policy():
    policy = TinyPolicy(TinyConfig(d_model=32, n_layers=2), seed=3)
    with torch.no_grad():
        for weight in policy.parameters():  # far from uniform, so that a wrong mask or position shows
            weight.mul_(4)
    return policy


def sample(policy, n=8, seed=0, **kwargs):
    return policy.generate(PROMPTS, n, Sampling(**kwargs), torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_sampled_log_probs_are_those_of_the_forward_pass(policy, temperature):
    samples = sample(policy, temperature=temperature)
    log_probs, entropy = policy.log_probs(samples, temperature=temperature)
    torch.testing.assert_close(log_probs, samples.log_probs_NGT, atol=2e-5, rtol=0)
    assert (samples.log_probs_NGT[samples.mask_NGT == 1] < 0).all()
    assert (entropy[samples.mask_NGT == 0] == 0).all()


def test_a_group_scores_as_its_members_do_alone(policy):
    samples = sample(policy)
    together, _ = policy.log_probs(samples)
    for n, g in ((0, 0), (1, 5), (2, 7)):
        alone = samples[n : n + 1]
        alone.tokens_NGT, alone.mask_NGT = alone.tokens_NGT[:, g : g + 1], alone.mask_NGT[:, g : g + 1]
        torch.testing.assert_close(policy.log_probs(alone)[0][0, 0], together[n, g], atol=1e-5, rtol=0)


def test_later_tokens_do_not_change_earlier_ones(policy):
    samples = sample(policy)
    before, _ = policy.log_probs(samples)
    changed = samples.tokens_NGT.clone()
    changed[..., 4:] = 5
    samples.mask_NGT = torch.ones_like(samples.mask_NGT)
    original, _ = policy.log_probs(samples)
    samples.tokens_NGT = changed
    after, _ = policy.log_probs(samples)
    torch.testing.assert_close(after[..., :4], original[..., :4])
    assert not torch.equal(after[..., 4:], original[..., 4:])


def test_same_generator_state_same_samples(policy):
    first, second, other = sample(policy), sample(policy), sample(policy, seed=1)
    assert torch.equal(first.tokens_NGT, second.tokens_NGT)
    assert not torch.equal(first.tokens_NGT, other.tokens_NGT)


def test_mask_ends_with_the_end_token(policy):
    samples = sample(policy, n=32)
    for n in range(len(PROMPTS)):
        for g in range(32):
            ids, length = samples.tokens_NGT[n, g].tolist(), int(samples.mask_NGT[n, g].sum())
            text = samples.completions_NG[n][g]
            assert text.truncated == (EOS not in ids)
            if text.truncated:
                assert length == len(ids)
            else:
                assert ids[length - 1] == EOS and EOS not in ids[: length - 1] and set(ids[length:]) <= {PAD}
                assert len(text) == length - 1


def test_supervised_round_trip(policy):
    samples = policy.supervised(PROMPTS[:1], [["1+2", "(1+2)*3"]])
    assert samples.tokens_NGT.shape == (1, 2, 8)
    assert [policy.tokenizer.decode(row) for row in samples.tokens_NGT[0].tolist()] == ["1+2", "(1+2)*3"]
    assert samples.mask_NGT[0].sum(-1).tolist() == [4.0, 8.0]


def test_foreign_text_is_refused_with_advice(policy):
    with pytest.raises(ValueError, match="prompt_format='terse'"):
        policy.generate(["Make 24"], 2, Sampling(), torch.Generator())
    with pytest.raises(ValueError, match="more than 12"):
        policy.tokenizer.prompts(["1,2,3,4,5,6,7=99>"])


def test_the_seed_decides_the_weights_and_leaves_the_global_stream_alone():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    first, second = TinyPolicy(seed=1), TinyPolicy(seed=1)
    assert torch.equal(torch.rand(1), expected)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters()))
    assert not torch.equal(first.head.weight, TinyPolicy(seed=2).head.weight)
