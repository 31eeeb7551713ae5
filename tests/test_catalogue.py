"""``setpo envs`` and ``setpo show``, and the pages and tables that say the same: all from the docstrings and cards of the environments."""

import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import gymnasium as gym
import pytest

from setpo_agents import catalogue
from setpo_agents.cli import main
from setpo_envs import ENVIRONMENTS, Card, GroupEnv
from setpo_envs.checks import right_completion
from setpo_envs.datasets import Problem
from setpo_envs.render import cells
from setpo_verifiers import TASKS, Status, verify

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
each_id = pytest.mark.parametrize("env_id", ENVIRONMENTS)


def script():
    spec = importlib.util.spec_from_file_location("environment_pages", ROOT / "scripts" / "environment_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = script()


def settings(env_id):
    """The words of ``setpo show`` that make the example of an environment."""
    example = catalogue.env_class(env_id).card.example
    return [word for name, value in example.items() for word in ("--set", f"{name}={json.dumps(value)}")]


# ---- setpo envs


def test_the_list_has_every_id_with_its_card_and_a_prompt(capsys):
    assert main(["envs"]) == 0
    printed = capsys.readouterr().out
    found = dict(re.findall(r"^(setpo/\S+)\n((?:  .*\n)+)", printed, re.MULTILINE))
    assert list(found) == list(ENVIRONMENTS)
    for env_id, text in found.items():
        card, words = catalogue.env_class(env_id).card, " ".join(text.split())
        for fact in (card.data, card.rows, card.verifier, card.licence):
            assert fact.replace("`", "") in words
        prompt = re.search(r"^  prompt +(.*?)(?: \.\.\.)?$", text, re.MULTILINE)[1]
        assert gym.make(env_id, shaper=None, **card.example).unwrapped.dataset[0].prompt.startswith(prompt) and prompt
    assert 'source "hub" by default; "embedded" works offline' in " ".join(found["setpo/GSM8K-v0"].split())
    assert max(map(cells, printed.splitlines())) <= 80


def test_a_specification_is_the_docstring_and_those_it_builds_on(capsys):
    assert main(["envs", "setpo/Countdown-v0"]) == 0
    printed = capsys.readouterr().out
    assert printed == f"CountdownEnv\n------------\n{inspect.getdoc(catalogue.env_class('setpo/Countdown-v0'))}\n"
    assert main(["envs", "setpo/MATH500-v0"]) == 0
    printed = capsys.readouterr().out
    assert re.findall(r"^(\w+)\n-+$", printed, re.MULTILINE) == ["MATH500Env", "MATHEnv", "QuestionEnv"]
    assert "prompt_format: See above." in printed


# ---- setpo show


@each_id
def test_a_problem_with_a_right_answer(env_id, capsys):
    assert main(["show", env_id, "--index", "3", *settings(env_id)]) == 0
    printed = capsys.readouterr().out
    problem = gym.make(env_id, shaper=None, **catalogue.env_class(env_id).card.example).unwrapped.dataset[3]
    words = " ".join(printed.split())
    assert " ".join(problem.prompt.split()) in words and f"verifier {problem.task}" in words
    assert f"gold {json.dumps(problem.gold, ensure_ascii=False)}" in words
    for name, value in {"options": problem.options, "metadata": problem.metadata}.items():
        assert (f"{name} {json.dumps(dict(value), ensure_ascii=False)}" in words) == bool(value)
    assert "reward 1.000" in printed and " ".join(right_completion(problem).split()) in words
    if env_id not in ("setpo/Dataset-v0", "setpo/Mixture-v0"):
        assert catalogue.env_class(env_id).card.verifier == f"`{problem.task}`"
    assert max(map(cells, printed.splitlines())) <= 80


def test_arguments_of_the_environment(capsys):
    assert main(["show", "setpo/GSM8K-v0", "--set", 'source="embedded"', "--set", "split=test"]) == 0
    long = capsys.readouterr().out
    assert main(["show", "setpo/GSM8K-v0", "--source", "embedded", "--set", 'split="test"']) == 0
    assert capsys.readouterr().out == long and "12 problems" in long
    group = ["--set", "group_size=3", "--set", "shaper=setpo"]
    assert main(["show", "setpo/GSM8K-v0", "--source", "embedded", *group]) == 0
    assert capsys.readouterr().out.count("correct   reward 1") == 3


def test_the_hub_out_of_reach_is_one_line_with_advice(tmp_path):
    code = "import sys; from setpo_agents.cli import main; sys.exit(main(sys.argv[1:]))"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code, "show", "setpo/GSM8K-v0"], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("setpo: could not load openai/gsm8k from the hub or its cache") and done.stderr.count("\n") == 1
    assert "use source='embedded'" in done.stderr


def test_without_the_library_datasets(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert main(["show", "setpo/GSM8K-v0"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("setpo: loading openai/gsm8k needs the library datasets") and error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["envs", "setpo/Cuntdown-v0"], "Did you mean: `Countdown`? (setpo envs lists the ids"),
        (["envs", "CartPole-v1"], "expected a group environment, such as setpo/Countdown-v0"),
        (["envs", "no_such_module:mine/Chess-v0"], "expected MODULE:ID with a module that can be imported"),
        (["show", "setpo/Countdown-v0", "--index", "-1"], "expected an integer index of at least 0"),
        (["show", "setpo/Countdown-v0", "--set", "colour=1"], "unexpected keyword argument 'colour' of CountdownEnv"),
        (["show", "setpo/AMC-v0", "--source", "embedded", "--set", "split=train"], "has only the split 'test'"),
        (["show", "setpo/AMC-v0", "--set", "split"], "expected --set NAME=JSON, got 'split'"),
        (["show", "setpo/Dataset-v0"], "expected source: a hub id, a path"),
    ],
)
def test_errors_are_one_line(arguments, message, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error and error.startswith("setpo: ") and error.count("\n") == 1


@pytest.mark.parametrize("arguments", [["envs"], ["envs", "setpo/MATH-v0"], ["show", "setpo/MATH-v0", "--source", "embedded"]])
def test_neither_imports_torch(arguments):
    code = "import sys; from setpo_agents.cli import main; status = main(sys.argv[1:]); assert 'torch' not in sys.modules; sys.exit(status)"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout


def test_a_reader_that_has_seen_enough():
    read, write = os.pipe()
    os.close(read)
    code = "import sys; from setpo_agents.cli import main; sys.exit(main(['envs']))"
    done = subprocess.run([sys.executable, "-c", code], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


# ---- environments of others


class Chess(GroupEnv):
    make_dataset = staticmethod(lambda size=1: [Problem("chess/1", "chess", "White to move.", {"move": "e4"})] * size)


def test_an_environment_of_somebody_else_without_card_or_docstring(monkeypatch, capsys):
    monkeypatch.setitem(TASKS, "chess", lambda text, gold, mode="lenient": verify("math", text, "7"))
    monkeypatch.setitem(sys.modules, "their_package", types.ModuleType("their_package"))
    monkeypatch.setattr(gym.envs.registration, "registry", registry := dict(gym.registry))
    monkeypatch.setattr(gym, "registry", registry)
    for env_id in ("mine/Chess-v0", "setpo/Chess-v0"):
        gym.register(env_id, entry_point=Chess)
    assert Chess.card == Card() and main(["envs", "their_package:mine/Chess-v0"]) == 0
    assert capsys.readouterr().out == "Chess\n-----\n(without a docstring)\n"
    assert main(["envs"]) == 0
    (entry,) = re.findall(r"^setpo/Chess-v0\n((?:  .*\n)+)", capsys.readouterr().out, re.MULTILINE)
    assert re.findall(r"^  (\w+) +(.*)$", entry, re.MULTILINE)[-4:] == [
        (name, "not stated") for name in ("data", "rows", "verifier", "licence")
    ]
    assert main(["show", "their_package:mine/Chess-v0"]) == 0
    printed = capsys.readouterr().out
    assert 'gold      {"move": "e4"}' in printed and "no sample" in printed and "reward" not in printed


def test_an_environment_that_cannot_be_made_hides_no_other(monkeypatch, capsys):
    monkeypatch.setattr(catalogue.env_class("setpo/AMC-v0"), "card", Card(example={"source": "no_such_file.jsonl"}))
    assert main(["envs"]) == 0
    printed = capsys.readouterr().out
    assert "prompt    none: there is no file no_such_file.jsonl" in printed and "setpo/Mixture-v0" in printed


# ---- right completions


def problem(task, gold, prompt="?", **options):
    return Problem("p", task, prompt, gold, {}, options)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (problem("math", "1/2"), "\\boxed{1/2}"),
        (problem("math", 7, "In <answer> </answer> tags."), "<answer>7</answer>"),
        (problem("gsm8k", "7", 'Behind "####".'), "#### 7"),
        (problem("countdown", {"numbers": [1, 2, 3], "target": 2}), "\\boxed{1-2+3}"),
        (problem("countdown", {"numbers": [1, 2, 3], "target": 2}, nonnegative_only=True), "\\boxed{(1+3)/2}"),
        (problem("countdown", {"numbers": [1, 1], "target": 9}), None),
        (problem("countdown", {"numbers": [1] * 6, "target": 6}), None),  # more than the solver takes
        (problem("graph_coloring", {"n": 3, "edges": [[0, 2]], "colors": 2}), "\\boxed{001}"),
        (problem("graph_coloring", {"n": 3, "edges": [[0, 1], [0, 2], [1, 2]], "colors": 2}), None),
        (problem("kk", "Ava is a knight, and Ben is a knave."), "\\boxed{(1) Ava is a knight\n(2) Ben is a knave}"),
        (
            problem("kk", {"roles": {"A": "elf", "B": "orc"}, "role_names": ["elf", "orc"]}, "Under CONCLUSION:"),
            "CONCLUSION:\n(1) A is an elf\n(2) B is an orc",
        ),
        (problem("anything", {"a": 1}), None),
    ],
)
def test_right_completions(asked, expected):
    made = right_completion(asked)
    assert made == expected
    if made is not None:
        assert verify(asked.task, made, asked.gold, **asked.options).status == Status.CORRECT


# ---- documents


def test_pages_are_those_of_the_docstrings():
    folder = ROOT / "docs" / "environments"
    stored = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    assert stored == PAGES.pages(), "run make pages"


def test_the_table_of_the_readme_is_that_of_the_cards():
    assert PAGES.readme(README) == README, "run make pages"
    assert re.findall(r"^\| \[`(setpo/\S+)`\]", README, re.MULTILINE) == list(ENVIRONMENTS)


@each_id
def test_each_page_has_an_example_that_runs(env_id):
    text = (ROOT / "docs" / "environments" / PAGES.page_name(env_id)).read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = {"__name__": "page"}
    exec(compile(code, PAGES.page_name(env_id), "exec"), names)
    assert names["env"].spec.id == env_id
    rewards = names["info"]["group"]["rewards"]
    assert {0.0, 1.0} == set(rewards) and names["reward"] == pytest.approx(rewards.mean())
    assert f"```text\n{names['prompt']}\n```" in text


def test_every_page_is_linked_and_every_link_leads_somewhere():
    pages = {path.name for path in (ROOT / "docs" / "environments").iterdir()}
    overview = (ROOT / "docs" / "environments.md").read_text(encoding="utf-8")
    for text, folder in ((README, "docs/environments/"), (overview, "environments/")):
        assert set(re.findall(rf"\]\({folder}([^)]+)\)", text)) == pages - {"questions.md"}
    for path in (ROOT / "docs" / "environments").iterdir():
        for link in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
            assert (path.parent / link).is_file(), (path.name, link)


@each_id
def test_pages_keep_every_word_of_the_specification(env_id):
    page = (ROOT / "docs" / "environments" / PAGES.page_name(env_id)).read_text(encoding="utf-8")
    words = re.findall(r"\w+", re.sub(r":class:`\S*?(\w+)`", r"\1", catalogue.env_class(env_id).__doc__))
    assert not [word for word in words if word not in re.findall(r"\w+", page)]
