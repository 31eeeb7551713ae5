"""The Knights and Knaves verifier: rulings on collected cases, real completions, and its own semantics."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpo_verifiers import Status, verify
from setpo_verifiers.knights_and_knaves import MAX_LENGTH, REASONS, fraction_right, parse_roles

GOLD = {"roles": {"Ava": "knight", "Ben": "knave", "Cleo": "knight"}, "role_names": ["knight", "knave"]}


def data(name):
    if "SETPO_TEST_DATA" not in os.environ:
        pytest.skip("SETPO_TEST_DATA is not set: it names the folder of reference data")
    paths = sorted(Path(os.environ["SETPO_TEST_DATA"]).glob(name))
    assert paths
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


def answer(text, gold=GOLD, **options):
    return verify("knights_and_knaves", f"<answer>{text}</answer>", gold, **options)


def test_real_completions_are_judged_as_their_independent_check_does():
    rows = data("data/completions/rg_knights_knaves_g19.jsonl")
    strict = lenient = 0
    for row in rows:
        for completion in row["completions"]:
            verdict = verify(row["task"], completion["text"], row["gold_raw"], mode="strict")
            assert verdict.reward == completion["check_verdict"]
            strict += 1
            # the check wants a tag: without one, lenient mode takes a completion that is the right assignment and nothing else
            free = verify(row["task"], completion["text"], row["gold_raw"])
            if free.reward != verdict.reward:
                assert "<answer>" not in completion["text"] and free.answer.rstrip(".") == completion["text"].strip().rstrip(".")
                lenient += 1
    assert (strict, lenient) == (304, 9)


def test_every_row_of_the_data_set_is_accepted_when_echoed_and_refused_when_flipped():
    rows = data("data/kk/*/*.jsonl")
    assert len(rows) == 840
    for row in rows:
        texts = row["solution_text"], row["solution_text_format"]
        for gold in (row, json.dumps(row), *texts, {"solution_text_format": texts[1], "statements": row["statements"]}):
            assert [answer(text, gold, mode="strict").reason for text in texts] == ["correct", "correct"]
        last = "knight" if row["solution"][-1] else "knave"
        flipped = ("knave" if last == "knight" else "knight").join(row["solution_text"].rsplit(last, 1))
        assert answer(flipped, row).reason == "roles"
        assert answer(row["quiz"], row).reward == verify("kk", row["quiz"], row).reward == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "(1) Ava is a knight\n(2) Ben is a knave\n(3) Cleo is a knight",
        "1. Ava is a knight\n2) Ben is a knave\n3: Cleo is a knight",
        "1. Cleo is a knight 2. Ben is a knave. 3. Ava is the knight.",
        "So Ava is a knight, while Ben is a knave & Cleo is a knight",
        "Ava: knight; Ben: Knave; CLEO: knight",
        "Ava - knight\nBen – knave\nCleo — knight",
        "- **Ava**: knight\n- **Ben**: knave\n* _Cleo_: `knight`",
        "Ava = knight, Ben → knave, Cleo -> knight",
        "(Ava, knight), (Ben,knave), (Cleo, knight)",
        '{"Ava": "knight", "Ben": "knave", "Cleo": "knight"}',
        "| Name | Role |\n|:---|---:|\n| Ava | knight |\n| Ben | knave |\n| Cleo | knight |",
        "Ava and Cleo are knights, Ben is a knave",
        "Both Cleo and Ava are knights; Ben is a knave",
        "Ava, Cleo are both knights. Ben is a knave.",
        "Knights: Ava, Cleo. Knaves: Ben.",
        "The knights are Ava and Cleo, and the knave is Ben",
        "knight: Ava, Ben: knave, Cleo: knight",
        "Ava is a truth-teller, Ben is a liar, Cleo is a truth-teller",
        "The answer is: Ava is a knight, Ben is a knave, Cleo is a knight",
        "\\boxed{\\text{Ava is a knight, Ben is a knave, Cleo is a knight}}",
        "Ａｖａ is a knight, Ben\u200b is a knave\x00, Cleo is a knight<|im_end|>",
        "Ava is a knight, Ben is a knave, Cleo is a knight. So Ava is a knight.",
    ],
)
def test_right_assignments(text):
    verdict = answer(text)
    assert (verdict.reward, verdict.status, verdict.reason) == (1.0, Status.CORRECT, "correct")
    assert verdict.mode_key == "ava=knight; ben=knave; cleo=knight"
    assert fraction_right(f"<answer>{text}</answer>", GOLD) == 1.0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Ava is a knight, Ben is a knight, Cleo is a knight", "roles"),
        ("Ava is a knight, Ben is a knave", "missing"),
        ("Knights: Ava, Cleo. Knaves: none.", "missing"),
        ("Ava is a knight, Ben is a knave, Cleo is a knight, Ben is a knight", "contradiction"),
        ("Knights: Ava, Ben, Cleo. Knaves: Ava, Ben, Cleo.", "contradiction"),
        ("Ava is a knight, Ben is a knave, Cleo is a knight, Dora is a knave", "syntax"),
        ("Ava is a knight, Ben is not a knight, Cleo is a knight", "syntax"),
        ("Ava is a knight, Ben isn't a knave, Cleo is a knight", "syntax"),
        ("Ava is probably a knight, Ben is a knave, Cleo is a knight", "syntax"),
        ("Maybe Ava is a knight, Ben is a knave, Cleo is a knight", "syntax"),
        ("Ava is a knight or Ben is a knave, Cleo is a knight", "syntax"),
        ("Either Ava is a knight, Ben is a knave, Cleo is a knight", "syntax"),
        ("If Ava is a knight, then Ben is a knave, Cleo is a knight", "syntax"),
        ("Ava is a knight? Ben is a knave? Cleo is a knight?", "syntax"),
        ("Ava is a knight/knave, Ben is a knight/knave, Cleo is a knight/knave", "syntax"),
        ("Ava is a saint, Ben is a sinner, Cleo is a saint", "syntax"),
        ("Ava is knightly, Ben is a knave, Cleo is a knight", "syntax"),
        ("Ava is a knights, Ben is a knave, Cleo is a knight", "syntax"),
        ("Ava, Ben and Cleo: knight, knave, knight", "syntax"),
        ("Ava, knight, Ben, knave, Cleo, knight", "syntax"),
        ("knight - Ava - knight - Ben - knave - Cleo", "syntax"),
        ("Ava and Cleo is a knight, Ben is a knave", "syntax"),
        ("knight knave knight", "syntax"),
        ("Ava Ben Cleo", "syntax"),
        ("Avalon is a knight, Ben is a knave, Cleo is a knight", "syntax"),
        ("Ava: knight 0.5, Ben: knave, Cleo: knight", "syntax"),
        ("Ava is a knight,\n" * 1000, "syntax"),
        (",;.()-|", "syntax"),
        ("", "no_answer"),
    ],
)
def test_wrong_answers_and_no_answers(text, reason):
    verdict = answer(text)
    assert (verdict.reward, verdict.reason) == (0.0, reason) and reason in REASONS
    assert verdict.status is (Status.NO_ANSWER if reason == "no_answer" else Status.WRONG)
    assert verdict.answer is None or len(verdict.answer) <= MAX_LENGTH
    assert (verdict.mode_key is None) == (reason not in ("roles", "missing"))


def test_where_the_answer_is_declared():
    right, wrong = "Ava is a knight, Ben is a knave, Cleo is a knight", "Ava is a knave, Ben is a knave, Cleo is a knave"
    for text, lenient, strict in [
        (right, 1, 0),
        (f"Let me see.\nConclusion: {right}", 1, 0),
        (f"CONCLUSION: {wrong}\nCONCLUSION: {right}", 1, 0),
        (f"CONCLUSION: {right}\nCONCLUSION: {wrong}", 0, 0),
        (f"CONCLUSION: {wrong}\n<answer>{right}</answer>", 1, 1),
        (f"\\boxed{{{right}}}", 1, 1),
        (f"<think>{right}</think>", 0, 0),
        (f"<think>{right}", 0, 0),
        (f"<answer>{right}</answer><answer>{wrong}</answer>", 0, 0),
        (f"I think that {right}", 0, 0),
        (f"<|im_start|>assistant\n{right}", 1, 0),
    ]:
        assert [verify("kk", text, GOLD, mode=mode).reward for mode in ("lenient", "strict")] == [lenient, strict], text
    assert verify("kk", f"I think that {right}", GOLD).status is Status.NO_ANSWER


def test_names_that_hold_each_other_or_read_like_other_words():
    gold = {"roles": {"Jack": "knight", "Jackson": "knave", "Mary Ann": "knight", "Dr. O'Neil": "knave", "A": "knave"}}
    right = "Jackson is a knave, Jack is a knight, mary  ann is a knight, Dr. O'Neil is a knave, A is a knave"
    assert answer(right, gold).reason == "correct"
    assert answer(right.replace("Jackson", "Jack"), gold).reason == "contradiction"
    angel = {"roles": {"Angel": "devil", "Sage": "angel"}, "role_names": ["angel", "devil"]}
    assert answer("Angel is a devil and Sage is an angel", angel).reason == "correct"
    assert answer("Angel is an angel and Sage is an angel", angel).reason == "roles"


def test_fraction_and_synonyms():
    assert fraction_right("<answer>Ava is a knight, Ben is a knight, Cleo is a knave</answer>", GOLD) == pytest.approx(1 / 3)
    assert fraction_right("<answer>Ava is a knight and a knave</answer>", GOLD) == fraction_right("x" * 10**6, GOLD) == 0.0
    assert answer("Ava is a truth-teller, Ben is a liar, Cleo is a truth-teller", synonyms=False).reason == "syntax"


def test_gold_forms():
    expected = parse_roles(GOLD)
    row = {"names": ["Ava", "Ben", "Cleo"], "solution": [True, False, True]}
    for gold in (json.dumps(GOLD), expected, row, {"roles": GOLD["roles"]}, "Ava is a knight, Ben is a knave, and Cleo is a knight."):
        assert parse_roles(gold) == expected
    words = {"knight": "jester", "knave": "monk"}
    assert parse_roles({**row, "knight_knave": words}).roles == (("Ava", "jester"), ("Ben", "monk"), ("Cleo", "jester"))
    assert parse_roles("Mason is an altruist, and Jack is an egoist.").role_names == ("altruist", "egoist")


@pytest.mark.parametrize(
    "gold",
    [
        None,
        "",
        "{",
        "[1]",
        7,
        [],
        {},
        "nobody knows",
        "Ava is a knight, Ben is a sinner",
        {"roles": {}},
        {"roles": {"Ava": "wizard"}},
        {"roles": {"Ava": "wizard"}, "role_names": ["knight", "knave"]},
        {"roles": {"Ava": "knight"}, "role_names": ["knight", "knight"]},
        {"roles": {"Ava": "knight"}, "role_names": ["knight"]},
        {"roles": {" ": "knight"}, "role_names": ["knight", "knave"]},
        {"roles": {"Ava": "knight", "AVA": "knave"}},
        {"roles": {"Ava": 1}},
        {"roles": {1: "knight"}},
        {"names": ["Ava"], "solution": [True, False]},
        {"names": ["Ava"], "solution": [2]},
        {"roles": {str(i): "knight" for i in range(65)}},
    ],
)
def test_a_malformed_gold_is_an_error(gold):
    with pytest.raises(ValueError, match="expected a Knights and Knaves gold"):
        answer("Ava is a knight", gold)


@given(
    st.text()
    | st.lists(st.sampled_from("Ava Ben Cleo is are a knight knaves knave : , . ( ) | - and both none the 1. \n".split(" "))).map(" ".join)
)
def test_no_text_makes_it_raise_and_only_whole_assignments_are_read(text):
    verdict = answer(text)
    assert verdict.reason in REASONS
    assert 0.0 <= fraction_right(text, GOLD) <= 1.0
    if verdict.reward:
        assert all(name in verdict.mode_key for name in ("ava=knight", "ben=knave", "cleo=knight"))
