"""Mathematics: does the declared answer have the value of the gold answer?

The answer is taken from the completion (``extract.py``), read by a bounded parser of our own (``math_latex``, ``math_parser``,
``math_answer``) and compared exactly or to 40 digits (``math_equal``). Nothing in a completion is ever evaluated by Python or sympy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from .extract import declared
from .math_answer import read
from .math_choice import choice, labelled, same_choice, same_choices
from .math_equal import equal, words
from .math_equal_values import Precision
from .math_forms import Answer, Equation, Group, Value, Words
from .math_key import key
from .prose import statement
from .verdict import Status, Verdict

REASONS = ("correct", "no_answer", "unreadable", "different")
MAX_SHOWN = 512

_SPACE = re.compile(r"(?<!\d)\s+|\s+(?!\d)")  # 1 8 is not 18
_SENTENCE = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")
_QUOTED = re.compile(r'"[A-Za-z]{2,}"')
_ROMAN = re.compile(r"[IVX]{2,6}")
_AND = re.compile(r'[",\s]*(?:,|\band\b)[",\s]*')
_NO_ANSWER = Verdict(0.0, Status.NO_ANSWER, None, None, "no_answer")


def verify_math(
    completion: str,
    gold: Any,
    *,
    mode: str = "lenient",
    precision: float | Sequence[float] | None = None,
    alternatives: Sequence[Any] = (),
    last_number: bool = False,
) -> Verdict:
    r"""Judge ``completion`` against ``gold``: the answer itself, or a solution that declares it (a box, an answer tag, ``####``).

    ``mode="strict"`` wants a box, an answer tag or a ``####`` line; lenient also takes the sentence that states the answer.
    ``precision`` is an absolute tolerance (OlympiadBench's ``error``), or one for each value of the gold.
    ``alternatives`` are further golds, each as right as ``gold`` ("find one of the foci"); a list is one answer and needs no such thing.
    ``last_number`` lets the last number of a text without any marker count, as is usual for GSM8K.

    Reasons: ``correct``; ``no_answer`` (nothing declared); ``unreadable`` (the declared answer is no mathematics and not the gold's
    words); ``different``. A gold that is not mathematics is compared as words.

    Raises TypeError for a completion that is not a str, ValueError for an unknown mode, a gold that is empty or neither
    text nor number, and a precision that is none.
    """
    if isinstance(alternatives, str) or not isinstance(alternatives, Sequence):
        raise TypeError(f"expected alternatives as a list of golds, got {alternatives!r}")
    tolerance = _tolerance(precision)
    golds = [gold_text(each) for each in (gold, *alternatives)]
    answer, marked = declared(completion, mode, last_number=last_number)
    if not marked and mode == "lenient" and isinstance(gold, str) and completion.strip() == gold.strip():
        answer = golds[0]
    if answer is None or not answer.strip():
        return _NO_ANSWER
    return max((_judge(answer, expected, tolerance, marked) for expected in golds), key=lambda verdict: verdict.reward)


def _tolerance(precision: Any) -> Precision:
    several = isinstance(precision, Sequence) and not isinstance(precision, str)
    for value in precision if several else () if precision is None else (precision,):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise ValueError(f"expected precision as a number of at least 0, or a list of them, got {precision!r}")
    return tuple(precision) if several else precision


def verify_gsm8k(
    completion: str,
    gold: Any,
    *,
    mode: str = "lenient",
    precision: float | Sequence[float] | None = None,
    alternatives: Sequence[Any] = (),
) -> Verdict:
    """As :func:`verify_math`; without a marker, lenient mode takes the last number."""
    return verify_math(completion, gold, mode=mode, precision=precision, alternatives=alternatives, last_number=True)


def gold_text(gold: Any) -> str:
    """The gold answer as text: out of its box, its tag or its ``####`` line. Raises ValueError for an empty one."""
    if isinstance(gold, bool) or not isinstance(gold, str | int | float) or gold in (math.inf, -math.inf) or gold != gold:
        raise ValueError(f"expected a gold answer as text or a number, got {repr(gold)[:200]}")
    text = _gold(gold if isinstance(gold, str) else repr(gold))
    if not text:
        raise ValueError(f"expected a gold answer, got an empty one: {repr(gold)[:200]}")
    return text


@lru_cache(maxsize=4096)
def _gold(gold: str) -> str:
    marked = any(mark in gold for mark in ("\\boxed", "\\fbox", "<answer>", "####"))
    answer = declared(gold, "strict")[0] if marked else gold
    if marked and answer is None and gold.count("\\boxed{") == 1:  # cut off before its last brace
        answer = gold.partition("\\boxed{")[2]
    if not answer or not answer.strip() or not read(answer)[0].strip(' "{}$'):
        return ""
    if not marked and re.search(r"[Aa]nswer", gold) and _unread(gold):
        stated = declared(gold, "lenient")[0]
        if stated and any(not isinstance(reading, Words) for reading in read(stated)[1]):
            return stated
    return answer


def _unread(gold: str) -> bool:
    readings = read(gold)[1]
    if not readings or isinstance(readings[0], Words):
        return True
    return isinstance(readings[0], Group) and any(isinstance(item, Words) for item in readings[0].items)


@lru_cache(maxsize=16384)
def _judge(answer: str, gold: str, precision: Precision, marked: bool) -> Verdict:
    shown = answer[:MAX_SHOWN]
    text, readings = read(answer)
    expected_text, expected = read(gold)
    if not readings and text and gold.strip() == answer.strip():
        return Verdict(1.0, Status.CORRECT, shown, None, "correct")
    if not readings:
        return Verdict(0.0, Status.WRONG, shown, None, "unreadable")
    mode_key = _mode(answer, text, readings[0])
    if matches(gold, expected_text, expected, answer, text, readings, precision):
        return Verdict(1.0, Status.CORRECT, shown, mode_key, "correct")
    if marked and len(_SENTENCE.findall(text)) > 1 and _SENTENCE.match(text):  # "There are 12 apples." in the answer's place
        stated = statement(answer, False)
        if stated and stated != answer and _SENTENCE.search(stated) is None:
            verdict = _judge(stated, gold, precision, False)
            if verdict.status == Status.CORRECT:
                return verdict
    if isinstance(readings[0], Words):
        return Verdict(0.0, Status.WRONG, shown, mode_key, "unreadable") if marked else _NO_ANSWER
    return Verdict(0.0, Status.WRONG, shown, mode_key, "different")


def _mode(answer: str, plain: str, reading: Answer) -> str | None:
    letter = choice(answer)
    if letter:
        return letter.letter.upper() if letter.marked else letter.letter
    return words(plain) if _is_words(plain) and not isinstance(reading, Group) else key(reading)


def matches(
    gold: str, gold_plain: str, expected: tuple[Answer, ...], answer: str, plain: str, readings: tuple[Answer, ...], precision: Precision
) -> bool:
    if plain and _SPACE.sub("", gold_plain) == _SPACE.sub("", plain):
        return True
    if gold.strip() == answer.strip() and plain:
        return True
    if not expected:  # a gold of thousands of characters: its text or nothing
        return False
    with_content = labelled(gold)
    if with_content and (same_choice(with_content[0], answer) or _judge(answer, with_content[1], precision, True).reward):
        return True
    letter = choice(gold)
    if letter and same_choice(letter, answer):
        return True
    if _QUOTED.fullmatch(gold_plain) or _QUOTED.fullmatch(plain):
        if words(gold_plain) == words(plain):
            return True
    if same_choices(gold, answer):
        return True
    if _is_words(gold_plain) and _is_words(plain) and len(words(gold_plain)) > 1 and not isinstance(expected[0], Group):
        return words(gold_plain) == words(plain)
    if _ROMAN.fullmatch(gold_plain.strip('"')) and _ROMAN.fullmatch(plain.strip('"')):
        return gold_plain.strip('"') == plain.strip('"')
    if _same_list_of_words(gold_plain, plain) or _same_but_for_case(gold_plain, plain):
        return True
    return any(equal(a, b, precision) for a in expected for b in readings if _comparable(a, b, expected, readings))


def _is_words(plain: str) -> bool:
    """Nothing but letters: at least one word of three (or "no"), so that it is not a product of symbols."""
    if plain.strip(' ".').casefold() == "no":
        return True
    return bool(re.fullmatch(r"[A-Za-z\"][A-Za-z\s\"'.!-]*|[A-Za-z]{3,}\d*", plain)) and bool(re.search(r"[A-Za-z]{3}", plain))


def _same_but_for_case(gold: str, answer: str) -> bool:
    """Words with signs or digits in them: Hello-123, July 4."""
    worded = "\\" not in gold + answer and re.search(r"[a-z]{4}", gold.casefold())
    return bool(worded) and gold.isupper() == answer.isupper() and words(gold) == words(answer)


def _same_list_of_words(gold: str, answer: str) -> bool:
    """Anna and Bob; Bob, Anna."""
    lists = [sorted(words(item) for item in _AND.split(text) if item.strip(' "')) for text in (gold, answer)]
    return len(lists[0]) > 1 and lists[0] == lists[1] and all(_is_words(item) for item in lists[0])


def _comparable(a: Answer, b: Answer, expected: tuple[Answer, ...], readings: tuple[Answer, ...]) -> bool:
    """A second reading (a comma as a decimal point) counts against a number only."""
    if a is not expected[0] or b is not readings[0]:
        return isinstance(a, Value | Group | Equation) and isinstance(b, Value | Group | Equation)
    return True
