"""LaTeX and plain typing to one plain notation, in linear time.

After :func:`normalise` there are no dollar signs, spacing commands, font commands or Unicode operators left; text stands in double quotes
(``\\text{ cm}`` becomes ``" cm "``), and thousands are written without separators where the groups are well formed.
"""

from __future__ import annotations

import re
import unicodedata

# fmt: off
_CHARACTERS = {
    **dict.fromkeys("−–—﹣－", "-"), **dict.fromkeys("×·⋅∗＊✕", "*"), "÷": "/", "∕": "/", "⁄": "/", "≤": r"\le ", "⩽": r"\le ",
    "≥": r"\ge ", "⩾": r"\ge ",
    "≠": r"\ne ", "∞": r"\infty ", "π": r"\pi ", "√": r"\sqrt ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "∅": r"\emptyset ",
    "ø": r"\emptyset ",
    "ℝ": r"\mathbb{R}", "ℤ": r"\mathbb{Z}", "ℕ": r"\mathbb{N}", "°": r"^\circ ", "≈": r"\approx ", "±": r"\pm ", "∓": r"\mp ", "′": "'",
    "’": "'",
    "∖": r"\setminus ", "θ": r"\theta ", "α": r"\alpha ", "β": r"\beta ", "γ": r"\gamma ", "λ": r"\lambda ", "ω": r"\omega ",
    "φ": r"\phi ",
    "μ": r"\mu ", "ρ": r"\rho ", "σ": r"\sigma ", "δ": r"\delta ", "ε": r"\epsilon ", "τ": r"\tau ", "Δ": r"\Delta ", "Ω": r"\Omega ",
    "∠": r"\angle ",
    "，": ",", "；": ";", "：": ":", "（": "(", "）": ")",
    "⟨": "(", "⟩": ")", "。": ".", "、": ",", "≡": r"\equiv ", "⇒": r"\Rightarrow ", "→": r"\to ",
    "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ", "⌉": r"\rceil ", "“": " ", "”": " ", '"': " ", "`": " ",
    "∛": r"\sqrt[3] ",
}
_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ", "0123456789-+n"))
_SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789"))
_FRACTIONS = {c: (n, d) for c, n, d in [
    ("½", 1, 2), ("⅓", 1, 3), ("⅔", 2, 3), ("¼", 1, 4), ("¾", 3, 4), ("⅕", 1, 5), ("⅖", 2, 5), ("⅗", 3, 5), ("⅘", 4, 5), ("⅙", 1, 6),
    ("⅚", 5, 6),
    ("⅐", 1, 7), ("⅛", 1, 8), ("⅜", 3, 8), ("⅝", 5, 8), ("⅞", 7, 8), ("⅑", 1, 9), ("⅒", 1, 10)]}
# fmt: on
_TABLE = str.maketrans(
    {
        **_CHARACTERS,
        **{c: f"^{{{d}}}" for c, d in _SUPERSCRIPTS.items()},
        **{c: f"_{{{d}}}" for c, d in _SUBSCRIPTS.items()},
        **{c: rf"\frac{{{n}}}{{{d}}}" for c, (n, d) in _FRACTIONS.items()},
        **dict.fromkeys("$€£¥~", " "),
    }
)
_NEGATED = re.compile(r"\\not\s*(?:=|\\in\b)")
_NAMES = {
    "leq": "le", "leqslant": "le", "geq": "ge", "geqslant": "ge", "neq": "ne", "lt": "<", "gt": ">", "dfrac": "frac", "tfrac": "frac",
    "cfrac": "frac",
    "dbinom": "binom", "tbinom": "binom", "times": "*", "cdot": "*", "ast": "*", "div": "/", "colon": ":", "mid": "|", "vert": "|",
    "lvert": "|",
    "rvert": "|", "varnothing": "emptyset", "approxeq": "approx", "simeq": "approx", "land": " and ", "wedge": " and ", "lor": " or ",
    "vee": " or ",
    "bigcup": "cup", "backslash": "setminus", "lbrace": "{", "rbrace": "}", "lbrack": "[", "rbrack": "]",
    "langle": "(", "rangle": ")", "bar": "overline", "degree": "^\\circ ",
    "degrees": "^\\circ ",
    "varphi": "phi", "varepsilon": "epsilon", "vartheta": "theta", "lg": "log", "operatornamewithlimits": "operatorname",
    "ldots": "dots", "cdots": "dots",
    "arcsec": "arcsec", "tg": "tan", "ctg": "cot", "asin": "arcsin", "acos": "arccos", "atan": "arctan",
}  # fmt: skip
_DROPPED = frozenset(
    "left right big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr displaystyle textstyle scriptstyle limits nolimits quad "
    "qquad nonumber "
    "bf rm it large Large small normalsize displaymath boldmath thinspace medspace hfill notag centering strut".split()
)
_TEXT_COMMANDS = frozenset("text mbox textnormal textbf textit textrm textsf texttt emph mathrm mathbf mathit mathsf mathtt operatorname "
    "hbox bm boldsymbol "
                           "textup pmb mathnormal unit".split())  # fmt: skip
_TRANSPARENT = frozenset("boxed fbox framebox beginboxed underline cancel mathcal mathscr mathop".split())
_COMMAND = re.compile(r"\\([A-Za-z]+)\*?|\\(.)|[^\\]+", re.DOTALL)
_GROUP = re.compile(r"\s*\{([^{}]*)\}")
_TEXT_SPACES = re.compile(r"~|\\(?:cdot|times|[,;:! ])")
_THIN = re.compile(r"(?<=\d)\s*(?:\\[,!:; ]|\{\s*,\s*\}|,\s*\\!|~)+\s*(?=\d{3}(?!\d))")
_LOST_BACKSLASH = re.compile(r"\\\\(?=[A-Za-z]{2,})")
_FORM_FEED = re.compile("\x0c(?=rac)")
_CONTROL = re.compile("[\x01-\x08\x0b-\x1f\x7f-\x9f]")
_SCRAP = re.compile(r"<\|[a-z_]{1,20}\|>")
_RUN_TOGETHER = re.compile(r"(le|ge|ne|leq|geq|neq|cdot|times|pi)([a-z])")
_SPACES = re.compile(r"\s+")
_PRIMES = re.compile(r"\^\s*(?:\{\s*((?:\\prime\s*){1,4})\}|(\\prime)(?![A-Za-z]))")


def normalise(text: str) -> str:
    """``text`` in plain notation; raises ValueError for a NUL or for commands that hide or print things (``\\phantom``, ``\\verb``)."""
    if "\0" in text:
        raise ValueError("NUL character")
    if not text.isascii():
        text = _to_ascii(text)
    if "<|" in text:
        text = _SCRAP.sub(" ", text)
    text = text.replace("...", "\\dots ")
    text = _THIN.sub("", _CONTROL.sub(" ", _FORM_FEED.sub(r"\\f", text)))
    if "\\" not in text:
        return _SPACES.sub(" ", text.translate(_TABLE)).strip()
    if r"\\begin" in text:
        text = text.replace("\\\\", "\\")
    elif "\\begin" not in text:
        text = _LOST_BACKSLASH.sub(r"\\", text)
    text = _PRIMES.sub(lambda match: "'" * match[0].count("p"), text)
    text = _rewrite(text.translate(_TABLE))
    return _SPACES.sub(" ", text).strip()


def _to_ascii(text: str) -> str:
    text = text.translate(_TABLE)
    text = "".join(" " if unicodedata.category(c) in ("Cf", "Cs", "Zs") else c for c in text)
    return text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_TABLE)


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
        elif name in _TEXT_COMMANDS:
            position = _append_text(out, text, position)
        elif name in _TRANSPARENT or name in _DROPPED:
            out.append(" ")
        elif name in (
            "color",
            "textcolor",
            "hspace",
            "vspace",
            "label",
            "tag",
            "phantom",
            "hphantom",
            "vphantom",
            "verb",
            "input",
            "write",
        ):
            if name not in ("color", "textcolor", "hspace", "vspace", "label", "tag"):
                raise ValueError(f"\\{name} states nothing")
            group = _GROUP.match(text, position)
            position = group.end() if group else position
            out.append(" ")
        else:
            plain = _NAMES.get(name, name)
            joined = _RUN_TOGETHER.fullmatch(name) if plain == name else None
            if joined:  # \lex for \le x
                text, position = f"\\{joined[1]} {joined[2]}{text[position:]}", 0
                continue
            out.append(f"\\{plain} " if plain.isalpha() else plain)
    return "".join(out)


def _sign(sign: str) -> str:
    if sign in ",;:! ()[]\n\t/":
        return {"(": " ", ")": " ", "[": " ", "]": " ", "!": ""}.get(sign, " ")
    if sign == "{":
        return "\\{"
    if sign == "}":
        return "\\}"
    if sign == "|":
        return "|"
    if sign == "\\":
        return "\\\\"
    return " " if sign == "$" else sign  # \% \# \& \_


def _append_text(out: list[str], text: str, position: int) -> int:
    """Append the group at ``position`` as quoted text, or bare where it is mathematics; return where it ends."""
    group = _GROUP.match(text, position)
    if group is None:
        out.append(" ")
        return position
    content = _TEXT_SPACES.sub(" ", group[1]).replace("\\", " ").replace('"', " ")
    bare = content.strip()
    if bare.rstrip(",") in ("and", "or") or bare == ",":
        out.append(f" {bare.rstrip(',')} " if bare != "," else ",")
    elif bare and not any(c.isalpha() for c in bare):
        out.append(f" {bare} ")
    else:
        out.append(f'"{content}"')
    return group.end()
