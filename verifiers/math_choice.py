"""Letters of multiple-choice answers: C, (C), C., \\textbf{(C)}, Option C are one answer; x and X are not."""

from __future__ import annotations

import re
from typing import NamedTuple

_COMMANDS = re.compile(
    r"\\(?:text|textbf|textit|mathrm|mathbf|mbox|rm|bf|[Ll]arge|LARGE|[Hh]uge|displaystyle|boldsymbol)\b|[{}$*\s]|\\[ ,()\[\]]"
)
_CHOICE = re.compile(r"(?:(?:the)?(?:correct)?(?:option|choice|answer)(?:is)?)?:?(\(?)([A-Ja-j])(\)?)[.:,;]?", re.IGNORECASE)
_LABELLED = re.compile(r"\s*(?:\\text(?:bf)?\s*\{)?\s*\(?([A-J])(?:[).:]|\s+[-–])[\s}\\]+[^\s+*/^=-]")
_SEVERAL = re.compile(r"[A-J](?:(?:,|;|and|,and)?[A-J])+")
_OTHER = re.compile(r"(?<![A-Za-z])[A-J][).]")


class Choice(NamedTuple):
    letter: str
    marked: bool  # with brackets or a word before it, so that the case does not matter


def choice(text: str) -> Choice | None:
    """The choice that ``text`` names and nothing else."""
    if len(text) > 80:
        return None
    plain = _COMMANDS.sub("", text)
    match = _CHOICE.fullmatch(plain)
    return Choice(match[2], len(plain.rstrip(".:,;")) > 1) if match else None


def labelled(text: str) -> tuple[Choice, str] | None:
    """The letter and what stands behind it: ``(C) 42``."""
    match = _LABELLED.match(text[:200])
    if match is None or re.search(r"\b(?:not|or)\b", text[:200]) or len(_OTHER.findall(text[:200])) > 1:
        return None
    return Choice(match[1], True), text[match.end() - 1 :].strip()


def same_choices(gold: str, answer: str) -> bool:
    """Several letters, in any order and notation: ABD; A, B and D."""
    plain = [_COMMANDS.sub("", text) for text in (gold, answer)]
    letters = [sorted(re.findall("[A-J]", text)) for text in plain if _SEVERAL.fullmatch(text)]
    return len(letters) == 2 and len(letters[0]) > 1 and letters[0] == letters[1]


def same_choice(gold: Choice, answer: str) -> bool:
    found = choice(answer)
    if found is None:
        with_content = labelled(answer)
        return with_content is not None and with_content[0].letter == (gold.letter.upper() if gold.marked else gold.letter)
    if gold.marked or found.marked:
        return gold.letter.upper() == found.letter.upper()
    return gold.letter == found.letter
