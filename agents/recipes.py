"""Training configurations as TOML files: a ``[train]`` table of :class:`TrainConfig` fields, and what a person wants to know of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from .config import TrainConfig
from .jsonl import read_value


@dataclass(frozen=True)
class Recipe:
    """What a recipe file says: the fields of its configuration, and its ``[recipe]`` table (title, hardware, measured)."""

    settings: dict[str, Any]
    about: dict[str, str] = field(default_factory=dict)

    @property
    def config(self) -> TrainConfig:
        """The configuration; raises ValueError or TypeError for a field that there is not or a value that it cannot have."""
        known = TrainConfig.__dataclass_fields__
        if unknown := sorted(self.settings.keys() - known):
            raise ValueError(f"expected fields of TrainConfig ({', '.join(known)}), got {unknown[0]!r}")
        return TrainConfig(**self.settings)


def read_recipe(path: Path) -> Recipe:
    """The recipe in a TOML file. Raises ValueError where it is none, FileNotFoundError where there is no file."""
    if not path.exists():
        raise FileNotFoundError(f"there is no recipe {path}: give the path of a TOML file with a [train] table, such as those in recipes/")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"expected TOML in {path}: {error}") from error
    if not isinstance(content.get("train"), dict) or content.keys() - {"train", "recipe"}:
        raise ValueError(f"expected the tables [train] and, if you like, [recipe] in {path}, got {', '.join(content) or 'none'}")
    return Recipe(content["train"], {name: str(text) for name, text in content.get("recipe", {}).items()})


def with_assignments(settings: Mapping[str, Any], assignments: Iterable[str]) -> dict[str, Any]:
    """Settings changed by NAME=JSON, in which NAME may go into tables: ``policy.model=DIR``, ``steps=2``; a bare word is a text.

    Raises ValueError for an assignment without "=" or one into something that is not a table.
    """
    changed = json.loads(json.dumps(dict(settings)))
    for text in assignments:
        path, equals, value = text.partition("=")
        if not equals or not path:
            raise ValueError(f"expected NAME=JSON, got {text!r}")
        *tables, name = path.split(".")
        table = changed
        for key in tables:
            table = table.setdefault(key, {})
            if not isinstance(table, dict):
                raise ValueError(f"expected {key!r} in {text!r} to be a table, got {table!r}")
        table[name] = read_value(value)
    return changed


def with_stand_ins(settings: Mapping[str, Any], warm_start: str | None, model: str | None, data: str | None) -> dict[str, Any]:
    """Settings with another warm start, model or source of problems, where one is given."""
    changed = dict(settings)
    if warm_start is not None:
        changed["warm_start"] = warm_start
    if model is not None:
        changed["policy"] = {"kind": "transformers", **changed.get("policy", {}), "model": model}
    if data is not None:
        changed["env_kwargs"] = {**changed.get("env_kwargs", {}), "source": data}
    return changed
