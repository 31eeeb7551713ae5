"""Folders that look like the hub's data sets: same ids, configurations, splits and columns, rows of our own.

``datasets.load_dataset("owner/name")`` reads such a folder when it lies under the working directory, by the code that reads a download.
"""

from __future__ import annotations

import json
from pathlib import Path

ASK, GOLD, BOXED = "What is {} plus 1?", "{}", "It is $\\boxed{{{}}}$."


def _maths(n: int) -> dict:
    return {"problem": ASK.format(n), "level": "Level 2", "type": "Algebra", "solution": BOXED.format(n + 1)}


def _math500(n: int) -> dict:
    row = {**_maths(n), "answer": GOLD.format(n + 1), "subject": "Algebra", "level": 2, "unique_id": f"test/algebra/{n}.json"}
    return {key: row[key] for key in ("problem", "solution", "answer", "subject", "level", "unique_id")}


def _aime(n: int) -> dict:
    url = "https://artofproblemsolving.com/wiki/index.php/2024_AIME_I_Problems/Problem_1"
    return {"id": n, "problem": ASK.format(n), "solution": BOXED.format(f"{n + 1:03d}"), "answer": f"{n + 1:03d}", "url": url}


def _boxed_only(n: int) -> dict:
    row = _aime(n)
    return {"id": n, "problem": row["problem"], "solution": f"\\boxed{{{n + 1}}}", "url": row["url"]}


def _capitals(n: int) -> dict:
    return {"ID": f"2024-I-{n}", "Problem": ASK.format(n), "Solution": "By adding.", "Answer": n + 1}


def _arena(n: int) -> dict:
    return {"problem_idx": n, "problem": ASK.format(n), "answer": n + 1, "problem_type": ["Algebra"]}


def _olympiad(n: int) -> dict:
    row: dict = {"id": n, "question": ASK.format(n), "solution": ["By adding."], "final_answer": [GOLD.format(n + 1)], "context": None}
    row |= {f"image_{i}": None for i in range(1, 6)}
    row |= {"modality": "Text-only", "difficulty": "Competition", "is_multiple_answer": False, "unit": None, "answer_type": "Numerical"}
    return row | {
        "error": "1e-1" if n % 2 else None,
        "question_type": "Open-ended",
        "subfield": "Algebra",
        "subject": "Math",
        "language": "English",
    }


def _question(n: int) -> dict:
    return {"question": ASK.format(n), "answer": GOLD.format(n + 1)}


def _gsm8k(n: int) -> dict:
    return {"question": ASK.format(n), "answer": f"Add <<{n}+1={n + 1}>>{n + 1}.\n#### {n + 1}"}


SUBJECTS = "algebra counting_and_probability geometry intermediate_algebra number_theory prealgebra precalculus".split()
BOTH, TRAIN, TEST = ("train", "test"), ("train",), ("test",)

# hub id -> (configurations, splits, row)
LAYOUTS = {
    "openai/gsm8k": (["main", "socratic"], BOTH, _gsm8k),
    "EleutherAI/hendrycks_math": (SUBJECTS, BOTH, _maths),
    "DigitalLearningGmbH/MATH-lighteval": (["default", *SUBJECTS], BOTH, _maths),
    "HuggingFaceH4/MATH-500": (["default"], TEST, _math500),
    "HuggingFaceH4/aime_2024": (["default"], TRAIN, lambda n: {**_aime(n), "year": "2024"}),
    "AI-MO/aimo-validation-aime": (["default"], TRAIN, _aime),
    "Maxwell-Jia/AIME_2024": (["default"], TRAIN, _capitals),
    "math-ai/aime24": (["default"], TEST, _boxed_only),
    "math-ai/aime25": (["default"], TEST, lambda n: {"problem": ASK.format(n), "answer": str(n + 1), "id": str(n)}),
    "opencompass/AIME2025": (["AIME2025-I", "AIME2025-II"], TEST, _question),
    "MathArena/aime_2025": (["default"], TRAIN, _arena),
    "yentinglin/aime_2025": (["default"], TRAIN, _arena),
    "Hothan/OlympiadBench": (["OE_TO_maths_en_COMP", "TP_TO_maths_en_COMP"], TRAIN, _olympiad),
    "math-ai/olympiadbench": (["default"], TEST, _olympiad),
    "math-ai/amc23": (["default"], TEST, lambda n: {"id": n, **_question(n), "answer": f"{n + 1}.0", "url": ""}),
    "AI-MO/aimo-validation-amc": (["default"], TRAIN, lambda n: {"id": n, "problem": ASK.format(n), "answer": float(n + 1), "url": ""}),
    "math-ai/minervamath": (["default"], TEST, _question),
}


JSON_LINES = {"HuggingFaceH4/MATH-500", "Maxwell-Jia/AIME_2024", "opencompass/AIME2025", "math-ai/aime25"}  # the others are Parquet


NOT_READ = {"socratic", "TP_TO_maths_en_COMP"}  # configurations that hold something else


def build(root: Path, hub_id: str, rows: int = 2) -> None:
    """Write the folder ``root/owner/name``: a file for each configuration and split, and the card that says which is which."""
    import pyarrow.parquet

    configs, splits, row = LAYOUTS[hub_id]
    folder = root / hub_id
    card = ["---", "configs:"]
    n = 0
    for config in configs:
        card += [f"- config_name: {config}", "  data_files:"]
        for split in splits:
            lines = [row(n + i) for i in range(rows)]
            if config in NOT_READ:
                lines = [{**line, "question": "not to be read"} for line in lines]
            path = folder / config / f"{split}-00000-of-00001.{'jsonl' if hub_id in JSON_LINES else 'parquet'}"
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".jsonl":
                path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
            else:
                pyarrow.parquet.write_table(pyarrow.Table.from_pylist(lines), path)
            n += rows
            card += [f"  - split: {split}", f"    path: {config}/{path.name}"]
    folder.joinpath("README.md").write_text("\n".join([*card, "---", ""]), encoding="utf-8")
