"""Answers that are partly words, in notation: "all real numbers except 2", "no solution", "2 to 3", "5 feet 3 inches", ``]0,1[``."""

from __future__ import annotations

import re

_REALS = r'"?\s*(?:the )?(?:set of )?(?:all )?(?:the )?reals?(?: numbers?)?'
_NAME = r'(?:\s*"?\s*(?:(?:values )?(?:of|for) )?[a-z]\b)?'
_NUMBER = r"\d+(?:\.\d+)?"

_PHRASES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), notation)
    for pattern, notation in (
        (
            rf'{_REALS}{_NAME},?\s*"?\s*(?:except|other than|not equal to)(?: for)?\b\s*"?\s*(?:[a-z]\s*=)?\s*(.+)',
            r"\\mathbb {R}\\setminus \\{\1\\}",
        ),
        (rf'(?!"?\s*reals?\s*"?$)(?:{_REALS}{_NAME})\s*"?|"?\s*R\s*"', r"\\mathbb {R}"),
        (r"(\\mathbb \{?R\}?)\s*-\s*(\\\{.*\\\})", r"\1\\setminus \2"),
        (r'"?\s*(?:there (?:is|are) )?(?:no (?:real )?solutions?(?: exists?)?|none|(?:the )?(?:empty|null) set)\s*"?', r"\\emptyset"),
        (r'"?\s*all\s*"?\s*([a-z]\s*(?:<|>|\\[lgn]e\b).*)', r"\1"),
        (rf'({_NUMBER})\s*"?\s*to\s*"?\s*({_NUMBER})', r"\1:\2"),
        (r"<([^<>=|]*,[^<>=|]*)>", r"(\1)"),
        (r"([a-z])\s*(?:\||:)\s*(.*(?<![a-z])\1(?![a-z]).*)", r"\2"),  # x | x < 3, its braces lost
        (r"[a-z]\s*:\s*([a-z])\s*\\mapsto (.*)", r"y=\2"),
        (r"(?-i:[A-Z])\s*(\([^()]*,[^()]*\))", r"\1"),  # the point P(3, -2)
        (r'"?\s*(?:all )?(?:the )?integers?\s*"?', r"\\mathbb {Z}"),
        (r"[a-z]\s*\\to (\s*[^,]*)", r"\1"),
    )
)
_MEASURES = re.compile(rf"({_NUMBER})\s*\"?\s*([A-Za-z]{{1,8}})[\s\",]*(?:and)?[\s\"]*({_NUMBER})\s*\"?\s*([A-Za-z]{{1,8}})\s*\"?")
_PARTS = re.compile(r'\s*"?\s*\(([1-8a-h])\)\s*"?(?=\s*[\w\\(-])\s*')  # (1) 3; (2) 7
_OUTWARD = re.compile(r"([\[\]])([^\[\]]*,[^\[\]]*)([\[\]])")


def in_notation(text: str, units: frozenset[str]) -> str:
    """``text`` without its words, if it is one of the known phrases as a whole. ``units`` are the known names of units."""
    for pattern, notation in _PHRASES:
        match = pattern.fullmatch(text)
        if match:
            return match.expand(notation)
    if text[0] == "]" or text[-1] == "[":
        return _OUTWARD.sub(lambda m: f"{'(' if m[1] == ']' else '['}{m[2]}{')' if m[3] == '[' else ']'}", text)
    labels = _PARTS.findall(text)
    if len(labels) > 1 and _PARTS.match(text) and "".join(labels) in ("12345678"[: len(labels)], "abcdefgh"[: len(labels)]):
        return f"({', '.join(part.strip(' ,;') for part in _PARTS.split(text)[2::2])})"
    measures = _MEASURES.fullmatch(text)
    if measures and measures[2].lower() in units and measures[4].lower() in units:
        return f'{measures[1]} "{measures[2]}", {measures[3]} "{measures[4]}"'
    return text
