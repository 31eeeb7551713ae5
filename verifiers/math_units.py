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
    "mph": "", "kph": "", "kmh": "", "kmph": "", "rpm": "",
    "hz": "hertz", "khz": "", "kw": "", "kj": "", "cal": "calorie", "pa": "pascal", "kpa": "",
    "mol": "mole", "ev": "",
    "deg": "degree", "rad": "radian", "am": "", "pm": "", "$": "dollar usd buck", "eur": "euro", "gbp": "", "cent": "",
    "rupee": "rs inr", "yuan": "rmb",
    "unit": "", "th": "st nd rd", "cc": "", "nm": "", "sq": "",
}
# fmt: on
_CANONICAL = {alias: unit for unit, aliases in _ALIASES.items() for alias in [unit, *aliases.split()]}
UNITS = frozenset(_CANONICAL) | frozenset(f"{name}s" for name in _CANONICAL)
_NEUTRAL = frozenset(["unit", "th", ""])
_FORBIDDEN = frozenset("and or not if else is except without lambda for in while import from neither either maybe".split())
_NOT_UNITS = frozenset(
    "sin cos tan cot sec csc log ln exp sqrt pi arcsin arccos arctan sinh cosh tanh alpha beta gamma delta theta lambda "
    "mu omega phi rho sigma tau "
    "max min "
    "gcd lcm mod abs inf nan".split()
) - {"min"}  # fmt: skip
_POWER = r"\s*(?:\^\s*(?:\{\s*(-?\d)\s*\}|(-?\d)))?"
_QUOTED = re.compile(  # every blank can be taken in one way only: else time grows exponentially
    r'^(.*?[^\s"/*^])\s*((?:"[^"]*"(?:\s*\^\s*(?:\{\s*-?\d\s*\}|-?\d))?(?:\s*[/*])?\s*)+)$', re.DOTALL
)
_EXPONENT = re.compile(r"\^\s*\{?\s*(-?\d)\s*\}?")
_DEGREES = re.compile(r'\s*\^?\s*\{?\s*\\circ\s*\}?\s*(?:"?\s*[CF]\s*"?$)?|(?<=\d)\s*\^\s*\{?\s*"?o"?\s*\}?$')
_TURNED = re.compile(r"\\?(?:sin|cos|tan|cot|sec|csc)\b")  # an angle inside a function is no unit
_MODULUS = re.compile(r'\s*\\pmod\s*\{?\s*(\d+|[a-z])\s*\}?\s*$|\s*\(\s*(?:\\b?mod|"?mod"?)\s*\{?\s*(\d+|[a-z])\s*\}?\s*\)$')
_ORDINAL = re.compile(r'\s*\^\s*\{?\s*"?\s*(?:th|st|nd|rd)\s*"?\s*\}?$|(?<=\d)(?:th|st|nd|rd)$')
_PLAIN = re.compile(r"^(.*[\d)}\]!])(\s*)([A-Za-z][A-Za-z .,'/-]*?)" + _POWER + "$", re.DOTALL)
_NOON = re.compile(r"\b([ap])\.\s?m\b\.?", re.I)
_SPEEDS = re.compile(r"\b(?:mph|k(?:ph|mph|mh))\b")
_UNIT_TOKEN = re.compile(r"\^(-?\d)|[a-z$°]+|/")
_FACTORS = {"square": 2, "sq": 2, "cubic": 3}
_EXPONENTS = {"squared": "2", "cubed": "3"}
_CURRENCY = re.compile(r'^"?\s*(?:USD?|EUR|GBP|Rs\.?|INR)\s*"?\s*(?=\d)', re.I)
_FRACTION = re.compile(r'\\frac\s*\{\s*"([^"]*)"([^{}]*)\}\s*\{\s*"([^"]*)"((?:[^{}]|\{[^{}]*\})*)\}')
_BRACKETED = re.compile(r"(?<=[\d)}])\s*\(\s*([A-Za-z]{2,}[A-Za-z /^\d]*)\)$")
_MICRO = re.compile(r'\\mu\s*"?\s*(?=[A-Za-z])')
_CENT = re.compile(r"\s*¢$|\s*c/$")


def split_unit(text: str) -> tuple[str, str]:
    """(what stands before the unit, the unit or "")."""
    text = _NOON.sub(r"\1m", _CENT.sub("", _CURRENCY.sub("", text)))
    modulus = _MODULUS.search(text)
    if modulus and modulus.start():
        return text[: modulus.start()], f"mod {modulus[1] or modulus[2]}"
    degrees = _DEGREES.search(text)
    if degrees and not _TURNED.search(text):
        return _DEGREES.sub(" ", text), "deg"
    ordinal = _ORDINAL.search(text)
    if ordinal:
        return text[: ordinal.start()], ""
    text = _BRACKETED.sub(r' "\1"', _FRACTION.sub(r'"\1"\2/"\3"\4', text)) if text[-1:] in ")}" else text
    text = _MICRO.sub('"micro', text) if '\\mu "' in text else text
    quoted = _QUOTED.match(text)
    if quoted:
        return (text, "") if quoted[1].endswith(("_", "{", "+", "-", "(")) else _accept(text, quoted[1], quoted[2].replace('"', " "))
    plain = _PLAIN.match(text)
    if plain:
        head, space, words = plain[1], plain[2], plain[3]
        first, *rest = re.split(r"[ .,/]", words)
        ratio = "/" in words and {_one(name.lower()) for name in rest} <= _CANONICAL.keys()
        known = first.lower() in _CANONICAL and (len(first) > 1 or ratio)
        wordy = len(first) > 3 or bool(space and (len(first) == 3 or " " in words) and re.search("[aeiouAEIOU]", first))
        if first not in _NOT_UNITS and (known or (wordy and (space or first.islower()))):
            return _accept(text, head, text[plain.start(3) :])
    return text, ""


def _accept(text: str, head: str, words: str) -> tuple[str, str]:
    words = _EXPONENT.sub(r"^\1", words).lower()
    names = re.findall(r"[a-z]+", words)
    if names[:2] == ["in", "total"]:
        return head, ""
    if (
        (_FORBIDDEN.intersection(names[:1]) and len(names) > 1)
        or {"or", "not"}.intersection(names)
        or re.search(r"(?<!\^)(?<!\^-)\d", words)
    ):
        return text, ""
    return head, _canonical(words)


def _canonical(words: str) -> str:
    """The unit as a product of powers in one order: ``m s^-2`` for metres per second squared. Empty for what only counts."""
    powers: dict[str, int] = {}
    sign, factor, name = 1, 1, ""
    words = _SPEEDS.sub(lambda match: "mi/h" if match[0] == "mph" else "km/h", re.sub(r"[~\\.]", "", words))
    for match in _UNIT_TOKEN.finditer(words):
        token = match[0]
        if token in ("/", "per"):
            sign = -1
        elif token in _FACTORS:
            factor = _FACTORS[token]
        elif name and (token in _EXPONENTS or match[1]):
            powers[name] += (int(match[1] or _EXPONENTS[token]) - 1) * sign
        elif not match[1]:
            name = _one(token)
            powers[name] = powers.get(name, 0) + factor * sign
            factor = 1
    named = sorted((name, power) for name, power in powers.items() if power and name not in _NEUTRAL)
    return " ".join(name if power == 1 else f"{name}^{power}" for name, power in named)


def _one(name: str) -> str:
    if name in _CANONICAL:
        return _CANONICAL[name]
    singular = name[:-1] if name.endswith("s") and len(name) > 2 else name
    return _CANONICAL.get(singular, singular)


def compatible(a: str, b: str) -> bool:
    """A unit that is missing on one side is no conflict."""
    return not a or not b or a == b
