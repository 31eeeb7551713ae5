"""What does a text without a marker declare? The sentence that announces the answer, else the last formula or number that it states.

Only lenient mode comes here. Linear in the text: only its last 20,000 characters are read.
"""

from __future__ import annotations

import re
import unicodedata

MAX_PROSE = 20_000

_SCRAPS = re.compile(r"<\|[a-z_]{1,20}\|>.*|</?s>|<eos>|I hope it is correct.*|\[?Note[:(].*", re.DOTALL)
_CUE = re.compile(
    r"(?:(?:final|correct)\s+)?(?:\b(?:answer|ans|result|réponse|respuesta|antwort)\b|答案|結果|结果)[\s*]*"
    r"(?:(?:is|est|es|ist)\b|[:：=]|应该是|是|为|(?=\s[$\\(\[]))[\s:*]*",
    re.IGNORECASE,
)
_FORMULA = re.compile(r"\$\$([^$]+)\$\$|(?<!\\)\$((?:[^$\\]|\\.)*)\$|\\\(((?:[^\\]|\\[^)])*)\\\)|\\\[((?:[^\\]|\\[^\]])*)\\\]")
_JOINT = re.compile(r"[\s,;]*(?:and|or|,|;)\s*")
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")
_BRACKETED = re.compile(r"\[([^\[\]\n]{1,100})\]")
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.)}])-?(?:\\?[dt]?frac\s*\{[^{}]{1,40}\}\s*\{[^{}]{1,40}\}|(?:\d{1,3}(?:,\d{3})+(?![\d,])|\d+)(?:\.\d+)?(?:\s?/\s?\d+(?:\.\d+)?)?|\.\d+)\s?%?"
)
_STATES = re.compile(
    r"(?:\b(?:is|are|be|equals?|by|gets?|gives?|it's|just|plain|to|than|approximately|about|exactly|only)|[=:：≈]|为|是|有|'s)[\s$€£*(\[\\]*$",
    re.I,
)
_HEDGED = re.compile(r"\bor\s+$")
_SENTENCE = re.compile(r"\.(?=\s|$|\*)|。|\n|！|!(?=\s|$)")
_IS = re.compile(r"\b(?:is|are|equals|be)\b|=")
_LETTER = re.compile(r"\W*(?:for sure |definitely |option |choice )?\(?([A-J])\)?(?=[\s.,;:。)]|$)")
_CHOSEN = re.compile(r"\b(?:it's|is|choose|pick|option|choice)\s+\(?([A-J])\)?(?![\w'])")
_FIRST_LETTER = re.compile(r"\s*\(?([A-J])[).:。](?=\s|$|[^\x00-\x7f])")
_NUMERALS = str.maketrans("一二三四五六七八九", "123456789")
_WORD = re.compile(r"(?<!\\)(?<![A-Za-z])[A-Za-z]{3,}")


def statement(text: str, last_number: bool) -> str | None:
    """The answer that ``text`` states, or None. ``last_number``: any last number counts, as in word problems."""
    text = _SCRAPS.sub("", text[-MAX_PROSE:]).strip()
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("\u2044", "/").replace("\u2212", "-")
    if not text:
        return None
    cues = list(_CUE.finditer(text))
    if cues:
        found = _announced(text[cues[-1].end() :])
        if found:
            return found
    if (
        len(text) <= 200
        and "\n" not in text
        and not _WORD.search(text)
        and _FORMULA.search(text) is None
        and text.isascii()
        and text[0] != "["
    ):
        return text
    return _stated(text, last_number)


def _announced(rest: str) -> str | None:
    """The answer at the head of ``rest``, which follows "the answer is"."""
    rest = rest.lstrip(" \t\n*\"':")
    formula = _formulas(rest)
    if formula:
        return formula
    end = _SENTENCE.search(rest)
    sentence = rest[: end.start()] if end else rest
    letter = _LETTER.match(sentence)
    if letter:
        return letter[1]
    states = list(_IS.finditer(sentence))
    if states:
        tail = sentence[states[-1].end() :].strip()
        found = _formulas(tail) or _first_number(tail)
        if found:
            return found
    if sentence.isascii() and not _WORD.search(sentence) and _balanced_dollars(sentence):
        return sentence.strip(" *\"'") or None
    formulas = list(_FORMULA.finditer(sentence))
    if formulas and sentence[: formulas[0].start()].count("$") % 2 == 0:
        return _content(formulas[-1])
    number = _first_number(sentence)
    if number is None and not any(c.isdigit() for c in sentence):
        number = _first_number(sentence.translate(_NUMERALS))
    return number or sentence.strip(" *\"'") or None


def _balanced_dollars(text: str) -> bool:
    return text.replace("\\$", "").count("$") % 2 == 0


def _first_number(text: str) -> str | None:
    match = _NUMBER.search(text)
    return match[0] if match else None


def _content(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group is not None).strip()


def _formulas(text: str) -> str | None:
    """The formulas at the head of ``text``, joined by commas where "and", "or" or a comma stands between them."""
    position, found = 0, []
    while True:
        match = _FORMULA.match(text, position)
        if match is None:
            break
        found.append(_content(match))
        joint = _JOINT.match(text, match.end())
        if joint is None:
            break
        position = joint.end()
    return ", ".join(found) or None


def _stated(text: str, last_number: bool) -> str | None:
    found: list[tuple[int, str]] = []
    if _balanced_dollars(text):
        found.extend((match.start(), _content(match)) for match in list(_FORMULA.finditer(text))[-1:])
    found.extend((match.start(), match[1]) for match in list(_BRACKETED.finditer(text))[-1:])
    found.extend((match.start(), _first_number(match[1]) or match[1]) for match in list(_BOLD.finditer(text))[-1:])
    numbers = list(_NUMBER.finditer(text))
    if numbers and _HEDGED.search(text[: numbers[-1].start()][-40:]):
        return None
    if numbers and (last_number or "=" in text or _STATES.search(text[: numbers[-1].start()][-40:]) or _alone(text, numbers[-1])):
        found.append((numbers[-1].start(), numbers[-1][0]))
    if found:
        best = max(found)
        enclosing = [item for item in found if item[0] <= best[0] < item[0] + len(item[1]) + 4]
        return min(enclosing)[1]
    letter = _FIRST_LETTER.match(text) or next(iter(reversed(list(_CHOSEN.finditer(text)))), None)
    if letter:
        return letter[1]
    if not any(c.isdigit() for c in text) and last_number:
        return _first_number(text.translate(_NUMERALS))
    return text if len(text) <= 200 else None


def _alone(text: str, number: re.Match[str]) -> bool:
    """The number is a line of its own, or opens the text."""
    line = text[text.rfind("\n", 0, number.start()) + 1 : (text.find("\n", number.end()) + 1 or len(text) + 1) - 1]
    return line.strip(" $.*") == number[0].strip() or not text[: number.start()].strip(" $*")
