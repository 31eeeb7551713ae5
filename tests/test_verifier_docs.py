"""The page on verifiers: its code runs and prints what it says."""

import re
from pathlib import Path

from setpo_verifiers import TASKS, registry

PAGE = (Path(__file__).parents[1] / "docs" / "verifiers.md").read_text(encoding="utf-8")


def test_code_blocks_run(capsys, monkeypatch):
    monkeypatch.setattr(registry, "TASKS", dict(TASKS))
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len([line for line in blocks[0].splitlines() if line]) <= 5
    names = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, "docs/verifiers.md", "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == re.search(r"print\(verdict.*# (.*)", PAGE)[1]
    assert [line.split()[0] for line in printed[1:]] == ["CORRECT", "NO_ANSWER"]


def test_tasks_and_aliases_are_those_registered():
    for name, aliases in re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE, re.MULTILINE):
        for alias in re.findall(r"`(\w+)`", aliases) if name in TASKS else ():
            assert TASKS[alias] is TASKS[name]
