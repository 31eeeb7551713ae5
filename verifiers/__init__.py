"""Answer extraction, verdicts and solution modes, without any environment or model."""

from typing import TYPE_CHECKING, Any

from .countdown import CountdownGold, parse_gold, verify_countdown
from .expressions import ExpressionError, mode_key
from .extract import extract
from .graph_coloring import GraphColoringGold, colorings, parse_graph, verify_graph_coloring
from .knights_and_knaves import KnightsAndKnavesGold, parse_roles, verify_knights_and_knaves
from .registry import TASKS, register, verifier_of, verify
from .solver import solve
from .verdict import Status, Verdict

if TYPE_CHECKING:
    from .check import check_verifier
    from .pool import VerifierPool

__all__ = [
    "TASKS",
    "CountdownGold",
    "ExpressionError",
    "GraphColoringGold",
    "KnightsAndKnavesGold",
    "Status",
    "Verdict",
    "VerifierPool",
    "check_verifier",
    "colorings",
    "extract",
    "mode_key",
    "parse_gold",
    "parse_graph",
    "parse_roles",
    "register",
    "solve",
    "verifier_of",
    "verify",
    "verify_countdown",
    "verify_graph_coloring",
    "verify_knights_and_knaves",
]

# name -> module; imported when first asked for: most programs want verify alone
_LATE = {"VerifierPool": "pool", "check_verifier": "check"}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_LATE[name]}", __name__), name)
