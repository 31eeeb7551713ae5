"""setpo verify: a line for a line, in order, resumable, whatever the input holds; and one answer explained."""

import json

import pytest

from setpo_agents.cli import main
from setpo_agents.verify import verify
from setpo_verifiers import Status
from setpo_verifiers.explain import explain

GOLD = {"numbers": [1, 2, 3], "target": 6}


def row(id, completion="<answer>1+2+3</answer>", **fields):
    return json.dumps({"id": id, "task": "countdown", "gold": GOLD, "completion": completion, **fields})


LINES = [
    row("right"),
    row("wrong", "<answer>1+2</answer>"),
    row("none", "no idea"),
    row("free", "1+2+3"),
    row("strict", "1+2+3", mode="strict"),
    row("subset", "<answer>1*2*3</answer>", gold=json.dumps({"numbers": [1, 2, 3, 9], "target": 6}), options={"allow_subset": True}),
    "{not json",
    "",
    "[1]",
    json.dumps({"id": 7, "task": "countdown", "gold": GOLD}),
    row("gold", gold={"numbers": []}),
    row("task", task="chess"),
    row("text", None),
    row("options", options=[1]),
    row("mode", mode="loose"),
    row("surrogate", "\ud800\u2028"),
    row(None),
]
EXPECTED = [
    ("right", "correct"),
    ("wrong", "wrong"),
    ("none", "no_answer"),
    ("free", "correct"),
    ("strict", "no_answer"),
    ("subset", "correct"),
    (None, "error"),
    (None, "error"),
    (7, "error"),
    ("gold", "error"),
    ("task", "error"),
    ("text", "error"),
    ("options", "error"),
    ("mode", "error"),
    ("surrogate", "no_answer"),
    (None, "correct"),
]


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_one_line_for_every_line_in_order(source, tmp_path):
    summary = verify(source, tmp_path / "out.jsonl", workers=2)
    lines = read(tmp_path / "out.jsonl")
    assert [(line["id"], line["status"]) for line in lines] == EXPECTED
    for line in lines:
        assert list(line) == ["id", "status", "reward", "answer", "mode_key", "reason", "seconds"]
        assert line["reward"] == float(line["status"] == "correct") and line["status"].upper() in Status.__members__
    reasons = {line["reason"].partition(":")[0]: line["reason"] for line in lines if line["status"] == "error"}
    assert list(reasons) == [f"line {number}" for number in (7, 9, 10, 11, 12, 13, 14, 15)]
    assert (
        "expected a JSON object" in reasons["line 7"] and "missing completion" in reasons["line 10"] and "'numbers'" in reasons["line 11"]
    )
    assert summary[0].startswith("16 lines: 8 error (50.0%), 4 correct (25.0%), 3 no_answer")
    assert [text for text in summary if text.startswith("no verdict: line 7")]


def test_stopped_it_goes_on(source, tmp_path):
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    verify(source, whole)
    raw = whole.read_bytes()
    for size in (len(raw) // 3, len(raw) - 1, len(raw)):
        cut.write_bytes(raw[:size])
        summary = verify(source, cut, workers=1)
        assert [{**line, "seconds": 0} for line in read(cut)] == [{**line, "seconds": 0} for line in read(whole)]
        assert cut.read_bytes()[: raw.rfind(b"\n", 0, size) + 1] == raw[: raw.rfind(b"\n", 0, size) + 1]  # what was there stays
        assert summary[0].startswith("16 lines: 8 error")


def test_verdicts_of_another_file_are_not_appended_to(source, tmp_path):
    (tmp_path / "out.jsonl").write_text('{"id": "other"}\n')
    with pytest.raises(ValueError, match="holds verdicts of another file: its line 1 is 'other', expected 'right'"):
        verify(source, tmp_path / "out.jsonl")
    (tmp_path / "short.jsonl").write_text(LINES[0] + "\n")
    verify(source, tmp_path / "long.jsonl")
    with pytest.raises(ValueError, match="expected no more lines"):
        verify(tmp_path / "short.jsonl", tmp_path / "long.jsonl")


def test_the_command(source, tmp_path, capsys):
    out = tmp_path / "new" / "out.jsonl"
    assert main(["verify", str(source), "--out", str(out), "--workers", "1", "--strict", "--timeout", "10"]) == 0
    assert {line["id"]: line["status"] for line in read(out)}["free"] == "no_answer"
    assert capsys.readouterr().out.startswith("16 lines: ")
    (tmp_path / "empty.jsonl").write_text("")
    assert main(["verify", str(tmp_path / "empty.jsonl"), "--out", str(tmp_path / "none.jsonl")]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verify"], "expected setpo verify IN.jsonl --out OUT.jsonl"),
        (["verify", "{tmp}/absent.jsonl", "--out", "{tmp}/out.jsonl"], "absent.jsonl"),
        (["verify", "{tmp}/in.jsonl", "--out", "{tmp}/in.jsonl/out.jsonl"], "cannot write to"),
        (["verify", "{tmp}/in.jsonl", "--out", "{tmp}/out.jsonl", "--workers", "0"], "at least one worker"),
        (["verify", "--explain", "--task", "countdown"], "expected --task, --gold and --completion"),
        (["verify", "--explain", "--task", "chess", "--gold", "a", "--completion", "a"], "expected a task out of"),
    ],
)
def test_errors_are_one_line(source, tmp_path, capsys, arguments, message):
    assert main([word.replace("{tmp}", str(tmp_path)) for word in arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.err.count("\n") == 1


def test_explaining_an_answer(capsys):
    command = ["verify", "--explain", "--task", "countdown", "--gold", json.dumps(GOLD)]
    assert main([*command, "--completion", "<think>x</think><answer>3+2+1</answer>"]) == 0
    steps = dict(line.split(":", 1) for line in capsys.readouterr().out.splitlines())
    assert {"task", "thinking", "marker", "gold", "answer", "expression", "numbers", "value", "mode key", "verdict"} <= steps.keys()
    assert "CORRECT, reward 1" in steps["verdict"] and "1+2+3" in steps["mode key"]


@pytest.mark.parametrize(
    ("task", "gold", "completion", "step", "words"),
    [
        ("countdown", GOLD, "<answer>1+2</answer>", "numbers", "left out: [3]"),
        ("countdown", GOLD, "<answer>1**2</answer>", "expression", "none: expected a number"),
        ("countdown", GOLD, "<answer>1/(2-2)+3</answer>", "value", "divides by zero"),
        ("countdown", GOLD, "<think>1+2+3", "thinking", "not closed"),
        ("countdown", GOLD, "\\boxed{1+2", "marker", "empty or not closed"),
        (
            "kk",
            "Ava is a knight, and Ben is a knave.",
            "<answer>Ava is a knave, Ben is a knave</answer>",
            "ava",
            "the solution says knight",
        ),
        ("kk", "Ava is a knight, and Ben is a knave.", "<answer>Ava or Ben</answer>", "statements", "not one clear role"),
        ("format", "think", "<think>a</think>b", "verdict", "CORRECT"),
    ],
)
def test_each_step_says_what_it_found(task, gold, completion, step, words):
    steps = {name.lower(): found for name, found in explain(task, completion, gold)}
    assert words in steps[step]
