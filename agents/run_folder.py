"""What is in a run's folder: its configuration, claimed by one run, and its checkpoint."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from . import checkpoint
from .config import TrainConfig, with_defaults


def identity(config: TrainConfig, weights_hash: str) -> dict[str, Any]:
    """What must be equal for a run to be resumed: the configuration, with the weights it starts from wherever their files are."""
    described = config.to_json()
    spec = {name: value for name, value in described["policy"].items() if name not in ("model", "gguf_file", "device")}
    return {**described, "policy": spec, "warm_start": weights_hash}


def claim(folder: Path, mine: dict[str, Any], config: TrainConfig) -> None:
    """Create the run folder and its config.json, or check that the run in it has the same configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.json"
    if path.exists():
        try:
            saved = json.loads(path.read_text(encoding="utf-8"))["identity"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"expected the configuration of a run in {path}, which cannot be read: {error!r}. Use another folder."
            ) from error
        check_same_config(saved, mine, path)
        return
    partial = path.with_suffix(f".{os.getpid()}.partial")
    partial.write_text(json.dumps({**config.to_json(), "identity": mine}, indent=2) + "\n", encoding="utf-8")
    os.replace(partial, path)


def check_same_config(saved: dict[str, Any], mine: dict[str, Any], path: Path) -> None:
    """Raise ValueError naming every field in which a saved run differs; fields that its version did not have count as their default."""
    saved = with_defaults(saved)
    differing = [f"{k}: saved {saved.get(k)!r}, asked {mine.get(k)!r}" for k in sorted(saved | mine) if saved.get(k) != mine.get(k)]
    if differing:
        raise ValueError(f"{path} belongs to a run with another configuration ({'; '.join(differing)}). Use another folder or delete it.")


def read_checkpoint(folder: Path, mine: dict[str, Any]) -> dict[str, Any] | None:
    """The checkpoint of the run in ``folder``, or None; ValueError for one of another configuration. Earlier versions' are converted."""
    path, earlier = folder / "checkpoint.safetensors", folder / "checkpoint.pt"
    if path.exists():
        state = checkpoint.load(path)
    elif earlier.exists():
        path, old = earlier, checkpoint.load(earlier)
        texts = {name: json.loads(old.get(name, "null")) for name in ("config", "shaper", "rngs", "order")}
        state = {**old, **texts, "identity": texts["config"], "generators": [old["generator"]], "watch": None}
    else:
        return None
    check_same_config(state["identity"], mine, path)
    return state
