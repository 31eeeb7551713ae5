"""The unit behind a value, in one spelling. Units are compared, never converted."""

from __future__ import annotations

import re

# fmt: off
_ALIASES = {
    "m": "metre meter", "cm": "centimetre centimeter", "mm": "millimetre millimeter", "km": "kilometre kilometer", "in": "inch inche",
    "ft": "foot feet",
    "yd": "yard", "mi": "mile", "g": "gram gramme", "kg": "kilogram", "mg": "milligram", "lb": "pound lbs", "oz": "ounce",
    "l": "liter litre",
    "ml": "milliliter millilitre", "s": "second sec secs", "min": "minute mins", "h": "hour hr hrs", "day": "", "week": "", "month": "",
    "year": "yr yrs",
    "mph": "", "kph": "", "rpm": "", "hz": "hertz", "khz": "", "kw": "", "kj": "", "cal": "calorie", "pa": "pascal", "kpa": "",
    "mol": "mole", "ev": "",
    "deg": "degree", "rad": "radian", "am": "", "pm": "", "$": "dollar usd buck", "eur": "euro", "gbp": "", "cent": "",
    "rupee": "rs inr", "yuan": "rmb",
    "unit": "", "th": "st nd rd", "cc": "", "nm": "", "km/h": "", "m/s": "", "sq": "",
}
# fmt: on
_CANONICAL = {alias: unit for unit, aliases in _ALIASES.items() for alias in [unit, *aliases.split()]}
_NEUTRAL = frozenset(["unit", "th", ""])
_FORBIDDEN = frozenset("and or not if else is except without lambda for in while import from neither either maybe".split())
_NOT_UNITS = frozenset(
    "sin cos tan cot sec csc log ln exp sqrt pi arcsin arccos arctan sinh cosh tanh alpha beta gamma delta theta lambda "
    "mu omega phi rho sigma tau "
    "max min "
    "gcd lcm mod abs inf nan".split()
) - {"min"}  # fmt: skip
_POWER = r"\s*(?:\^\s*(?:\{\s*(-?\d)\s*\}|(-?\d)))?"
_QUOTED = re.compile(r'^(.*[^\s])??\s*"([^"]*)"' + _POWER + r'((?:\s*/\s*"[^"]*"' + _POWER + r")?)$", re.DOTALL)
_DEGREES = re.compile(r"\s*(?:\^\s*(?:\{\s*\\circ\s*\}|\\circ)|\\circ)\s*$")
_TURNED = re.compile(r"\\?(?:sin|cos|tan|cot|sec|csc)\b")  # an angle inside a function is no unit
_ORDINAL = re.compile(r'\s*\^\s*\{?\s*"?\s*(?:th|st|nd|rd)\s*"?\s*\}?$|(?<=\d)(?:th|st|nd|rd)$')
_PLAIN = re.compile(r"^(.*[\d)}\]!])(\s*)([A-Za-z][A-Za-z .,'/-]*?)" + _POWER + "$", re.DOTALL)
_CURRENCY = re.compile(r"^(?:USD|EUR|GBP|Rs\.?|INR)\s*(?=\d)", re.I)
_CENT = re.compile(r"\s*¢$|\s*c/$")


def split_unit(text: str) -> tuple[str, str]:
    """(what stands before the unit, the unit or "")."""
    text = _CENT.sub("", _CURRENCY.sub("", text))
    degrees = _DEGREES.search(text)
    if degrees and not _TURNED.search(text):
        return text[: degrees.start()], "deg"
    ordinal = _ORDINAL.search(text)
    if ordinal:
        return text[: ordinal.start()], ""
    quoted = _QUOTED.match(text)
    if quoted and quoted[1]:
        head = quoted[1]
        if head.endswith(("^", "^{", "_", "_{", "+", "-", "*", "/", "(")):
            return text, ""
        return _accept(text, head, quoted[2], quoted[3] or quoted[4], quoted[5])
    plain = _PLAIN.match(text)
    if plain:
        head, space, words, power = plain[1], plain[2], plain[3], plain[4] or plain[5]
        first = re.split(r"[ .,/]", words)[0]
        known = first.lower() in _CANONICAL and (len(first) > 1 or first in ("°",))
        wordy = len(first) > 3 or bool(space and (len(first) == 3 or " " in words) and re.search("[aeiouAEIOU]", first))
        if first not in _NOT_UNITS and (known or (wordy and (space or first.islower()))):
            return _accept(text, head, words, power, "")
    return text, ""


def _accept(text: str, head: str, words: str, power: str | None, per: str) -> tuple[str, str]:
    names = re.findall(r"[a-z]+", words.lower())
    if _FORBIDDEN.intersection(names[:1]) or {"or", "not"}.intersection(names) or re.search(r"\d", words):
        return text, ""
    return head, _canonical(words, power or "", per)


def _canonical(words: str, power: str, per: str) -> str:
    text = re.sub(r"[.~\\]", "", words).strip().lower().strip(" ,!")
    if per:
        text += re.sub(r'[\s"]', "", per).lower()
    text = re.sub(r"\s*\bper\b\s*", "/", text)
    squared = re.match(r"(?:square|sq|cubic)\s+", text)
    if squared:
        power = "3" if text.startswith("cubic") else "2"
        text = text[squared.end() :]
    text = re.sub(r"\s+squared$", "^2", text)
    names = [_one(name) for name in text.split("/")]
    unit = "/".join(names)
    if unit in _NEUTRAL:
        return ""
    return unit + (f"^{power}" if power not in ("", "1") else "")


def _one(name: str) -> str:
    name = name.strip()
    if name in _CANONICAL:
        return _CANONICAL[name]
    singular = name[:-1] if name.endswith("s") and len(name) > 2 else name
    return _CANONICAL.get(singular, singular)


def compatible(a: str, b: str) -> bool:
    """A unit that is missing on one side is no conflict."""
    return not a or not b or a == b
