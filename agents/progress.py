"""One progress bar for every long command: a live bar on a terminal, a line now and then in a log file."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm


def progress(items: Iterable[Any], label: str, *, initial: int = 0, total: int | None = None) -> Any:
    """Iterate over ``items`` showing how far it got, on standard error."""
    live = sys.stderr.isatty()
    return tqdm(
        items, desc=label, initial=initial, total=total, mininterval=0.5 if live else 20.0, dynamic_ncols=live, ncols=None if live else 100
    )
