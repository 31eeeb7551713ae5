"""Every command and snippet of the README runs, and its figures are those of the stored study."""

import contextlib
import io
import json
import re
import shlex
from pathlib import Path

import gymnasium as gym
from tiny_run import SPACE

import setpo_agents.study as studies
from setpo_agents.cli import main
from setpo_agents.compare import comparison_table, summary_table
from setpo_envs.group import GROUP_FIELDS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def commands(prefix):
    lines = [line.split("#")[0].strip() for block in blocks("bash") for line in block.splitlines()]
    return [line for line in lines if line.startswith(prefix)]


def test_python_snippets_run_in_order_and_print_what_is_shown():
    snippets, shown = blocks("python"), blocks("text")
    assert len(snippets) >= 4
    namespace, printed = {}, []
    for snippet in snippets:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(snippet, "README.md", "exec"), namespace)
        printed += [output.getvalue()] if output.getvalue() else []
    assert printed == shown[: len(printed)] and printed
    assert isinstance(namespace["env"].unwrapped, gym.Env)


def test_table_lists_what_is_in_the_group():
    rows = re.findall(r"^\| `(\w+)` \| (\(G,\) \w+|\w+) \|", README, flags=re.MULTILINE)
    names = {bool: "bool", float: "float", "bool_": "bool"}
    assert [name for name, _ in rows] == list(GROUP_FIELDS)
    for name, kind in rows:
        dtype = GROUP_FIELDS[name]
        assert kind.split()[-1] == names.get(dtype, getattr(dtype, "__name__", "")).rstrip("_")


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {line.split()[1] for line in commands("make ")}
    assert {"demo", "test"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_setpo_commands_run(tmp_path, monkeypatch, capsys):
    """As they stand, on a smaller space and with sizes for a test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(studies, "ENV_KWARGS", SPACE)
    monkeypatch.setattr(studies, "packaged_warm_start", lambda: None)
    for name in ("ENTROPY_COEFFICIENTS", "KL_COEFFICIENTS", "LAMBDAS"):
        monkeypatch.setattr(studies, name, getattr(studies, name)[:1])
    sizes = "--steps 1 --warm-start-steps 2 --eval-samples 4 --eval-problems 2".split()
    small = {"demo": sizes, "study": [*sizes, "--seeds", "2"], "warm-start": ["--steps", "2"]}
    small["train"] = ["--set", "steps=1", "--set", "group_size=4", "--set", "prompts_per_step=2"]
    small["eval"] = ["--n", "4"]
    lines = commands("setpo ")
    expected = {"bench", "demo", "study", "envs", "show", "report", "warm-start", "train", "eval", "rescore", "verify"}
    assert {shlex.split(line)[1] for line in lines} == expected
    answer = {"id": 1, "task": "math", "gold": "1/2", "completion": "\\boxed{0.5}"}
    (tmp_path / "answers.jsonl").write_text(json.dumps(answer) + "\n", encoding="utf-8")
    for line in lines:
        words = shlex.split(line)[1:]
        assert main([*words, *small.get(words[0], [])]) == 0, (line, capsys.readouterr().err)
    assert json.loads((tmp_path / "rescored.jsonl").read_text().splitlines()[0])["task"] == "countdown"
    assert json.loads((tmp_path / "verdicts.jsonl").read_text())["status"] == "correct"


def test_figures_are_those_of_the_stored_study():
    with open(ROOT / "docs" / "study" / "results.jsonl", encoding="utf-8") as file:
        lines = [line for line in map(json.loads, file) if line["split"] == "test"]
    assert summary_table(lines) in README
    page = (ROOT / "docs" / "study" / "README.md").read_text(encoding="utf-8")
    assert summary_table(lines) in page and comparison_table(lines) in page
    for text, folder in ((README, ROOT), (page, ROOT / "docs" / "study")):
        for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text):
            assert (folder / picture).read_bytes().startswith(b"\x89PNG"), picture
