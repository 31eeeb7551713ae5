"""docs/shapers.md: its code runs, and its table has every registered shaper and what it trains with."""

import re
from pathlib import Path

from setpo_envs.shapers import make_shaper, registry

PAGE = (Path(__file__).parents[1] / "docs" / "shapers.md").read_text(encoding="utf-8")


def test_the_snippet_runs(capsys):
    [snippet] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(snippet, "docs/shapers.md", "exec"), {})
    assert "'gapo'" in capsys.readouterr().out


def test_the_table_has_every_shaper():
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in PAGE.splitlines() if row.startswith("| `")]
    named = {name: row for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    own = {name for name, factory in registry().items() if factory.__module__.startswith("setpo_envs.")}
    assert set(named) == own
    for name in own:
        base = getattr(make_shaper(name), "base_advantage", "any")
        assert named[name][3] in {None: ("replaced",), "any": ("any", "any (grpo)", "as the other")}.get(base, (base,)), name
