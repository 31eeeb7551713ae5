"""The ways in which one text may be meant: separators of thousands, decimal commas, repeating decimals, families over the integers."""

from __future__ import annotations

import re

GROUPED = re.compile(r"(?<![\d.,])((?!0)\d{1,3}(?:,\d{3})+)(?![\d,]|\.\d+,)")
_INDIAN = re.compile(r"-?\d{1,2}(?:,\d\d)+,\d{3}")
_MIXED = re.compile(r"(\d+)\s*and\s*(\d+\s*/\s*\d+|\\frac\s*(?:\{\s*\d+\s*\}|\d)\s*(?:\{\s*\d+\s*\}|\d))")
_SCALES = {"dozen": "12", "hundred": "100", "thousand": "10^3", "million": "10^6", "billion": "10^9", "trillion": "10^{12}"}
_SCALED = re.compile(rf'(.*[\d}})])\s*"?\s*({"|".join(_SCALES)})\s*"?((?:\s*"?\s*[a-z]+"?)?)', re.DOTALL)
_N = r"(?:\{\s*([\w+-]+)\s*\}|(\w))"
_CHOOSE = (  # the ways to write a binomial coefficient
    re.compile(r"\bC\s*\(\s*([\w+-]+)\s*,\s*([\w+-]+)\s*\)"),
    re.compile(rf"(?:_|\^|\{{\s*\}}\s*[_^])\s*{_N}\s*C\s*_\s*{_N}"),
    re.compile(r"\b(\d+)\s*C\s*(\d+)\b"),
    re.compile(rf"\bC\s*_\s*{_N}\s*\^\s*{_N}"),
)
_REPEATING = re.compile(r"(-?\d*\.\d*)\((\d+)\)")
_DOMAIN = re.compile(  # k \in Z, where k is an integer, for any integer k, x \in R
    r'[,;(]?\s*"?\s*(?:where|for|with)?\s*(?:any|all|every|some)?\s*"?\s*(?:\b([a-z])\b\s*"?\s*(?:\\in\s*(?:\\mathbb\s*\{?[ZNR]\}?|[ZNR]\b)'
    r'(?:\s*[\^_]\s*\{?[+\w]+\}?)?|\s(?:is |are )?(?:an |any )?integers?)|(?:integers?)\s*"?\s*\b([a-z])\b)\s*"?\s*\)?$'
)


def variants(text: str) -> list[str]:
    """``text`` and what else it may be meant to say, most likely first."""
    found = [text]
    family = _DOMAIN.search(text) if re.search("[ZNR]|integer", text) else None
    if family:
        stated, name = text[: family.start()].strip(), family[1] or family[2]
        named = re.compile(rf"(?<![A-Za-z\\]){name}(?![A-Za-z])")
        if named.search(stated):
            text = found[0] = stated
            if "R" not in family[0]:
                found.append(named.sub(' "integer" ', stated))  # the name of the parameter does not matter
    repeating = _REPEATING.fullmatch(text)
    if repeating:  # 0.1(6); 0.(3) can mean nothing else
        found.insert(0 if repeating[1].endswith(".") else 1, rf"{repeating[1]}\overline{{{repeating[2]}}}")
    mixed = _MIXED.fullmatch(text)
    if mixed:
        found.append(f"{mixed[1]} {mixed[2]}")
    for pattern in _CHOOSE if "C" in text else ():
        if pattern.search(text):
            found.append(pattern.sub(_binomial, text))
    if re.search(r"\de[-+]?\d", text):
        found.append(re.sub(r"(?<=\d)e(?=[-+]?\d)", "*e", text))  # 2e-1, e being Euler's number
    constant = _constant_of_integration(text)
    if constant:
        found.append(re.sub(rf"(?<![A-Za-z\\]){constant}(?![A-Za-z])", "C", text))
    grouped = _join(GROUPED, ",", text)
    if grouped != text:
        found = [grouped] if re.search(r"(?<=\d),0", text) else [grouped, *found]  # 7,007 is no list
    elif re.fullmatch(r"-?\d+,\d+", text) and not re.fullmatch(r"-?(?!0)\d{1,3},\d{3}", text):
        found.append(text.replace(",", "."))  # 3,14
    if re.fullmatch(r"-?\d{1,3}(?:\.\d{3})+,\d+", text):
        found.insert(0, text.replace(".", "").replace(",", "."))  # 1.234,56
    elif re.fullmatch(r"-?\d{1,3}(?:\.\d{3}){2,}", text):
        found.insert(0, text.replace(".", ""))  # 1.234.567
    elif _INDIAN.fullmatch(text):
        found.insert(0, text.replace(",", ""))
    scaled = _SCALED.fullmatch(found[0])
    if scaled:  # 4 million is nothing else
        found = [f"({scaled[1]})*{_SCALES[scaled[2]]}{scaled[3]}"]
    return found


def _join(pattern: re.Pattern[str], mark: str, text: str) -> str:
    """Remove ``mark`` from well-formed groups that stand outside brackets."""
    if mark not in text or not pattern.search(text):
        return text
    depth, last, out = 0, 0, []
    for match in re.finditer(r"[(\[{]|[)\]}]|[^()\[\]{}]+", text):
        piece = match[0]
        depth += (piece in ("(", "[", "{")) - (piece in (")", "]", "}"))
        out.append(pattern.sub(lambda m: m[0].replace(mark, ""), piece) if depth == 0 and len(piece) > 1 else piece)
        last = match.end()
    return "".join(out) + text[last:]


def _binomial(match: re.Match[str]) -> str:
    top, bottom = filter(None, match.groups())
    return rf"\binom{{{top}}}{{{bottom}}}"


def _constant_of_integration(text: str) -> str | None:
    """The c of ``x^2 + c`` and of ``c e^{-2x}``: the one letter beside a variable, so that its name is free."""
    letters = set(re.findall(r"(?<![A-Za-z\\])(?:[A-Za-z]|const(?:ant)?)(?![A-Za-z])", text.replace('"', " ")))
    others = letters - set("exytid")
    return others.pop() if len(others) == 1 and letters & {"x", "t"} and others <= {"c", "K", "k", "const", "constant"} else None
