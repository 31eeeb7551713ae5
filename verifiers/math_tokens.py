"""Tokens of an expression, a cursor over them, and the literals: what is read without recursion."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

MAX_TOKENS = 700
MAX_DIGITS = 1_000
MAX_EXPONENT = 9_999

Tree = Any  # math_parser describes it

TOKEN = re.compile(r'\s*(?:(\d+(?:\.\d+)?(?:[eE][-+]?\d{1,12}(?![\w.]))?|\.\d+)|(\\[A-Za-z]+)|"([^"]*)"|([A-Za-z]+)|(\\?.))', re.DOTALL)


class Unreadable(ValueError):
    """The text is not an expression of this grammar."""


def number(text: str) -> Fraction:
    """The exact value of a decimal literal."""
    mantissa, _, exponent = text.lower().partition("e")
    if len(mantissa) > MAX_DIGITS or (exponent and abs(int(exponent)) > MAX_EXPONENT):
        raise OverflowError("a number with too many digits")
    whole, _, decimals = mantissa.partition(".")
    value = Fraction(int(whole + decimals or "0"), 10 ** len(decimals))
    return value * Fraction(10) ** int(exponent) if exponent else value


class Tokens:
    """The tokens of a text; ``kind`` and ``value`` are the current one, ``end`` and the empty text behind the last."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        for match in TOKEN.finditer(text.rstrip()):
            group = match.lastindex or 5
            self.tokens.append((("number", "command", "text", "letters", "sign")[group - 1], match[group]))
            if len(self.tokens) > MAX_TOKENS:
                raise Unreadable("too many symbols")
        self.capital_i = any(value == "I" for kind, value in self.tokens if kind == "letters")
        self.position = -1
        self.kind, self.value = "end", ""
        self.take()

    def take(self) -> str:
        """Step to the next token; return the value of the one left."""
        value = self.value
        self.position += 1
        self.kind, self.value = self.tokens[self.position] if self.position < len(self.tokens) else ("end", "")
        return value

    def put(self, kind: str, value: str) -> None:
        """Replace the current token."""
        self.kind, self.value = kind, value

    def want(self, value: str) -> None:
        if self.value != value or self.kind in ("text", "end"):
            raise Unreadable(f"expected {value!r}, got {self.value!r}")
        self.take()

    def after(self) -> str:
        return self.tokens[self.position + 1][1] if self.position + 1 < len(self.tokens) else ""

    def raw_group(self) -> str:
        if self.value != "{":
            if self.kind in ("end", "sign"):
                raise Unreadable("empty subscript")
            if self.kind == "letters" and len(self.value) > 1:
                first = self.value[0]
                self.put("letters", self.value[1:])
                return first
            return self.take()
        self.take()
        parts, depth = [], 1
        while depth:
            if self.kind == "end":
                raise Unreadable("unbalanced braces")
            depth += (self.value == "{") - (self.value == "}")
            if depth:
                parts.append(self.value.strip())
            self.take()
        return "".join(parts)

    def literal(self) -> Tree:
        text = self.take()
        if self.value == "." and self.kind == "sign":  # 0.333... , 2. and 0.\dot{3}
            self.take()
            return self.repeating(text)
        if self.kind == "command" and self.value in ("\\overline", "\\dot", "\\dots") and "." in text:
            return self.repeating(text)
        return ("n", number(text))

    def repeating(self, text: str) -> Tree:
        if self.kind == "command" and self.value in ("\\overline", "\\dot"):
            block = ""
            while self.kind == "command" and self.value in ("\\overline", "\\dot"):
                dotted = self.take() == "\\dot"
                braced = self.value == "{"
                if braced:
                    self.take()
                block += self.take()
                if braced:
                    self.want("}")
                if self.kind == "number" and dotted:  # 0.\dot{1}4\dot{2}
                    block += self.take()
            if not block.isdigit():
                raise Unreadable("expected repeating digits")
            return ("n", _periodic(text, block))
        dots = self.value == "\\dots"
        while self.value == "." and self.kind == "sign":
            self.take()
            dots = True
        if self.value == "\\dots":
            self.take()
        if not dots:
            return ("n", number(text))
        decimals = text.partition(".")[2]
        for length in range(1, len(decimals) // 2 + 1):  # 0.333... , 0.1212...
            block = decimals[-length:]
            if decimals[-2 * length : -length] == block and len(decimals) >= 3:
                return ("n", _periodic(text, block))
        if len(decimals) < 3:
            raise Unreadable("dots after a number")
        return ("n", number(text))  # cut off: 3.14159...


def _periodic(text: str, block: str) -> Fraction:
    """The decimal ``text`` followed by ``block`` for ever."""
    if len(text) + len(block) > MAX_DIGITS:
        raise OverflowError("a number with too many digits")
    decimals = len(text.partition(".")[2])
    return number(text) + Fraction(int(block), (10 ** len(block) - 1) * 10**decimals)
