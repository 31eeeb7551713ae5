"""The Countdown verifier: rulings on collected cases, real completions, and its own semantics."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpo_verifiers import TASKS, CountdownGold, Status, Verdict, mode_key, parse_gold, register, verify, verify_countdown
from setpo_verifiers.countdown import REASONS
from setpo_verifiers.expressions import MAX_LENGTH


def data(name):
    if "SETPO_TEST_DATA" not in os.environ:
        pytest.skip("SETPO_TEST_DATA is not set: it names the folder of reference data")
    return [json.loads(line) for line in (Path(os.environ["SETPO_TEST_DATA"]) / name).read_text(encoding="utf-8").splitlines()]


def answer(text, numbers, target, **options):
    return verify("countdown", f"<answer>{text}</answer>", {"numbers": numbers, "target": target}, **options)


# --- real completions ------------------------------------------------------------------------


def real_completions():
    """(problem id, position, gold, completion) of stored model outputs; the gold stands in the question text."""
    for row in data("data/completions/rg_countdown_g19.jsonl"):
        listed = re.search(r"numbers:? ([\d, ]+\d)", row["question"])
        target = re.search(r"(?:Calculate|make|equals) (\d+)", row["question"])
        gold = {"numbers": [int(number) for number in listed[1].split(",")], "target": int(target[1])}
        for position, completion in enumerate(row["completions"]):
            yield row["problem_id"], position, gold, completion


def test_real_completions():
    """The file's check wanted an answer tag: strict mode agrees with it everywhere, lenient mode only adds bare expressions."""
    judged = {
        (case["problem_id"], case["completion"]): case["judged"] == "true"
        for case in data("data/completions/hard_cases.jsonl")
        if case["file"] == "rg_countdown_g19.jsonl"
    }
    counts = {"strict": 0, "lenient": 0}
    seen = set()
    for problem_id, position, gold, completion in real_completions():
        strict = verify("countdown", completion["text"], gold, mode="strict")
        lenient = verify("rg_countdown", completion["text"], gold)
        assert strict.reward == completion["check_verdict"] == judged.get((problem_id, position), completion["check_verdict"])
        if strict.status is Status.NO_ANSWER:
            assert "<answer>" not in completion["text"]
            if lenient.status is Status.CORRECT:
                assert completion["text"].strip() == lenient.answer
        else:
            assert lenient == strict
        counts["strict"] += strict.status is Status.CORRECT
        counts["lenient"] += lenient.status is Status.CORRECT
        seen.add((problem_id, position))
    assert len(seen) == 304
    assert judged.keys() < seen
    assert counts["lenient"] > counts["strict"] == 83


def test_reference_answers_of_real_problems():
    golds = {problem_id: gold for problem_id, _, gold, _ in real_completions()}
    for row in data("data/completions/rg_countdown_g19.jsonl"):
        assert verify("countdown", row["reference_answer"], golds[row["problem_id"]]).reason == "correct"


# --- answers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "numbers", "target"),
    [
        ("1 \\times 2 \\cdot 3", (1, 2, 3), 6),
        ("8\\div2×3·1", (8, 2, 3, 1), 12),
        ("8÷2∗3", (8, 2, 3), 12),
        ("8−3", (8, 3), 5),
        ("8–3", (8, 3), 5),
        ("$8-3$", (8, 3), 5),
        ("\\(8-3\\)", (8, 3), 5),
        ("\\[ 8-3 \\]", (8, 3), 5),
        ("8-3.", (8, 3), 5),
        ("$8-3$.", (8, 3), 5),
        ("8-\n3", (8, 3), 5),
        ("\\left(1+2\\right)*3", (1, 2, 3), 9),
        ("\\frac{6}{2}+1", (6, 2, 1), 4),
        ("\\frac{6}{2}+1", (6, 2, 1), 4),
        ("\\dfrac{1+5}{\\frac{6}{2}}", (1, 5, 6, 2), 2),
        ("3*\\tfrac {(1+5)} {2}", (3, 1, 5, 2), 9),
        ("３＋５", (3, 5), 8),
        ("（３－５）＊２／１＝－４", (3, 5, 2, 1), -4),
        ("\\boxed{3+5}", (3, 5), 8),
        # a stated target
        ("3+5=8", (3, 5), 8),
        ("$3+5 = 8$", (3, 5), 8),
        ("3+5 = +8.", (3, 5), 8),
        ("3-5 = -2", (3, 5), -2),
        ("0/4=0", (4, 0), 0),
    ],
)
def test_correct_spellings(text, numbers, target):
    verdict = answer(text, numbers, target)
    assert (verdict.reward, verdict.status, verdict.reason) == (1.0, Status.CORRECT, "correct")
    assert verdict.answer is not None and verdict.mode_key is not None
    assert answer(text, numbers, target + 1).reason == "value"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *[
            (text, "syntax")
            for text in ("6=1+2+3", "1+2+3==6", "1+2+3=6=6", "=6", "1+2+3=", "1+2+3=6.0", "1+2+3=3+3", "1+2+3=(6)", "1+2+3=06")
        ],
        *[(text, "syntax") for text in ("1+2=3, 3+3=6", "1+2+3 or 3+2+1", "1+2+3 # done", "1+2+3;", "1+2+3\n3+2+1", "{1+2+3}", "1+2+3..")],
        *[
            (text, "syntax")
            for text in ("\\frac12+3", "\\frac{1}{2", "\\frac{1}", "\\frac{1)+(2}{3}", "\\frac{1}{2}{3}", "\\frac{1+2+3}", "}{1+2+3")
        ],
        *[
            (text, "syntax")
            for text in ("\\timesx", "\\sqrt{6}", "1\\leftarrow2", "1 \\\\ 2", "2\\frac{1}{3}", "\\cdots", "1+$2$3", "[1+2]+3")
        ],
        *[(text, "syntax") for text in ("1**2*3", "1*2^3", "1.5*2", "1+2+3!", "(1)(2)(3)", "1x2x3", "1+2+٣", "one+2+3")],
        *[(text, "numbers") for text in ("1+2", "1+2+3+0", "1+2+2", "12+3", "1*2*3*1", "6", "6=6", "12/0")],
        ("1/(2-2)+3", "numbers"),
        ("1+2+3=7", "value"),
        ("1*2*3=-6", "value"),
        ("1*2-3", "value"),
        ("1*2-3=6", "value"),
    ],
)
def test_wrong_answers(text, reason):
    verdict = answer(text, (1, 2, 3), 6)
    assert (verdict.reward, verdict.status, verdict.reason) == (0.0, Status.WRONG, reason)
    assert verdict.answer == text
    assert (verdict.mode_key is None) == (reason == "syntax")


def test_numbers_are_counted():
    assert answer("2*2*6", (2, 2, 6), 24).reason == "correct"
    assert answer("2*2*6", (2, 6), 24).reason == "numbers"
    assert answer("2*12", (2, 2, 12), 24).reason == "numbers"


def test_values_are_exact():
    assert answer("7/3*9", (3, 7, 9), 21).reason == "correct"
    assert answer("1*1000000/999999", (1, 999999, 1000000), 1).reason == "value"
    assert answer("100/3", (3, 100), 33).reason == "value"
    assert answer("999999999999*999999999999", (999999999999,) * 2, 999999999998000000000001).reason == "correct"
    assert answer("999999999999*999999999999", (999999999999,) * 2, 999999999998000000000000).reason == "value"


def test_division_by_zero():
    verdict = answer("3/(2-2)", (2, 2, 3), 1)
    assert (verdict.status, verdict.reason, verdict.mode_key) == (Status.WRONG, "division_by_zero", "3/(2-2)")


def test_mode_key_drops_the_stated_target_and_needs_no_right_answer():
    assert answer("5+3 = 8", (3, 5), 8).mode_key == answer("3+5", (3, 5), 8).mode_key == mode_key("3+5")
    assert answer("5+3 = 9", (3, 5), 8).mode_key == "3+5"
    assert answer("7 \\times 4", (3, 5), 8).mode_key == "4*7"


def test_options():
    assert answer("3+5", (3, 5, 7), 8).reason == "numbers"
    assert answer("3+5", (3, 5, 7), 8, allow_subset=True).reason == "correct"
    assert answer("3+3", (3, 5, 7), 6, allow_subset=True).reason == "numbers"
    assert answer("7/3*9", (3, 7, 9), 21, integer_only=True).reason == "value"
    assert answer("6/3*9", (3, 6, 9), 18, integer_only=True).reason == "correct"
    assert answer("3-5+9", (3, 5, 9), 7, nonnegative_only=True).reason == "value"
    assert answer("-3+5+9", (3, 5, 9), 11, nonnegative_only=True).reason == "value"
    assert answer("9-5+3-7", (3, 5, 7, 9), 0, nonnegative_only=True).reason == "correct"
    with pytest.raises(TypeError, match="tolerance"):
        answer("3+5", (3, 5), 8, tolerance=1e-5)


# --- modes of extraction -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["3+5", " 3+5\n", "3+5 = 8", "$3+5$", "<think>3*5?</think>3+5"])
def test_bare_expression_counts_in_lenient_mode_only(text):
    gold = {"numbers": [3, 5], "target": 8}
    assert verify("countdown", text, gold).reason == "correct"
    assert verify("countdown", text, gold, mode="strict") == Verdict(0.0, Status.NO_ANSWER, None, None, "no_answer")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "The answer is 3+5",
        "3+5\n5+3",
        "3+5 or 5+3",
        "x" * 10**6,
        "3+5 " * 10**5,
        "<answer>3+5",
        "<answer> </answer>",
        "\\boxed{}",
        "<think>3+5",
    ]
    + ["3+5</answer>", "\\boxed{3+5", "junk" + " " * 10**6 + "3+5"],
)
@pytest.mark.parametrize("mode", ["lenient", "strict"])
def test_no_answer(text, mode):
    assert verify("countdown", text, {"numbers": [3, 5], "target": 8}, mode=mode) == Verdict(0.0, Status.NO_ANSWER, None, None, "no_answer")


def test_a_bare_wrong_expression_is_wrong():
    assert verify("countdown", "3*5", {"numbers": [3, 5], "target": 8}) == Verdict(0.0, Status.WRONG, "3*5", "3*5", "value")


@pytest.mark.parametrize(
    "text", ["(" * 500_000 + "3+4", "3+4" + "+0" * 400_000, "\\frac{" * 100_000, "9" * 10**6, "-" * 10**6, "{}" * 500_000]
)
def test_long_answers_are_wrong_and_stored_short(text):
    verdict = answer(text, (3, 4), 7)
    assert (verdict.status, verdict.reason, verdict.answer) == (Status.WRONG, "syntax", text[:MAX_LENGTH])


def test_unknown_mode():
    with pytest.raises(ValueError, match="'lenient' or 'strict', got 'Strict'"):
        answer("3+5", (3, 5), 8, mode="Strict")


@pytest.mark.parametrize("completion", [None, 8, b"3+5", ["3+5"], float("nan")])
def test_completion_must_be_text(completion):
    with pytest.raises(TypeError, match="expected the completion as a str"):
        verify("countdown", completion, {"numbers": [3, 5], "target": 8})


PIECES = [
    "<think>",
    "</think>",
    "<answer>",
    "</answer>",
    "\\boxed{",
    "\\frac{",
    "}{",
    "}",
    "$",
    "(",
    ")",
    "+",
    "-",
    "*",
    "/",
    "=",
    "3",
    "5",
    "8",
    ".",
    " ",
    "\\",
    "×",
    "３",
]


@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=20).map("".join), st.sampled_from(["lenient", "strict"]))
def test_any_text_gets_a_verdict(text, mode):
    verdict = verify("countdown", text, {"numbers": [3, 5], "target": 8}, mode=mode)
    assert verdict.reason in REASONS
    assert verdict.valid
    assert verdict.reward == (verdict.status is Status.CORRECT) == (verdict.reason == "correct")
    assert (verdict.status is Status.NO_ANSWER) == (verdict.answer is None) == (verdict.reason == "no_answer")
    if verdict.reward:
        assert verdict.mode_key == "3+5"  # the only solution


# --- golds and the registry --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "gold",
    [
        {"numbers": [3, 5], "target": 8},
        {"nums": (3, 5), "target": 8, "id": 4},
        {"nums": np.array([3, 5]), "target": np.int64(8)},
        '{"numbers": [3, 5], "target": 8}',
        '{"target": 8, "nums": [3, 5]}',
        "3 + 5",
        CountdownGold((3, 5), 8),
    ],
)
def test_gold_forms(gold):
    parsed = parse_gold(gold)
    assert parsed == CountdownGold(numbers=(3, 5), target=8)
    assert {type(number) for number in (*parsed.numbers, parsed.target)} == {int}
    assert verify_countdown("5+3", gold).reason == "correct"


@pytest.mark.parametrize(
    "gold",
    [
        *[
            None,
            8,
            "",
            "8",
            "(8)",
            "3+",
            "3/5",
            "3/(5-5)",
            "null",
            "[3, 5]",
            '"{}"',
            "{",
            "[" * 100_000,
            b'{"numbers": [3, 5], "target": 8}',
            [3, 5],
            (3, 5),
        ],
        *[
            {},
            {"numbers": [3, 5]},
            {"target": 8},
            {"numbers": [], "target": 8},
            {"numbers": None, "target": 8},
            {"numbers": "35", "target": 8},
        ],
        *[
            {"numbers": [3, -5], "target": 8},
            {"numbers": [3, 5.0], "target": 8},
            {"numbers": [3, True], "target": 8},
            {"numbers": ["3", 5], "target": 8},
        ],
        *[
            {"numbers": [3, 5], "target": None},
            {"numbers": [3, 5], "target": 8.0},
            {"numbers": [3, 5], "target": "8"},
            {"numbers": [3, 5], "target": True},
        ],
        *[{"numbers": [[3], 5], "target": 8}, {"numbers": 35, "target": 8}, {"numbers": [10**12], "target": 8}, CountdownGold((), 8)],
    ],
)
def test_malformed_gold_raises(gold):
    parse_gold({"numbers": [3, 5], "target": 8})  # an equal-looking gold in the cache changes nothing
    with pytest.raises(ValueError, match=r"expected a Countdown gold .* got "):
        verify("countdown", "3+5", gold)


def test_unknown_task_names_the_tasks():
    with pytest.raises(ValueError, match=r"countdown, .*rg_countdown.*; got 'count-down'"):
        verify("count-down", "3+5", {"numbers": [3, 5], "target": 8})


def test_register(monkeypatch):
    monkeypatch.setattr("setpo_verifiers.registry.TASKS", dict(TASKS))

    def verifier(completion, gold, *, mode):
        return Verdict(1.0, Status.CORRECT, completion, completion, "correct")

    register("echo", verifier, aliases=["repeat"])
    register("echo", verifier)
    assert verify("repeat", "x", None).answer == "x"
    with pytest.raises(ValueError, match="'countdown', which another verifier has"):
        register("new", verifier, aliases=["countdown"])
    with pytest.raises(ValueError, match="got 'new'"):
        verify("new", "x", None)


def test_verdicts_without_a_decision_are_not_valid():
    assert [status for status in Status if not Verdict(float(status == Status.CORRECT), status, None, None, "").valid] == [
        Status.TIMEOUT,
        Status.ERROR,
    ]
    assert [status.value for status in Status] == [0, 1, 2, 3, 4, 5]
