"""Any Llama- or Qwen2-like decoder of Hugging Face transformers as a policy, with or without LoRA.

The prompt of a group is computed once, in sampling and in training alike, and training runs over packed tokens, without padding
(``group_attention.py``). That, and the log-probabilities of the sampled tokens, is what ``model.generate`` and a forward pass over
padded rows do not give; ``benchmarks/policy_generation.py`` prints the ratios.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from ..checkpoint import fingerprint
from . import group_attention
from .base import Samples, Sampling
from .group_attention import Decoding, PackedGroups
from .sampling import draw, sampling_log_probs
from .text import Text

LOGITS = 1 << 24
"""Most logits that are held at once in scoring: longer batches are scored in parts, whose logits are computed again for the gradient."""
DENSE = 0.75
"""Rows of completions that have ended are dropped from the batch once at most this share of it would be left."""


class TransformersPolicy:
    """A causal language model with its tokenizer; implements :class:`setpo_agents.policies.base.Policy`.

    Dropout is switched off: what samples and what is trained must be one distribution.

    Args:
        model: An ``AutoModelForCausalLM``. It is taken over: its attention function is replaced, its weights are trained.
        tokenizer: An ``AutoTokenizer``.
        chat, system_prompt: How prompts are put to the model, see :class:`setpo_agents.policies.text.Text`.
        max_new_tokens: Limit of a completion where ``Sampling`` names none; a policy's prompts and completions together must fit
            the model's positions.
        lora: Fields of ``peft.LoraConfig``: low-rank adapters (Hu et al. 2021, arXiv:2106.09685) are trained and all else is fixed.
        gradient_checkpointing: Compute activations again in the backward pass rather than hold them.
        seed: Of the adapters' first weights.

    Raises:
        ValueError: an architecture that this policy would not compute as transformers does, or options that do not fit.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        chat: bool | None = None,
        system_prompt: str | None = None,
        max_new_tokens: int = 256,
        lora: Mapping[str, Any] | None = None,
        gradient_checkpointing: bool = False,
        seed: int = 0,
    ) -> None:
        self.model, self.base_fingerprint = model, ""
        self.adapters: Any = None  # the model as peft wraps it
        Sampling(max_new_tokens=max_new_tokens)  # raises ValueError for what is not a limit
        self.limit = max_new_tokens
        self.text = Text(tokenizer, _end_ids(model, tokenizer), chat, system_prompt)
        if set(getattr(model.config, "layer_types", None) or ["full_attention"]) != {"full_attention"}:
            raise ValueError(f"expected full attention in every layer, as in Llama or Qwen2, got layers {set(model.config.layer_types)}")
        if lora is not None:
            self._add_adapters(lora, seed)
        for module in self.model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        self.gradient_checkpointing = gradient_checkpointing
        if gradient_checkpointing:
            _checkpoint_activations(self.model)
        self.model.eval()
        group_attention.register()
        self.model.set_attn_implementation(group_attention.NAME)
        self._check_architecture()

    @classmethod
    def from_pretrained(
        cls,
        name_or_path: str | Path,
        *,
        gguf_file: str | None = None,
        dtype: torch.dtype | str = torch.float32,
        device: torch.device | str = "cpu",
        **options: Any,
    ) -> TransformersPolicy:
        """The policy of a model on the Hugging Face hub or in a folder; code in the repository is never run.

        Args:
            gguf_file: Load this GGUF file of it, as float weights (needs the package ``gguf``).
            dtype: Of the weights, e.g. ``"bfloat16"``. Small updates are lost in bfloat16 weights: train those with ``lora``, whose
                adapters are float32, or in float32.
            options: Arguments of the class.
        """
        from transformers import AutoModelForCausalLM, AutoTokenizer

        dtype = getattr(torch, dtype, dtype) if isinstance(dtype, str) else dtype
        if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
            raise ValueError(f"expected a floating-point dtype such as 'float32' or 'bfloat16', got {dtype!r}")
        gguf = {} if gguf_file is None else {"gguf_file": gguf_file}
        tokenizer = AutoTokenizer.from_pretrained(name_or_path, **gguf)
        model: Any = AutoModelForCausalLM.from_pretrained(name_or_path, dtype=dtype, **gguf)
        if gguf:  # such a model counts as quantised, which its weights are no more, and could not be saved
            model = _plain_copy(model)
        return cls(model.to(device), tokenizer, **options)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write weights (safetensors), configuration and tokenizer in Hugging Face format; adapters are merged into the weights."""
        self._merged().save_pretrained(folder)
        self.text.tokenizer.save_pretrained(folder)

    def parameters(self) -> Iterator[nn.Parameter]:
        """What is trained: all weights, or the adapters'."""
        return (weight for weight in self.model.parameters() if weight.requires_grad)

    def state_dict(self) -> dict[str, Tensor]:
        """All weights by their name in the model; with adapters only theirs, and a hash of the weights that they belong to."""
        if self.adapters is None:
            return self.model.state_dict()
        from peft import get_peft_model_state_dict

        own = get_peft_model_state_dict(self.adapters, save_embedding_layers=False)
        return {**own, "base_fingerprint": torch.tensor(list(bytes.fromhex(self.base_fingerprint)), dtype=torch.uint8)}

    def load_state_dict(self, state_dict: Mapping[str, Tensor]) -> None:
        """Take the weights of :meth:`state_dict`. Raises ValueError for adapters of another model, RuntimeError for other names."""
        if self.adapters is None:
            self.model.load_state_dict(state_dict)
            return
        from peft import set_peft_model_state_dict

        expected = self.state_dict()
        if state_dict.keys() != expected.keys() or not torch.equal(state_dict["base_fingerprint"].cpu(), expected["base_fingerprint"]):
            raise ValueError("expected the weights of these adapters of this model, got others: load the model that they were trained on")
        own = {name: weight for name, weight in state_dict.items() if name != "base_fingerprint"}
        set_peft_model_state_dict(self.adapters, own)

    def merged_state_dict(self) -> dict[str, Tensor]:
        """All weights by their name in the model, adapters merged in: what :meth:`Sampler.update_weights` of an engine takes."""
        return self._merged().state_dict()

    @contextmanager
    def reference(self) -> Iterator[TransformersPolicy]:
        """This policy as it was before training, without a second model: adapters are off within the context."""
        if self.adapters is None:
            raise ValueError("expected a policy with lora: without adapters to switch off, the reference is a copy made before training")
        with self.adapters.disable_adapter():
            yield self

    def describe(self) -> dict[str, Any]:
        """Architecture and parameter counts, for configs and logs."""
        weights = list(self.model.parameters())
        return {
            "architecture": type(self.model).__name__,
            "dtype": str(self.model.dtype).removeprefix("torch."),
            "parameters": sum(weight.numel() for weight in weights),
            "trained": sum(weight.numel() for weight in weights if weight.requires_grad),
            "chat": self.text.chat,
            "system_prompt": self.text.system_prompt,
            "max_new_tokens": self.limit,
        }

    def log_probs(self, samples: Samples, *, temperature: float = 1.0) -> tuple[Tensor, Tensor]:
        """(log-probabilities, entropies in nats) of the sampled tokens, each (N, G, T); 0 on padding.

        float32, or float64 where the weights are. Memory grows with the tokens that are not padding; score slices of ``samples``
        to bound it.
        """
        device = self.model.device
        tokens_NGT, mask_NGT = samples.tokens_NGT.to(device), samples.mask_NGT.to(device)
        prompt_mask = None if samples.prompt_mask_NP is None else samples.prompt_mask_NP.to(device)
        packed = PackedGroups(samples.prompt_NP.to(device), prompt_mask, tokens_NGT, mask_NGT)
        if self.gradient_checkpointing:
            self.model.train(torch.is_grad_enabled())  # transformers checkpoints in training mode alone
        try:
            hidden_LD = self._hidden(packed.ids_1L, packed.positions_1L, packed)[0]
        finally:
            self.model.eval()
        sampled = mask_NGT > 0
        scores = self._score(hidden_LD[packed.scored_S], tokens_NGT[sampled], temperature)
        log_probs, entropies = (score.new_zeros(mask_NGT.shape).masked_scatter(sampled, score) for score in scores)
        return log_probs, entropies

    @torch.no_grad()
    def generate(self, prompts: Sequence[str], n: int, sampling: Sampling, generator: torch.Generator) -> Samples:
        """Sample ``n`` completions of every prompt; a completion depends on its own random numbers alone, one for each token."""
        prompt_NP, prompt_mask_NP = (x.to(self.model.device) for x in self.text.encode(prompts))
        T = sampling.max_new_tokens or self.limit
        room = getattr(self.model.config, "max_position_embeddings", None)
        if room is not None and prompt_NP.shape[1] + T > room:
            raise ValueError(
                f"expected prompt and completion to fit the model's {room} positions, got {prompt_NP.shape[1]} + {T} tokens: "
                "lower max_new_tokens or shorten the prompts"
            )
        tokens_BT, log_probs_BT, counts_B = self._sample(PackedGroups(prompt_NP, prompt_mask_NP, keep=True), n, T, sampling, generator)
        N, T = len(prompts), int(counts_B.max())
        mask_BT = torch.arange(T, device=counts_B.device) < counts_B[:, None]
        ids, counts = tokens_BT.tolist(), counts_B.tolist()
        completions = [self.text.decode(row[:count], sampling.stop) for row, count in zip(ids, counts)]
        return Samples(
            completions_NG=[completions[i * n : (i + 1) * n] for i in range(N)],
            prompt_NP=prompt_NP,
            tokens_NGT=tokens_BT[:, :T].reshape(N, n, T),
            mask_NGT=mask_BT.float().view(N, n, T),
            log_probs_NGT=log_probs_BT[:, :T].reshape(N, n, T),
            prompt_mask_NP=prompt_mask_NP,
        )

    def _sample(
        self, packed: PackedGroups, n: int, T: int, sampling: Sampling, generator: torch.Generator
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens (B, T), their log-probabilities (B, T) and their counts (B,), for B = N*n completions, by prompt."""
        device, B = self.model.device, packed.N * n
        tokens_BT = torch.full((B, T), self.text.pad_id, device=device)
        log_probs_BT = torch.zeros(B, T, device=device)
        counts_B = torch.zeros(B, dtype=torch.int64, device=device)
        end_ids = torch.tensor(self.text.end_ids, device=device)
        hidden_RD = self._hidden(packed.ids_1L, packed.positions_1L, packed)[0, packed.last_N]
        cache = Decoding(packed, n)
        # completions still in the batch, by slot of the cache (prompts x completions a prompt), and which of them go on
        rows, alive = torch.arange(B, device=device).view(-1, n), torch.ones(packed.N, n, dtype=torch.bool, device=device)
        for t in range(T):
            uniform_B = torch.rand(B, generator=generator, dtype=torch.float64, device=generator.device).to(device)
            log_p_RV = sampling_log_probs(_wide(self._logits(hidden_RD)), sampling)
            tokens = draw(log_p_RV, uniform_B[rows].view(len(log_p_RV), -1))
            log_p = log_p_RV.gather(1, tokens).view(rows.shape)
            tokens = tokens.view(rows.shape)
            going = rows[alive]
            tokens_BT[going, t], log_probs_BT[going, t] = tokens[alive], log_p[alive].float()
            counts_B[going] = t + 1
            alive = alive & ~torch.isin(tokens, end_ids)
            if sampling.stop:
                going = rows[alive]
                ended = [self.text.stopped(ids, sampling.stop) for ids in tokens_BT[going, : t + 1].tolist()]
                alive[alive.clone()] = ~torch.tensor(ended, dtype=torch.bool, device=device)
            left = alive.sum(1)
            most, prompts = int(left.max()), left.nonzero()[:, 0]
            if most == 0:
                break
            if len(prompts) * most <= DENSE * alive.numel():
                # completions that go on come first in their group; where it has fewer than the largest, ended ones fill it up
                order = alive[prompts].long().argsort(dim=1, descending=True, stable=True)[:, :most]
                slots = prompts[:, None] * alive.shape[1] + order
                cache.keep(prompts, slots.flatten(), most)
                rows, alive, tokens = (x.flatten()[slots] for x in (rows, alive, tokens))
            if t + 1 < T:
                hidden_RD = self._hidden(tokens.view(-1, 1), cache.step(), cache)[:, 0]
        return tokens_BT, log_probs_BT, counts_B

    def _hidden(self, ids: Tensor, positions: Tensor, layout: PackedGroups | Decoding) -> Tensor:
        """Final hidden states of input tokens, (B, L, D)."""
        # the layout attends: a mask of four dimensions keeps transformers from making one
        mask = ids.new_zeros(1, 1, 1, 1, dtype=torch.bool)
        decoder = self.model.base_model
        return decoder(input_ids=ids, position_ids=positions, attention_mask=mask, use_cache=False, group_layout=layout).last_hidden_state

    def _logits(self, hidden_SD: Tensor) -> Tensor:
        return self.model.get_output_embeddings()(hidden_SD)

    def _score(self, hidden_SD: Tensor, tokens_S: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
        """Log-probabilities and entropies (S,) of tokens, part by part, so that at most ``LOGITS`` logits are held."""
        size = max(1, LOGITS // self.model.config.vocab_size)

        def part(hidden_SD: Tensor, tokens_S: Tensor) -> tuple[Tensor, Tensor]:
            log_p_SV = F.log_softmax(_wide(self._logits(hidden_SD)) / temperature, dim=-1)
            return log_p_SV.gather(1, tokens_S[:, None])[:, 0], -(log_p_SV.exp() * log_p_SV).sum(-1)

        again: Callable[..., Any] = part
        if torch.is_grad_enabled() and len(tokens_S) > size:
            again = lambda *tensors: checkpoint(part, *tensors, use_reentrant=False)  # noqa: E731
        parts = [again(*pair) for pair in zip(hidden_SD.split(size), tokens_S.split(size))]
        log_probs, entropies = (torch.cat(column) for column in zip(*parts))
        return log_probs, entropies

    def _add_adapters(self, lora: Mapping[str, Any], seed: int) -> None:
        from peft import LoraConfig, get_peft_model

        self.base_fingerprint = fingerprint(self.model.state_dict())
        with torch.random.fork_rng(devices=[self.model.device] if self.model.device.type == "cuda" else []):
            torch.manual_seed(seed)
            self.adapters = get_peft_model(self.model, LoraConfig(task_type="CAUSAL_LM", **lora))

    def _merged(self) -> Any:
        """The model with its adapters merged into its weights; a copy where it has some, since merging rounds the weights."""
        return self.model if self.adapters is None else copy.deepcopy(self.adapters).merge_and_unload()

    @torch.no_grad()
    def _check_architecture(self) -> None:
        """Raise ValueError where packed scoring or decoding gives other logits than the model's own forward pass."""
        device = self.model.device
        ids_NT = torch.arange(12, device=device).view(2, 6) * 7 % self.model.config.vocab_size
        mask_NP = torch.tensor([[True] * 4, [False] + [True] * 3], device=device)
        problem = "its forward pass takes no layout"
        try:
            packed = PackedGroups(ids_NT[:, :4], mask_NP, ids_NT[:, None, 4:], torch.ones(2, 1, 2, device=device), keep=True)
            scored = self._logits(self._hidden(packed.ids_1L, packed.positions_1L, packed)[0, packed.scored_S]).view(2, 2, -1)
            if len(packed.prefix) == 0:
                raise ValueError("its attention does not go through transformers' AttentionInterface")
            cache = Decoding(packed, 1)
            decoded = self._logits(self._hidden(ids_NT[:, 4:5], cache.step(), cache)[:, 0])
            own = torch.cat([self.model(row[None]).logits[:, -3:-1] for row in (ids_NT[0], ids_NT[1, 1:])])
            if not all(_close(ours, theirs) for ours, theirs in ((scored, own), (decoded, own[:, 1]))):
                raise ValueError("its logits differ from those of its own forward pass")
        except (ValueError, TypeError, AttributeError, RuntimeError, KeyError) as error:
            problem = str(error)
        else:
            return
        raise ValueError(
            f"expected a decoder with full attention over rotary positions, as Llama or Qwen2, got {type(self.model).__name__}: {problem}. "
            "TransformersPolicy cannot sample or train it."
        )


def _wide(logits: Tensor) -> Tensor:
    """Logits as float32 at least: softmax over a vocabulary is not for 8 bits of precision."""
    return logits if logits.dtype == torch.float64 else logits.float()


def _close(ours: Tensor, theirs: Tensor) -> bool:
    """Whether logits agree to the rounding of their dtype, in the mean over them."""
    tolerance = 0.05 if ours.dtype in (torch.bfloat16, torch.float16) else 1e-3
    return bool((ours.float() - theirs.float()).norm() <= tolerance * theirs.float().norm())


def _checkpoint_activations(model: Any) -> None:
    """Non-reentrant activation checkpointing, whose method newer releases of transformers have renamed."""
    if hasattr(model, "activation_checkpointing_enable"):
        model.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": False})
    else:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})


def _end_ids(model: Any, tokenizer: Any) -> list[int]:
    """End tokens: of the generation config, which may name several, else the tokenizer's."""
    ids = getattr(model.generation_config, "eos_token_id", None)
    ids = tokenizer.eos_token_id if ids is None else ids
    return [] if ids is None else [int(i) for i in ([ids] if isinstance(ids, int) else ids)]


def _plain_copy(model: Any) -> Any:
    """The same weights in a model that does not count as quantised."""
    fields = {name: value for name, value in model.config.to_dict().items() if name != "quantization_config"}
    plain = type(model)(type(model.config)(**fields)).to(model.dtype)
    plain.load_state_dict(model.state_dict())
    plain.generation_config = model.generation_config
    return plain
