"""What the generators share: settings that come from JSON, splits by a hash of the problem, and checked indices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from hashlib import blake2b
from operator import index as as_index
from typing import Any, TypeVar

SPLITS = ("train", "validation", "test")
DIFFICULTIES = ("easy", "medium", "hard")
DEFAULT_SIZE = 10_000  # length of a generated data set

Settings = TypeVar("Settings")


def settings_of(cls: type[Settings], given: Any, difficulty: str | None, presets: Mapping[str, Mapping[str, Any]]) -> Settings:
    """Settings from a mapping (as in ``gym.make``), None being the defaults; a named difficulty sets the fields of its preset.

    Raises ValueError for an unknown key or difficulty, or a key that the difficulty sets as well.
    """
    expect(difficulty is None or difficulty in DIFFICULTIES, f"difficulty None or among {', '.join(DIFFICULTIES)}", difficulty)
    preset = dict(presets[difficulty]) if difficulty else {}
    if isinstance(given, cls):
        expect(not preset, "either difficulty or a settings object", difficulty)
        return given
    expect(given is None or isinstance(given, Mapping), "settings to be a dict", given)
    known = [field.name for field in fields(cls)]  # type: ignore[arg-type]  # a type variable cannot say "dataclass"
    for key in given or {}:
        expect(key in known, f"settings among {', '.join(known)}", key)
        expect(key not in preset, f"no {key} in the settings, as difficulty={difficulty!r} sets it", given[key])
    return cls(**preset, **(given or {}))


def split_of_key(key: str) -> str:
    """The split that a problem belongs to, whatever the seed: train 80 %, validation 10 %, test 10 % of all keys."""
    share = int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big") / 2**64
    return "train" if share < 0.8 else "validation" if share < 0.9 else "test"


def checked_index(index: int, length: int) -> int:
    if not 0 <= as_index(index) < length:
        raise IndexError(f"expected an index of at least 0 and below {length}, got {index}")
    return as_index(index)


def is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def expect(condition: Any, what: str, got: Any) -> None:
    if not condition:
        raise ValueError(f"expected {what}, got {got!r}")
