"""Texts that verifiers should survive: drawn from small grammars, cut out of seeds, then damaged. The bytes decide everything.

``draw(data)`` is a pure function of ``data``, so random bytes make a plain fuzzer and an engine that mutates bytes a guided one
(benchmarks/fuzz.py), and a seed makes a test.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MAX_TEXT = 300_000


def _rules(text: str, *more: str) -> tuple[str, ...]:
    return (*text.split("  "), *more)


# "@" is where another text of the same grammar goes
MATHS = _rules(
    r"2  x  0  -3  0.5  17  n  \pi  e  i  \infty  1,000  .5  3\frac12  10^{6}  99999999999  y_1  35\%  \text{cm}  \text{red}  (B)  "
    r"12 cm  45^\circ  1e400  0.1\overline{6}  101_2  \emptyset  \mathbb{R}  9:30  binom  @+@  @-@  @@  @ \cdot @  @/@  @^@  @^{@}  "
    r"\frac{@}{@}  \frac@@  \sqrt{@}  \sqrt[@]{@}  (@)  |@|  @!  \sin @  \log_{@} @  \ln(@)  \binom{@}{@}  \sum_{k=1}^{@} @  "
    r"\int_0^{@} @ dx  \lim_{x \to @} @  f(@)  -@  @, @  @ or @  \{@, @\}  (@, @)  [@, @)  @ \cup @  @ \cap @  @ = @  x = @  @ < @  "
    r"@ \le @ \le @  @ : @  \begin{pmatrix} @ & @ \\ @ & @ \end{pmatrix}  @ \pm @  @ \approx @  \text{@}  \left(@\right)  ${@}$  "
    r"x \in @  \lfloor @ \rfloor  @'  @_{@}  @ \pmod{@}  \overline{@}  \gcd(@, @)  \Gamma(@)  @ \text{ for } @  @ @",
    "",
)
COUNTDOWN = _rules(
    r"1  2  3  0  6  12  000  1.5  999999999999  x  @+@  @-@  @*@  @/@  (@)  -@  @ \times @  \frac{@}{@}  @÷@  @ = @  @ = 6  $@$  "
    r"@**@  @^@  \left(@\right)  @."
)
ROLES = _rules(
    r"Ava is a knight  Ben is a knave  Ava is a knave  Ben is not a knave  both are knights  Ava  knave  1  not  @, @  @ and @  "
    r"@. @  (1) @ (2) @  @; @  @ or @  if @ then @  @: knight  **@**  {@}  | @ | @ |  either @ or @",
    "",
    "@\n@",
)
COMPLETIONS = _rules(
    r"@  \boxed{@}  <answer>@</answer>  <think>@</think> \boxed{@}  The answer is @.  The answer is $@$.  #### @  \[@\]  "
    r"<answer>\boxed{@}</answer>  \boxed{@} and \boxed{@}  **Answer:** @  \boxed @  \fbox{@}  <think>@  so $x = @$  <answer>@  "
    r"\boxed{@  @ </answer>  答案是 @  <answer>@</answer><answer>@</answer>",
    "@\n\nQuestion: @",
    "```python\n@\n```",
)
JUNK = _rules(
    r"{  }  \  $  (  )  [  ]  <  >  ^  _  !  &  \\  ,  .  -  =  %  '  #  ½  ²  √  ×  −  ７  ∞  \left  \right  \frac  \sqrt  \boxed{  "
    r"\text{  <think>  </think>  <answer>  9^  (!  {{  \begin{  \end{pmatrix}  \!  \,  ~  |  e9  __import__('os')",
    *('"', "\n", "\x00", "\u202e", "\ud800", "\u200b", "\xa0", "0" * 40, "a" * 40),
)
GOLDS = {
    "countdown": {"numbers": [1, 2, 3], "target": 6},
    "knights_and_knaves": {"roles": {"Ava": "knight", "Ben": "knave"}, "role_names": ["knight", "knave"]},
}
GRAMMARS = {"math": MATHS, "gsm8k": MATHS, "countdown": COUNTDOWN, "knights_and_knaves": ROLES}
TASKS = ("math", "math", "math", "countdown", "gsm8k", "knights_and_knaves")  # maths has most to read


class Odd(NamedTuple):
    """Something to judge."""

    task: str
    text: str
    gold: object


def draw(data: bytes, seeds: Sequence[str] = ()) -> Odd:
    """What ``data`` stands for; ``seeds`` are texts that parts may be cut out of."""
    choose = _Choices(data)
    task = choose.of(TASKS)
    answer = _part(choose, GRAMMARS[task], seeds)
    gold = GOLDS.get(task)
    if gold is None or not choose.below(32):  # golds as text: of another expression, or of one that differs a little
        gold = _damage(choose, answer, 1 + choose.below(2), seeds) if choose.below(2) else _grow(choose, GRAMMARS[task], 3)
    parts = iter((answer, _part(choose, GRAMMARS[task], seeds)))
    text = "".join(next(parts, answer) if piece == "@" else piece for piece in _pieces(choose.of(COMPLETIONS)))
    return Odd(task, _damage(choose, text, choose.below(4), seeds)[:MAX_TEXT], gold)


class _Choices:
    """Choices that bytes spell out; the first of everything when they are used up."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def below(self, n: int) -> int:
        size = 1 if n <= 256 else 3
        value = int.from_bytes(self.data[self.at : self.at + size], "little")
        self.at += size
        return value % n

    def of(self, options: Sequence[str]) -> str:
        return options[self.below(len(options))]


def _part(choose: _Choices, grammar: Sequence[str], seeds: Sequence[str]) -> str:
    if seeds and not choose.below(3):
        return _cut(choose, choose.of(seeds)[-2_000:])
    return _grow(choose, grammar, 1 + choose.below(5))


def _grow(choose: _Choices, grammar: Sequence[str], depth: int) -> str:
    rule = choose.of(grammar)
    if "@" not in rule:
        return rule
    return "".join(piece if piece != "@" else _grow(choose, grammar, depth - 1) if depth else grammar[0] for piece in _pieces(rule))


def _pieces(rule: str) -> list[str]:
    return rule.replace("@", "\0@\0").split("\0")


def _cut(choose: _Choices, text: str) -> str:
    start = choose.below(len(text) + 1)
    return text[start : start + 1 + choose.below(200)] if choose.below(2) else text


def _damage(choose: _Choices, text: str, times: int, seeds: Sequence[str]) -> str:
    for _ in range(times):
        at = choose.below(len(text) + 1)
        end = at + choose.below(20)
        how = choose.below(7)
        if how == 0:
            text = text[:at] + text[end:]
        elif how == 1:
            text = text[:at] + choose.of(JUNK) + text[at:]
        elif how == 2:
            text = text[:at] + text[at:end] * (1 + choose.below(200)) + text[end:]
        elif how == 3:
            text = text[:at] + choose.of(JUNK) * (1 + choose.below(3_000)) + text[at:]
        elif how == 4:
            text = text[:at] + (_cut(choose, choose.of(seeds)) if seeds else text[end:]) + text[at:]
        elif how == 5:
            text = text[:at] + text[end:] + text[at:end]
        else:
            text = (choose.of(("{", "(", "\\sqrt{", "-", "\\frac{1}{", "|")) * (1 + choose.below(300))) + text
        text = text[:MAX_TEXT]
    return text
