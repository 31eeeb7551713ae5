"""docs/shapers.md: its code runs, and its table has every registered shaper and what it trains with."""

import re
import sys
from pathlib import Path
from types import ModuleType

from setpo_envs.shapers import base, installed, make_shaper, registry

PAGE = (Path(__file__).parents[1] / "docs" / "shapers.md").read_text(encoding="utf-8")


def test_the_snippets_run_one_after_the_other(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(base, "_SHAPERS", dict(base._SHAPERS))
    monkeypatch.setitem(
        sys.modules, "__main__", script := ModuleType("__main__")
    )  # as if the page were a script: what it defines can be pickled
    for snippet in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        if snippet.startswith("# mine.py"):
            Path("mine.py").write_text(snippet)
            continue
        exec(compile(snippet, "docs/shapers.md", "exec"), script.__dict__)
    printed = capsys.readouterr().out
    assert "'gapo'" in printed and "('rare_mode',)" in printed
    assert "equal pay for equal completions is broken by <function by_place" in printed
    assert "members [0, 3] have credits [0.0, 3.0]; the group: correct" in printed


def test_the_entry_point_group_is_that_of_the_page():
    assert f'[project.entry-points."{installed.GROUP}"]' in PAGE


def test_the_table_has_every_shaper():
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in PAGE.splitlines() if row.startswith("| `")]
    named = {name: row for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    own = {name for name, factory in registry().items() if factory.__module__.startswith("setpo_envs.")}
    assert set(named) == own
    for name in own:
        base = getattr(make_shaper(name), "base_advantage", "any")
        assert named[name][3] in {None: ("replaced",), "any": ("any", "any (grpo)", "as the other")}.get(base, (base,)), name
    measured = {row.split("|")[1].strip() for row in PAGE.split("## Sizes on real completions")[1].splitlines() if row.startswith("| ")}
    assert measured == own | {"name"}
