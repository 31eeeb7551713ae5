"""What does a text without a marker declare? The sentence that announces the answer, else the last formula or number that it states.

Only lenient mode comes here. Linear in the text: only its last 20,000 characters are read.
"""

from __future__ import annotations

import re
import unicodedata

from .math_symbols import CHARACTERS, FUNCTIONS

MAX_PROSE = 20_000

_SCRAPS = re.compile(r"<\|[a-z_]{1,20}\|>.*|</?s>|<eos>|I hope it is correct.*|\[?Note[:(].*", re.DOTALL)
_CUE = re.compile(
    r"(?:(?:final|correct)\s+)?(?:\b(?:answer|ans|result|réponse|respuesta|resposta|risposta|antwort)\b(?:\s+finale?)?|答案|結果|结果|答え|정답|الجواب)"
    r"[\s*]*(?:(?:is|est|es|ist|é|è|equals|(?:should|must|would|will|has to|turns out to|comes out to) be)(?!\w)"
    r"|[:：=]|[-–→➡]+\s|应该是|[是为选は은]|هو"
    r"|(?=\s[$\\(\[])|(?<=[Aa]ns)\.(?=\s)|(?<=[Aa]nswer)[ *]*\n)[\s:：*]*",
    re.IGNORECASE,
)
_FORMULA = re.compile(
    r"\$\$([^$]+)\$\$|(?<!\\)\$((?:[^$\\]|\\.)*)\$|\\\(((?:[^\\]|\\[^()]){0,2000})\\\)|\\\[((?:[^\\]|\\[^\[\]]){0,2000})\\\]"
)
_FROM_DIGIT = re.compile(  # a formula, not an amount of money
    r"\$\d(?:\\(?:[A-Za-z]+(?![A-Za-z])|[^A-Za-z\n])|(?!\s?[a-z]{3})[^$\n\\]){0,200}(?<![\s=+*/(,-])\$(?!\d)"
)
_HALVES = re.compile("[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞]")
_JOINT = re.compile(r"[\s,;]*(?:and|or|,|;)\s*")
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")
_BRACKETED = re.compile(r"\[([^\[\]\n]{1,100})\]")
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.)}])(?:-(?:\\?\$(?=\d))?)?(?:\\?[dt]?frac\s*\{[^{}]{1,40}\}\s*\{[^{}]{1,40}\}"
    r"|\d+\s\d+/\d+|(?:\d{1,3}(?:,\d{3})+(?![\d,])|\d+)(?:\.\d+)?(?:[eE][-+]?\d+(?!\w))?(?:\s?/\s?\d+(?:\.\d+)?)?|\.\d+)(?!\d|[b-fh-kn-rt-z](?![A-Za-z]))\s?%?"
)
_STATES = re.compile(
    r"(?:\b(?:is|are|be|equals?|by|gets?|gives?|yields?|makes?|results in|it's|just|plain|to|approximately|about|exactly|only)"
    r"|[=:：≈]|为|是|有|'s)[\s$€£*(\[\\]*$",
    re.I,
)
_REFUSED = re.compile(
    r"(?:not|never|neither|greater|less|more|fewer|larger|smaller|at least|at most|between|unknown|below|under|over|no (?:less|more))\b",
    re.I,
)
_WAVERS = re.compile(r"\b(?:maybe|perhaps|possibly)\b", re.I)
_DENIED = re.compile(r"\bnot\b|n't\b|\b(?:or|either|at least|at most|more than|less than)\b", re.I)
_CONCLUDES = re.compile(r"\b(?:so|thus|therefore|hence|total|altogether|gives us|leaves|left with|costs?)\b", re.I)
_NEGATIVE = re.compile(r"^(?:minus|negative)\s+(?=\d)", re.I)
_LEADING = re.compile(r"(?:(?:around|about|approximately|roughly|exactly|simply|just|either|(?-i:an?)|the|that|indeed|thus)\s+)+", re.I)
_CONDITION = re.compile(  # what follows says for which values, or why
    r"[,;]?\s+(?:when|where|which (?:occurs|happens)|because|since|given|attained|occurring|if|such"
    r"|for (?:every|all|any|each|\$?[b-z]\b)|at \$?[a-z]\b)\b"
    r"|\s+\(=|\s+\[[a-z]+\]|\s+\(\$?\d+ each"
)
_GOES_ON = re.compile(r"\b(?:so|thus|therefore|hence|then|now|we)\b", re.I)
_HEDGED = re.compile(r"\bor\s+$")
_SENTENCE = re.compile(r"\.(?=\s|$|\*)|。|\n|！|!(?=\s|$)")
_IS = re.compile(r"\b(?:is|are|equals|be)\b|(?<![<>!])=")
_STATED = re.compile(r"\b(?:is|are|equals|be|gives?|gets?)\b\s*(?:(?:at|about|approximately|exactly|only|just|to|equal to)\s+)?", re.I)
_LETTER = re.compile(r"\W*(?:for sure |definitely |option |choice )?\(?([A-J])\)?(?=[\s.,;:。)]|$)(?!\)?\s+(?:or|and)\s+\(?[A-J]\b)")
_CHOSEN = re.compile(
    r"\b(?:it's|is|choose|pick|select|option|choice|with|be|only)\s+\(?([A-J])\)?(?![\w'])"
    r"|\b([A-J]) is (?:the )?(?:correct|right)|选[\s:：]*([A-J])\b",
    re.I,
)
_FIRST_LETTER = re.compile(r"\s*\(?([A-J])[).:。](?=\s|$|[^\x00-\x7f])")
_NUMERALS = str.maketrans("一二三四五六七八九", "123456789")
_WORD = re.compile(r"(?<!\\)(?<![A-Za-z])[A-Za-z]{3,}")
_SMALL_WORD = re.compile(r"\b(?:it|so|is|he|we|to|of|in|at|by|as|my|i)\b(?!\s*[=(,^+*/])", re.I)
_SYMBOL = "".join(map(re.escape, map(chr, (code for code, plain in CHARACTERS.items() if code > 127 and plain.strip(" .;")))))
_TOKEN = re.compile(  # of an expression in the middle of a sentence
    r"\s*(?:(?P<number>\d(?:[\d,]*\d)?(?:\.\d+)?(?:[eE][-+]?\d+)?%?|\.\d+)|\\(?!text|mathrm|mbox)[A-Za-z]+"
    rf"|(?:{'|'.join(sorted(FUNCTIONS | {'sqrt', 'pi'}, key=len, reverse=True))})(?![A-Za-z])|(?P<joint>and|or)\b"
    r"|(?:hundred|thousand|million|billion|trillion|dozen)s?\b"
    rf"|[-+*/^=<>()\[\]{{}}|:!_{_SYMBOL}]|,"
    r"|(?P<letter>[A-Za-z])(?![A-Za-z'])(?!\s+(?!and\b|or\b)[A-Za-z]{2}))"
)
_LOOSE_END = re.compile(r"(?:\s|[,:(=+*/^-]|\b(?:and|or))+$")


def statement(text: str, last_number: bool) -> str | None:
    """The answer that ``text`` states, or None. ``last_number``: any last number counts, as in word problems."""
    text = _SCRAPS.sub("", text[-MAX_PROSE:]).strip()
    if "$" in text:
        text = _without_money(text)
    if not text.isascii():
        text = _HALVES.sub(_typed, text)
        text = unicodedata.normalize("NFKC", text).replace("\u2044", "/").replace("\u2212", "-")
    if not text or text.rstrip(" $*)").endswith(("?", "\uff1f")):  # a question states nothing, the prompt's least of all
        return None
    cues = list(_CUE.finditer(text))
    if cues:
        rest = text[cues[-1].end() :].lstrip(" \t\n*_\"':")
        end = _SENTENCE.search(rest)
        if _REFUSED.match(rest) or _WAVERS.search(rest[: end.start()] if end else rest):
            return None
        found = _announced(rest)
        if found:
            return found
    bare = len(text) <= 200 and "\n" not in text and all(c.isascii() or ord(c) in CHARACTERS for c in text)
    if bare and not _WORD.search(text) and not _SMALL_WORD.search(text) and _FORMULA.search(text) is None and text[0] != "[":
        return text
    return _stated(text, last_number)


def _typed(fraction: re.Match[str]) -> str:
    """``3½`` as ``3 1/2``."""
    return " " + "/".join(re.findall(r"\d+", CHARACTERS[ord(fraction[0])]))


def _without_money(text: str) -> str:
    """``text`` without dollar signs before amounts: "9 eggs x $2 = $18" holds no formula."""
    out, position = [], 0
    while (sign := text.find("$", position)) >= 0:
        out.append(text[position:sign])
        position = sign + 1
        if sign and text[sign - 1] == "\\":
            out.append("$")
            continue
        formula = _FROM_DIGIT.match(text, sign)
        if formula:
            out.append(formula[0])
            position = formula.end()
        elif not text[position : position + 1].isdigit():
            end = _FORMULA.match(text, sign)
            out.append(end[0] if end else "$")
            position = end.end() if end else position
    return "".join(out) + text[position:]


def _announced(rest: str) -> str | None:
    """The answer at the head of ``rest``, which follows "the answer is"."""
    leading = _LEADING.match(rest)
    rest = _NEGATIVE.sub("-", rest[leading.end() :] if leading else rest)
    formula = _formulas(rest)
    if formula:
        return formula
    end = _SENTENCE.search(rest)
    sentence = rest[: end.start()] if end else rest
    sentence = _without_condition(sentence)
    letter = _LETTER.match(sentence)
    if letter:
        return letter[1]
    states = list(_IS.finditer(sentence))
    if states:
        tail = sentence[states[-1].end() :].strip()
        found = _expression(sentence) if not _WORD.search(sentence) else _formulas(tail) or _expression(tail) or _first_number(tail)
        if found:
            return found
    if sentence.isascii() and not _WORD.search(sentence) and _balanced_dollars(sentence):
        return sentence.strip(" *\"'_") or None
    formulas = list(_FORMULA.finditer(sentence))
    if formulas and sentence[: formulas[0].start()].count("$") % 2 == 0:
        return _content(formulas[-1])
    number = _expression(sentence) or _first_number(sentence)
    if number is None and not any(c.isdigit() for c in sentence):
        number = _first_number(sentence.translate(_NUMERALS))
    return number or sentence.strip(" *\"'") or None


def _expression(text: str) -> str | None:
    """The expression at the head of ``text``, up to the first word that belongs to none; None if it has no number."""
    start = len(text) - len(text.lstrip(" *_$€£"))
    position, number, before = start, False, ""
    while True:
        token = _TOKEN.match(text, position)
        if token is None or token.end() == position:
            break
        if token["letter"] and before == "number" and text[position].isspace():
            break  # a unit
        number = number or bool(token["number"])
        before = token.lastgroup or ""
        position = token.end()
    found = _LOOSE_END.sub("", text[start:position])
    balanced = found.count("(") == found.count(")") and found.count("{") == found.count("}")
    return found if number and balanced else None


def _without_condition(sentence: str) -> str:
    """``sentence`` up to "when x = 2", "because ...", if there is a value before it."""
    for match in _CONDITION.finditer(sentence):
        if any(c.isdigit() for c in sentence[: match.start()]) and not _GOES_ON.search(sentence, match.end()):
            return sentence[: match.start()] + ("." if sentence.rstrip().endswith(".") else "")
    return sentence


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


def _last_formulas(text: str) -> tuple[int, str] | None:
    """(where, content) of the last formula, joined to those before it as in :func:`_formulas`."""
    formulas = [match for match in _FORMULA.finditer(text) if not _content(match).startswith(("^", "_"))]  # cm$^2$
    if not formulas:
        return None
    first = len(formulas) - 1
    while first and _JOINT.fullmatch(text, formulas[first - 1].end(), formulas[first].start()):
        first -= 1
    return formulas[-1].start(), ", ".join(map(_content, formulas[first:]))


def _stated(text: str, last_number: bool) -> str | None:
    start = max((match.end() for match in _SENTENCE.finditer(text, 0, max(len(text) - 2, 0))), default=0)
    text = text[:start] + _without_condition(text[start:])
    found: list[tuple[int, str]] = []
    formula = _last_formulas(text) if _balanced_dollars(text) else None
    if formula:
        found.append(formula)
    found.extend((match.start(), match[1]) for match in list(_BRACKETED.finditer(text))[-1:])
    found.extend((match.start(), _first_number(match[1]) or match[1]) for match in list(_BOLD.finditer(text))[-1:])
    numbers = list(_NUMBER.finditer(text))
    if numbers and (_HEDGED.search(text[: numbers[-1].start()][-40:]) or _only_denied(text, numbers)):
        return None
    if numbers:
        last, before = numbers[-1], text[: numbers[-1].start()]
        concluded = len(numbers) == 1 and len(text) <= 200 and _CONCLUDES.search(text)
        around = _around(text, last)
        if last_number or "=" in text or _STATES.search(before[-40:]) or _alone(text, last) or concluded or around != last[0]:
            found.append((last.start(), around))
    if found:
        best = max(found)
        enclosing = [item for item in found if item[0] <= best[0] < item[0] + len(item[1]) + 4]
        return min(enclosing)[1]
    letter = _FIRST_LETTER.match(text) or next(iter(reversed(list(_CHOSEN.finditer(text)))), None)
    if letter:
        return next(group for group in letter.groups() if group)
    if not any(c.isdigit() for c in text) and last_number:
        return _first_number(text.translate(_NUMERALS))
    return text if len(text) <= 200 else None


def _only_denied(text: str, numbers: list[re.Match[str]]) -> bool:
    """A text of one sentence and one number that does not state it: "36 is not the answer"."""
    return len(numbers) == 1 and len(text) <= 200 and bool(_DENIED.search(text))


def _around(text: str, number: re.Match[str]) -> str:
    """The expression that the last number stands in: the 2 of "the ratio is 3:2"."""
    line = text.rfind("\n", 0, number.start()) + 1
    stated = [match.end() for match in _STATED.finditer(text, line, number.start())]
    if stated:
        found = _expression(text[stated[-1] :])
        if found and stated[-1] + len(found) + 4 >= number.end() - 1 and found.rstrip("%").endswith(number[0].rstrip(" %")[-1]):
            return found
    return number[0]


def _alone(text: str, number: re.Match[str]) -> bool:
    """The number is a line of its own, or opens the text."""
    line = text[text.rfind("\n", 0, number.start()) + 1 : (text.find("\n", number.end()) + 1 or len(text) + 1) - 1]
    return line.strip(" $.*") == number[0].strip() or not text[: number.start()].strip(" $*")
