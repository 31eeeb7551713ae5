"""Attention over groups in transformers' decoders: a prompt is computed, kept and read once for all completions of its group.

The models' own weights and code run unchanged. Only the function between queries, keys and values is ours, registered with
transformers' ``AttentionInterface``; everything else in a decoder treats tokens one by one, so it may see them in any layout:

* :class:`PackedGroups` scores. All prompts and all completions form one row of L tokens without any padding, each prompt once.
* :class:`Decoding` samples. One token of each completion at a time, against the keys of its prompt and its own before it.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

NAME = "setpo_groups"


def register() -> None:
    """Make the attention known to transformers under ``NAME``. Without a layout it is transformers' ``sdpa``."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import sdpa_mask

    def group_attention(
        module: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        *,
        scaling: float | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, None]:
        layout: PackedGroups | Decoding | None = kwargs.pop("group_layout", None)
        if layout is None:
            return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **kwargs)
        if unknown := sorted(name for name in ("sliding_window", "softcap", "s_aux", "position_bias") if kwargs.get(name) is not None):
            raise ValueError(f"expected full softmax attention as in Llama or Qwen2, got a layer with {', '.join(unknown)}")
        return layout.attend(module.layer_idx, query, key, value, query.shape[-1] ** -0.5 if scaling is None else scaling), None

    AttentionInterface.register(NAME, group_attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)


class PackedGroups:
    """One row of tokens: N prompts, then the inputs of their N*G completions, which are all their tokens but the last.

    Attributes:
        ids_1L: (1, L) int64 input tokens.
        positions_1L: (1, L) int64, counted from the first token of each prompt.
        scored_S: (S,) int64, where in the row the hidden state is that predicts each of the S sampled tokens, in the order of
            ``tokens_NGT[mask_NGT > 0]``.
        last_N: (N,) int64, where each prompt ends.
        lengths_N: (N,) int64, tokens of each prompt.
        prefix: keys and values of the prompts by layer, each (N, H_kv, P, d), padded on the right; kept with ``keep``.
    """

    def __init__(
        self,
        prompt_NP: Tensor,
        prompt_mask_NP: Tensor | None,
        tokens_NGT: Tensor | None = None,
        mask_NGT: Tensor | None = None,
        *,
        keep: bool = False,
    ) -> None:
        mask_NP = torch.ones_like(prompt_NP, dtype=torch.bool) if prompt_mask_NP is None else prompt_mask_NP.bool()
        self.lengths_N = mask_NP.sum(1)
        self.N, self.P, self.keep, self.prefix = len(prompt_NP), int(self.lengths_N.max()), keep, {}  # type: ignore[var-annotated]
        ids, positions = prompt_NP[mask_NP], (mask_NP.cumsum(1) - 1)[mask_NP]
        self.n_prompt = len(ids)
        self.last_N = self.lengths_N.cumsum(0) - 1
        # slots in the padded form that attention takes, by token of the row; None where nothing is padded
        self.prompt_slots = _slots(mask_NP.nonzero()[:, 0] * self.P + positions, self.N * self.P)
        self.T = 0
        if tokens_NGT is not None and mask_NGT is not None:
            sampled_NGT = mask_NGT > 0
            if (sampled_NGT[..., 1:] & ~sampled_NGT[..., :-1]).any():
                raise ValueError("expected mask_NGT to be 1 on the first tokens of each completion and 0 on its padding, got a gap")
            self.G, self.T = tokens_NGT.shape[1], max(int(sampled_NGT.sum(-1).max()) - 1, 0)
            inputs_NGT = sampled_NGT[..., 1 : self.T + 1]
            steps_NGT = (self.lengths_N[:, None, None] + torch.arange(self.T, device=ids.device)).expand(inputs_NGT.shape)
            ids = torch.cat([ids, tokens_NGT[..., : self.T][inputs_NGT]])
            positions = torch.cat([positions, steps_NGT[inputs_NGT]])
            where_NGT = torch.zeros_like(tokens_NGT)
            where_NGT[..., 0] = self.last_N[:, None]
            where_NGT[..., 1 : self.T + 1][inputs_NGT] = torch.arange(self.n_prompt, len(ids), device=ids.device)
            self.scored_S = where_NGT[sampled_NGT]
            self.own_slots = _slots(inputs_NGT.reshape(-1).nonzero()[:, 0], inputs_NGT.numel())
        self.ids_1L, self.positions_1L = ids[None], positions[None]
        self._visible: dict[int, Tensor] = {}

    def visible(self, repeats: int) -> Tensor:
        """(N*G or 1, 1, repeats*T, P+T) bool: which keys each completion token may look at, for ``repeats`` heads a key."""
        if repeats not in self._visible:
            device = self.lengths_N.device
            own_TT = torch.ones(self.T, self.T, dtype=torch.bool, device=device).tril()
            prompt_N1P = (torch.arange(self.P, device=device) < self.lengths_N[:, None])[:, None]
            if self.prompt_slots is None:
                prompt_N1P = prompt_N1P[:1]
            rows = len(prompt_N1P)
            visible = torch.cat([prompt_N1P.expand(rows, self.T, self.P), own_TT.expand(rows, self.T, self.T)], dim=-1)
            visible = visible.repeat(1, repeats, 1)[:, None]
            self._visible[repeats] = visible if rows == 1 else visible.repeat_interleave(self.G, dim=0)
        return self._visible[repeats]

    def attend(self, layer: int, q_1HLd: Tensor, k_1hLd: Tensor, v_1hLd: Tensor, scaling: float) -> Tensor:
        """(1, L, H, d): every prompt to itself, every completion to its prompt and itself, causally."""
        (_, H, _, d), h = q_1HLd.shape, k_1hLd.shape[1]
        rows = [x[0].transpose(0, 1) for x in (q_1HLd, k_1hLd, v_1hLd)]  # (L, heads, d)
        q, k, v = (_pad(x[: self.n_prompt], self.prompt_slots, self.N, self.P) for x in rows)
        if self.keep:
            self.prefix[layer] = k, v
        # padded on the right, so that causality alone hides the padding
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scaling, enable_gqa=H != h)
        out = _unpad(attended, self.prompt_slots)
        if self.T:
            N, G, T, repeats = self.N, self.G, self.T, H // h
            own_q, *own = (_pad(x[self.n_prompt :], self.own_slots, N * G, T) for x in rows)
            keys, values = (
                torch.cat([shared[:, None].expand(N, G, h, self.P, d), x.view(N, G, h, T, d)], dim=3).view(N * G, h, self.P + T, d)
                for shared, x in zip((k, v), own)
            )
            # heads that share a key are queries of it, so that no key is repeated
            own_q = own_q.reshape(N * G, h, repeats * T, d)
            attended = F.scaled_dot_product_attention(own_q, keys, values, attn_mask=self.visible(repeats), scale=scaling)
            out = torch.cat([out, _unpad(attended.reshape(N * G, H, T, d), self.own_slots)])
        return out[None]


class Decoding:
    """The keys and values of a batch that is being sampled: each prompt's once, and each completion's own.

    The batch has N x G rows, by prompt. Rows may be dropped as completions end (:meth:`keep`).
    """

    def __init__(self, packed: PackedGroups, n: int) -> None:
        self.prefix: dict[int, tuple[Tensor, Tensor]] = packed.prefix
        self.N, self.G, self.lengths_N = packed.N, n, packed.lengths_N
        self.hidden_N1P = self._hidden(packed.P) if packed.prompt_slots is not None else None
        self.own: dict[int, tuple[Tensor, Tensor]] = {}
        self.t = -1

    def _hidden(self, P: int) -> Tensor:
        return torch.arange(P, device=self.lengths_N.device)[None, None] >= self.lengths_N[:, None, None]

    def step(self) -> Tensor:
        """Go on to the next token; returns its positions (N*G, 1)."""
        self.t += 1
        return (self.lengths_N + self.t).repeat_interleave(self.G)[:, None]

    def keep(self, prompts: Tensor, rows: Tensor, n: int) -> None:
        """Drop all but the prompts of these numbers, and all but these rows, of which each has ``n``, in order."""
        self.prefix = {layer: (k[prompts], v[prompts]) for layer, (k, v) in self.prefix.items()}
        # what is not written yet is not copied
        self.own = {layer: (k[:, :, : self.t + 1][rows], v[:, :, : self.t + 1][rows]) for layer, (k, v) in self.own.items()}
        self.lengths_N, self.N, self.G = self.lengths_N[prompts], len(prompts), n
        if self.hidden_N1P is not None:
            self.hidden_N1P = self.hidden_N1P[prompts]

    def _append(self, layer: int, k_Bh1d: Tensor, v_Bh1d: Tensor) -> tuple[Tensor, Tensor]:
        """This layer's own keys and values with these, (B, H_kv, t+1, d); the room for them doubles as it fills."""
        pair = self.own.get(layer)
        if pair is None or self.t >= pair[0].shape[2]:
            B, h, _, d = k_Bh1d.shape
            room = k_Bh1d.new_empty(2, B, h, max(16, 2 * self.t), d)
            if pair is not None:
                room[0, :, :, : self.t], room[1, :, :, : self.t] = pair
            pair = self.own[layer] = room[0], room[1]
        pair[0][:, :, self.t : self.t + 1], pair[1][:, :, self.t : self.t + 1] = k_Bh1d, v_Bh1d
        return pair[0][:, :, : self.t + 1], pair[1][:, :, : self.t + 1]

    def attend(self, layer: int, q_BH1d: Tensor, k_Bh1d: Tensor, v_Bh1d: Tensor, scaling: float) -> Tensor:
        """(B, 1, H, d): the new token of every row to its prompt, to the tokens sampled before it and to itself."""
        (B, H, _, d), h, N, G = q_BH1d.shape, k_Bh1d.shape[1], self.N, self.G
        repeats, (keys, values), (own_keys, own_values) = H // h, self.prefix[layer], self._append(layer, k_Bh1d, v_Bh1d)
        q = q_BH1d.view(B, h, repeats, d) * scaling
        # all queries of a group, one matrix product against the keys that they share
        grouped = q.view(N, G, h, repeats, d).transpose(1, 2).reshape(N, h, G * repeats, d)
        to_prompt = grouped @ keys.transpose(2, 3)
        if self.hidden_N1P is not None:
            to_prompt = to_prompt.masked_fill(self.hidden_N1P[:, None], -math.inf)
        P = keys.shape[2]
        to_prompt = to_prompt.view(N, h, G, repeats, P).transpose(1, 2).reshape(B, h, repeats, P)
        scores = torch.cat([to_prompt, q @ own_keys.transpose(2, 3)], dim=-1)
        weights = scores.float().softmax(-1).to(q.dtype) if q.dtype in (torch.bfloat16, torch.float16) else scores.softmax(-1)
        shared = weights[..., :P].reshape(N, G, h, repeats, P).transpose(1, 2).reshape(N, h, G * repeats, P) @ values
        out = shared.view(N, h, G, repeats, d).transpose(1, 2).reshape(B, h, repeats, d) + weights[..., P:] @ own_values
        return out.reshape(B, 1, H, d)


def _slots(slots: Tensor, size: int) -> Tensor | None:
    return None if len(slots) == size else slots


def _pad(x: Tensor, slots: Tensor | None, rows: int, width: int) -> Tensor:
    """(tokens, heads, d) -> (rows, heads, width, d), zeros where there is no token."""
    heads, d = x.shape[1:]
    if slots is not None:
        x = x.new_zeros(rows * width, heads, d).index_copy(0, slots, x)
    return x.reshape(rows, width, heads, d).transpose(1, 2)


def _unpad(x: Tensor, slots: Tensor | None) -> Tensor:
    """(rows, heads, width, d) -> (tokens, heads, d)."""
    x = x.transpose(1, 2).flatten(0, 1)
    return x if slots is None else x[slots]
