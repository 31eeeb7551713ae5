"""vLLM's engine as a sampler that takes the weights of the policy in training.

vLLM pins its own torch, so it lives in an environment of its own (docs/policies.md).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .base import Sampling
from .engine import Drawn, EngineSamples, engine_samples, seeds_of
from .text import Text
from .vllm_worker import EXTENSION


class VLLMPolicy:
    """Samples groups with vLLM's offline engine: one request a prompt, whose ``n`` completions share the prompt's keys and values.

    Log-probabilities are those of the sampling distribution (after temperature, top_k and top_p).

    Args:
        model: Hub name or folder of a transformers model with its tokenizer.
        chat, system_prompt: How prompts are put to the model, see :class:`setpo_agents.policies.text.Text`.
        max_new_tokens: Limit where ``Sampling`` names none.
        engine: Further arguments of ``vllm.LLM``, such as ``{"gpu_memory_utilization": 0.4, "enable_sleep_mode": True}``.

    Raises:
        ImportError: vLLM is not installed in this environment.
    """

    def __init__(
        self, model: str, *, chat: bool | None = None, system_prompt: str | None = None, max_new_tokens: int = 256, **engine: Any
    ) -> None:
        try:
            import vllm
        except ImportError as error:
            raise ImportError(f"VLLMPolicy needs vLLM in an environment of its own, see docs/policies.md: {error}") from error
        if max_new_tokens < 1:
            raise ValueError(f"expected max_new_tokens of at least 1, got {max_new_tokens}")
        self.max_new_tokens = max_new_tokens
        self.weight_version = 0
        self._asleep: set[str] = set()
        self._discarded = False
        fixed = {"logprobs_mode": "processed_logprobs", "worker_extension_cls": EXTENSION}
        if overridden := sorted(fixed.keys() & engine.keys()):
            raise ValueError(f"expected no engine argument {overridden[0]}: the policy depends on {fixed[overridden[0]]!r}")
        self.llm = vllm.LLM(model, **{"enable_prefix_caching": True, **engine, **fixed})
        tokenizer = self.llm.get_tokenizer()
        self.text = Text(tokenizer, [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id], chat, system_prompt)
        config = self.llm.llm_engine.vllm_config
        self.model, self.max_model_len = model, config.model_config.max_model_len
        # tensors reach a worker of another process only as lists
        self._same_process = not vllm.envs.VLLM_ENABLE_V1_MULTIPROCESSING and config.parallel_config.world_size == 1

    def generate(self, prompts: Sequence[str], n: int, sampling: Sampling, generator: torch.Generator) -> EngineSamples:
        """Sample ``n`` completions of every prompt; one seed a prompt comes from ``generator``.

        Raises:
            ValueError: A prompt without a token, or one that leaves no room for a completion.
            RuntimeError: The engine gave a completion up.
        """
        from vllm import SamplingParams

        if n < 1:
            raise ValueError(f"expected n of at least 1, got {n}")
        if self._discarded:
            raise RuntimeError("the engine slept at level 2, which discards the weights: call update_weights before generate")
        ids = [row[mask].tolist() for row, mask in zip(*self.text.encode(prompts))]
        if long := [i for i, row in enumerate(ids) if len(row) >= self.max_model_len]:
            raise ValueError(
                f"expected prompts of at most {self.max_model_len - 1} tokens, got {len(ids[long[0]])} in {prompts[long[0]]!r:.80}: "
                "raise max_model_len or shorten the prompts"
            )
        self.wake_up()
        params = [
            SamplingParams(
                n=n,
                seed=seed,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                top_k=sampling.top_k,
                max_tokens=sampling.max_new_tokens or self.max_new_tokens,
                stop=list(sampling.stop),
                logprobs=0,  # of the sampled token alone
            )
            for seed in seeds_of(generator, len(prompts))
        ]
        outputs = self.llm.generate([{"prompt_token_ids": each} for each in ids], params, use_tqdm=False)
        groups = [[_drawn(out) for out in sorted(output.outputs, key=lambda out: out.index)] for output in outputs]
        return engine_samples(ids, groups, self.weight_version)

    def update_weights(self, state: Mapping[str, Tensor]) -> None:
        """Sample from now on with these weights, named and shaped as in the transformers model's ``state_dict()``.

        With an engine in this process (``VLLM_ENABLE_V1_MULTIPROCESSING=0``, one worker) they are handed over in memory, otherwise in a
        temporary file. Cached prefixes are forgotten.

        Raises:
            ValueError: A weight is missing, unknown or of another shape; the engine then keeps those it has.
        """
        if "weights" in self._asleep:
            self.llm.wake_up(tags=["weights"])
            self._asleep.discard("weights")
        if self._same_process:
            replies = self.llm.collective_rpc("setpo_replace_weights", args=({name: tensor.detach() for name, tensor in state.items()},))
        else:
            with tempfile.TemporaryDirectory() as folder:
                path = save_weights(state, Path(folder) / "weights.safetensors")
                replies = self.llm.collective_rpc("setpo_replace_weights", args=(str(path),))
        check_replaced(replies)
        if not self.llm.reset_prefix_cache():
            raise RuntimeError("vLLM could not forget the prefixes of the old weights: completions are still under way")
        self._discarded = False
        self.weight_version += 1
        self.llm.update_weight_version(str(self.weight_version))

    def sleep(self, level: int = 1) -> None:
        """Free the accelerator for training: level 1 moves the weights to main memory, level 2 discards them. A CPU engine ignores it.

        Needs ``enable_sleep_mode=True``. ``update_weights`` and ``generate`` wake what they need.
        """
        self.llm.sleep(level=level)
        self._asleep, self._discarded = {"weights", "kv_cache"}, level == 2

    def wake_up(self) -> None:
        """Take back the memory that ``sleep`` freed."""
        if self._asleep:
            self.llm.wake_up(tags=sorted(self._asleep))
            self._asleep = set()

    def describe(self) -> dict[str, Any]:
        """What the completions depend on, for records."""
        form = {"chat": self.text.chat, "system_prompt": self.text.system_prompt}
        return {"policy": type(self).__name__, "model": self.model, **form, "max_new_tokens": self.max_new_tokens}


def save_weights(state: Mapping[str, Tensor], path: Path) -> Path:
    """Write weights as safetensors, each shared tensor once under its first name; the file is whole or absent."""
    from safetensors.torch import save_file

    kept, seen = {}, set()
    for name, tensor in state.items():
        where = tensor.data_ptr(), tensor.shape, tensor.stride()
        if where not in seen or not tensor.numel():
            kept[name] = tensor.detach().cpu().contiguous()
        seen.add(where)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    save_file(kept, partial)
    os.replace(partial, path)
    return path


def check_replaced(replies: Sequence[Sequence[str]]) -> None:
    """Raise ValueError where a worker answered ``setpo_replace_weights`` with problems."""
    problems = sorted({problem for worker in replies for problem in worker})
    if problems:
        more = f" and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise ValueError(f"expected the weights of the engine's model, but {'; '.join(problems[:5])}{more}. The engine keeps those it has.")


def _drawn(output: Any) -> Drawn:
    if output.finish_reason not in ("stop", "length"):
        raise RuntimeError(f"vLLM did not finish a completion: finish_reason {output.finish_reason!r}")
    log_probs = [step[token].logprob for step, token in zip(output.logprobs, output.token_ids, strict=True)]
    return Drawn(output.text, output.finish_reason, list(output.token_ids), log_probs)
