"""The one answer extractor: where in a completion is the declared answer?

1. Only the text after the last ``</think>`` counts; a ``<think>`` that is not closed leaves no answer.
2. The last ``<answer>...</answer>`` is the answer; if it is not closed, there is none. A tag that holds only a box is unwrapped.
3. Without an answer tag, the last ``\\boxed{...}`` or ``\\fbox{...}`` with balanced braces; if it is not closed, there is none.
4. Without any marker, strict mode finds nothing; lenient mode takes the whole text, and the task decides whether that is an answer.

Completions are hostile: every step is a linear search (10^6 characters take a few milliseconds) and no text makes it raise.
"""

from __future__ import annotations

import re

MODES = ("lenient", "strict")
MAX_BRACES = 10_000  # a box with more braces counts as not closed

_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)  # \{ and \} are characters, not grouping
_WRAPPING = "\\()[]$. \t\r\n"  # what may stand around a box that fills an answer tag: $..$, \(..\), \[..\], a period


def extract(text: str, *, mode: str = "lenient") -> str | None:
    """The answer in ``text``, stripped, or None if there is none or it is blank.

    Raises TypeError for anything but a str and ValueError for an unknown mode.
    """
    return locate(text, mode)[0]


def locate(text: str, mode: str) -> tuple[str | None, bool]:
    """(answer, marked): as :func:`extract`, and whether a marker (answer tag or box) declared the answer."""
    if mode not in MODES:
        raise ValueError(f"expected mode 'lenient' or 'strict', got {mode!r}")
    if not isinstance(text, str):
        raise TypeError(f"expected the completion as a str, got {type(text).__name__}; take the text out of message objects first")
    closed = text.rfind("</think>")
    if text.rfind("<think>") > closed:
        return None, False
    start = closed + len("</think>") if closed >= 0 else 0
    opened = text.rfind("<answer>", start)
    if opened >= 0:
        opened += len("<answer>")
        closed = text.find("</answer>", opened)
        answer = _unwrap(text[opened:closed].strip()) if closed >= 0 else ""
        return answer or None, True
    box = _last_box(text, start)
    if box is not None:
        opened, closed = box
        return (text[opened:closed].strip() or None) if closed >= 0 else None, True
    return (text[start:].strip() or None) if mode == "lenient" else None, False


def _last_box(text: str, start: int = 0) -> tuple[int, int] | None:
    """(start, end) of the content of the last box, end -1 where it is not closed; None where there is no box."""
    opened = max(text.rfind("\\boxed{", start), text.rfind("\\fbox{", start))
    if opened < 0:
        return None
    opened = text.index("{", opened) + 1
    depth = 1
    for count, brace in enumerate(_BRACE.finditer(text, opened)):
        if count == MAX_BRACES:
            break
        depth += (brace[0] == "{") - (brace[0] == "}")
        if not depth:
            return opened, brace.start()
    return opened, -1


def _unwrap(answer: str) -> str:
    """The content of the box if ``answer`` is one box and nothing else, otherwise ``answer``."""
    box = _last_box(answer)
    if box is None or box[1] < 0:
        return answer
    opened, closed = box
    around = answer[: answer.rindex("\\", 0, opened)] + answer[closed + 1 :]
    return answer if around.strip(_WRAPPING) else answer[opened:closed].strip()
