"""The transformers policy: adapters, saving, prompts in a chat, and what is refused."""

import pytest
import torch
from tiny_transformers import ALPHABET, make_model, make_tokenizer

transformers = pytest.importorskip("transformers")

from setpo_agents.checkpoint import fingerprint  # noqa: E402
from setpo_agents.policies.base import Sampling  # noqa: E402
from setpo_agents.policies.transformers import TransformersPolicy  # noqa: E402

PROMPTS = ["1,2,5,7=15>", "3>"]
LORA = {"r": 2, "lora_alpha": 8, "lora_dropout": 0.5, "target_modules": "all-linear"}


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def make(kind="llama", tied=False, chat=False, **options):
    return TransformersPolicy(make_model(kind, tied), make_tokenizer(chat), **{"max_new_tokens": 12, **options})


def sample(policy, n=4, seed=0, prompts=PROMPTS, **fields):
    return policy.generate(prompts, n, Sampling(**fields), torch.Generator().manual_seed(seed))


def adapted(**options):
    """A policy whose adapters are not the identity any more."""
    pytest.importorskip("peft")
    policy = make(lora=LORA, **options)
    with torch.no_grad():
        for i, weight in enumerate(policy.parameters()):
            weight.copy_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(i)) * 0.15)
    return policy


@pytest.mark.parametrize("tied", [False, True])
def test_without_its_adapters_a_policy_is_its_base(tied):
    policy, base = adapted(tied=tied), make(tied=tied)
    samples = sample(policy)
    expected, _ = base.log_probs(samples)
    ours, _ = policy.log_probs(samples)
    torch.testing.assert_close(ours, samples.log_probs_NGT, atol=2e-5, rtol=0)
    assert (ours - expected).abs().max() > 0.1
    with policy.reference() as reference, torch.no_grad():
        torch.testing.assert_close(reference.log_probs(samples)[0], expected, atol=1e-6, rtol=0)
    again, _ = policy.log_probs(samples)
    assert torch.equal(again, ours)
    again.sum().backward()
    trained = list(policy.parameters())
    assert all(weight.grad is not None and weight.grad.abs().max() > 0 for weight in trained)
    assert policy.describe()["trained"] == sum(weight.numel() for weight in trained) < policy.describe()["parameters"] / 2
    assert all(weight.grad is None for name, weight in policy.model.named_parameters() if "lora_" not in name)


def test_new_adapters_change_nothing_and_come_from_the_seed():
    pytest.importorskip("peft")
    state = torch.random.get_rng_state()
    first, same, other = (make(lora=LORA, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), state)
    samples = sample(first)
    torch.testing.assert_close(make().log_probs(samples)[0], first.log_probs(samples)[0], atol=1e-6, rtol=0)
    assert fingerprint(first.state_dict()) == fingerprint(same.state_dict()) != fingerprint(other.state_dict())


def test_adapters_load_into_their_own_base_alone():
    policy, fresh = adapted(), make(lora=LORA)
    samples, state = sample(policy), policy.state_dict()
    assert sum(weight.numel() for weight in state.values()) < policy.describe()["parameters"] / 2
    fresh.load_state_dict(state)
    assert torch.equal(fresh.log_probs(samples)[0], policy.log_probs(samples)[0])
    assert fingerprint(fresh.state_dict()) == fingerprint(state)
    another = TransformersPolicy(make_model(seed=1), make_tokenizer(), lora=LORA)
    with pytest.raises(ValueError, match="adapters of this model"):
        another.load_state_dict(state)
    with pytest.raises(ValueError, match="with lora"):
        with make().reference():
            pass


@pytest.mark.parametrize("kind, tied", [("llama", True), ("qwen2", False)])
def test_saved_policy_reloads_to_identical_log_probs(kind, tied, tmp_path):
    policy = make(kind, tied)
    samples = sample(policy)
    policy.save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").exists()
    again = TransformersPolicy.from_pretrained(tmp_path, max_new_tokens=12)
    assert torch.equal(again.log_probs(samples)[0], policy.log_probs(samples)[0])
    assert sample(again).completions_NG == samples.completions_NG
    assert fingerprint(again.state_dict()) == fingerprint(policy.state_dict())
    assert again.text.end_ids == policy.text.end_ids and again.describe() == policy.describe()
    with torch.no_grad():
        next(again.parameters()).add_(1)
    again.load_state_dict(policy.state_dict())
    assert torch.equal(again.log_probs(samples)[0], policy.log_probs(samples)[0])


@pytest.mark.parametrize("tied", [False, True])
def test_merged_adapters_are_a_plain_model(tied, tmp_path):
    policy = adapted(tied=tied)
    samples, before = sample(policy), policy.state_dict()
    policy.save_pretrained(tmp_path)
    plain = make(tied=tied)
    for merged in (policy.merged_state_dict(), TransformersPolicy.from_pretrained(tmp_path).state_dict()):
        assert merged.keys() == plain.state_dict().keys()
        plain.load_state_dict(merged)
        torch.testing.assert_close(plain.log_probs(samples)[0], policy.log_probs(samples)[0], atol=5e-5, rtol=0)
    assert fingerprint(policy.state_dict()) == fingerprint(before)


def test_bfloat16_weights_have_float32_adapters_and_a_fingerprint(tmp_path):
    pytest.importorskip("peft")
    make().save_pretrained(tmp_path)
    policy = TransformersPolicy.from_pretrained(tmp_path, dtype="bfloat16", lora=LORA, max_new_tokens=4)
    assert policy.describe()["dtype"] == "bfloat16" and {weight.dtype for weight in policy.parameters()} == {torch.float32}
    policy.log_probs(sample(policy))[0].sum().backward()
    assert len(fingerprint(policy.model.state_dict())) == 16
    with pytest.raises(ValueError, match="floating-point dtype"):
        TransformersPolicy.from_pretrained(tmp_path, dtype="int8")


def test_prompts_go_through_the_chat_template():
    policy = make(chat=True)
    as_text = policy.text.tokenizer.decode(policy.text.encode(["1+2="])[0][0].tolist())
    assert as_text == "a=1+2=,>"
    ids, mask = make(chat=True, system_prompt="abc").text.encode(["1+2=", "4="])
    assert policy.text.tokenizer.decode(ids[0].tolist()) == "s=abc,a=1+2=,>".replace("s", "<pad>")
    assert mask.sum(1).tolist() == [14, 12] and mask[1, 2:].all()
    plain = make(chat=True)
    plain.text.chat = False
    assert plain.text.encode(["1+2="])[0].tolist() == [[ALPHABET.index(c) + 3 for c in "1+2="]]
    assert make().text.chat is False


@pytest.mark.parametrize(
    "options, problem",
    [
        ({"chat": True}, "chat template"),
        ({"system_prompt": "be brief"}, "expected a chat"),
        ({"max_new_tokens": 0}, "max_new_tokens"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, problem):
    with pytest.raises(ValueError, match=problem):
        TransformersPolicy(make_model(), make_tokenizer(), **options)


def test_a_model_without_an_end_token_is_refused():
    tokenizer, model = make_tokenizer(), make_model(eos_token_id=None)
    tokenizer.eos_token = None
    with pytest.raises(ValueError, match="no completion would end"):
        TransformersPolicy(model, tokenizer)


def test_prompts_that_do_not_fit_are_refused():
    policy = make()
    with pytest.raises(ValueError, match=r"128 positions, got 120 \+ 12 tokens"):
        sample(policy, prompts=["1" * 120])
    with pytest.raises(ValueError, match="at least one token in every prompt"):
        sample(policy, prompts=["1", ""])
    with pytest.raises(ValueError, match="at least one prompt"):
        sample(policy, prompts=[])


def refused():
    """Models whose attention or logits this policy would get wrong."""
    small = {"vocab_size": 31, "hidden_size": 32, "eos_token_id": 1, "pad_token_id": 0, "bos_token_id": None}
    layers = {"intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    return {
        "sliding window": lambda: make_model("mistral", sliding_window=16),
        "sliding layers": lambda: make_model("qwen2", use_sliding_window=True, sliding_window=16, max_window_layers=1),
        "capped attention and logits": lambda: transformers.Gemma2ForCausalLM(transformers.Gemma2Config(**small, **layers, head_dim=8)),
        "scaled logits": lambda: transformers.GraniteForCausalLM(transformers.GraniteConfig(**small, **layers, logits_scaling=3.0)),
        "no rotary positions": lambda: transformers.BloomForCausalLM(transformers.BloomConfig(**small, n_layer=2, n_head=4)),
        "recurrent": lambda: transformers.MambaForCausalLM(transformers.MambaConfig(**small, num_hidden_layers=2, state_size=4)),
    }


@pytest.mark.parametrize("name", sorted(refused()))
def test_other_architectures_are_refused(name):
    with pytest.raises(ValueError, match="full attention"):
        TransformersPolicy(refused()[name](), make_tokenizer())


def test_an_unbounded_mistral_is_accepted():
    policy = TransformersPolicy(make_model("mistral", sliding_window=None), make_tokenizer(), max_new_tokens=6)
    samples = sample(policy)
    torch.testing.assert_close(policy.log_probs(samples)[0], samples.log_probs_NGT, atol=1e-5, rtol=0)
