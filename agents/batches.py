"""Rows and unions of batches: groups with verdicts, groups as tokens, and both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from setpo_envs.completion import is_truncated
from setpo_envs.group import Groups

from .policies.base import Samples


def pick_groups(groups: Groups, rows: Sequence[int]) -> Groups:
    """The groups ``rows``, in that order."""
    values: dict[str, Any] = {field.name: getattr(groups, field.name) for field in fields(groups)}
    picked: dict[str, Any] = {name: [v[i] for i in rows] if isinstance(v, list) else v[list(rows)] for name, v in values.items()}
    return Groups(**picked)


def join_groups(parts: Sequence[Groups]) -> Groups:
    """The groups of all ``parts``, which have one group size."""
    columns = {field.name: [getattr(part, field.name) for part in parts] for field in fields(parts[0])}
    joined: dict[str, Any] = {name: sum(c, []) if isinstance(c[0], list) else np.concatenate(c) for name, c in columns.items()}
    return Groups(**joined)


def join_samples(parts: Sequence[Samples]) -> Samples:
    """The samples of all ``parts``, padded to the longest prompt (on the left) and the longest completion (on the right)."""
    if len(parts) == 1:
        return parts[0]
    P, T = max(part.prompt_NP.shape[1] for part in parts), max(part.tokens_NGT.shape[2] for part in parts)

    def completions(name: str) -> Tensor:
        return torch.cat([F.pad(getattr(part, name), (0, T - part.tokens_NGT.shape[2])) for part in parts])

    def prompts(tensors: Sequence[Tensor]) -> Tensor:
        return torch.cat([F.pad(tensor, (P - tensor.shape[1], 0)) for tensor in tensors])

    masks = [part.prompt_mask_NP for part in parts]
    if any(mask is None for mask in masks):  # every position counts, padding too: such prompts have one width
        if len({part.prompt_NP.shape[1] for part in parts}) > 1:
            raise ValueError("expected prompts of one width where no mask says what is padding")
        prompt_mask_NP = None
    else:
        prompt_mask_NP = prompts([mask for mask in masks if mask is not None])
    return Samples(
        completions_NG=[group for part in parts for group in part.completions_NG],
        prompt_NP=prompts([part.prompt_NP for part in parts]),
        tokens_NGT=completions("tokens_NGT"),
        mask_NGT=completions("mask_NGT"),
        log_probs_NGT=completions("log_probs_NGT"),
        prompt_mask_NP=prompt_mask_NP,
    )


def to_device(samples: Samples, device: torch.device | str) -> Samples:
    """The same samples with all tensors on ``device``."""
    tensors: dict[str, Any] = {name: value.to(device) for name, value in vars(samples).items() if isinstance(value, Tensor)}
    return replace(samples, **tensors)


def without_truncated(samples: Samples) -> Samples:
    """The same samples with no token to train on in completions that were cut off: DAPO's overlong filtering, arXiv 2503.14476."""
    kept_NG = torch.tensor([[not is_truncated(text) for text in group] for group in samples.completions_NG])
    return replace(samples, mask_NGT=samples.mask_NGT * kept_NG[..., None].to(samples.mask_NGT))
