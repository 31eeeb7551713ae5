"""The sampling distribution: temperature, the likeliest k, the nucleus, and what is refused."""

import math

import pytest
import torch

from setpo_agents.policies.base import Samples, Sampling
from setpo_agents.policies.sampling import sampling_log_probs
from setpo_agents.policies.tiny import TinyConfig, TinyPolicy

P = [0.4, 0.3, 0.15, 0.1, 0.05]
ORDER = [3, 0, 4, 1, 2]  # the likeliest token is number 3


def distribution(**fields):
    logits = torch.empty(len(P)).scatter_(0, torch.tensor(ORDER), torch.tensor(P).log() + 2.5)
    return sampling_log_probs(logits[None], Sampling(**fields))[0].exp()[ORDER].tolist()


@pytest.mark.parametrize(
    "fields, expected",
    [
        ({}, P),
        ({"temperature": 0.5}, [p * p / sum(q * q for q in P) for p in P]),
        ({"top_k": 2}, [4 / 7, 3 / 7, 0, 0, 0]),
        ({"top_k": 1}, [1, 0, 0, 0, 0]),
        ({"top_k": 9}, P),
        ({"top_p": 0.5}, [4 / 7, 3 / 7, 0, 0, 0]),
        ({"top_p": 0.72}, [8 / 17, 6 / 17, 3 / 17, 0, 0]),
        ({"top_p": 1e-6}, [1, 0, 0, 0, 0]),
        # the mass of the nucleus is of what top_k left: 0.4 of 0.85 is 0.47, 0.7 of it 0.82
        ({"top_k": 3, "top_p": 0.8}, [4 / 7, 3 / 7, 0, 0, 0]),
        ({"top_k": 3, "top_p": 0.83}, [8 / 17, 6 / 17, 3 / 17, 0, 0]),
    ],
)
def test_distribution(fields, expected):
    assert distribution(**fields) == pytest.approx(expected, abs=1e-6)


def test_equally_likely_tokens_are_cut_to_k_all_the_same():
    log_p = sampling_log_probs(torch.zeros(1, 6), Sampling(top_k=2))
    assert sorted(log_p.exp()[0].tolist()) == pytest.approx([0, 0, 0, 0, 0.5, 0.5])


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 0},
        {"temperature": -1.0},
        {"temperature": math.inf},
        {"temperature": math.nan},
        {"temperature": "1"},
        {"temperature": True},
        {"top_p": 0},
        {"top_p": 1.01},
        {"top_p": math.nan},
        {"top_k": -1},
        {"top_k": 2.0},
        {"max_new_tokens": 0},
        {"max_new_tokens": 1.5},
        {"stop": "stop"},
        {"stop": ("",)},
        {"stop": (1,)},
    ],
)
def test_fields_outside_their_range_are_refused(fields):
    with pytest.raises(ValueError, match=next(iter(fields))):
        Sampling(**fields)


def test_indexing_samples_keeps_everything():
    mask = torch.tensor([[False, True, True], [True, True, True], [False, False, True]])
    samples = Samples(
        completions_NG=[["a", "b"], ["c", "d"], ["e", "f"]],
        prompt_NP=torch.arange(9).view(3, 3),
        tokens_NGT=torch.arange(24).view(3, 2, 4),
        mask_NGT=torch.rand(3, 2, 4),
        log_probs_NGT=torch.rand(3, 2, 4),
        prompt_mask_NP=mask,
    )
    for rows in (slice(1, 3), torch.tensor([2, 0])):
        picked = samples[rows]
        assert picked.completions_NG == ([["c", "d"], ["e", "f"]] if isinstance(rows, slice) else [["e", "f"], ["a", "b"]])
        for name in ("prompt_NP", "tokens_NGT", "mask_NGT", "log_probs_NGT", "prompt_mask_NP"):
            assert torch.equal(getattr(picked, name), getattr(samples, name)[rows])
    samples.prompt_mask_NP = None
    assert samples[:1].prompt_mask_NP is None


def test_tiny_policy_samples_from_the_cut_distribution_and_within_the_limit():
    policy = TinyPolicy(TinyConfig(d_model=16, n_layers=1), seed=0)
    prompts = ["1,2=3>", "4,4=8>"]
    samples = policy.generate(prompts, 64, Sampling(top_k=3, max_new_tokens=4), torch.Generator().manual_seed(0))
    assert samples.tokens_NGT.shape[-1] <= 4
    assert len(set(samples.tokens_NGT[0, :, 0].tolist())) == 3
    greedy = policy.generate(prompts, 2, Sampling(top_k=1), torch.Generator())
    assert (greedy.log_probs_NGT == 0).all() and torch.equal(greedy.tokens_NGT[:, 0], greedy.tokens_NGT[:, 1])


@pytest.mark.parametrize("fields", [{"max_new_tokens": 14}, {"stop": (">",)}])
def test_tiny_policy_refuses_what_it_does_not_support(fields):
    with pytest.raises(ValueError, match="at most 13"):
        TinyPolicy().generate(["1,2=3>"], 2, Sampling(**fields), torch.Generator())
