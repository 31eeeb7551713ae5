"""Knights and Knaves: everyone tells the truth or lies; who is what?

The declared answer is read as statements: ``Ava is a knight`` (also ``Ava: knight``, ``(Ava, knight)``, ``Knights: Ava, Cleo``, a JSON
object, a table: see ``role_statements.py``), in any order, numbered or not. It is right when it gives every person exactly the role of the
solution. Every word must belong to a statement: a name of nobody, a negation, a hedge, a condition, a question or a role of another puzzle
make it no assignment. The reward is 0 or 1; :func:`fraction_right` is for logs (half of the roles come free by guessing).
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, NamedTuple

from .extract import locate
from .role_statements import plain, read_statements
from .verdict import Status, Verdict

REASONS = ("correct", "no_answer", "syntax", "contradiction", "missing", "roles")
MAX_LENGTH = 4096  # characters of a declared answer
MAX_PEOPLE = 64

# (truth-teller, liar): what a solution that is only text may be about
ROLE_PAIRS = (
    ("knight", "knave"),
    ("pioneer", "laggard"),
    ("saint", "sinner"),
    ("hero", "villain"),
    ("angel", "devil"),
    ("altruist", "egoist"),
    ("sage", "fool"),
)
_NO_ANSWER = Verdict(0.0, Status.NO_ANSWER, None, None, "no_answer")

_CONCLUSION = re.compile(r"conclusion\s*:", re.IGNORECASE)
_STATEMENT = re.compile(r"(?:\(\d+\)\s*)?(.+?)\s+is\s+(?:an?|the)\s+(\S+)", re.IGNORECASE)
_BETWEEN = re.compile(r"[\n;]|,\s*and\s|,|\sand\s")


class KnightsAndKnavesGold(NamedTuple):
    """The solution of a puzzle: (name, role) of everyone, and the words for truth-teller and liar in this order."""

    roles: tuple[tuple[str, str], ...]
    role_names: tuple[str, str]


def verify_knights_and_knaves(completion: str, gold: Any, *, mode: str = "lenient", synonyms: bool = True) -> Verdict:
    """Judge ``completion`` against ``gold`` (see :func:`parse_roles`).

    ``mode="strict"`` wants an ``<answer>`` tag or a box; lenient also takes a ``CONCLUSION:`` block, or a completion that is an assignment
    and nothing else. ``synonyms`` lets truth-teller and liar stand for the two roles; switch it off for puzzles in which knaves tell the
    truth.

    Reasons: ``correct``; ``no_answer`` (nothing declared, or blank); ``syntax`` (not an assignment of this puzzle's roles to its people);
    ``contradiction`` (two roles for one person); ``missing`` (a person without a role); ``roles`` (somebody's role is wrong).

    The mode key is the assignment, sorted by name: ``ava=knight; ben=knave``.

    Raises TypeError for a completion that is not a str, ValueError for a malformed gold or an unknown mode.
    """
    puzzle = parse_roles(gold)
    answer, marked = _declared(completion, mode)
    if answer is None:
        return _NO_ANSWER
    if len(answer) > MAX_LENGTH:
        verdict = Verdict(0.0, Status.WRONG, answer[:MAX_LENGTH], None, "syntax")
    else:
        verdict = _judge(answer, puzzle, synonyms)
    # Prose without a marker declares nothing, so it is no answer rather than a wrong one.
    return _NO_ANSWER if verdict.reason == "syntax" and not marked else verdict


def fraction_right(completion: str, gold: Any, *, mode: str = "lenient", synonyms: bool = True) -> float:
    """The share of people with their right role in the declared answer, 0.0 for one that is no assignment; for logs, not for rewards."""
    puzzle = parse_roles(gold)
    answer, _ = _declared(completion, mode)
    found = _assignment(answer, puzzle, synonyms) if answer is not None and len(answer) <= MAX_LENGTH else None
    return sum((found or {}).get(plain(name)) == {role} for name, role in puzzle.roles) / len(puzzle.roles)


def _declared(completion: str, mode: str) -> tuple[str | None, bool]:
    """(answer, marked): as ``locate``, with a conclusion block as the marker where there is no other and the mode is lenient."""
    answer, marked = locate(completion, mode)
    if answer is None or marked:
        return answer, marked
    blocks = [match.end() for match in _CONCLUSION.finditer(answer)]
    return (answer[blocks[-1] :].strip() or None, True) if blocks else (answer, False)


# --- gold --------------------------------------------------------------------------------------------------------


def parse_roles(gold: Any) -> KnightsAndKnavesGold:
    """A solution from any of these, as a mapping or its JSON text:

    * ``{"roles": {name: role}, "role_names": [truth-teller, liar]}``; ``role_names`` may be left out for the pairs of ROLE_PAIRS
    * a row of the hub: ``{"names": [...], "solution": [true, false, ...], "knight_knave": {"knight": word, "knave": word}}``
    * ``{"solution_text_format": text}`` or ``{"solution_text": text}``, or the text alone: ``Ava is a knight, and Ben is a knave.``

    Raises ValueError for anything else, or where the roles are not two, a name is blank or two people have one name.
    """
    try:
        return _parse_text(gold) if isinstance(gold, str) else _parse_mapping(gold)
    except (TypeError, KeyError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(
            'expected a Knights and Knaves gold {"roles": {name: role}, "role_names": [truth-teller, liar]}, a row with names and solution '
            f'(a mapping or its JSON text), or a text such as "Ava is a knight, and Ben is a knave."; got {repr(gold)[:200]} ({error})'
        ) from error


@lru_cache(maxsize=4096)
def _parse_text(text: str) -> KnightsAndKnavesGold:
    if text.lstrip().startswith("{"):
        return _parse_mapping(json.loads(text))
    roles = []
    for piece in _BETWEEN.split(text.strip().rstrip(".")):
        statement = _STATEMENT.fullmatch(piece.strip())
        if statement is None:
            raise ValueError(f"{piece[:60]!r} is not NAME is a ROLE")
        roles.append((statement[1], statement[2].lower()))
    return _check(tuple(roles), None)


def _parse_mapping(gold: Any) -> KnightsAndKnavesGold:
    if isinstance(gold, KnightsAndKnavesGold):
        return _check(gold.roles, gold.role_names)
    if "roles" in gold:
        pair = gold.get("role_names")
        return _check(tuple(gold["roles"].items()), None if pair is None else tuple(pair))
    if "names" in gold and "solution" in gold:
        words = gold.get("knight_knave") or {"knight": "knight", "knave": "knave"}
        pair = (words["knight"], words["knave"])
        if len(gold["names"]) != len(gold["solution"]) or any(value not in (True, False) for value in gold["solution"]):
            raise ValueError("names and solution differ in length, or the solution is not a list of true and false")
        return _check(tuple((name, pair[not truthful]) for name, truthful in zip(gold["names"], gold["solution"])), pair)
    return _parse_text(gold["solution_text_format"] if "solution_text_format" in gold else gold["solution_text"])


@lru_cache(maxsize=4096)
def _check(roles: tuple[tuple[str, str], ...], pair: tuple[str, str] | None) -> KnightsAndKnavesGold:
    if pair is None:
        pair = next((known for known in ROLE_PAIRS if roles and {role for _, role in roles} <= set(known)), None)
        if pair is None:
            raise ValueError("the roles are of no known pair: give role_names")
    truthful, liar = map(plain, pair)
    people = [plain(name) for name, _ in roles]
    if not truthful or not liar or truthful == liar or not all(people) or len(set(people)) != len(people):
        raise ValueError("role_names must be two words and names must be there and differ")
    if not 1 <= len(people) <= MAX_PEOPLE:
        raise ValueError(f"between 1 and {MAX_PEOPLE} people")
    if any(plain(role) not in (truthful, liar) for _, role in roles):
        raise ValueError("every role must be one of role_names")
    return KnightsAndKnavesGold(tuple((name, plain(role)) for name, role in roles), (truthful, liar))


# --- answers -----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=65536)
def _judge(answer: str, puzzle: KnightsAndKnavesGold, synonyms: bool) -> Verdict:
    found = _assignment(answer, puzzle, synonyms)
    if found is None:
        return Verdict(0.0, Status.WRONG, answer, None, "syntax")
    if any(len(roles) > 1 for roles in found.values()):
        return Verdict(0.0, Status.WRONG, answer, None, "contradiction")
    key = "; ".join(f"{name}={role}" for name in sorted(found) for role in found[name])
    if len(found) < len(puzzle.roles):
        return Verdict(0.0, Status.WRONG, answer, key, "missing")
    if all(found[plain(name)] == {role} for name, role in puzzle.roles):
        return Verdict(1.0, Status.CORRECT, answer, key, "correct")
    return Verdict(0.0, Status.WRONG, answer, key, "roles")


def _assignment(answer: str, puzzle: KnightsAndKnavesGold, synonyms: bool) -> dict[str, set[str]] | None:
    return read_statements(answer, tuple(plain(name) for name, _ in puzzle.roles), puzzle.role_names, synonyms)
