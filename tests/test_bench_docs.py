"""docs/tutorial.md and docs/benchmark.md: every block and command runs, in order, at sizes for a test; the table has every method."""

import contextlib
import io
import json
import re
import shlex
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tiny_run import POLICY, SPACE

from setpo_agents import bench, jobs
from setpo_agents.bench import STRENGTHS
from setpo_agents.bench_methods import CONTROL_METHODS, METHODS
from setpo_agents.cli import main
from setpo_agents.leaderboard import kendall_tau, rank_changes, read_boards
from setpo_agents.leaderboard_page import markdown
from setpo_agents.tiny_tasks import TinyTask
from setpo_envs.shapers import base

DOCS = Path(__file__).parents[1] / "docs"
TUTORIAL, BENCHMARK = ((DOCS / name).read_text(encoding="utf-8") for name in ("tutorial.md", "benchmark.md"))
SIZES = "--steps 1 --seeds 1 --prompts 2 --group-size 4 --warm-start-steps 2 --eval-samples 4 --eval-problems 2 --workers 1".split()


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    """A folder to run in, a registry of one's own, and a benchmark of one method besides those of the command, in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(base, "_SHAPERS", dict(base._SHAPERS))
    monkeypatch.setattr(bench, "ENVS", {"countdown": TinyTask("setpo/Countdown-v0", SPACE, POLICY)})
    monkeypatch.setattr(bench, "METHODS", [method for method in METHODS if method.name == "gapo"])
    monkeypatch.setattr(bench, "STRENGTHS", (0.3, 1.0))
    monkeypatch.setattr(jobs, "_pool", ThreadPoolExecutor)


def blocks(page):
    return re.findall(r"^```(\w+)\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)


def run(page):
    """Every block in order: files are written, code and commands run. Returns what the code printed, block by block."""
    namespace, printed = {}, []
    for language, text in blocks(page):
        if language == "python" and text.startswith("# mine.py"):
            with open("mine.py", "a", encoding="utf-8") as file:
                file.write(text)
        elif language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile(text, "docs", "exec"), namespace)
            printed += [output.getvalue()] if output.getvalue() else []
        elif language == "bash":
            for line in text.splitlines():
                words = shlex.split(line, comments=True)
                assert words[:2] == ["setpo", "bench"] and main([*words[1:], *SIZES]) == 0, line
    return printed


def mine():
    return next(text for language, text in blocks(TUTORIAL) if text.startswith("# mine.py"))


def test_the_tutorial_from_idea_to_row():
    assert run(TUTORIAL) == [text for language, text in blocks(TUTORIAL) if language == "text"]
    assert len([line for line in mine().splitlines()[1:] if line.strip()]) < 15
    boards = json.loads(Path("runs/mine/leaderboard.json").read_text())["countdown"]
    for rows in boards.values():
        assert {row["method"] for row in rows if row["rank"]} == {"seldom", "seldom_shuffled", "gapo"}
    [line] = {line for line in Path("runs/mine/countdown/results.jsonl").read_text().splitlines() if '"arm": "seldom-matched"' in line}
    assert json.loads(line)["settings"]["credit_coefficient"] == 0.5


def test_the_commands_of_the_benchmark(capsys):
    Path("mine.py").write_text(mine(), encoding="utf-8")
    run(BENCHMARK)
    output = capsys.readouterr().out
    assert "always run:" in output and "| rank | method | × |" in output
    rows = json.loads(Path("runs/bench/leaderboard.json").read_text())["countdown"]["raw"]
    assert {row["method"] for row in rows} == {"base", "grpo", "gapo", "seldom", *(control.name for control in CONTROL_METHODS)}


def test_the_table_has_every_method_and_its_settings():
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in BENCHMARK.splitlines() if row.startswith("| `")]
    named = {name: row for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    listed = {method.name: method for method in (*METHODS, *CONTROL_METHODS)}
    assert {name for name, row in named.items() if len(row) == 3} == set(listed)
    for method in METHODS:
        settings = method.arm().settings
        if method.shaper and settings["credit_coefficient"] != 1.0:
            assert named[method.name][2] == f"λ = {settings['credit_coefficient']:g}", method.name
    *weaker, strongest = STRENGTHS
    assert f"s in {', '.join(f'{s:g}' for s in weaker)} and {strongest:g}." in BENCHMARK and f"ρ = {bench.MATCHED_RATIO:g}," in BENCHMARK


def test_the_pages_are_linked():
    assert "docs/tutorial.md" in (DOCS.parent / "README.md").read_text(encoding="utf-8")
    for page in (TUTORIAL, BENCHMARK):
        for target in re.findall(r"\]\(([^)#]+)\)", page):
            assert (DOCS / target).exists(), target


def test_the_published_tables_are_those_of_the_stored_results():
    folder = DOCS / "leaderboard"
    boards = read_boards(folder)
    assert markdown(boards).strip() == (folder / "leaderboard.md").read_text(encoding="utf-8").strip()
    rows = {(name, row.method): row for name in ("raw", "matched") for row in boards["countdown"][name]}
    methods = {method for _, method in rows}
    assert len(methods - {"base", "grpo", *(m.name for m in CONTROL_METHODS)}) >= 12 and {m.name for m in CONTROL_METHODS} <= methods
    assert all(row.seeds == 5 for (_, method), row in rows.items() if method != "base")
    for name, method, gain in (("raw", "kl", 0.078), ("raw", "setpo_z", 0.057), ("matched", "madrl", 0.048)):
        mean, low, high = rows[name, method].differences["auc"]
        assert round(mean, 3) == gain and f"(+{gain})" in BENCHMARK and low > 0
    clear = {(name, m) for (name, m), row in rows.items() if row.differences["auc"] and row.differences["auc"][1] > 0}
    assert clear == {("raw", "kl"), ("raw", "setpo_z"), ("matched", "madrl")}
    assert f"Kendall's tau is {kendall_tau(rank_changes(boards['countdown']['raw'], boards['countdown']['matched'])):.2f}" in BENCHMARK
