"""A from-scratch character-level decoder that learns Countdown on one CPU core in minutes.

Plain torch rather than transformers' Llama or Qwen2 classes because it measures faster at this size
(``benchmarks/tiny_policy.py`` prints the ratios): the prompt is run once per group instead of once per completion,
in sampling and in training alike, and no framework layer stands between a dozen 64-wide matrix products.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from setpo_envs import Completion

from .base import Samples, Sampling
from .sampling import sampling_log_probs

PAD, EOS = 0, 1


@dataclass(frozen=True)
class TinyConfig:
    """Size of the decoder. ``alphabet`` holds every character of prompts and answers."""

    alphabet: str = "0123456789+-*/()=,>"
    d_model: int = 64
    n_layers: int = 3
    n_heads: int = 4
    max_prompt: int = 12
    """Prompt positions; shorter prompts are padded on the left with an ordinary token, so positions never move."""
    max_new_tokens: int = 13
    """Completion positions, the end token included."""


class Tokenizer:
    """One token a character, after the padding and the end token."""

    def __init__(self, config: TinyConfig) -> None:
        self.config = config
        self.index = {character: i + 2 for i, character in enumerate(config.alphabet)}
        self.vocabulary_size = len(self.index) + 2

    def encode(self, text: str, width: int) -> list[int]:
        """Token ids of ``text``; raises ValueError for a foreign character or more than ``width`` characters."""
        unknown = sorted(set(text) - self.index.keys())
        if unknown or len(text) > width:
            problem = f"characters {unknown} outside the alphabet" if unknown else f"{len(text)} characters, more than {width}"
            raise ValueError(
                f"the tiny policy cannot read {text[:80]!r}: {problem}. It is meant for the terse prompt format "
                "(prompt_format='terse'); widen TinyConfig's alphabet, max_prompt or max_new_tokens, or use another policy."
            )
        return [self.index[character] for character in text]

    def prompts(self, prompts: Sequence[str]) -> Tensor:
        """(N, P) int64, padded on the left."""
        width = self.config.max_prompt
        return torch.tensor([[PAD] * (width - len(prompt)) + self.encode(prompt, width) for prompt in prompts])

    def completions(self, texts: Sequence[str]) -> Tensor:
        """(B, max_new_tokens) int64, ended by EOS and padded on the right."""
        width = self.config.max_new_tokens
        return torch.tensor([[*self.encode(text, width - 1), EOS] + [PAD] * (width - 1 - len(text)) for text in texts])

    def decode(self, ids: Sequence[int]) -> Completion:
        """Text up to the end token, which counts as a token; flagged as truncated where there is none."""
        ids = list(ids)
        ended = EOS in ids
        body = ids[: ids.index(EOS)] if ended else ids
        text = "".join(self.config.alphabet[i - 2] if i > 1 else " " for i in body)
        return Completion(text, truncated=not ended, n_tokens=len(body) + ended)


class Block(nn.Module):
    """Pre-norm attention and MLP over positions that may also look at a prefix's keys and values."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.up, self.down = nn.Linear(d_model, 4 * d_model), nn.Linear(4 * d_model, d_model)

    def heads(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, each (B, H, T, d_head)."""
        B, T, D = x_BTD.shape
        q, k, v = self.qkv(self.norm1(x_BTD)).view(B, T, 3, self.n_heads, D // self.n_heads).permute(2, 0, 3, 1, 4)
        return q, k, v

    def finish(self, x_BTD: Tensor, attended_BHTd: Tensor) -> Tensor:
        x = x_BTD + self.out(attended_BHTd.transpose(1, 2).reshape(x_BTD.shape))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class TinyPolicy(nn.Module):
    """The decoder with its tokenizer; implements :class:`setpo_agents.policies.base.Policy`."""

    def __init__(self, config: TinyConfig | None = None, *, seed: int = 0) -> None:
        super().__init__()
        self.config = config or TinyConfig()
        self.tokenizer = Tokenizer(self.config)
        d, vocabulary = self.config.d_model, self.tokenizer.vocabulary_size
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embed = nn.Embedding(vocabulary, d)
            self.position = nn.Embedding(self.config.max_prompt + self.config.max_new_tokens, d)
            self.blocks = nn.ModuleList(Block(d, self.config.n_heads) for _ in range(self.config.n_layers))
            self.norm = nn.LayerNorm(d)
            self.head = nn.Linear(d, vocabulary, bias=False)
            for name, weight in self.named_parameters():
                if weight.ndim == 2:
                    residual = name.endswith(("out.weight", "down.weight"))
                    nn.init.normal_(weight, std=0.02 / math.sqrt(2 * self.config.n_layers) if residual else 0.02)

    @property
    def layers(self) -> list[Block]:
        return cast(list[Block], list(self.blocks))

    def forward(self, prompt_NP: Tensor, tokens_NGT: Tensor) -> Tensor:
        """Logits (N, G, T, V) for every completion token; each prompt is computed once for its whole group."""
        N, G, T = tokens_NGT.shape
        x, prefix = self._prefill(prompt_NP)
        last = x[:, None, -1:].expand(N, G, 1, -1)
        if T > 1:
            P = self.config.max_prompt
            y = (self.embed(tokens_NGT[..., :-1]) + self.position.weight[P : P + T - 1]).reshape(N * G, T - 1, -1)
            # queries see the whole prompt and, among completions, no later position
            visible = torch.ones(T - 1, P + T - 1, dtype=torch.bool).tril(P)
            for block, (key, value) in zip(self.layers, prefix):
                q, k, v = block.heads(y)
                k, v = (torch.cat([repeat(shared, G), own], dim=2) for shared, own in ((key, k), (value, v)))
                y = block.finish(y, attend(q, k, v, visible))
            last = torch.cat([last, y.view(N, G, T - 1, -1)], dim=2)
        return self.head(self.norm(last))

    def _prefill(self, prompt_NP: Tensor) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Hidden states (N, P, D) before the final norm, and every layer's keys and values (N, H, P, d_head)."""
        P = prompt_NP.shape[1]
        x = self.embed(prompt_NP) + self.position.weight[:P]
        causal = torch.ones(P, P, dtype=torch.bool).tril()
        prefix = []
        for block in self.layers:
            q, k, v = block.heads(x)
            prefix.append((k, v))
            x = block.finish(x, attend(q, k, v, causal))
        return x, prefix

    def log_probs(self, samples: Samples, *, temperature: float = 1.0) -> tuple[Tensor, Tensor]:
        """(log-probabilities, entropies in nats) of the sampled tokens, each (N, G, T); 0 on padding."""
        log_p = F.log_softmax(self(samples.prompt_NP, samples.tokens_NGT) / temperature, dim=-1)
        chosen = log_p.gather(-1, samples.tokens_NGT[..., None]).squeeze(-1)
        entropy = -(log_p.exp() * log_p).sum(-1)
        return chosen * samples.mask_NGT, entropy * samples.mask_NGT

    @torch.no_grad()
    def generate(self, prompts: Sequence[str], n: int, sampling: Sampling, generator: torch.Generator) -> Samples:
        """Sample ``n`` completions of every prompt with a key-value cache."""
        T = sampling.max_new_tokens or self.config.max_new_tokens
        if T > self.config.max_new_tokens or sampling.stop:
            raise ValueError(
                f"expected max_new_tokens of at most {self.config.max_new_tokens}, the positions that the tiny policy has, and no stop "
                f"texts, since it ends at its end token alone; got {sampling}"
            )
        prompt_NP = self.tokenizer.prompts(prompts)
        (N, P), H = prompt_NP.shape, self.config.n_heads
        x, prefix = self._prefill(prompt_NP)
        # one cache a layer, prompt first: (N*n, H, P+T, d_head)
        caches = []
        for key, value in prefix:
            pair = [torch.empty(N * n, H, P + T, key.shape[-1]) for _ in range(2)]
            for cache, shared in zip(pair, (key, value)):
                cache[:, :, :P] = repeat(shared, n)
            caches.append(pair)
        h = x[:, -1:].repeat_interleave(n, dim=0)
        tokens, log_probs, alive = [], [], torch.ones(N * n, dtype=torch.bool)
        for t in range(T):
            log_p = sampling_log_probs(self.head(self.norm(h[:, 0])), sampling)
            token = torch.multinomial(log_p.exp(), 1, generator=generator).squeeze(1)
            token = torch.where(alive, token, PAD)
            tokens.append(token)
            log_probs.append(torch.where(alive, log_p.gather(1, token[:, None]).squeeze(1), 0.0))
            alive = alive & (token != EOS)
            if t == T - 1 or not alive.any():
                break
            h = (self.embed(token) + self.position.weight[P + t])[:, None]
            for block, (keys, values) in zip(self.layers, caches):
                q, keys[:, :, P + t : P + t + 1], values[:, :, P + t : P + t + 1] = block.heads(h)
                h = block.finish(h, attend(q, keys[:, :, : P + t + 1], values[:, :, : P + t + 1]))
        ids = torch.stack(tokens, 1)
        # padding begins after the first end token; a sampled PAD before it is an ordinary (wrong) token
        ended_before = (ids == EOS).cumsum(1) - (ids == EOS).long() > 0
        texts = [self.tokenizer.decode(row) for row in ids.tolist()]
        return Samples(
            completions_NG=[texts[i * n : (i + 1) * n] for i in range(N)],
            prompt_NP=prompt_NP,
            tokens_NGT=ids.view(N, n, -1),
            mask_NGT=(~ended_before).float().view(N, n, -1),
            log_probs_NGT=torch.stack(log_probs, 1).view(N, n, -1),
        )

    def supervised(self, prompts: Sequence[str], texts_NG: Sequence[Sequence[str]]) -> Samples:
        """Given completions as :class:`Samples`, for a warm start by maximum likelihood."""
        tokens = torch.stack([self.tokenizer.completions(group) for group in texts_NG])
        tokens = tokens[..., : int((tokens != PAD).any(0).any(0).sum())]
        mask = (tokens != PAD).float()
        return Samples([list(group) for group in texts_NG], self.tokenizer.prompts(prompts), tokens, mask, torch.zeros_like(mask))

    def describe(self) -> dict[str, Any]:
        """Architecture and parameter count, for configs and logs."""
        return {**asdict(self.config), "parameters": sum(p.numel() for p in self.parameters())}


def repeat(shared_NHPd: Tensor, n: int) -> Tensor:
    """(N, H, P, d) -> (N*n, H, P, d): every member of a group sees its prompt's keys or values."""
    N, H, P, d = shared_NHPd.shape
    return shared_NHPd[:, None].expand(N, n, H, P, d).reshape(N * n, H, P, d)


def attend(q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None = None) -> Tensor:
    """Scaled dot-product attention; ``visible`` (T_query, T_key) is False where a query must not look."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
