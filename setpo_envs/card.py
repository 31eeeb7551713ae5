"""What an environment is in a few words: lists, tables and pages of environments are made from these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Card:
    """The row of an environment in the table of environments. The words may have Markdown's backticks around names.

    Args:
        data: Where the problems come from.
        rows: How many there are, by split.
        verifier: Names of the verifiers that judge them.
        licence: Terms of the data.
        example: Arguments with which ``gym.make`` makes the environment offline, for a look at a prompt; None if there are none.
    """

    data: str = "not stated"
    rows: str = "not stated"
    verifier: str = "not stated"
    licence: str = "not stated"
    example: Mapping[str, Any] | None = None
