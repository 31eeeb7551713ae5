"""Cutting the text of an answer at its commas, signs and other separators, outside brackets, environments and quotes."""

from __future__ import annotations

import re

SEPARATOR = re.compile(r",?\s*(?<![A-Za-z])(?:and|or)(?![a-z])\s*|[,;&]|\\\\(?![a-z]{2})")
_OPEN_CLOSE = re.compile(r'\\begin|\\end|\\[{}]|[(\[{)\]}]|"[^"]*"')


def closes(text: str, start: int) -> int:
    """Where the bracket at ``start`` is closed; -1 if it is not. Half-open intervals close any bracket with any other."""
    depth = 0
    for match in _OPEN_CLOSE.finditer(text, start):
        token = match[0]
        if token in ("(", "[", "{", "\\{", "\\begin"):
            depth += 1
        elif token in (")", "]", "}", "\\}", "\\end"):
            depth -= 1
            if not depth:
                return match.end() - 1
    return -1


def split(text: str, pattern: re.Pattern[str] = SEPARATOR) -> list[str]:
    """``text`` cut at the matches of ``pattern`` outside brackets, environments and quotes."""
    parts, depth, start, position = [], 0, 0, 0
    stops = {match.start(): match for match in _OPEN_CLOSE.finditer(text)}
    while position < len(text):
        stop = stops.get(position)
        if stop is not None:
            token = stop[0]
            if token in ("(", "[", "{", "\\{", "\\begin"):
                depth += 1
            elif token[0] != '"':
                depth -= 1
            position = stop.end()
            continue
        if depth == 0:
            match = pattern.match(text, position)
            if match and match.end() > position and not (match[0][0].isalpha() and position and text[position - 1].isalpha()):
                parts.append(text[start:position])
                start = position = match.end()
                continue
        position += 1
    parts.append(text[start:])
    return parts


def separators(text: str, pattern: re.Pattern[str]) -> list[str]:
    """The separators at which ``split`` cuts."""
    parts = split(text, pattern)
    found, position = [], 0
    for part in parts[:-1]:
        position += len(part)
        match = pattern.match(text, position)
        assert match is not None
        found.append(match[0])
        position = match.end()
    return found
