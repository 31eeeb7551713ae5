"""The transformers policy: scores, samples and gradients are those of the plain model, one sequence at a time."""

import copy

import pytest
import torch
from tiny_transformers import END, EOS, PAD, make_model, make_tokenizer
from torch.nn import functional as F

transformers = pytest.importorskip("transformers")

from setpo_agents.policies import transformers as module  # noqa: E402
from setpo_agents.policies.base import Samples, Sampling  # noqa: E402
from setpo_agents.policies.transformers import TransformersPolicy  # noqa: E402

PROMPTS = ["1,2,5,7=15>", "3>", "(1+2)*3="]
KINDS = [("llama", False), ("llama", True), ("qwen2", False), ("qwen2", True)]


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def make(kind="llama", tied=False, dtype=torch.float32, model=None, **options):
    policy = TransformersPolicy(model or make_model(kind, tied, dtype), make_tokenizer(), **{"max_new_tokens": 24, **options})
    return policy


def sample(policy, n=6, seed=0, prompts=PROMPTS, **fields):
    return policy.generate(prompts, n, Sampling(**fields), torch.Generator().manual_seed(seed))


def naive(model, samples, temperature=1.0):
    """(log-probabilities, entropies) by the model's own forward pass, one sequence at a time."""
    log_probs, entropies = (torch.zeros(samples.mask_NGT.shape, dtype=model.dtype) for _ in range(2))
    for i, (prompt, keep) in enumerate(zip(samples.prompt_NP, samples.prompt_mask_NP)):
        for g, (tokens, mask) in enumerate(zip(samples.tokens_NGT[i], samples.mask_NGT[i])):
            T = int(mask.sum())
            ids = torch.cat([prompt[keep], tokens[:T]])
            log_p = F.log_softmax(model(ids[None]).logits[0, -T - 1 : -1] / temperature, dim=-1)
            log_probs[i, g, :T] = log_p.gather(1, tokens[:T, None])[:, 0]
            entropies[i, g, :T] = -(log_p.exp() * log_p).sum(-1)
    return log_probs, entropies


# transformers' norms compute in float32 whatever the weights are, which their gradient shows
@pytest.mark.parametrize("dtype, atol, atol_gradient", [(torch.float32, 1e-5, 2e-4), (torch.float64, 1e-10, 1e-6)])
@pytest.mark.parametrize("kind, tied", KINDS)
def test_scores_and_gradient_are_those_of_one_sequence_at_a_time(kind, tied, dtype, atol, atol_gradient):
    policy, plain = make(kind, tied, dtype), make_model(kind, tied, dtype)
    samples = sample(policy, temperature=1.3)
    assert samples.mask_NGT.sum(-1).unique().numel() > 3, "expected completions of several lengths"
    ours, theirs = policy.log_probs(samples, temperature=0.7), naive(plain, samples, temperature=0.7)
    for score, expected in zip(ours, theirs):
        torch.testing.assert_close(score, expected, atol=atol, rtol=atol)
    for log_probs, entropy in (ours, theirs):  # nothing cancels in this objective
        (log_probs.exp() + 0.1 * entropy * log_probs.detach()).sum().backward()
    expected = dict(plain.named_parameters())
    for name, weight in policy.model.named_parameters():
        scale = expected[name].grad.abs().max()
        assert scale > 0
        torch.testing.assert_close(weight.grad / scale, expected[name].grad / scale, atol=atol_gradient, rtol=0)


@pytest.mark.parametrize("kind, tied", KINDS)
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_sampled_log_probs_are_those_of_scoring(kind, tied, temperature):
    policy = make(kind, tied)
    samples = sample(policy, n=12, temperature=temperature)
    log_probs, _ = policy.log_probs(samples, temperature=temperature)
    torch.testing.assert_close(samples.log_probs_NGT, log_probs, atol=1e-5, rtol=0)
    assert (samples.log_probs_NGT[samples.mask_NGT == 0] == 0).all() and (samples.log_probs_NGT[samples.mask_NGT == 1] < 0).all()


def test_scores_depend_on_neither_padding_nor_neighbours():
    policy = make(dtype=torch.float64)
    samples = sample(policy)
    together, entropies = policy.log_probs(samples)
    for rows in (slice(1, 2), torch.tensor([2, 0])):
        alone, _ = policy.log_probs(samples[rows])
        torch.testing.assert_close(alone, together[rows], atol=1e-10, rtol=0)
    # more padding on both sides, and other tokens in it
    N, G, T = samples.tokens_NGT.shape
    wide = Samples(
        samples.completions_NG,
        torch.cat([torch.full((N, 3), 9), samples.prompt_NP.where(samples.prompt_mask_NP, 7)], dim=1),
        torch.cat([samples.tokens_NGT.where(samples.mask_NGT > 0, 5), torch.full((N, G, 4), 8)], dim=2),
        torch.cat([samples.mask_NGT, torch.zeros(N, G, 4)], dim=2),
        torch.cat([samples.log_probs_NGT, torch.zeros(N, G, 4)], dim=2),
        torch.cat([torch.zeros(N, 3, dtype=torch.bool), samples.prompt_mask_NP], dim=1),
    )
    again, entropies_again = policy.log_probs(wide)
    torch.testing.assert_close(again[..., :T], together, atol=1e-10, rtol=0)
    torch.testing.assert_close(entropies_again[..., :T], entropies, atol=1e-10, rtol=0)
    assert (again[..., T:] == 0).all()


def test_prompts_of_one_length_need_no_mask():
    policy, plain = make(dtype=torch.float64), make_model(dtype=torch.float64)
    samples = sample(policy, prompts=["1,2=3>", "4,5=9>"])
    theirs, _ = naive(plain, samples)
    torch.testing.assert_close(policy.log_probs(samples)[0], theirs, atol=1e-10, rtol=0)
    torch.testing.assert_close(samples.log_probs_NGT.double(), theirs, atol=1e-6, rtol=0)
    samples.prompt_mask_NP = None
    torch.testing.assert_close(policy.log_probs(samples)[0], theirs, atol=1e-10, rtol=0)


def test_completions_of_one_token_and_a_masked_completion():
    policy, plain = make(dtype=torch.float64), make_model(dtype=torch.float64)
    one = sample(policy, max_new_tokens=1)
    assert one.tokens_NGT.shape[-1] == 1
    torch.testing.assert_close(policy.log_probs(one)[0], naive(plain, one)[0], atol=1e-10, rtol=0)
    samples = sample(policy)
    expected, _ = policy.log_probs(samples)
    samples.mask_NGT[0, 1] = 0
    torch.testing.assert_close(policy.log_probs(samples)[0], expected * samples.mask_NGT, atol=1e-10, rtol=0)
    samples.mask_NGT[:, :, 0] = 0
    with pytest.raises(ValueError, match="a gap"):
        policy.log_probs(samples)


def test_scoring_in_parts_changes_nothing(monkeypatch):
    policy = make(dtype=torch.float64)
    samples, results = sample(policy), []
    for limit in (module.LOGITS, 7 * policy.model.config.vocab_size):
        monkeypatch.setattr(module, "LOGITS", limit)
        log_probs, entropy = policy.log_probs(samples)
        policy.model.zero_grad()
        (log_probs.exp() + entropy).sum().backward()
        results.append([log_probs, entropy, *(weight.grad.clone() for weight in policy.parameters())])
    for whole, parts in zip(*results):
        torch.testing.assert_close(parts, whole, atol=1e-10, rtol=1e-10)


def test_gradient_checkpointing_changes_nothing_but_when_activations_are_computed():
    results = []
    for checkpointing in (False, True):
        policy = make("qwen2", dtype=torch.float64, gradient_checkpointing=checkpointing)
        calls = []
        policy.model.base_model.layers[0].mlp.register_forward_pre_hook(lambda *args, calls=calls: calls.append(1))
        log_probs, _ = policy.log_probs(sample(policy, max_new_tokens=8))
        before = len(calls)
        log_probs.exp().sum().backward()
        assert len(calls) - before == checkpointing, "the layer runs again in the backward pass, or does not"
        assert not policy.model.training
        results.append([weight.grad for weight in policy.parameters()])
    for plain, checkpointed in zip(*results):
        torch.testing.assert_close(checkpointed, plain, atol=1e-12, rtol=1e-9)


def test_same_generator_state_same_samples():
    policy = make()
    first, second, other = sample(policy), sample(policy), sample(policy, seed=1)
    assert torch.equal(first.tokens_NGT, second.tokens_NGT) and torch.equal(first.log_probs_NGT, second.log_probs_NGT)
    assert first.completions_NG == second.completions_NG != other.completions_NG


def test_dropping_ended_rows_changes_no_completion(monkeypatch):
    policy, batches, results = make(dtype=torch.float64), [], []
    policy.model.base_model.register_forward_pre_hook(
        lambda _, args, kwargs: batches.append(kwargs["input_ids"].shape[0]), with_kwargs=True
    )
    for dense in (module.DENSE, 0.0, 1.0):
        monkeypatch.setattr(module, "DENSE", dense)
        results.append(sample(policy, n=16, prompts=[*PROMPTS, "7,7="]))
    sizes = sorted(set(batches))
    assert 64 in sizes and sizes[1] < 32, f"expected the batch to shrink, got {sizes}"
    for other in results[1:]:
        assert torch.equal(other.tokens_NGT, results[0].tokens_NGT) and torch.equal(other.mask_NGT, results[0].mask_NGT)
        torch.testing.assert_close(other.log_probs_NGT, results[0].log_probs_NGT, atol=1e-6, rtol=0)


def test_frequencies_are_those_of_the_distribution():
    policy = make()
    samples = sample(policy, n=20_000, prompts=["4="], max_new_tokens=1, temperature=2.0)
    with torch.no_grad():
        expected = F.softmax(policy.model(samples.prompt_NP).logits[0, -1] / 2, dim=-1)
    found = torch.bincount(samples.tokens_NGT.flatten(), minlength=len(expected)) / 20_000
    assert ((found - expected).abs() < 5 * (expected * (1 - expected) / 20_000).sqrt() + 1e-9).all()


@pytest.mark.parametrize("fields", [{"top_k": 3}, {"top_p": 0.95}, {"top_k": 5, "top_p": 0.7, "temperature": 1.5}])
def test_log_probs_of_a_cut_distribution(fields):
    policy = make()
    samples = sample(policy, n=400, prompts=["4="], max_new_tokens=1, **fields)
    of_token = dict(zip(samples.tokens_NGT.flatten().tolist(), samples.log_probs_NGT.flatten().exp().tolist()))
    assert 1 < len(of_token) <= fields.get("top_k", 10) and sum(of_token.values()) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("kind, tied", KINDS)
def test_greedy_is_what_generate_gives(kind, tied):
    policy, plain = make(kind, tied), make_model(kind, tied)
    samples = sample(policy, n=2, top_k=1)
    ids = {"input_ids": samples.prompt_NP, "attention_mask": samples.prompt_mask_NP.long()}
    theirs = plain.generate(**ids, max_new_tokens=24, do_sample=False)[:, samples.prompt_NP.shape[1] :]
    assert torch.equal(samples.tokens_NGT[:, 0], samples.tokens_NGT[:, 1])
    assert torch.equal(samples.tokens_NGT[:, 0].where(samples.mask_NGT[:, 0] > 0, PAD), theirs)


def test_completions_end_at_either_end_token_or_are_truncated():
    policy = make()
    samples, ends = sample(policy, n=40), set()
    for i in range(len(PROMPTS)):
        for g, text in enumerate(samples.completions_NG[i]):
            length = int(samples.mask_NGT[i, g].sum())
            ids = samples.tokens_NGT[i, g].tolist()
            assert text.n_tokens == length and not {EOS, END} & set(ids[: length - 1]) and set(ids[length:]) <= {PAD}
            assert text.truncated == (ids[length - 1] not in (EOS, END)) and (length == 24 or not text.truncated)
            ends.add(-1 if text.truncated else ids[length - 1])
            assert len(text) == sum(token > END for token in ids[:length])
    assert ends == {EOS, END, -1}, "expected all three ways to end"


def test_stop_texts_end_a_completion_and_are_cut_off():
    policy = make()
    free, stopped = sample(policy, n=40), sample(policy, n=40, stop=("a", "+2"))
    found = 0
    for before, after in zip(sum(free.completions_NG, []), sum(stopped.completions_NG, [])):
        cuts = [at for at in (before.find("a"), before.find("+2")) if at >= 0]
        assert after == (before[: min(cuts)] if cuts else before)
        assert after.truncated == (not cuts and before.truncated)
        assert after.n_tokens <= before.n_tokens
        found += bool(cuts)
    assert found > 20
    assert stopped.mask_NGT.sum() == sum(text.n_tokens for text in sum(stopped.completions_NG, []))


def test_no_grad_is_kept_by_sampling_and_weights_stay():
    policy = make()
    before = copy.deepcopy(policy.state_dict())
    samples = sample(policy)
    assert not samples.log_probs_NGT.requires_grad and policy.log_probs(samples)[0].requires_grad
    assert all(torch.equal(weight, before[name]) for name, weight in policy.state_dict().items())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_stays_near(dtype):
    policy = make("qwen2", dtype=dtype)
    samples = sample(policy)
    log_probs, _ = policy.log_probs(samples)
    assert log_probs.dtype == torch.float32
    assert (log_probs - samples.log_probs_NGT).abs().max() < 0.5 and (log_probs - samples.log_probs_NGT).abs().mean() < 0.05
