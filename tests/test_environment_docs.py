"""The page on environments: its code runs, and its tables name what there is."""

import inspect
import re
from pathlib import Path

import pytest

from setpo_envs import GroupEnv
from setpo_envs.order import ORDERS

PAGE = (Path(__file__).parents[1] / "docs" / "environments.md").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("error")
def test_code_blocks_run_in_order():
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 5
    names = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, "docs/environments.md", "exec"), names)


def test_the_table_of_arguments_has_all_with_their_defaults():
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| ([^|]+) \| ", PAGE, flags=re.MULTILINE)
    listed = [
        (name.strip("` "), default.strip("` ").strip('"'))
        for names, defaults in rows
        for name, default in zip(names.split(","), defaults.split(","))
    ]
    own = [each for each in inspect.signature(GroupEnv).parameters.values() if each.kind is each.KEYWORD_ONLY]
    assert listed == [(each.name, str(each.default)) for each in own]


def test_the_orders():
    assert tuple(re.findall(r'^\| `"(\w+)"` \| [aet]', PAGE, flags=re.MULTILINE)) == ORDERS
