"""Rescoring with many methods: what is written, resumed, compared and shown."""

import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from setpo_agents import advantages
from setpo_agents.cli import main
from setpo_agents.comparison import compare_methods, comparison_text, paid_list
from setpo_agents.methods import DEFAULT_COEFFICIENT, SHAPING_FIELDS, make_method, read_methods
from setpo_agents.rescore import Reading, rescore, rescore_methods, usable, with_method
from setpo_agents.rescore_page import write_page
from setpo_envs.group import Groups
from setpo_envs.render import cells
from setpo_envs.shapers.base import make_shaper, registry

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>{{STYLE}}{{DATA}}\u2028\u202e\x1b[2J&amp;"
GOLD = {"numbers": [1, 2, 3, 4], "target": 10}
TEXTS = ["1+2+3+4", "4+3+2+1", "1+2+3+4", "3*4-2*1", "1+2+3-4", HOSTILE]
EQUALITY = 'setpo:{"kernel": "equality_key"}'


def write(path, *lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def source(tmp_path):
    lines = [{"task": "countdown", "problem_id": f"p{i}", "gold": GOLD, "completions": TEXTS[i:] + TEXTS[:i]} for i in range(3)]
    return write(tmp_path / "in.jsonl", *lines, {**lines[0], "completions": TEXTS[:2]})


# --- methods --------------------------------------------------------------------------------------------------------


def test_a_method_takes_what_its_shaper_declares_and_what_it_is_told():
    darling, madrl, told = read_methods(
        ["darling", "madrl", 'setpo:{"kernel": "equality_key", "credit_coefficient": 1, "base_advantage": "rloo"}']
    )
    assert (darling.base_advantage, darling.credit_coefficient) == ("dr_grpo", DEFAULT_COEFFICIENT)
    assert madrl.credit_coefficient == 1.0
    assert (told.base_advantage, told.credit_coefficient, told.shaper.kernel) == ("rloo", 1.0, "equality_key")
    assert told.label == "setpo kernel=equality_key credit_coefficient=1 base_advantage=rloo"
    assert [method.label for method in read_methods(["gapo", "all"])] == ["gapo", "none", *(x for x in sorted(registry()) if x != "gapo")]


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        (["setpoo"], "setpoo"),
        (["setpo:{oops"], "expected NAME or NAME:JSON"),
        (["setpo:[1]"], "as a JSON object"),
        (['setpo:{"kernle": 1}'], "kernle"),
        (['setpo:{"base_advantage": "a2c"}'], "expected base_advantage out of grpo"),
        (['setpo:{"credit_coefficient": "much"}'], "expected credit_coefficient as a finite number"),
        (['none:{"kernel": 1}'], "has no shaper"),
        (["gapo", "gapo"], "'gapo' twice"),
    ],
)
def test_a_wrong_spec_is_an_error_with_the_cure(specs, message):
    with pytest.raises(ValueError, match=message):
        read_methods(specs)


def test_advantages_are_those_of_the_trainer():
    # golden vector: rewards 1 1 1 1 0 0, labels 0 0 0 1 2 3, SetPO with the equality kernel, lambda .05
    line = {"task": "countdown", "problem_id": "p", "prompt": "", "gold": GOLD, "metadata": {}, "truncated": [False] * 6}
    line |= {"completions": [*"abcdef"], "rewards": [1, 1, 1, 1, 0, 0], "status": ["correct"] * 4 + ["wrong"] * 2}
    line |= {"answers": [*"aaabcd"], "mode_keys": [*"aaabcd"], "reasons": [""] * 6, "shaped_rewards": [1, 1, 1, 1, 0, 0]}
    line |= {"weights": [1] * 6, "credits": [0] * 6, "defined": True, "diversity": 0}
    groups = Groups.from_json([line])
    method = make_method("setpo", {"kernel": "equality_key", "credit_coefficient": 0.05})
    shaped = method.shape(groups, np.random.default_rng(0))
    np.testing.assert_allclose(method.advantages(shaped)[0], [0.641547] * 3 + [0.649248] + [-1.287240] * 2, atol=2e-6)
    assert not groups.credits.any()
    assert method.advantages(shaped).tolist() == (
        advantages.combine(advantages.grpo(shaped.shaped_rewards), shaped.credits, 0.05, shaped.weights).tolist()
    )
    undecided = Groups.from_json([{**line, "status": ["correct"] * 4 + ["wrong", "timeout"]}])
    assert make_method("none").advantages(undecided)[0, -1] == 0
    lone = {key: value[:1] if isinstance(value, list) else value for key, value in line.items()}
    assert make_method("none").advantages(Groups.from_json([lone])).tolist() == [[0]]


# --- what is written ------------------------------------------------------------------------------------------------


def test_every_method_is_beside_the_verdicts_as_if_alone(source, tmp_path):
    methods = read_methods(["none", EQUALITY, "shuffled", "darling", "pkpo"])
    lines = rescore_methods(source, tmp_path / "out.jsonl", methods=methods, seed=3)
    assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()] == lines
    for method in methods[1:]:
        alone = rescore(source, tmp_path / f"{method.label}.jsonl", shaper=method.shaper, seed=3)
        for line, own in zip(lines, alone, strict=True):
            assert line["methods"][method.label] == with_method(own, method)["methods"][method.label]
            assert {name: line["methods"][method.label][name] for name in SHAPING_FIELDS} == {name: own[name] for name in SHAPING_FIELDS}
            assert line["status"] == own["status"] and line["rewards"] == line["shaped_rewards"] and not any(line["credits"])
    assert lines[0]["methods"]["shuffled"]["credits"] != lines[0]["methods"]["setpo kernel=equality_key"]["credits"]
    assert lines[3]["methods"]["pkpo"]["defined"] is False and len(lines[3]["methods"]["none"]["advantages"]) == 2
    assert lines[0]["scoring"]["methods"]["darling"]["base_advantage"] == "dr_grpo" and lines[0]["scoring"]["seed"] == 3
    assert Groups.from_json(lines[:3]).rewards.shape == (3, 6)


def test_the_order_of_methods_and_a_stop_change_nothing(source, tmp_path):
    same = write(tmp_path / "same.jsonl", *[json.loads(source.read_text().splitlines()[0])] * 3)  # one problem again and again
    names = ["ucb_exploration", "shuffled", "none"]
    whole = rescore_methods(same, tmp_path / "whole.jsonl", methods=read_methods(names))
    credits = [line["methods"]["ucb_exploration"]["credits"] for line in whole]
    assert credits[0] != credits[1] != credits[2]  # it remembers
    raw = (tmp_path / "whole.jsonl").read_bytes()
    for n_bytes in (len(raw) - 30, raw.index(b"\n") + 1, 40):
        (tmp_path / "cut.jsonl").write_bytes(raw[:n_bytes])
        assert rescore_methods(same, tmp_path / "cut.jsonl", methods=read_methods(names)) == whole
        assert (tmp_path / "cut.jsonl").read_bytes() == raw
    reverse = rescore_methods(same, tmp_path / "reverse.jsonl", methods=read_methods(names[::-1]))
    assert [line["methods"] for line in reverse] == [line["methods"] for line in whole]
    alone = rescore(same, tmp_path / "alone.jsonl", shaper=make_shaper("ucb_exploration"))
    (tmp_path / "half.jsonl").write_bytes(b"".join((tmp_path / "alone.jsonl").read_bytes().splitlines(keepends=True)[:2]))
    assert rescore(same, tmp_path / "half.jsonl", shaper=make_shaper("ucb_exploration")) == alone


DIES = """
import os, signal
from setpo_envs.shapers import Shaping, register

class Dies:
    calls = 0
    def __repr__(self): return "dies"
    def __call__(self, groups, rng):
        self.calls += 1
        if self.calls == int(os.environ.get("DIES_AT", 0)):
            os.kill(os.getpid(), signal.SIGKILL)
        return Shaping(credits=rng.random(groups.rewards.shape))

register("dies")(Dies)
"""


def test_killed_and_started_again_it_gives_the_same_file(source, tmp_path):
    (tmp_path / "dies.py").write_text(DIES)
    first = json.loads(source.read_text().splitlines()[0])
    many = write(tmp_path / "many.jsonl", *({**first, "problem_id": f"q{i % 3}"} for i in range(9)))
    command = [sys.executable, "-m", "setpo_agents.cli", "--import", "dies", "rescore", str(many)]
    command += ["--shaper", "none", "--shaper", "ucb_exploration", "--shaper", "dies", "--out"]

    def run(name, **environment):
        done = subprocess.run([*command, str(tmp_path / name)], cwd=tmp_path, env={**os.environ, **environment}, capture_output=True)
        return done.returncode, (tmp_path / name).read_bytes()

    status, left = run("cut.jsonl", DIES_AT="6")
    assert status == -signal.SIGKILL and left.count(b"\n") == 5
    assert run("cut.jsonl") == run("whole.jsonl") and (tmp_path / "cut.jsonl").read_bytes().count(b"\n") == 9


@pytest.mark.parametrize("names", [["none"], ["gapo", "none"], ["none", "gapo", "ips"], ["none", 'gapo:{"base_advantage": "rloo"}']])
def test_other_methods_are_refused_and_lose_nothing(source, tmp_path, names):
    out = tmp_path / "out.jsonl"
    rescore_methods(source, out, methods=read_methods(["none", "gapo"]))
    before = out.read_bytes()
    if names == ["gapo", "none"]:  # the same methods in another order
        assert len(rescore_methods(source, out, methods=read_methods(names))) == 4
    else:
        with pytest.raises(ValueError, match="was scored otherwise"):
            rescore_methods(source, out, methods=read_methods(names))
    assert out.read_bytes() == before


def test_any_verifier_and_any_gold(tmp_path):
    line = {"task": "quiz", "problem_id": "p", "gold_raw": "see below", "answer": "1/2", "completions": ["\\boxed{0.5}", "\\boxed{3}"]}
    source = write(tmp_path / "in.jsonl", line)
    methods = read_methods(["none"])
    with pytest.raises(ValueError, match="line 1: expected a task out of .* got 'quiz'"):
        rescore_methods(source, tmp_path / "out.jsonl", methods=methods)
    for tasks in ({"quiz": "math"}, {"*": "math"}, {"quiz": "math", "*": "countdown"}):
        (found,) = rescore_methods(source, tmp_path / "out.jsonl", methods=methods, reading=Reading(tasks, "answer"))
        assert found["status"] == ["correct", "wrong"] and (found["task"], found["gold"]) == ("math", "1/2")
    with pytest.raises(ValueError, match="was verified otherwise: expected task 'gsm8k'"):
        rescore_methods(source, tmp_path / "out.jsonl", methods=methods, reading=Reading({"*": "gsm8k"}, "answer"))
    with pytest.raises(ValueError, match="expected a gold answer under 'solution'"):
        rescore_methods(source, tmp_path / "new.jsonl", methods=methods, reading=Reading({"*": "math"}, "solution"))


def test_a_method_that_cannot_shape_these_groups_is_named(source, tmp_path):
    with pytest.raises(ValueError, match=r"in.jsonl, line 1, method 'overlong': expected the number of tokens"):
        rescore_methods(source, tmp_path / "out.jsonl", methods=read_methods(["none", "overlong"]))
    able, reasons = usable(source, read_methods(["none", "ucb_exploration", "overlong"]))
    assert [method.label for method in able] == ["none", "ucb_exploration"] and "number of tokens" in reasons[0]
    assert not able[1].shaper.seen  # trying it left no memory


# --- terminal and page ----------------------------------------------------------------------------------------------


def test_terminal_shows_tables_and_clipped_lines(source, tmp_path, capsys):
    command = ["rescore", str(source), "--out", str(tmp_path / "out.jsonl"), "--shaper", "none", "--shaper", EQUALITY, "--shaper", "ips"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed and "\u202e" not in printed
    assert "in the 3 groups with such modes" in printed
    # the three whole groups have correct a a a b: GRPO pays b a fourth of it, IPS pays a half
    assert re.search(r"1 none .* 100\.0 +25\.0 +0\.0 +0\.0\n", printed)
    assert re.search(r"\n +3 +\+0\.0 \[\+0\.0 \+0\.0\] +\+\d+\.\d \[", printed)
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    comparison = compare_methods(lines)
    assert "\n".join(comparison_text(comparison)) in printed
    paid = list(paid_list(comparison, lines))
    assert max(map(cells, paid)) <= 80 and [line for line in paid if line.startswith("    least -")]
    # none and ips: in a whole group three a, one b correct, two wrong; ips orders b above a, none ties them
    assert comparison.tau_all[0, 2] == pytest.approx(8 / np.sqrt(8 * 11)) and comparison.n_tau[0][0, 2] == 3
    assert np.isnan(comparison.tau_correct[0, 2]) and comparison.tau_correct[1, 2] == pytest.approx(1)


def test_all_methods_from_the_command_line(source, tmp_path, capsys):
    assert main(["rescore", str(source), "--out", str(tmp_path / "out.jsonl"), "--shaper", "all"]) == 0
    captured = capsys.readouterr()
    assert "left out overlong: expected the number of tokens" in captured.err
    line = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert set(line["methods"]) == {"none", *registry()} - {"overlong"}


def page_data(path):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text("utf-8"), re.S)[1])


def test_page_keeps_hostile_completions_as_data(source, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert (
        main(["rescore", str(source), "--out", str(tmp_path / "out.jsonl"), "--shaper", "none", "--shaper", "gapo", "--html", str(page)])
        == 0
    )
    assert f"wrote {page}" in capsys.readouterr().out
    text = page.read_text("utf-8")
    assert len(re.findall("<script", text)) == 2 and len(re.findall("</script", text)) == 2  # the data and the code
    assert "onerror=alert" in text and "<img" not in text and not re.findall(r"""(?:src|href)=["']?https?:|@import|url\(""", text)
    data = page_data(page)
    assert HOSTILE in {record["text"] for group in data["groups"] for record in group["records"]}
    assert [method["label"] for method in data["methods"]] == ["none", "gapo"]
    group = data["groups"][0]
    assert len(group["members"]) == 6 and len(group["records"]) == 5  # one text occurs twice
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    np.testing.assert_allclose(group["methods"][1]["advantages"], lines[0]["methods"]["gapo"]["advantages"], rtol=1e-3)


def test_a_single_shaper_keeps_its_format_and_has_a_page_too(source, tmp_path, capsys):
    out = ["--out", str(tmp_path / "out.jsonl")]
    assert main(["rescore", str(source), *out, "--shaper-kwargs", '{"kernel": "equality_key"}', "--html", str(tmp_path / "page.html")]) == 0
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert "methods" not in lines[0] and lines == rescore(
        source, tmp_path / "own.jsonl", shaper=make_shaper("setpo", kernel="equality_key")
    )
    data = page_data(tmp_path / "page.html")
    assert [method["label"] for method in data["methods"]] == ["setpo kernel=equality_key"]
    np.testing.assert_allclose(data["groups"][0]["methods"][0]["credits"], lines[0]["credits"], rtol=1e-3)
    assert main(["rescore", str(source), *out, "--shaper", EQUALITY]) == 0  # the same method, written otherwise
    capsys.readouterr()
    assert main(["rescore", str(source), *out, "--shaper", "setpo", "--shaper", "gapo", "--shaper-kwargs", '{"g": "linear"}']) == 2
    assert "--shaper NAME:JSON" in capsys.readouterr().err


def test_page_is_bounded(source, tmp_path):
    methods = read_methods(["none", "gapo"])
    lines = rescore_methods(source, tmp_path / "out.jsonl", methods=methods)
    path = write_page(tmp_path / "page.html", compare_methods(lines), lines, methods, name="in", max_bytes=2_000)
    data = page_data(path)
    assert len(data["groups"]) == 1 and "The first 1 of them" in data["facts"]


# --- published completions ------------------------------------------------------------------------------------------


def test_published_countdown_completions(test_data, tmp_path):
    source = test_data / "data" / "completions" / "rg_countdown_g19.jsonl"
    lines = rescore_methods(source, tmp_path / "out.jsonl", methods=read_methods(["none", EQUALITY, "gapo", "madrl"]))
    comparison = compare_methods(lines)
    assert comparison.n_defined == [16] * 4
    assert comparison.shares[0, 0] == 1 and comparison.shares[0, 3] < 1  # MaD-RL pays rare wrong answers
    np.testing.assert_allclose(comparison.shares[[0, 2, 3]].sum(axis=0), 1)
    assert (comparison.low <= comparison.difference + 1e-12).all() and (comparison.difference <= comparison.high + 1e-12).all()
    assert (np.abs(comparison.tau_all) <= 1).all() and comparison.n_tau[0].max() == 16
    assert max(map(cells, paid_list(comparison, lines))) <= 80
