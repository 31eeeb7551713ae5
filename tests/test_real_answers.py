"""Answers as they are in the world: every gold of the data sets counts when it is echoed, model outputs are judged as their graders did."""

import json

import pytest

from setpo_verifiers import solve, verify
from setpo_verifiers.maths import gold_text

GOLDS = [  # file, task, column
    ("gsm8k_test", "gsm8k", "answer"),
    ("math500", "math", "answer"),
    ("math500", "math", "solution"),
    ("hendrycks_math/*/test", "math", "solution"),
    ("aime24", "aime", "answer"),
    ("aime24_mathai", "aime", "solution"),
    ("aime24_maxwelljia", "aime", "Answer"),
    ("aime25", "aime", "answer"),
    ("aime25_opencompass/*", "aime", "answer"),
    ("amc23", "math", "answer"),
    ("amc23_qwen_float", "math", "answer"),
    ("minerva", "math", "answer"),
    ("olympiadbench_math_en", "olympiad", "final_answer"),
]
UNMARKED = {("minerva", 112)}  # not read without a marker: a formula of more than 200 characters

# rows of MATH whose last box is not the whole answer, by position in quirk_rows.jsonl
PART_OF_A_LIST = {39, 41, 44}
ONE_OF_SEVERAL = {46, 47, 48, 49}
NO_BOX_IS_RIGHT = {60}

# model outputs that we do not judge as the file's check did, by file: (problem, position) -> why
OPEN_THINKING = "the thinking is not closed, so there is no answer"
DIFFERENT = {
    "amc23_g50": dict.fromkeys(
        [("amc23/math-ai/amc23/2", 2), ("amc23/math-ai/amc23/2", 27), ("amc23/math-ai/amc23/33", 29)]
        + [("amc23/math-ai/amc23/13", position) for position in (11, 16, 30)],
        OPEN_THINKING,
    ),
    "gsm8k_g8": {("gsm8k/test/659", 5): "the last number is 1/3, of which the check read the 3"},
    "math_g8": dict.fromkeys([("math/cot100/3", position) for position in range(8)], "4:30 \\text{ p.m.} is \\text{4:30 p.m.}"),
    "minerva_g2": {
        ("minerva/175", 0): "9e11 and 9 \\times 10^{11} are one number",
        ("minerva/179", 1): "7.4e-12 and 7.4 \\times 10^{-12} are one number",
        ("minerva/108", 1): "(1-i)/4 is 1/(2+2i)",
    },
    "olympiadbench_g2": dict.fromkeys([("olympiadbench/76", 0), ("olympiadbench/76", 1)], "0 is not the union of an interval and a point"),
}


def rows(folder, name):
    paths = sorted((folder / "data").glob(f"{name}.jsonl"))
    assert paths, name
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


def joined(gold):
    return ", ".join(gold) if isinstance(gold, list) else gold


@pytest.mark.parametrize(("name", "task", "column"), GOLDS, ids=lambda value: value.replace("/*", ""))
def test_every_gold_counts_when_echoed(test_data, name, task, column):
    refused = []
    for number, row in enumerate(rows(test_data, name)):
        gold = joined(row[column])
        answer = gold_text(gold)
        texts = [f"\\boxed{{{answer}}}", f"<answer>{answer}</answer>"]
        if (name, number) not in UNMARKED:
            texts.append(str(gold))
        for mode in ("lenient", "strict"):
            # without a marker strict mode finds nothing
            expected = [1.0] * 2 + [float(mode == "lenient" or answer != str(gold))] * (len(texts) - 2)
            found = [verify(task, text, gold, mode=mode).reward for text in texts]
            if found != expected:
                refused.append((number, gold, mode, found))
    assert not refused


def test_every_countdown_problem_has_a_solution_that_counts(test_data):
    for row in rows(test_data, "countdown_3to4")[:100]:  # the solver takes 10 ms for each
        assert verify("countdown", f"<answer>{solve(row['nums'], row['target'])[0]} = {row['target']}</answer>", row).reward == 1.0


def test_rows_that_break_graders(test_data):
    refused = set()
    for number, row in enumerate(rows(test_data, "quirk_rows")):
        if "final_answer" in row:
            answers, gold, task = [joined(row["final_answer"])], joined(row["final_answer"]), "olympiad"
        else:
            answers, source = row["true_answer"], row["row"]
            gold, task = source.get("answer") or source["solution"], "gsm8k" if row["dataset"] == "gsm8k" else "math"
        for answer in [answers] if isinstance(answers, str) else answers:
            assert verify(task, f"\\boxed{{{answer}}}", answer).reward == 1.0, (number, answer)
            if verify(task, f"\\boxed{{{answer}}}", gold).reward != 1.0:
                refused.add(number)
    assert refused == PART_OF_A_LIST | ONE_OF_SEVERAL | NO_BOX_IS_RIGHT


def outputs(folder, name):
    """(problem, position, the output, our reward) of a file of model outputs."""
    for row in rows(folder, f"completions/{name}"):
        task = {"aime24": "aime", "gsm8k": "gsm8k", "olympiadbench": "olympiad"}.get(row["task"], "math")
        options = {"precision": float(row["error"])} if row.get("error") else {}
        for position, output in enumerate(row["completions"]):
            yield row["problem_id"], position, output, verify(task, output["text"], joined(row["gold_raw"]), **options).reward


@pytest.mark.parametrize("name", ["aime24_g50", "amc23_g50", "gsm8k_g8", "math_g8", "minerva_g2", "olympiadbench_g2"])
def test_model_outputs_are_judged_as_their_check_did(test_data, name):
    judged = list(outputs(test_data, name))
    assert len(judged) >= 120
    found = {(problem, position) for problem, position, output, reward in judged if bool(reward) != output["check_verdict"]}
    assert found == set(DIFFERENT.get(name, {}))


def test_outputs_that_graders_disagree_on(test_data):
    cases = [case for case in rows(test_data, "completions/hard_cases") if not case["file"].startswith("rg_")]
    judged = {(case["problem_id"], case["completion"]): case for case in cases if case["judged"] != "ambiguous"}
    assert len(judged) >= 18
    wrong = set()
    for name in sorted({case["file"].removesuffix(".jsonl") for case in judged.values()}):
        for problem, position, _, reward in outputs(test_data, name):
            case = judged.get((problem, position))
            if case and bool(reward) != (case["judged"] == "true"):
                wrong.add((problem, position))
    assert wrong == set()
