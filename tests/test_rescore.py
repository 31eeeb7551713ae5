"""Rescoring stored groups: verdicts and credits on completions that others sampled."""

import json
import re

import numpy as np
import pytest

from setpo_agents.rescore import rescore, summary
from setpo_envs.group import Groups
from setpo_envs.shapers.base import make_shaper
from setpo_envs.shapers.setpo import setpo_credits
from setpo_verifiers import parse_gold

POOLED = {
    "task": "rg_countdown",
    "problem_id": "p/0",
    "question": "Make 9 from 2, 3, 4.",
    "gold_raw": "2 + 3 + 4",
    "completions": [
        {"text": "<answer>2+3+4</answer>", "model": "a", "source_verdict": True, "check_verdict": True},
        {"text": "<answer>4+3+2</answer>", "model": "a", "source_verdict": True, "check_verdict": True},
        {"text": "<answer>3*4-2</answer>", "model": "b", "source_verdict": True, "check_verdict": False},
        {"text": "", "model": "b", "source_verdict": None, "check_verdict": None},
    ],
}


@pytest.fixture
def pooled(tmp_path):
    path = tmp_path / "pooled.jsonl"
    path.write_text(
        json.dumps(POOLED) + "\n" + json.dumps({**POOLED, "problem_id": "p/1", "gold_raw": '{"nums": [2, 3, 4], "target": 10}'}) + "\n"
    )
    return path


def test_pooled_completions(pooled, tmp_path):
    lines = rescore(pooled, tmp_path / "out.jsonl", shaper=make_shaper("setpo", kernel="equality_key"))
    assert [line["status"] for line in lines] == [["correct", "correct", "wrong", "no_answer"], ["wrong", "wrong", "correct", "no_answer"]]
    assert lines[0]["mode_keys"] == ["2+3+4", "2+3+4", "3*4-2", None]
    labels = np.array([0, 0, 1, 2])
    expected, diversity, _ = setpo_credits((labels[:, None] == labels).astype(float)[None])
    np.testing.assert_allclose(lines[0]["credits"], expected[0])
    assert lines[0]["diversity"] == pytest.approx(diversity[0])
    assert lines[0]["model"] == ["a", "a", "b", "b"] and lines[1]["source_line"] == 2
    text = "\n".join(summary(lines))
    assert "check_verdict: agrees on 3 of 6" in text and "source_verdict: agrees on 3 of 6" in text


def test_our_own_groups_keep_their_verdicts(pooled, tmp_path):
    first = rescore(pooled, tmp_path / "first.jsonl", shaper=make_shaper("setpo"))
    again = rescore(tmp_path / "first.jsonl", tmp_path / "again.jsonl", shaper=make_shaper("setpo"))
    for name in ("status", "mode_keys", "credits", "diversity", "gold", "prompt"):
        assert [line[name] for line in first] == [line[name] for line in again]
    assert Groups.from_json(again).rewards.shape == (2, 4)


def test_stopped_it_goes_on(pooled, tmp_path):
    shaper = make_shaper("setpo")
    whole = rescore(pooled, tmp_path / "whole.jsonl", shaper=shaper)
    raw = (tmp_path / "whole.jsonl").read_bytes()
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(raw[: len(raw) - 30])
    assert rescore(pooled, cut, shaper=shaper) == whole
    assert cut.read_bytes() == raw


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{not json", r"pooled.jsonl, line 3: expected a JSON object"),
        ("[1]", r"pooled.jsonl, line 3: expected a JSON object"),
        (json.dumps({"task": "rg_countdown"}), r"line 3: .*missing \['completions', 'problem_id'\]"),
        (json.dumps({**POOLED, "task": "chess"}), r"line 3: expected a task out of .*countdown.*, got 'chess'"),
        (json.dumps({**POOLED, "gold_raw": None}), r"line 3: expected a gold answer"),
        (json.dumps({**POOLED, "completions": []}), r"line 3: .*missing any completion"),
        (json.dumps({**POOLED, "completions": "1+2"}), r"line 3: expected completions to be a list"),
        (json.dumps({**POOLED, "completions": [{"model": "a"}]}), r"line 3: expected completions to be a list"),
        (json.dumps({**POOLED, "gold_raw": "nonsense"}), r"line 3: expected a Countdown gold"),
    ],
)
def test_a_malformed_line_is_named_and_nothing_is_written(pooled, tmp_path, line, message):
    with open(pooled, "a") as file:
        file.write(line + "\n")
    with pytest.raises(ValueError, match=message):
        rescore(pooled, tmp_path / "out.jsonl", shaper=make_shaper("setpo"))
    assert not (tmp_path / "out.jsonl").exists()


def test_groups_of_another_file_are_not_appended_to(pooled, tmp_path):
    rescore(pooled, tmp_path / "out.jsonl", shaper=make_shaper("setpo"))
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps({**POOLED, "problem_id": "q/0"}) + "\n")
    with pytest.raises(ValueError, match="holds groups of another file"):
        rescore(other, tmp_path / "out.jsonl", shaper=make_shaper("setpo"))


@pytest.mark.parametrize("change", [{"shaper": {"kernel": "equality_key"}}, {"mode": "strict"}, {"seed": 1}])
def test_other_options_are_refused_and_lose_nothing(pooled, tmp_path, change):
    rescore(pooled, tmp_path / "out.jsonl", shaper=make_shaper("setpo"))
    before = (tmp_path / "out.jsonl").read_bytes()
    options = {"shaper": make_shaper("setpo", **change.get("shaper", {})), **{k: v for k, v in change.items() if k != "shaper"}}
    with pytest.raises(ValueError, match="was scored otherwise"):
        rescore(pooled, tmp_path / "out.jsonl", **options)
    assert (tmp_path / "out.jsonl").read_bytes() == before


def test_the_source_is_never_written_to(pooled):
    before = pooled.read_bytes()
    with pytest.raises(ValueError, match="another file"):
        rescore(pooled, pooled, shaper=make_shaper("setpo"))
    assert pooled.read_bytes() == before


def test_completions_that_were_cut_off_stay_so(tmp_path):
    group = {**POOLED, "completions": ["1+2", "(2+3)+4", "let me think"], "truncated": [False, False, True]}
    (tmp_path / "in.jsonl").write_text(json.dumps(group) + "\n")
    (line,) = rescore(tmp_path / "in.jsonl", tmp_path / "out.jsonl", shaper=make_shaper("setpo"))
    assert line["status"] == ["wrong", "correct", "truncated"] and line["truncated"] == [False, False, True]


def test_too_small_groups_are_undefined_not_lost(tmp_path):
    path = tmp_path / "small.jsonl"
    path.write_text(json.dumps({**POOLED, "completions": POOLED["completions"][:2]}) + "\n")
    (line,) = rescore(path, tmp_path / "out.jsonl", shaper=make_shaper("setpo"))
    assert line["defined"] is False and line["credits"] == [0.0, 0.0] and line["rewards"] == [1.0, 1.0]


def test_published_countdown_completions(test_data, tmp_path):
    source = test_data / "data" / "completions" / "rg_countdown_g19.jsonl"
    lines = rescore(source, tmp_path / "out.jsonl", shaper=make_shaper("setpo"), mode="strict")
    assert len(lines) == 16 and all(len(line["completions"]) == 19 for line in lines)
    for line in lines:
        assert [status == "correct" for status in line["status"]] == line["check_verdict"]
        assert np.isfinite(line["credits"]).all() and line["defined"]
        numbers, target = parse_gold(line["gold"])
        words = re.search(r"(?:Calculate|make|equals) (\d+)", line["prompt"])
        assert int(words[1]) == target and all(re.search(rf"\b{number}\b", line["prompt"]) for number in numbers)
    by_id = {line["problem_id"]: line for line in lines}
    ruled = 0
    with open(test_data / "data" / "completions" / "hard_cases.jsonl") as file:
        for case in map(json.loads, file):
            if case["file"] == source.name and case["judged"] != "ambiguous":
                status = by_id[case["problem_id"]]["status"][case["completion"]]
                assert (status == "correct") == (case["judged"] == "true")
                ruled += 1
    assert ruled == 2
