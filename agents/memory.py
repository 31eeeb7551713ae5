"""How much memory training takes: estimated from a model's configuration, with nothing loaded, and as it was used."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass
from typing import Any

GIB = 1024**3
LOGIT_COPIES = 4
"""Arrays of a part's logits that are held at once: themselves, in float32, their softmax and its gradient."""


@dataclass(frozen=True)
class Size:
    """What an estimate needs to know of a decoder."""

    parameters: int
    trained: int
    """Parameters that have a gradient: all, or those of the adapters."""
    layers: int
    hidden: int
    intermediate: int
    kv_width: int
    """Numbers that the cache holds for one token and layer: 2 * key-value heads * head size."""
    vocabulary: int
    positions: int | None


def model_size(config: Any, lora: dict[str, Any] | None = None) -> Size:
    """The size of a transformers configuration, counted on a model without storage; LoRA's from its rank over all linear layers."""
    import torch
    from torch import nn
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    parameters = sum(weight.numel() for weight in model.parameters())
    trained = parameters
    if lora is not None:
        head = model.get_output_embeddings()
        names = lora.get("target_modules", ("q_proj", "v_proj"))
        linear = [(name, m) for name, m in model.named_modules() if isinstance(m, nn.Linear) and m is not head]
        fits = re.compile(names).fullmatch if isinstance(names, str) else lambda name: name.rpartition(".")[2] in names
        chosen = [m for name, m in linear if names == "all-linear" or fits(name)]
        trained = sum(lora.get("r", 8) * (m.in_features + m.out_features) for m in chosen)
    heads = config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    return Size(
        parameters=parameters,
        trained=trained,
        layers=config.num_hidden_layers,
        hidden=config.hidden_size,
        intermediate=config.intermediate_size,
        kv_width=2 * (getattr(config, "num_key_value_heads", None) or heads) * width,
        vocabulary=config.vocab_size,
        positions=getattr(config, "max_position_embeddings", None),
    )


def training_memory(
    size: Size,
    *,
    weight_bytes: int,
    activation_bytes: int,
    micro_tokens: int,
    cached_tokens: int,
    reference: bool,
    checkpointing: bool,
    logits: int,
) -> dict[str, float]:
    """GiB by purpose, on one device that holds all of it.

    Args:
        weight_bytes, activation_bytes: Bytes of a number in the weights, and in activations and the cache.
        micro_tokens: Tokens of a forward and backward pass.
        cached_tokens: Tokens in the key-value cache while sampling.
        reference: Whether a frozen copy of the weights is held.
        checkpointing: Whether activations are computed again in the backward pass.
        logits: Most logits that are held at once.

    Activations count, a token and layer, the inputs of every matrix product and what attention and the gate keep: about 8 hidden and
    3 intermediate widths; with checkpointing one hidden width a layer and one layer's activations.
    """
    adapters = size.trained < size.parameters
    trained_bytes = 4 if adapters else weight_bytes  # adapters are float32
    layer = (8 * size.hidden + 3 * size.intermediate) * activation_bytes
    kept = size.layers * size.hidden * activation_bytes + layer if checkpointing else size.layers * layer
    parts = {
        "weights": size.parameters * weight_bytes + (size.trained * trained_bytes if adapters else 0),
        "gradients": size.trained * trained_bytes,
        "AdamW": 2 * size.trained * trained_bytes,
        "reference": size.parameters * weight_bytes if reference and not adapters else 0,
        "activations": micro_tokens * kept,
        "logits": LOGIT_COPIES * 4 * min(logits, micro_tokens * size.vocabulary),
        "sampling cache": cached_tokens * size.layers * size.kv_width * activation_bytes,
    }
    return {name: amount / GIB for name, amount in parts.items()}


def peak(parts: dict[str, float]) -> float:
    """GiB at the busier of two times: sampling holds the cache, training the activations and gradients."""
    always = parts["weights"] + parts["AdamW"] + parts["reference"]
    return always + max(parts["sampling cache"], parts["gradients"] + parts["activations"] + parts["logits"])


def peak_memory_mib(device: Any) -> float:
    """Most memory so far: of the accelerator's tensors where ``device`` is one, or of this process; nan where that is not known."""
    if device.type == "cuda":
        import torch

        return torch.cuda.max_memory_allocated(device) / 2**20
    try:
        import resource
    except ImportError:  # not on Windows
        return math.nan
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def in_words(number: float) -> str:
    """1543714304 as 1.54 B."""
    for size, word in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.{max(0, 2 - int(math.log10(number / size)))}f} {word}"
    return str(int(number))
