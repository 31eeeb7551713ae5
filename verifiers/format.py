"""Format rewards: does a completion keep to a template? Apart from whether its answer is right, and off unless somebody asks.

A format reward pays for tags, so it can be earned without any answer. Nothing here ever enters the reward of another verifier: call
:func:`verify_format` (or ``verify("format", completion, "think_answer")``) yourself and weigh it as you like. :func:`partial_score` gives
the mixtures that two papers used, by name, for comparison with them.
"""

from __future__ import annotations

import re
from typing import Any

from .verdict import Status, Verdict

TEMPLATES = ("think_answer", "think", "boxed", "hash")
REASONS = ("correct", "format")
SCHEMES = ("tinyzero", "logic_rl")

_TAGS = {
    "think_answer": ("<think>", "</think>", "<answer>", "</answer>"),
    "think": ("<think>", "</think>"),
}
_HEADER = re.compile(r"\s*<\|im_start\|>assistant\b")
_DEBRIS = re.compile(r"(?:<\|[^|>\n]{1,40}\|>|</s>)\Z")
_MAX_BRACES = 10_000


def verify_format(completion: str, gold: Any = "think_answer", *, mode: str = "lenient", prefilled: bool = False) -> Verdict:
    """Judge whether ``completion`` keeps to the template that ``gold`` names.

    * ``think_answer``: ``<think>...</think><answer>...</answer>`` and nothing around them; every tag once; the answer is not blank
    * ``think``: ``<think>...</think>`` and then something; both tags once
    * ``boxed``: after the thinking, a closed box that is not blank
    * ``hash``: after the thinking, ``####`` with something behind it on its line

    ``prefilled`` says that the prompt already opened ``<think>``. Tags are case-sensitive; a chat header in front and end-of-text tokens
    behind do not count. Both modes are the same. Reasons: ``correct``, ``format``.

    Raises TypeError for a completion that is not a str, ValueError for an unknown template or mode.
    """
    if mode not in ("lenient", "strict"):
        raise ValueError(f"expected mode 'lenient' or 'strict', got {mode!r}")
    if not isinstance(gold, str) or gold not in TEMPLATES:
        raise ValueError(f"expected a template out of {', '.join(TEMPLATES)}, got {gold!r}")
    if not isinstance(completion, str):
        raise TypeError(f"expected the completion as a str, got {type(completion).__name__}; take the text out of message objects first")
    text = _bare(completion)
    if prefilled and not text.startswith("<think>"):
        text = "<think>" + text
    kept = _keeps_tags(text, gold) if gold in _TAGS else _declares(text[max(text.rfind("</think>"), 0) :], gold)
    return Verdict(1.0, Status.CORRECT, None, None, "correct") if kept else Verdict(0.0, Status.WRONG, None, None, "format")


def partial_score(verdict: Verdict, keeps_format: bool, scheme: str) -> float:
    """The score that a paper gave an answer, from its verdict and from whether the completion keeps the paper's format (think_answer).

    * ``tinyzero``: 1 for a right answer, 0.1 for an answer that is there but wrong, else 0
    * ``logic_rl``: 1 or -1 for the format, plus 2 for a right answer, -1.5 for a wrong one, -2 for one that cannot be read or where the
      format is broken

    Scores like these pay for less than the right answer, and a policy finds that out. They are here to repeat published runs.
    Where no verdict was reached (``verdict.valid`` is False) the score is 0; leave such completions out.
    """
    if scheme not in SCHEMES:
        raise ValueError(f"expected a scheme out of {', '.join(SCHEMES)}, got {scheme!r}")
    if not verdict.valid:
        return 0.0
    if scheme == "tinyzero":
        return 1.0 if verdict.status is Status.CORRECT else 0.1 if verdict.answer is not None else 0.0
    if not keeps_format:
        return -3.0
    if verdict.status is Status.CORRECT:
        return 3.0
    return -0.5 if verdict.mode_key is not None else -1.0


def _bare(text: str) -> str:
    """The text without chat header, end-of-text tokens and white space around it."""
    if header := _HEADER.match(text):
        text = text[header.end() :]
    text = text.strip()
    while debris := _DEBRIS.search(text, max(0, len(text) - 50)):
        text = text[: debris.start()].rstrip()
    return text


def _keeps_tags(text: str, template: str) -> bool:
    tags = _TAGS[template]
    if any(text.count(tag) != 1 for tag in tags):
        return False
    at = [text.index(tag) for tag in tags]
    if at[0] or at != sorted(at):
        return False
    if template == "think":
        return bool(text[at[1] + len(tags[1]) :].strip())
    between = text[at[1] + len(tags[1]) : at[2]]
    answer = text[at[2] + len(tags[2]) : at[3]]
    return bool(answer.strip()) and not between.strip() and text.endswith(tags[3])


def _declares(text: str, template: str) -> bool:
    if template == "hash":
        marker = text.rfind("####")
        return marker >= 0 and bool(text[marker:].lstrip("#").partition("\n")[0].strip())
    opened = max(text.rfind("\\boxed{"), text.rfind("\\fbox{"))
    if opened < 0:
        return False
    start = text.index("{", opened) + 1
    depth = 1
    for count, brace in enumerate(re.finditer(r"\\.|[{}]", text[start:], re.DOTALL)):
        if count == _MAX_BRACES:
            break
        depth += (brace[0] == "{") - (brace[0] == "}")
        if not depth:
            return bool(text[start : start + brace.start()].strip())
    return False
