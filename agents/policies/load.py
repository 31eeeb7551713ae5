"""Policies from configurations and from checkpoints."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from .. import checkpoint
from .base import Policy
from .tiny import TinyConfig, TinyPolicy


def make_policy(spec: Mapping[str, Any], warm_start: str | None = None) -> Policy:
    """The policy that ``TrainConfig.policy`` names.

    {"kind": "tiny"}                                 the checkpoint ``warm_start``
    {"kind": "transformers", "model": ..., ...}      a model on the hub or in a folder, with arguments of ``TransformersPolicy`` and its
                                                     ``from_pretrained``; on the accelerator where there is one and no "device" is named

    Raises:
        ValueError: an unknown kind or option, or no warm start or model.
        ImportError: transformers (or peft, gguf) is not installed.
    """
    kind, options = spec.get("kind"), {name: value for name, value in spec.items() if name != "kind"}
    if kind == "tiny":
        if warm_start is None or options:
            problem = f"options {sorted(options)}" if options else "no warm_start"
            raise ValueError(f'expected a warm_start and no options beside policy={{"kind": "tiny"}}, got {problem}')
        return load_policy(Path(warm_start))
    if kind != "transformers":
        raise ValueError(f'expected a policy of kind "tiny" or "transformers", got {kind!r}')
    if warm_start is not None or "model" not in options:
        raise ValueError(f'expected a "model" and no warm_start for a policy of kind "transformers", got {dict(spec)} and {warm_start!r}')
    try:
        from .transformers import TransformersPolicy
    except ImportError as error:
        raise ImportError(f"a policy of kind 'transformers' needs transformers: pip install 'setpo-envs[train,hf]' ({error})") from error
    known = {*inspect.signature(TransformersPolicy).parameters, *inspect.signature(TransformersPolicy.from_pretrained).parameters}
    if unknown := sorted(options.keys() - known - {"model"}):
        raise ValueError(f"unknown option {unknown[0]!r} of a transformers policy: choose among model, {', '.join(sorted(known))}")
    model = options.pop("model")
    options.setdefault("device", f"cuda:{torch.cuda.current_device()}" if torch.cuda.is_available() else "cpu")
    return TransformersPolicy.from_pretrained(model, **options)


def load_policy(path: Path) -> Policy:
    """The policy of a warm start or of a run's checkpoint."""
    if not path.exists():
        raise ValueError(f"no checkpoint at {path}: make a warm start first (setpo warm-start)")
    state = checkpoint.load(path)
    try:
        if state.get("spec", {"kind": "tiny"})["kind"] == "tiny":
            config = state.get("policy_config") or {k: v for k, v in state["identity"]["policy"].items() if k != "parameters"}
            policy: Policy = TinyPolicy(TinyConfig(**config))
        else:
            policy = make_policy(state["spec"])
        policy.load_state_dict(state["policy"])
    except (KeyError, TypeError, RuntimeError) as error:
        raise ValueError(f"expected a warm start or a run's checkpoint at {path}, got something else ({error!r})") from error
    return policy
