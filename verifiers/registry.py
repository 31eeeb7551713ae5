"""The table of tasks: one name in, one verdict out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .countdown import verify_countdown
from .format import verify_format
from .graph_coloring import verify_graph_coloring
from .knights_and_knaves import verify_knights_and_knaves
from .maths import verify_gsm8k, verify_math
from .verdict import Verdict

Verifier = Callable[..., Verdict]  # (completion, gold, *, mode, **options) -> Verdict

TASKS: dict[str, Verifier] = {}  # accepted name (aliases included) -> verifier
NEEDS: dict[str, tuple[str, ...]] = {}  # accepted name -> modules that its verifier imports when first needed


def register(name: str, verifier: Verifier, aliases: Iterable[str] = (), *, needs: Iterable[str] = ()) -> None:
    """Add a task under ``name`` and its aliases. Raises ValueError if a name belongs to another verifier.

    ``needs`` names modules that the verifier imports late because they are slow to import: a pool imports them before the clock of an item
    starts.
    """
    names = (name, *aliases)
    for each in names:
        if TASKS.get(each, verifier) is not verifier:
            raise ValueError(f"expected a new task name, got {each!r}, which another verifier has; choose a different name")
    TASKS.update(dict.fromkeys(names, verifier))
    NEEDS.update(dict.fromkeys(names, tuple(needs)))


def verify(task: str, completion: str, gold: Any, *, mode: str = "lenient", **options: Any) -> Verdict:
    """Judge one completion. ``mode="strict"`` wants the answer in a tag or a box; ``options`` are those of the task's verifier.

    Raises ValueError for an unknown task, an unknown mode or a malformed gold, TypeError for a completion that is not a str or an option
    that the task does not have.
    """
    return verifier_of(task)(completion, gold, mode=mode, **options)


def verifier_of(task: str) -> Verifier:
    """The verifier of a task, for callers that judge many completions of it. Raises ValueError for an unknown task."""
    verifier = TASKS.get(task)
    if verifier is None:
        raise ValueError(f"expected a task out of {', '.join(sorted(TASKS))}; got {task!r}")
    return verifier


register("countdown", verify_countdown, aliases=["rg_countdown"])
register("knights_and_knaves", verify_knights_and_knaves, aliases=["kk", "rg_knights_knaves"])
register("graph_coloring", verify_graph_coloring)
register("format", verify_format)
register("math", verify_math, aliases=["aime", "olympiad"])
register("gsm8k", verify_gsm8k)
