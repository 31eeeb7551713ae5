"""The one answer extractor: where in a completion is the declared answer?

1. Only the text after the last ``</think>`` counts; a ``<think>`` that is not closed leaves no answer.
2. The last ``<answer>...</answer>`` is the answer; if it is not closed, there is none. A tag that holds only a box is unwrapped.
3. Without an answer tag, the last ``\\boxed{...}`` or ``\\fbox{...}`` with balanced braces; if it is not closed, there is none.
4. Without any marker, strict mode finds nothing; lenient mode takes the whole text, and the task decides whether that is an answer.

Mathematics (:func:`declared`) also knows boxes that form one answer (joined by a comma, "and" or "or"), ``\\boxed 7``, the ``####`` line
of GSM8K and, in lenient mode, the sentence that states the answer; text behind the next ``Question:`` is not read.

Completions are hostile: every step is a linear search (10^6 characters take a few milliseconds) and no text makes it raise.
"""

from __future__ import annotations

import re

from .prose import statement

MODES = ("lenient", "strict")
MAX_BOX = 20_000  # characters of a box behind its first blanks; a longer one counts as not closed
MAX_BRACES = 10_000  # a box with more braces counts as not closed

_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)  # \{ and \} are characters, not grouping
_BLANKS = re.compile(r"\s*")
_LINE = re.compile(r"[ \t]*\n?([^\n]*)")
_RUN_ON = re.compile(
    r"\n[ \t#*]{0,9}(?:(?:Question|Q|Problem|Exercise|Human|User|Student|Instruction)\s*\d*\s*\**:|"
    r"(?:Question|Problem|Exercise)\s+\d+[ \t*]*\n)"
    r"|<\|im_start\|>\s*user|<\|user\|>|<start_of_turn>\s*user"
)
_ANSWERED = re.compile(r"(?<!#)####(?!#)[^\n]{0,80}\d|\\boxed\s?\{|</answer>|[Aa]nswer(?: is|:)[^\n]{0,40}?(?:\d|\$|\\)")
_HEADING = re.compile(  # "#### Final Answer" opens a section, it states nothing
    r"\**(?:final|answer|solution|step|verification|conclusion|explanation|check|summary|result|analysis|reasoning)\b[^=:$\\]*[:*]*", re.I
)
_BARE_BOX = re.compile(r"\\(?:boxed|fbox)[ \t]*(-?\d[\d.,/]*|[A-Z]\b)")
_JOINT = re.compile(  # what may stand between the boxes of one answer; between adjacent boxes nothing at all
    r"(?:[\s$~]|\\[()\[\],;: ]|\\q?quad\b)*(?:(?:,|;|&|\b(?:and|or)\b|\\text\s*\{[^{}]{0,60}\b(?:and|or)\s*\}|\\text\s*\{\s*,\s*\})"
    r"(?:[\s$~]|\\[()\[\],;: ]|\\q?quad\b|[A-Za-z](?:_\{?\w+\}?)?\s*=)*)+|"
)
_APPROXIMATED = re.compile(r"(?:[\s$~]|\\[()\[\],;: ])*(?:\\approx|≈)(?:[\s$~]|\\[()\[\],;: ])*")  # the exact box counts
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


def declared(text: str, mode: str, *, last_number: bool = False) -> tuple[str | None, bool]:
    """As :func:`locate` for answers in mathematics. ``last_number``: without a marker the last number is the answer."""
    if isinstance(text, str):
        text = _cut_run_on(text)
    answer, marked = locate(text, mode)
    start = max(text.rfind("</think>"), 0)
    if marked:
        if answer and ("\\boxed" in answer or "\\fbox" in answer):
            return _boxes(answer, 0) or answer, True
        opened = text.rfind("<answer>", start)
        if opened >= 0:  # a closing tag used as a stop string is missing from the text
            rest = text[opened + len("<answer>") :].strip() if answer is None else ""
            content = _unwrap(rest) if len(rest) <= 2_000 and "</answer>" not in rest else rest
            return (content if content != rest else answer), True
        return (answer and _boxes(text, start)) or answer, True
    if text.rfind("<think>") > start:
        return None, False
    start += len("</think>") if start else 0
    hashes = _hashes(text, start)
    if hashes is not None:
        return hashes or None, True
    bare = _last_match(_BARE_BOX, text, start)
    if bare is not None:
        return bare[1], True
    if mode == "strict" or "\\boxed" in text[start:] or answer is None:
        return None, False
    return statement(text[start:], last_number), False


def _cut_run_on(text: str) -> str:
    """``text`` up to the next problem that a base model went on to pose after its answer."""
    answered = _ANSWERED.search(text, max(text.rfind("</think>"), 0))
    if answered is None or max(text.find(mark, answered.end()) for mark in "\n<") < 0:
        return text
    run_on = _RUN_ON.search(text, answered.end())
    return text[: run_on.start()] if run_on else text


def _hashes(text: str, start: int) -> str | None:
    """What the last ``####`` line states, "" if it is blank; None where there is no such line, or only headings of sections."""
    stop = len(text)
    while (stop := text.rfind("####", start, stop)) >= 0:
        line = _LINE.match(text, stop + 4)
        content = line[1].strip(" :") if line else ""
        if not _HEADING.fullmatch(content):
            return content
    return None


def _last_match(pattern: re.Pattern[str], text: str, start: int) -> re.Match[str] | None:
    found = list(pattern.finditer(text, max(start, len(text) - 20_000)))
    return found[-1] if found else None


def _boxes(text: str, start: int) -> str | None:
    """The contents of the last box and of those joined to it, separated by commas; None if the last box is not closed."""
    box = _last_box(text, start)
    if box is None or box[1] < 0:
        return None
    parts = [text[box[0] : box[1]].strip()]
    while len(parts) < 30:
        head = text.rfind("\\", 0, box[0])
        window = text.rfind("\\boxed{", max(start, head - 2_000), head)
        before = _last_box(text[:head], window) if window >= 0 else None
        if before and before[1] >= 0 and len(parts) == 1 and _APPROXIMATED.fullmatch(text, before[1] + 1, head):
            return text[before[0] : before[1]].strip() or None
        if before is None or before[1] < 0 or not _JOINT.fullmatch(text, before[1] + 1, head):
            break
        parts.insert(0, text[before[0] : before[1]].strip())
        box = before
    return ", ".join(part for part in parts if part) or None


def _last_box(text: str, start: int = 0) -> tuple[int, int] | None:
    """(start, end) of the content of the last box, end -1 where it is not closed; None where there is no box."""
    opened = max(text.rfind(box, start) for box in ("\\boxed{", "\\fbox{", "\\boxed {", "\\boxed  {", "\\boxed\n{"))
    if opened < 0:
        return None
    opened = text.index("{", opened) + 1
    depth = 1
    blanks = _BLANKS.match(text, opened)
    limit = (blanks.end() if blanks else opened) + MAX_BOX
    for count, brace in enumerate(_BRACE.finditer(text, opened, limit)):
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
