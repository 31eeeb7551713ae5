"""Checkpoints that are either whole or absent, and load without running code."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import torch


def save(path: Path, state: dict[str, Any]) -> None:
    """Write ``state`` (tensors, numbers, strings, lists, dicts) atomically: killed at any moment, the old file stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    with open(partial, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def load(path: Path) -> dict[str, Any]:
    """Read a checkpoint; ``weights_only`` keeps a hostile file from running code. Raises ValueError if it is damaged."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise ValueError(f"expected a checkpoint at {path}, which cannot be read as one: {error}") from error


def fingerprint(weights: dict[str, torch.Tensor]) -> str:
    """Short hash of named weights: says whether two policies are the same, wherever their files are."""
    digest = hashlib.sha256()
    for name, tensor in sorted(weights.items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())  # numpy has no bfloat16
    return digest.hexdigest()[:16]
