"""The command line: help, results, and errors that say what to do before any work is lost."""

import json
import subprocess
import sys

import pytest
from tiny_run import make_warm_start

from setpo_agents.cli import main

COMMANDS = ("demo", "study", "envs", "show", "report", "warm-start", "train", "eval", "rescore", "verify")


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_help(command, capsys):
    with pytest.raises(SystemExit) as exit_info:
        main([*command, "--help"])
    assert exit_info.value.code == 0
    assert "usage: setpo" in capsys.readouterr().out


def test_commands_without_a_model_import_no_torch(tmp_path):
    group = {"task": "countdown", "problem_id": "p", "gold": {"numbers": [1, 2, 3], "target": 6}, "completions": ["1+2+3", "3*2*1", "7"]}
    (tmp_path / "in.jsonl").write_text(json.dumps(group) + "\n")
    code = "import sys; from setpo_agents.cli import main; status = main(sys.argv[1:]); assert 'torch' not in sys.modules; sys.exit(status)"
    command = [sys.executable, "-c", code, "rescore", str(tmp_path / "in.jsonl"), "--out", str(tmp_path / "out.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "1 groups, 3 completions: 66.7% correct" in done.stdout
    assert json.loads((tmp_path / "out.jsonl").read_text())["status"] == ["correct", "correct", "wrong"]


def test_train_and_eval(tmp_path, capsys):
    start = make_warm_start(tmp_path / "start.pt", steps=30)
    space = {"min_numbers": 3, "max_numbers": 3, "number_range": [1, 4], "target_range": [1, 9], "min_modes": 1}
    kwargs = {"source": "enumerate", "prompt_format": "terse", "settings": space}
    run = tmp_path / "run"
    settings = [
        "steps=2",
        "group_size=4",
        "prompts_per_step=4",
        "shaper=setpo",
        "credit_coefficient=0.1",
        f"env_kwargs={json.dumps(kwargs)}",
    ]
    arguments = [word for setting in settings for word in ("--set", setting)]
    assert main(["train", "--warm-start", str(start), "--out", str(run), "--verifiers", "1", *arguments]) == 0
    assert json.loads((run / "config.json").read_text())["shaper"] == "setpo"
    out = tmp_path / "groups.jsonl"
    evaluate = [
        "eval",
        "--checkpoint",
        str(run / "checkpoint.safetensors"),
        "--out",
        str(out),
        "--n",
        "8",
        "--env-kwargs",
        json.dumps(kwargs),
    ]
    assert main([*evaluate, "--verifiers", "1"]) == 0
    printed = capsys.readouterr().out
    assert "pass@8" in printed and len(out.read_text().splitlines()) > 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["train", "--warm-start", "x.pt", "--out", "{tmp}/run", "--set", "colour=1"],
            "expected fields of TrainConfig",
        ),
        (["train", "--warm-start", "{tmp}/x.pt", "--out", "{tmp}/run"], "no checkpoint at"),
        (["eval", "--checkpoint", "{tmp}/x.pt", "--out", "{tmp}/g.jsonl"], "no checkpoint at"),
        (["rescore", "{tmp}/absent.jsonl", "--out", "{tmp}/o.jsonl"], "absent.jsonl"),
        (["rescore", "{tmp}/file", "--out", "{tmp}/o.jsonl", "--shaper", "setpoo"], "setpoo"),
        (["rescore", "{tmp}/file", "--out", "{tmp}/o.jsonl", "--shaper-kwargs", '{"kernle": 1}'], "kernle"),
        (["rescore", "{tmp}/file", "--out", "{tmp}/file/inside/o.jsonl"], "cannot write to"),
        (["demo", "--out", "{tmp}/file/inside"], "choose another folder with --out"),
        (["report", "{tmp}"], "setpo demo"),
    ],
)
def test_errors_are_one_line_and_name_the_cure(tmp_path, capsys, arguments, message):
    (tmp_path / "file").write_text("{}\n")
    assert main([word.replace("{tmp}", str(tmp_path)) for word in arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.err.startswith("setpo: ") and captured.err.count("\n") == 1
    assert "Traceback" not in captured.err


def test_bad_json_is_a_usage_error(capsys):
    with pytest.raises(SystemExit) as exit_info:
        main(["rescore", "x", "--out", "y", "--shaper-kwargs", "{oops"])
    assert exit_info.value.code == 2
    assert "expected a JSON object" in capsys.readouterr().err


def test_a_module_of_ones_own_is_imported_first(tmp_path, monkeypatch, capsys):
    (tmp_path / "shouts.py").write_text(
        "from setpo_verifiers import Status, Verdict, register\n"
        "def verify_shout(completion, gold, *, mode='lenient'):\n"
        "    right = completion == gold + '!'\n"
        "    return Verdict(float(right), Status(int(right)), completion, completion, '')\n"
        "register('shout', verify_shout)\n"
    )
    (tmp_path / "in.jsonl").write_text('{"id": 1, "task": "shout", "gold": "hey", "completion": "hey!"}\n')
    monkeypatch.chdir(tmp_path)
    assert main(["--import", "shouts", "verify", "in.jsonl", "--out", "out.jsonl", "--workers", "1"]) == 0
    assert '"status": "correct"' in (tmp_path / "out.jsonl").read_text()
    assert main(["--import", "whispers", "verify", "in.jsonl", "--out", "other.jsonl"]) == 2
    assert "whispers" in capsys.readouterr().err
