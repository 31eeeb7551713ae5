"""``setpo train --dry-run``: the plan of a training run, and what can be checked of it before an accelerator hour is spent.

Nothing is trained and no weights are loaded. A check is right, wrong, or could not be made (offline, say): only what is wrong fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import torch

import setpo_envs
from setpo_envs.checks import check_dataset, right_completion
from setpo_verifiers import Status, verify

from .advantages import BASE_ADVANTAGES
from .config import TrainConfig
from .losses import make_loss
from .memory import Size, in_words, model_size, peak, training_memory
from .objective import Objective
from .validation import metric_names

gym.register_envs(setpo_envs)

SAMPLE = 64
"""Problems whose gold, prompt and tokens are looked at."""
_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
_UNREACHABLE = (ConnectionError, ImportError, TimeoutError)


@dataclass(frozen=True)
class Finding:
    """One line of the report. ``state`` is "ok", "plan" (nothing to check), "not checked" or "wrong"."""

    state: str
    what: str
    text: str

    def __str__(self) -> str:
        return f"{self.state:12} {self.what:14} {self.text}"


def dry_run(config: TrainConfig, *, served: bool = False) -> Iterator[Finding]:
    """What was found, as it is found. ``served``: a server samples, so that no cache is held here."""
    yield Finding("ok", "configuration", f"{config.algorithm}, base advantage {config.base_advantage}, shaper {config.shaper or 'none'}")
    objective = list(_attempt("objective", lambda: _objective(config)))
    yield from objective
    env: list[Any] = []
    yield from _attempt("data", lambda: _data(config, env))
    if config.eval_every:
        yield from _attempt("evaluation", lambda: _evaluation(config))
    if config.policy["kind"] == "tiny":
        yield Finding("plan", "policy", "the tiny policy: no memory to plan")
        return
    size: list[Any] = []
    yield from _attempt("model", lambda: _model(config, size))
    yield from _attempt("tokenizer", lambda: _tokens(config, env[0] if env else None, size[0] if size else None))
    if size and objective[-1].state == "ok":
        yield from _memory(config, size[0], served)
    yield _volume(config)


def _attempt(what: str, check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """The findings of a check; what cannot be reached is not checked, and any other error is wrong."""
    try:
        yield from check()
    except _UNREACHABLE as error:
        yield Finding("not checked", what, _first_line(error))
    except (ValueError, TypeError, OSError, KeyError, gym.error.Error) as error:
        offline = isinstance(error, OSError) and "couldn't connect" in str(error).lower()
        yield Finding("not checked" if offline else "wrong", what, _first_line(error))


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or repr(error)
    return text.splitlines()[0][:300]


def _objective(config: TrainConfig) -> Iterator[Finding]:
    if config.base_advantage not in BASE_ADVANTAGES:
        raise ValueError(f"expected base_advantage to be one of {', '.join(sorted(BASE_ADVANTAGES))}, got {config.base_advantage!r}")
    _made(config)
    yield Finding("ok", "objective", ", ".join([config.algorithm, *config.named_regularizers]))


def _made(config: TrainConfig) -> Objective:
    loss = make_loss(
        config.algorithm, clip=config.clip, aggregation=config.aggregation, dual_clip=config.dual_clip, length=config.loss_length
    )
    return Objective.make(loss, config.named_regularizers, torch.Generator())


def _data(config: TrainConfig, found: list[Any]) -> Iterator[Finding]:
    env: Any = gym.make(
        config.env, group_size=config.group_size, shaper=config.shaper, shaper_kwargs=config.shaper_kwargs or None, **config.env_kwargs
    ).unwrapped
    found.append(env)
    check_dataset(env.dataset, SAMPLE)
    left_out = len(getattr(env.dataset, "left_out", ()))
    yield Finding("ok", "data", f"{config.env}: {len(env.dataset)} problems, {left_out} rows left out; golds of {_shown(env)} verify")
    for i in range(_shown(env)):
        problem = env.dataset[i]
        text = right_completion(problem)
        if text is not None and verify(problem.task, text, problem.gold, mode=env.mode, **problem.options).status != Status.CORRECT:
            raise ValueError(f"problem {problem.problem_id}: a right answer in the prompt's own format, {text!r:.80}, is not accepted")
    yield Finding("ok", "answer format", "a right answer in the format that the prompt asks for is accepted")


def _evaluation(config: TrainConfig) -> Iterator[Finding]:
    names = metric_names(config.eval_samples)
    if config.eval_metric not in names:
        raise ValueError(f"expected eval_metric to be one of {', '.join(names)}, got {config.eval_metric!r}")
    env: Any = gym.make(config.env, **{**config.env_kwargs, "split": config.eval_split, "shaper": None}).unwrapped
    yield Finding(
        "ok", "evaluation", f"{config.eval_metric} of {min(config.eval_problems, len(env.dataset))} problems of {config.eval_split}"
    )


def _shown(env: Any) -> int:
    return min(SAMPLE, len(env.dataset))


def _model(config: TrainConfig, found: list[Any]) -> Iterator[Finding]:
    from transformers import AutoConfig

    spec = config.policy
    gguf = {"gguf_file": spec["gguf_file"]} if spec.get("gguf_file") else {}
    size = model_size(AutoConfig.from_pretrained(spec["model"], **gguf), spec.get("lora"))
    found.append(size)
    trained = "" if size.trained == size.parameters else f", {in_words(size.trained)} of them in adapters trained"
    yield Finding("ok", "model", f"{spec['model']}: {in_words(size.parameters)} parameters{trained}, {size.layers} layers")


def _tokens(config: TrainConfig, env: Any, size: Any) -> Iterator[Finding]:
    from transformers import AutoTokenizer

    from .policies.text import Text

    spec = config.policy
    gguf = {"gguf_file": spec["gguf_file"]} if spec.get("gguf_file") else {}
    tokenizer = AutoTokenizer.from_pretrained(spec["model"], **gguf)
    end = tokenizer.eos_token_id
    text = Text(tokenizer, [] if end is None else [end], spec.get("chat"), spec.get("system_prompt"))
    yield Finding("ok", "tokenizer", f"{len(tokenizer)} tokens, {'chat template' if text.chat else 'plain prompts'}")
    if env is None:
        yield Finding("not checked", "prompt length", "the data could not be read")
        return
    problems = [env.dataset[i] for i in range(_shown(env))]
    longest = text.encode([problem.prompt for problem in problems])[0].shape[1]
    for problem in problems:
        completion = right_completion(problem)
        again = completion and text.decode(tokenizer(completion, add_special_tokens=False)["input_ids"])
        if again and verify(problem.task, str(again), problem.gold, mode=env.mode, **problem.options).status != Status.CORRECT:
            raise ValueError(f"the tokenizer cannot write a right answer: {completion!r:.60} comes back as {str(again)!r:.60}")
    total, room = longest + (config.max_new_tokens or 0), size and size.positions
    if room is not None and total > room:
        raise ValueError(f"expected prompt and completion to fit the model's {room} positions, got {longest} + {config.max_new_tokens}")
    limit = "" if room is None else f" of {room} positions"
    yield Finding("ok", "prompt length", f"at most {longest} tokens in {len(problems)} prompts; with the completion {total}{limit}")


def _memory(config: TrainConfig, size: Size, served: bool) -> Iterator[Finding]:
    gib, parts = estimate(config, size, served=served)
    shown = ", ".join(f"{name} {amount:.1f}" for name, amount in parts.items() if amount >= 0.05)
    yield Finding("plan", "memory", f"about {gib:.0f} GiB on one device, or shared by several with FSDP ({shown} GiB; an estimate)")


def estimate(config: TrainConfig, size: Size, *, served: bool = False) -> tuple[float, dict[str, float]]:
    """(GiB at the peak, GiB by purpose) of training a model of this size; ``served``: a server samples."""
    from .policies.transformers import LOGITS

    spec: Mapping[str, Any] = config.policy
    objective, weight_bytes = _made(config), _BYTES[str(spec.get("dtype", "float32"))]
    completion = config.max_new_tokens or 256
    rollouts = config.prompts_per_step * config.group_size
    minibatch = rollouts * completion // config.minibatches
    parts = training_memory(
        size,
        weight_bytes=weight_bytes,
        activation_bytes=min(weight_bytes, _BYTES[config.precision]),
        micro_tokens=min(config.micro_batch_tokens or minibatch, minibatch),
        cached_tokens=0 if served else rollouts * completion,
        reference=objective.needs("reference") or objective.needs("replay"),
        checkpointing=bool(spec.get("gradient_checkpointing")),
        logits=LOGITS,
    )
    return peak(parts), parts


def _volume(config: TrainConfig) -> Finding:
    rollouts = config.prompts_per_step * config.group_size
    tokens = rollouts * (config.max_new_tokens or 256)
    updates = config.minibatches * config.epochs
    return Finding(
        "plan", "volume", f"{config.steps} steps of {rollouts} completions: up to {in_words(tokens)} tokens and {updates} updates a step"
    )
