"""Sampling and scoring of the policies against transformers' own ``generate`` and forward pass: tokens a CPU second, one thread.

    pip install "setpo-envs[hf]" && python benchmarks/policy_generation.py

Three comparisons, each of two ways to do the same work on the same machine in turn:

* the tiny policy against ``generate`` of a Llama of its size, 16 prompts x 16 completions;
* ``TransformersPolicy.generate`` against ``generate(num_return_sequences=G)`` of the same model, prompts of 256 tokens;
* ``TransformersPolicy.log_probs`` with its gradient against a forward pass over padded rows, each with its prompt, of the same samples.

Ours return the log-probabilities of the sampled tokens; ``generate`` is measured without and with ``output_logits``, from which
they can be had. No completion of transformers' or of a long prompt ends before its limit, and the tiny policy computes all rows until
all have ended, so that both sides make the same number of tokens; in the third comparison lengths are uniform, as in training they differ.
"""

from __future__ import annotations

import argparse
import statistics
import string
import time
from collections.abc import Callable

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.nn import functional as F
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from setpo_agents.policies.base import Samples, Sampling
from setpo_agents.policies.tiny import TinyPolicy
from setpo_agents.policies.transformers import TransformersPolicy

REPEATS = 3


def in_turn(*functions: Callable[[], object]) -> list[float]:
    """Median CPU seconds of each function; they run in turn, after one warm-up each, so that a busy machine hits all alike."""
    times: list[list[float]] = [[] for _ in functions]
    for repeat in range(REPEATS + 1):
        for function, own in zip(functions, times):
            start = time.process_time()
            function()
            if repeat:
                own.append(time.process_time() - start)
    return [statistics.median(own) for own in times]


def report(title: str, tokens: int, seconds: dict[str, float]) -> None:
    first = next(iter(seconds.values()))
    print(title)
    for name, s in seconds.items():
        print(f"  {name:58s} {tokens / s:10,.0f} tokens/s   ours is {s / first:.2f} x")


def make_model(vocabulary: int, hidden: int, layers: int, heads: int, kv_heads: int, positions: int) -> LlamaForCausalLM:
    sizes = {"hidden_size": hidden, "intermediate_size": hidden * 8 // 3, "num_hidden_layers": layers}
    heads_ = {"num_attention_heads": heads, "num_key_value_heads": kv_heads}
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(vocab_size=vocabulary, max_position_embeddings=positions, pad_token_id=0, eos_token_id=None, **sizes, **heads_)
    )
    return model.eval()


def make_tokenizer(vocabulary: int) -> PreTrainedTokenizerFast:
    names = ["<pad>", "<eos>", *string.ascii_lowercase]
    tokens = {**{name: i for i, name in enumerate(names)}, **{f"<{i}>": i for i in range(len(names), vocabulary)}}
    tokenizer = Tokenizer(models.WordLevel(tokens, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")


def tiny_against_generate() -> None:
    policy, G = TinyPolicy(), 16
    policy.tokenizer.decode = lambda ids: ""  # type: ignore[assignment, method-assign]  # neither side makes texts
    size, prompts = policy.config, ["1,2,5,7=15>"] * 16
    model = make_model(policy.tokenizer.vocabulary_size, size.d_model, size.n_layers, size.n_heads, size.n_heads, 32)
    ids_BP = policy.tokenizer.prompts(prompts)
    T = size.max_new_tokens
    generator = torch.Generator().manual_seed(0)
    seconds = in_turn(
        lambda: policy.generate(prompts, G, Sampling(), generator),
        lambda: generate(model, ids_BP, G, T, logits=False),
        lambda: generate(model, ids_BP, G, T, logits=True),
    )
    names = "TinyPolicy.generate, log-probabilities included", "Llama.generate", "Llama.generate with logits and log-probabilities"
    report(f"batch {16 * G}, prompts of {ids_BP.shape[1]} tokens, {T} new, hidden {size.d_model}", 16 * G * T, dict(zip(names, seconds)))


def generate(model: LlamaForCausalLM, ids_NP: torch.Tensor, G: int, T: int, *, logits: bool) -> None:
    """Sample with transformers, each prompt repeated by it; with ``logits`` also what the sampled tokens' log-probabilities take."""
    out = model.generate(
        ids_NP,
        attention_mask=torch.ones_like(ids_NP),
        do_sample=True,
        top_k=0,
        num_return_sequences=G,
        max_new_tokens=T,
        return_dict_in_generate=True,
        output_logits=logits,
    )
    if logits:
        new = out.sequences[:, ids_NP.shape[1] :]
        for t, step in enumerate(out.logits):
            F.log_softmax(step, dim=-1).gather(1, new[:, t : t + 1])


def policy_against_generate(policy: TransformersPolicy, N: int, G: int, P: int, T: int) -> None:
    prompts = ["".join(string.ascii_lowercase[(i * 7 + j * j) % 26] for j in range(P)) for i in range(N)]
    ids_NP, _ = policy.text.encode(prompts)
    policy.text.end_ids = (policy.model.config.vocab_size,)  # no completion ends
    generator = torch.Generator().manual_seed(0)
    plain = make_model(*SHAPE)
    seconds = in_turn(
        lambda: policy.generate(prompts, G, Sampling(max_new_tokens=T), generator),
        lambda: generate(plain, ids_NP, G, T, logits=False),
        lambda: generate(plain, ids_NP, G, T, logits=True),
    )
    names = "TransformersPolicy.generate, log-probabilities included", "generate", "generate with logits and log-probabilities"
    report(f"{N} prompts of {P} tokens x {G} completions of {T}", N * G * T, dict(zip(names, seconds)))


def scoring(policy: TransformersPolicy, N: int, G: int, P: int, T: int) -> None:
    """Forward and backward pass over samples of uniform lengths."""
    random = torch.Generator().manual_seed(1)
    V = policy.model.config.vocab_size
    prompt_NP, tokens_NGT = (torch.randint(2, V, shape, generator=random) for shape in ((N, P), (N, G, T)))
    lengths_NG = torch.randint(1, T + 1, (N, G), generator=random)
    mask_NGT = (torch.arange(T) < lengths_NG[..., None]).float()
    samples = Samples([[""] * G] * N, prompt_NP, tokens_NGT, mask_NGT, torch.zeros_like(mask_NGT))
    plain = make_model(*SHAPE)

    def ours() -> None:
        log_probs, _ = policy.log_probs(samples)
        policy.model.zero_grad()
        log_probs.sum().backward()

    def padded() -> None:
        ids = torch.cat([prompt_NP.repeat_interleave(G, 0), tokens_NGT.flatten(0, 1)], dim=1)
        mask = torch.cat([torch.ones(N * G, P, dtype=torch.int64), mask_NGT.flatten(0, 1).long()], dim=1)
        logits = plain(input_ids=ids, attention_mask=mask, logits_to_keep=T + 1).logits[:, :-1]
        log_p = F.log_softmax(logits, dim=-1)
        entropy = -(log_p.exp() * log_p).sum(-1)  # as ours
        plain.zero_grad()
        (log_p.gather(-1, ids[:, P:, None])[..., 0] * mask[:, P:] + 0 * entropy.detach()).sum().backward()

    names = "TransformersPolicy.log_probs, forward and backward", "padded rows, forward and backward"
    report(f"{N} prompts of {P} tokens x {G} completions of 1 to {T}", int(mask_NGT.sum()), dict(zip(names, in_turn(ours, padded))))


SHAPE = 4096, 128, 4, 4, 2, 1024
"""Vocabulary, hidden size, layers, heads, heads of keys, positions."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=4, help="N of the comparisons with long prompts")
    parser.add_argument("--group-size", type=int, default=16, help="G of them")
    parser.add_argument("--new-tokens", type=int, default=64, help="T of them")
    args = parser.parse_args()
    torch.set_num_threads(1)
    tiny_against_generate()
    policy = TransformersPolicy(make_model(*SHAPE), make_tokenizer(SHAPE[0]), chat=False)
    sizes = args.prompts, args.group_size, 256, args.new_tokens
    policy_against_generate(policy, *sizes)
    scoring(policy, *sizes)


if __name__ == "__main__":
    main()
