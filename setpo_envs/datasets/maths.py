r"""The tables of the mathematics environments: hub ids, splits, columns, and how each data set writes its gold answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from setpo_verifiers.maths import gold_text

from .problem import fingerprint
from .table import HubSet, Question, Table

MATH_SUBJECTS = {  # configuration of the hub data set -> name in its rows
    "algebra": "Algebra",
    "counting_and_probability": "Counting & Probability",
    "geometry": "Geometry",
    "intermediate_algebra": "Intermediate Algebra",
    "number_theory": "Number Theory",
    "prealgebra": "Prealgebra",
    "precalculus": "Precalculus",
}

# Rows of MATH whose last box is not the answer, or not the only one: fingerprint of the question -> (gold, alternatives, why).
MATH_CORRECTIONS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "7c62cfb01ac1": ("6", (), "boxes are an operation in this question; its solution says that it leaves the answer without one"),
    "2614ff77dc3b": ("-3", ("3",), "the solution accepts both"),
    "7d4e0d8829ac": ("(3,-5)", ("(0,0)",), "the solution accepts both"),
    "5563f3cefc50": ("(0,0)", ("(10,0)",), "one of two foci is asked for"),
    "eb889465cde3": (
        r"\left(\tfrac32, -\tfrac52\right)",
        (r"\left(-\tfrac52, -\tfrac52\right)",),
        "one of two vertices is asked for",
    ),
}

_INNER = r"(?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*"
_BOX = re.compile(rf"\\boxed\s*\{{({_INNER})\}}")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def _gsm8k(row: Mapping[str, Any], text: str, answer: Any) -> Question:
    gold = gold_text(answer).replace(",", "").removeprefix("$")
    if not _NUMBER.fullmatch(gold):
        raise ValueError(f"expected a solution that ends in '#### ' and a number, got {repr(answer)[-80:]}")
    return Question(text, gold)


def _math(row: Mapping[str, Any], text: str, answer: Any) -> Question:
    metadata: dict[str, Any] = {}
    if subject := row.get("subject") or row.get("type"):
        metadata["subject"] = subject
    if level := re.search(r"\d", str(row.get("level"))):  # 5 or "Level 5"; "Level ?" is none
        metadata["level"] = int(level[0])
    if (name := fingerprint(text)) in MATH_CORRECTIONS:
        gold, alternatives, _ = MATH_CORRECTIONS[name]
        return Question(text, gold, {"alternatives": list(alternatives)} if alternatives else {}, metadata)
    gold = gold_text(answer)
    boxes = _BOX.findall(answer) if isinstance(answer, str) else []
    if len(boxes) > 1 and "," not in gold and "separated by commas" in text:  # a list with a sentence between its boxes
        gold = ", ".join(dict.fromkeys(box.strip() for box in boxes))
    return Question(text, gold, {}, metadata)


def _aime(row: Mapping[str, Any], text: str, answer: Any) -> Question:
    digits = re.sub(r"\^\{?\\circ\}?$|\.0+$", "", gold_text(answer))
    if not re.fullmatch(r"\d{1,3}", digits):
        raise ValueError(f"expected an integer from 0 to 999 as the answer, got {answer!r}")
    year = re.search(r"20\d\d", " ".join(str(row.get(name, "")) for name in ("year", "ID", "url")))
    return Question(text, str(int(digits)), {}, {"year": int(year[0])} if year else {})


def _plain(row: Mapping[str, Any], text: str, answer: Any) -> Question:
    return Question(text, re.sub(r"^(-?\d+)\.0+$", r"\1", gold_text(answer)))  # 27.0 is how a column of floats writes 27


def _olympiad(row: Mapping[str, Any], text: str, answer: Any) -> Question:
    if row.get("modality", "Text-only") not in ("Text-only", None) or row.get("image_1") is not None:
        raise ValueError("expected a question in text only, got one with a picture")
    answers = answer if isinstance(answer, list) else [answer]
    gold = ", ".join(gold_text(each) for each in answers)
    several, unit, options = bool(row.get("is_multiple_answer")), row.get("unit"), {}
    notes = [text]
    if row.get("context"):
        notes.insert(0, str(row["context"]).strip())
    if several:
        notes.append("There are several answers: give all of them, separated by commas.")
    if error := row.get("error"):  # "1e-1", or one for each answer
        precision = [float(each) for each in str(error).split(",")]
        options["precision"] = precision if len(precision) > 1 else precision[0]
    if unit:
        notes.append(f"Unit of the answer: ${unit.strip('$')}$" if "^" in unit else f"Unit of the answer: {unit}")
        if not several and not options:  # with its unit the gold refuses another unit, and still takes none
            gold = f"{gold.strip('$')} {_unit(unit)}"
    return Question("\n".join(notes), gold, options, {key: row[key] for key in ("answer_type", "subfield") if row.get(key)})


def _unit(unit: str) -> str:
    """``$cm^2$`` as ``\\text{ cm}^2``, ``^{\\circ}`` as it is."""
    word, caret, power = unit.strip("$").partition("^")
    return (rf"\text{{ {word}}}" if word else "") + caret + power


GSM8K = Table(
    name="gsm8k",
    task="gsm8k",
    hub=(HubSet("openai/gsm8k", ("train", "test"), configs=("main",)),),
    columns=(("question", "answer"),),
    read=_gsm8k,
    embedded={"train": "gsm8k_train.jsonl", "test": "gsm8k_test.jsonl"},
)
MATH = Table(
    name="math",
    task="math",
    hub=(HubSet("EleutherAI/hendrycks_math", ("train", "test"), configs=tuple(MATH_SUBJECTS)),),  # it has no default configuration
    copies=(HubSet("DigitalLearningGmbH/MATH-lighteval", ("train", "test")), HubSet("HuggingFaceH4/MATH-500", ("test",))),
    columns=(("problem", "solution"), ("problem", "answer")),
    read=_math,
    embedded={"train": "math_train.jsonl", "test": "math_test.jsonl"},
)
MATH500 = Table(
    name="math",  # drawn from the test split of MATH: the same problem has the same id
    task="math",
    hub=(HubSet("HuggingFaceH4/MATH-500", ("test",)),),
    columns=(("problem", "answer"), ("problem", "solution")),
    read=_math,
    embedded={"test": "math_test.jsonl"},
)
AIME = Table(
    name="aime",
    task="aime",
    hub=(
        HubSet("HuggingFaceH4/aime_2024", ("train",), metadata={"year": 2024}),
        HubSet("math-ai/aime25", ("test",), metadata={"year": 2025}),
    ),
    copies=(
        HubSet("AI-MO/aimo-validation-aime", ("train",)),  # 2022 to 2024
        HubSet("Maxwell-Jia/AIME_2024", ("train",), metadata={"year": 2024}),
        HubSet("math-ai/aime24", ("test",), metadata={"year": 2024}),
        HubSet("opencompass/AIME2025", ("test",), configs=("AIME2025-I", "AIME2025-II"), metadata={"year": 2025}),
        HubSet("MathArena/aime_2025", ("train",), metadata={"year": 2025}),
        HubSet("yentinglin/aime_2025", ("train",), metadata={"year": 2025}),
    ),
    columns=(("problem", "answer"), ("question", "answer"), ("Problem", "Answer"), ("problem", "solution")),
    read=_aime,
    embedded={"train": "aime.jsonl"},
)
OLYMPIAD = Table(
    name="olympiad",
    task="olympiad",
    hub=(HubSet("Hothan/OlympiadBench", ("train",), configs=("OE_TO_maths_en_COMP",)),),
    copies=(HubSet("math-ai/olympiadbench", ("test",)),),
    columns=(("question", "final_answer"), ("question", "answer")),
    read=_olympiad,
    embedded={"train": "olympiad.jsonl"},
)
AMC = Table(
    name="amc",
    task="math",
    hub=(HubSet("math-ai/amc23", ("test",)),),
    copies=(HubSet("AI-MO/aimo-validation-amc", ("train",)),),
    columns=(("question", "answer"), ("problem", "answer")),
    read=_plain,
    embedded={"test": "amc.jsonl"},
)
MINERVA = Table(
    name="minerva",
    task="math",
    hub=(HubSet("math-ai/minervamath", ("test",)),),
    columns=(("question", "answer"), ("problem", "solution")),
    read=_plain,
    embedded={"test": "minerva.jsonl"},
)
