"""The tiny policy in plain torch against transformers' Llama and Qwen2 classes of the same size, one thread, one run.

    pip install "setpo-envs[train,bench]" && python benchmarks/tiny_policy.py

Both sample 32 groups of 16 completions with the log-probabilities of the sampled tokens, and then do the forward and
backward pass of one policy-gradient update on them. The transformers side uses the same sampling loop over its own
key-value cache (its ``generate`` is slower), and scores each completion together with its prompt, as trainers do.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable

import torch
from torch.nn import functional as F
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from setpo_agents.policies.base import Sampling
from setpo_agents.policies.tiny import TinyPolicy

N, G, REPEATS = 32, 16, 7
PROMPTS = ["1,2,5,7=15>"] * N


def median_ms(function: Callable[[], object]) -> float:
    """Median CPU milliseconds of a call, after one warm-up."""
    function()
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        function()
        times.append(1000 * (time.process_time() - start))
    return statistics.median(times)


def tiny(policy: TinyPolicy) -> tuple[float, float]:
    generator = torch.Generator().manual_seed(0)
    samples = policy.generate(PROMPTS, G, Sampling(), generator)

    def update() -> None:
        log_probs, _ = policy.log_probs(samples)
        policy.zero_grad()
        log_probs.mean().backward()

    return median_ms(lambda: policy.generate(PROMPTS, G, Sampling(), generator)), median_ms(update)


def peer(model: LlamaForCausalLM | Qwen2ForCausalLM, policy: TinyPolicy) -> tuple[float, float]:
    T = policy.config.max_new_tokens
    prompt_BP = policy.tokenizer.prompts(PROMPTS).repeat_interleave(G, dim=0)
    P = prompt_BP.shape[1]
    generator = torch.Generator().manual_seed(0)

    @torch.no_grad()
    def generate() -> torch.Tensor:
        tokens, cache, ids = [], None, prompt_BP
        for _ in range(T):
            out = model(input_ids=ids, past_key_values=cache, use_cache=True)
            cache, log_p = out.past_key_values, F.log_softmax(out.logits[:, -1], dim=-1)
            ids = torch.multinomial(log_p.exp(), 1, generator=generator)
            log_p.gather(1, ids)
            tokens.append(ids)
        return torch.cat([prompt_BP, *tokens], dim=1)

    sequences = generate()

    def update() -> None:
        log_p = F.log_softmax(model(input_ids=sequences[:, :-1]).logits[:, P - 1 :], dim=-1)
        model.zero_grad()
        log_p.gather(-1, sequences[:, P:, None]).mean().backward()

    return median_ms(generate), median_ms(update)


def main() -> None:
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", category=FutureWarning)  # the cache argument has two names across transformers releases
    policy = TinyPolicy()
    size = policy.config
    shape = {
        "vocab_size": policy.tokenizer.vocabulary_size,
        "hidden_size": size.d_model,
        "intermediate_size": 4 * size.d_model * 2 // 3,  # three matrices of a gated MLP hold what our two hold
        "num_hidden_layers": size.n_layers,
        "num_attention_heads": size.n_heads,
        "num_key_value_heads": size.n_heads,
        "max_position_embeddings": size.max_prompt + size.max_new_tokens,
    }
    models = {"transformers Llama": LlamaForCausalLM(LlamaConfig(**shape)), "transformers Qwen2": Qwen2ForCausalLM(Qwen2Config(**shape))}
    ours = tiny(policy)
    print(f"{N} prompts x {G} completions of {size.max_new_tokens} tokens; CPU ms, median of {REPEATS}, one thread")
    print(f"{'':22s} {'parameters':>10s} {'sample':>8s} {'ratio':>6s} {'update':>8s} {'ratio':>6s}")
    rows = {"plain torch (ours)": (policy, ours), **{name: (model, peer(model, policy)) for name, model in models.items()}}
    for name, (model, (sample, update)) in rows.items():
        parameters = sum(p.numel() for p in model.parameters())
        print(f"{name:22s} {parameters:10,d} {sample:8.1f} {sample / ours[0]:6.2f} {update:8.1f} {update / ours[1]:6.2f}")


if __name__ == "__main__":
    main()
