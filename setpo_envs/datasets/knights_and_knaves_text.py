"""Knights and Knaves in English: who is there, what they say, and the question.

Every claim is a direct quotation that can be read in one way only: what has a connective stands in brackets inside another, "or" is
inclusive and says so, and "I" is the speaker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..prompts import with_article
from .knights_and_knaves_logic import Statement

# No name is part of another or a word for a role.
NAMES = (
    *("Ada", "Amir", "Anouk", "Arjun", "Bella", "Bruno", "Carmen", "Chen", "Clara", "Darius", "Dora", "Edith", "Emil", "Farid", "Fiona"),
    *("Goran", "Greta", "Hana", "Hugo", "Imani", "Ines", "Ivan", "Jonas", "Judith", "Kofi", "Kira", "Lars", "Leila", "Malik", "Mira"),
    *("Nadia", "Nils", "Omar", "Oona", "Pablo", "Petra", "Quentin", "Rosa", "Rufus", "Selma", "Stefan", "Tara", "Tomas", "Uma", "Viktor"),
    *("Wanda", "Wei", "Yara", "Yusuf", "Zelda"),
)
PLACES = (
    "On a small island",
    "In a remote village",
    "In a hidden valley",
    "Aboard an old ship",
    "At the edge of a desert",
    "In a walled city",
)
NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight")
SAYINGS = (
    '{name} says: "{claim}."',
    '{name} tells you: "{claim}."',
    '{name} insists: "{claim}."',
    'According to {name}: "{claim}."',
    '"{claim}," says {name}.',
    '"{claim}," claims {name}.',
    '"{claim}," remarks {name}.',
    '"{claim}," you hear from {name}.',
)


def draw_names(draw: Callable[[], float], n_people: int) -> list[str]:
    """Distinct names; ``draw`` gives numbers uniform in [0, 1)."""
    pool = list(NAMES)
    return [pool.pop(int(draw() * len(pool))) for _ in range(n_people)]


def quiz(draw: Callable[[], float], statements: Sequence[Statement], names: Sequence[str], roles: tuple[str, str]) -> str:
    """The puzzle in words; ``roles`` are the words for truth-teller and liar, ``draw`` chooses place and phrases."""
    truthful, liar = map(with_article, roles)
    said = []
    for speaker, statement in enumerate(statements):
        claim = claim_text(statement, speaker, names, (truthful, liar))
        saying = SAYINGS[int(draw() * len(SAYINGS))]
        said.append(saying.format(name=names[speaker], claim=claim[0].upper() + claim[1:]))
    return (
        f"{PLACES[int(draw() * len(PLACES))]}, everybody is either {truthful}, who always tells the truth, or {liar}, who always lies. "
        f"You meet {NUMBERS[len(names) - 2]} of them: {enumeration(names)}. {' '.join(said)} Who is {truthful}, and who is {liar}?"
    )


def claim_text(statement: Statement, speaker: int, names: Sequence[str], roles: tuple[str, str]) -> str:
    """A statement as ``speaker`` says it; ``roles`` with their articles."""
    connective, *parts = statement
    if connective in ("truth", "lie"):
        return _about(parts[0], speaker, names, "", roles[connective == "lie"])
    if connective == "not" and parts[0][0] in ("truth", "lie"):
        return _about(parts[0][1], speaker, names, "not ", roles[parts[0][0] == "lie"])
    texts = [claim_text(part, speaker, names, roles) for part in parts]
    texts = [f"({text})" if part[0] not in ("truth", "lie") else text for text, part in zip(texts, parts)]
    if connective == "not":
        return f"it is not true that {texts[0]}"
    if connective == "and":
        return enumeration(texts)
    if connective == "or":
        return f"either {texts[0]} or {texts[1]}, or both" if len(texts) == 2 else f"at least one of these is true: {'; '.join(texts)}"
    return f"if {texts[0]}, then {texts[1]}" if connective == "implies" else f"{texts[0]} if and only if {texts[1]}"


def enumeration(texts: Sequence[str]) -> str:
    """``a and b``; ``a, b, and c``."""
    return " and ".join(texts) if len(texts) == 2 else f"{', '.join(texts[:-1])}, and {texts[-1]}"


def _about(person: int, speaker: int, names: Sequence[str], negation: str, role: str) -> str:
    return f"I am {negation}{role}" if person == speaker else f"{names[person]} is {negation}{role}"
