"""Answer extraction, verdicts and solution modes, without any environment or model."""

from .countdown import CountdownGold, parse_gold, verify_countdown
from .expressions import ExpressionError, mode_key
from .extract import extract
from .knights_and_knaves import KnightsAndKnavesGold, parse_roles, verify_knights_and_knaves
from .registry import TASKS, register, verify
from .solver import solve
from .verdict import Status, Verdict

__all__ = [
    "TASKS",
    "CountdownGold",
    "ExpressionError",
    "KnightsAndKnavesGold",
    "Status",
    "Verdict",
    "extract",
    "mode_key",
    "parse_gold",
    "parse_roles",
    "register",
    "solve",
    "verify",
    "verify_countdown",
    "verify_knights_and_knaves",
]
