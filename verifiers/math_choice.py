"""Letters of multiple-choice answers: C, (C), C., \\textbf{(C)}, Option C are one answer; x and X are not."""

from __future__ import annotations

import re
from typing import NamedTuple

_COMMANDS = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mbox|rm|bf)\b|[{}$*\s]|\\[ ,()\[\]]")
_CHOICE = re.compile(r"(?:(?:the)?(?:correct)?(?:option|choice|answer)(?:is)?)?:?(\(?)([A-Ja-j])(\)?)[.:,;]?", re.IGNORECASE)


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


_LABELLED = re.compile(r"\s*(?:\\text(?:bf)?\s*\{)?\s*\(?([A-J])(?:[).:]|\s+[-–])[\s}\\]+\S")
_OTHER = re.compile(r"(?<![A-Za-z])[A-J][).]")


def same_choice(gold: Choice, answer: str) -> bool:
    found = choice(answer)
    if found is None:  # (C) 42: the letter with what it stands for
        labelled = _LABELLED.match(answer[:200])
        return labelled is not None and labelled[1] == gold.letter.upper() and len(_OTHER.findall(answer[:200])) == 1
    if gold.marked or found.marked:
        return gold.letter.upper() == found.letter.upper()
    return gold.letter == found.letter
