"""Checkpoints that are either whole or absent, and load without running code.

One file each: tensors as safetensors, everything else as JSON in the file's metadata. Warm starts, whose names end in ``.pt``, are
torch's own format.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file

_TENSOR, _PAIRS = "tensor of this file", "pairs of integer and value"


def save(path: Path, state: dict[str, Any]) -> None:
    """Write ``state`` (nested dicts and lists of tensors and JSON values) atomically: killed at any moment, the old file stays.

    Tensors that are one (tied weights) are written once. Tuples come back as lists.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    if path.suffix == ".pt":
        torch.save(state, partial)
    else:
        tensors: dict[str, torch.Tensor] = {}
        text = json.dumps(_without_tensors(state, "", tensors, {}))
        save_file(tensors, partial, metadata={"state": text})
    with open(partial, "rb+") as file:
        os.fsync(file.fileno())
    os.replace(partial, path)


def load(path: Path) -> dict[str, Any]:
    """Read a checkpoint of either format. Raises ValueError if it is damaged or something else."""
    try:
        if path.suffix == ".pt":
            return torch.load(path, map_location="cpu", weights_only=True)  # weights_only: a hostile file runs no code
        with safe_open(path, framework="pt") as file:
            # copies: what the file maps must not outlive it
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}
            return _with_tensors(json.loads(file.metadata()["state"]), tensors)
    except Exception as error:
        raise ValueError(f"expected a checkpoint at {path}, which cannot be read as one: {error}") from error


def fingerprint(weights: dict[str, torch.Tensor]) -> str:
    """Short hash of named weights: says whether two policies are the same, wherever their files are."""
    digest = hashlib.sha256()
    for name, tensor in sorted(weights.items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)  # bfloat16 is no dtype of numpy's
    return digest.hexdigest()[:16]


def _without_tensors(value: Any, name: str, tensors: dict[str, torch.Tensor], places: dict[Any, str]) -> Any:
    if isinstance(value, dict):
        if any(isinstance(key, int) for key in value):
            return {_PAIRS: [[key, _without_tensors(item, f"{name}/{key}", tensors, places)] for key, item in value.items()]}
        return {key: _without_tensors(item, f"{name}/{key}" if name else str(key), tensors, places) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_tensors(item, f"{name}/{i}", tensors, places) for i, item in enumerate(value)]
    if not isinstance(value, torch.Tensor):
        return value
    place = value.device, value.data_ptr(), value.dtype, value.shape, value.stride()
    if value.numel() == 0 or place not in places:
        places[place] = name
        tensors[name] = value.detach().cpu().contiguous()
    return {_TENSOR: name if value.numel() == 0 else places[place]}


def _with_tensors(value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    if isinstance(value, list):
        return [_with_tensors(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {_TENSOR}:
        return tensors[value[_TENSOR]]
    pairs = value[_PAIRS] if value.keys() == {_PAIRS} else value.items()
    return {key: _with_tensors(item, tensors) for key, item in pairs}
