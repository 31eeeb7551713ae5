"""The graded cases of corpus/public.jsonl: what was ruled on answers, tricks and attacks from many public test suites."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

NO_TEXTS = {  # completions that JSON cannot hold, by the name the file gives them
    "b'\\\\boxed{4}'": b"\\boxed{4}",
    "bytearray(b'4')": bytearray(b"4"),
    "object()": object(),
    "float('inf')": float("inf"),
    "float('nan')": float("nan"),
}

MARKERS = ("\\boxed", "\\fbox", "<answer>", "####")


class Graded(NamedTuple):
    """One ruling: what ``verify`` is called with, and whether it should accept."""

    id: str
    task: str
    completion: Any
    gold: Any
    mode: str
    options: dict[str, Any]
    accepted: bool
    case: dict[str, Any]


def graded_cases(folder: Path) -> Iterator[Graded]:
    """Every ruling, two for a case whose verdict in strict mode follows from its own ruling or from a marker."""
    with open(folder / "corpus" / "public.jsonl", encoding="utf-8") as file:
        for case in map(json.loads, file):
            rulings = {case.get("mode", "lenient"): case["expected"]}
            text = _completion(case)
            if "expected_strict" in case:
                rulings["strict"] = case["expected_strict"]
            elif not case["expected"] or any(marker in text for marker in MARKERS):
                rulings["strict"] = case["expected"]
            for mode, accepted in rulings.items():
                yield Graded(case["id"], case["task"], text, case["gold"], mode, case.get("options") or {}, accepted, case)


def _completion(case: dict[str, Any]) -> Any:
    made = case.get("completion_gen", {})
    if "py" in made:
        return NO_TEXTS[made["py"]]
    if made:
        return made.get("prefix", "") + made.get("repeat", "") * made.get("times", 0) + made.get("suffix", "")
    text = case["completion"]
    if case["kind"] != "answer" or "\\boxed" in text or "<answer>" in text:
        return text
    return f"<answer>{text}</answer>" if case["task"] in ("countdown", "kk") else f"\\boxed{{{text}}}"
