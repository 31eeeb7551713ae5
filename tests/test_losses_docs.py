"""docs/losses.md: its code runs, and its tables have every algorithm with its settings and every regulariser with its price."""

import re
from pathlib import Path

from setpo_agents.losses import LOSSES
from setpo_agents.regularizers import make_regularizer, registry

PAGE = (Path(__file__).parents[1] / "docs" / "losses.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in row.strip("|").split("|")] for row in PAGE.splitlines() if row.startswith("| `")]


def test_the_snippet_runs(capsys):
    [snippet] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(snippet, "docs/losses.md", "exec"), {})
    assert "KLCov(coefficient=1.0, share=0.01)" in capsys.readouterr().out


def test_the_tables_are_what_is_registered():
    rows = {row[0].strip("`"): row for row in ROWS if "arXiv" in " ".join(row) or row[0] == "`reinforce`" or row[0] == "`entropy`"}
    assert rows.keys() == LOSSES.keys() | registry().keys()
    for name, loss in LOSSES.items():
        assert re.findall(r"`(.*?)`", rows[name][2])[0] == loss.aggregation
        assert tuple(map(float, re.findall(r"\d\.\d+", rows[name][3]))) == (loss.clip or ())
    for name in registry():
        made = make_regularizer(name)
        assert bool(rows[name][3]) == (made.needs_old_pass or made.needs_reference or made.needs_replay), name
