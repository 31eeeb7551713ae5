"""Mixed into vLLM's workers (``worker_extension_cls``): takes the weights of the policy in training, whole or not at all.

Runs in the process of the engine, which may be another environment than the trainer's: it needs vLLM and what comes with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

EXTENSION = f"{__name__}.WeightUpdates"
"""What ``--worker-extension-cls`` of vLLM's server is given."""


class WeightUpdates:
    """Methods that ``collective_rpc`` reaches by name. They return problems instead of raising: a server answers an exception with status
    500, which says nothing."""

    def setpo_replace_weights(self, source: str | Mapping[str, Tensor]) -> list[str]:
        """Sample with these weights from now on: a mapping, or the path of a safetensors file. Returns what is wrong with them.

        Names and shapes are those of the transformers model's ``state_dict()``. Nothing is changed where anything is wrong.
        """
        worker: Any = self
        if isinstance(source, str):
            from safetensors.torch import load_file

            try:
                source = load_file(source)
            except (OSError, ValueError) as error:
                return [f"{source} cannot be read by the engine: {error}"]
        config = worker.vllm_config.model_config.hf_config
        problems = misfits(source, config)
        if not problems:
            with torch.inference_mode():
                worker.reload_weights(weights_iterator=iter(source.items()))
                repack_tied_heads(worker.get_model(), config)
        return problems


def misfits(state: Mapping[str, Tensor], config: Any) -> list[str]:
    """In which names and shapes ``state`` is not that of the model of a transformers ``config``.

    vLLM only logs a weight that it does not get, and a piece of a fused one not even that.
    """
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    known = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    needed = {name for name, _ in model.named_parameters()}  # names a tied weight once
    given = {name: tuple(tensor.shape) for name, tensor in state.items()}
    problems = [f"{name} is missing" for name in sorted(needed - given.keys())]
    problems += [f"{name} is not a weight of {type(model).__name__}" for name in sorted(given.keys() - known.keys())]
    common = sorted(given.keys() & known.keys())
    problems += [f"{name} has the shape {given[name]} instead of {known[name]}" for name in common if given[name] != known[name]]
    head, embedding = (state.get(f"{name}.weight") for name in ("lm_head", "model.embed_tokens"))
    if "lm_head.weight" not in needed and head is not None and embedding is not None and not torch.equal(head, embedding):
        problems.append("lm_head.weight differs from model.embed_tokens.weight, to which this model ties it")
    return problems


def repack_tied_heads(model: torch.nn.Module, config: Any) -> None:
    """On CPUs, output heads multiply with a packed copy of their weight, which reloading renews only where the head is not tied.

    Without this they keep the old weights, and nothing says so (measured with vLLM 0.32.0).
    """
    from vllm.platforms import current_platform

    if not (current_platform.is_cpu() and config.get_text_config().tie_word_embeddings):
        return
    from vllm.model_executor.layers.utils import dispatch_cpu_unquantized_gemm
    from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead

    for module in model.modules():
        if isinstance(module, ParallelLMHead) and module.weight.numel():
            dispatch_cpu_unquantized_gemm(module, remove_weight=False)
