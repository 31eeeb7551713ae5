"""LaTeX and plain typing to one plain notation, in linear time.

After :func:`normalise` there are no dollar signs, spacing commands, font commands or Unicode operators left; text stands in double quotes
(``\\text{ cm}`` becomes ``" cm "``), and thousands are written without separators where the groups are well formed.
"""

from __future__ import annotations

import re
import unicodedata

from .math_symbols import (
    CHARACTERS,
    COMMANDS,
    DROPPED,
    ENTITIES,
    FUNCTIONS,
    MEANINGLESS,
    REMOVED,
    SUBSCRIPTS,
    SUPERSCRIPTS,
    TEXT_COMMANDS,
    TRANSPARENT,
)

_COMMAND = re.compile(r"\\([A-Za-z]+)\*?|\\(.)|[^\\]+", re.DOTALL)
_GROUP = re.compile(r"\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_BLANK_LINES = re.compile(r"[,;]?\s*\n[ \t]*\n\s*")
_TEXT_SPACES = re.compile(r"~|\\(?:cdot|times|[,;:! $])")
_EXPONENT = re.compile(r"\^\s*\{?\s*(-?\d)\s*\}?")
_UPRIGHT = frozenset(("text", "mathrm", "textrm", "mbox", "rm"))
_UNIT_LETTERS = frozenset("msghlLNJVWKACFTPHB")  # in upright type behind a number; any other letter is a symbol
_SYSTEM = re.compile(r"\\left\s*\\\{\s*\\begin\s*\{array\}\s*\{[lcr| ]*\}(.*?)\\end\s*\{array\}\s*\\right\s*\.", re.DOTALL)
_MATHS = re.compile(r"[\d=<>+^|]|\\[a-z]")
_THIN = re.compile(r"(?<=\d)\s*(?:\\[,!:; ]|\{\s*(?:,|\\,)\s*\}|,\s*\\!|~)+\s*(?=\d{3}(?!\d))")
_POINT = re.compile(r"(?<=\d)\{\s*([.,:])\s*\}(?=\d)")
_LOST_BACKSLASH = re.compile(r"\\\\(?=[A-Za-z]{2,})")
_FORM_FEED = re.compile("\x0c(?=rac)")
_CONTROL = re.compile("[\x01-\x08\x0b-\x1f\x7f-\x9f]")
_SCRAP = re.compile(r"<\|[a-z_]{1,20}\|>")
_ALIGNED = re.compile(r"&(?=\s*(?:=|\\approx|\\equiv))|(?<==)\s*&")
_ENTITY = re.compile("|".join(ENTITIES))
_RUN_TOGETHER = re.compile(r"(le|ge|ne|leq|geq|neq|cdot|times|pi)([a-z])")
_SPACES = re.compile(r"\s+")
_PRIMES = re.compile(r"\^\s*(?:\{\s*((?:\\prime\s*){1,4})\}|(\\prime)(?![A-Za-z]))")
_SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ]+")
_SUBSCRIPT = re.compile("[₀₁₂₃₄₅₆₇₈₉]+")
_DOLLARS = re.compile(r"\b(?:US|AU?|CA?|HK|NZ|S)\s?\\?\$(?=\s*\d)")
_FONT_SWITCH = re.compile(r"\{\s*\\(?:rm|bf|it|sf|tt)\b([^{}\\]*)\}|\\(?:rm|bf|it|sf|tt)\s*(?=\{)")  # {\rm cm}, \rm{cm}
_OUTWARD = re.compile(r"\\left\s*\]|\\right\s*\[|\\(?:left|right)\s*\.")
_NOT = re.compile(r"\\not\s*(=|\\in\b)")
_FIXES: tuple[tuple[str, re.Pattern[str], str], ...] = (  # what must occur for the rule to matter, the rule
    ("\\\\[", re.compile(r"\\\\\[\s*-?[\d.]+\s*(?:pt|em|ex|mm|cm|in)\s*\]"), r"\\\\\\\\"),
    ("=/", re.compile(r"=/=?"), r"\\ne "),
    ("<>", re.compile("<>"), r"\\ne "),
    ("^", re.compile(r"\^\s*\^"), "^"),
    ("{", re.compile(r"(?<!\\)\{\s*([,:;+*/=<>-])\s*\}"), r"\1"),  # {:}
    ("/-", re.compile(r"\+\s?/-"), r"\\pm "),
    ("/", re.compile(r"\^\s*\{?\s*(\d+)\s*\}?\s*/\s*_\s*\{?\s*(\d+)\s*\}?"), r"\\frac{\1}{\2}"),  # ^3/_4
    ("{", re.compile(r"(?<![A-Za-z\\}\] ])\{\s*\}"), ""),
    ("{\\", re.compile(r"\{\s*(\\[a-z]+)\s*\}(?=\s*\^)"), r"\1"),  # {\tan}^2
    (".", re.compile(r"(?<!\d)\.(?=\s*\\(?:overline|dot)\b)"), "0."),
    ("U", re.compile(r"(?<=[)\]])\s*U\s*(?=[(\[])"), r"\\cup "),
    ("\\of", re.compile(r"\\root\s*(\d|\{[^{}]*\})\s*\\of"), r"\\sqrt[\1]"),
)


def normalise(text: str) -> str:
    """``text`` in plain notation; raises ValueError for a NUL or for commands that hide or print things (``\\phantom``, ``\\verb``)."""
    if "\0" in text:
        raise ValueError("NUL character")
    if "$" in text:
        text = _DOLLARS.sub(" ", text)
    if "&" in text:
        text = _ALIGNED.sub("", text)
        text = _ENTITY.sub(lambda match: ENTITIES[match[0]], text)
    if not text.isascii():
        text = _to_ascii(text)
    if "<|" in text:
        text = _SCRAP.sub(" ", text)
    if "\n" in text:
        text = _BLANK_LINES.sub(", ", text.strip())  # one value a paragraph
    text = text.replace("...", "\\dots ")
    text = _THIN.sub("", _CONTROL.sub(" ", _FORM_FEED.sub(r"\\f", text)))
    text = _POINT.sub(lambda match: match[1].replace(",", "."), text) if "{" in text else text
    if "\\" in text:
        if r"\\begin" in text:
            text = text.replace("\\\\", "\\")
        elif "\\begin" not in text:
            text = _LOST_BACKSLASH.sub(r"\\", text)
        if "array" in text:
            text = _SYSTEM.sub(lambda match: rf"\begin{{cases}}{match[1]}\end{{cases}}", text)
        text = _PRIMES.sub(lambda match: "'" * match[0].count("p"), text)
        text = _OUTWARD.sub(
            lambda match: {"]": "(", "[": ")"}.get(match[0][-1], " "),
            _FONT_SWITCH.sub(lambda m: r"\text" if m[1] is None else rf"\text{{{m[1]}}}", text),
        )
        text = _rewrite(_NOT.sub(lambda match: r"\ne " if match[1] == "=" else r"\notin ", text).translate(CHARACTERS))
    else:
        text = text.translate(CHARACTERS)
    for mark, pattern, plain in _FIXES:
        if mark in text:
            text = pattern.sub(plain, text)
    return _SPACES.sub(" ", text).strip()


def _to_ascii(text: str) -> str:
    text = _SUPERSCRIPT.sub(lambda match: f"^{{{match[0].translate(SUPERSCRIPTS)}}}", text)
    text = _SUBSCRIPT.sub(lambda match: f"_{{{match[0].translate(SUBSCRIPTS)}}}", text).translate(CHARACTERS)
    text = "".join(" " if unicodedata.category(c) in ("Cf", "Cs", "Zs") else c for c in text)
    return text if text.isascii() else unicodedata.normalize("NFKC", text).translate(CHARACTERS)


def _rewrite(text: str) -> str:
    out: list[str] = []
    position = 0
    while position < len(text):
        match = _COMMAND.match(text, position)
        if match is None:  # a lone backslash at the end
            break
        position = match.end()
        name, sign = match[1], match[2]
        if name is None and sign is None:
            out.append(match[0])
        elif sign is not None:
            out.append(_sign(sign))
        elif name in TEXT_COMMANDS:
            position = _append_text(out, text, position, name)
        elif name in TRANSPARENT or name in DROPPED:
            out.append(" ")
        elif name in MEANINGLESS:
            raise ValueError(f"\\{name} states nothing")
        elif name in REMOVED:
            group = _GROUP.match(text, position)
            position = group.end() if group else position
            out.append(" ")
        else:
            plain = COMMANDS.get(name, name)
            joined = _RUN_TOGETHER.fullmatch(name) if plain == name else None
            if joined:  # \lex for \le x
                text, position = f"\\{joined[1]} {joined[2]}{text[position:]}", 0
                continue
            out.append(f"\\{plain} " if plain.isalpha() and plain != "i" else plain)
    return "".join(out)


def _sign(sign: str) -> str:
    if sign in ",;:>! ()[]\n\t/":
        return "" if sign == "!" else " "
    if sign == "{":
        return "\\{"
    if sign == "}":
        return "\\}"
    if sign == "|":
        return "|"
    if sign == "\\":
        return "\\\\"
    return " " if sign == "$" else sign  # \% \# \& \_


def _append_text(out: list[str], text: str, position: int, command: str) -> int:
    """Append the group at ``position`` as quoted text, or bare where it is mathematics; return where it ends."""
    group = _GROUP.match(text, position)
    if group is None:
        out.append(" ")
        return position
    content = _TEXT_SPACES.sub(" ", group[1])
    bare = content.strip()
    word = bare.strip(", ")
    if word in ("and", "or", ""):
        out.append(f" {word} " if word else bare or " ")
    elif bare in ("R", "Z", "N", "Q") and command in ("mathbf", "bm", "boldsymbol"):
        out.append(f"\\mathbb {{{bare}}}")
    elif len(bare) == 1 and not (bare in _UNIT_LETTERS and command in _UPRIGHT):
        out.append(f" {bare} ")
    elif (function := COMMANDS.get(bare, bare)) in FUNCTIONS and (bare != "min" or command == "operatorname"):
        out.append(f"\\{function} ")
    elif _MATHS.search(_EXPONENT.sub("", content)) or not any(c.isalpha() for c in bare):
        out.append(f" {_rewrite(content)} ")
    else:
        content = _EXPONENT.sub(r"^\1", content).replace("\\", " ").replace('"', " ")
        out.append(f'"{content}"')
    return group.end()
