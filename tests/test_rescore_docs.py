"""docs/rescore.md: its commands and its code run; the command of its figures runs on one group of each published file."""

import json
import re
import shlex
from pathlib import Path

from setpo_agents.cli import main

PAGE = (Path(__file__).parents[1] / "docs" / "rescore.md").read_text(encoding="utf-8")
SMALL, PUBLISHED = (
    [shlex.split(line)[1:] for line in block.replace("\\\n", " ").splitlines() if line.startswith("setpo ")]
    for block in re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
)


def test_commands_and_code_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    group = {"task": "countdown", "problem_id": "p", "gold": {"numbers": [1, 2, 3, 4], "target": 10}}
    group["completions"] = ["1+2+3+4", "4+3+2+1", "1+2+3+4", "3*4-2*1", "1+2+3-4", "no idea"]
    Path("groups.jsonl").write_text((json.dumps(group) + "\n") * 3)
    for command in SMALL:
        assert main(command) == 0, capsys.readouterr().err
    assert Path("rescored.html").exists() and len(SMALL) == 3
    tuned = json.loads(Path("tuned.jsonl").read_text().splitlines()[0])["scoring"]["methods"]
    assert [method["base_advantage"] for method in tuned.values()] == ["grpo", "grpo", "maxrl"]
    [code] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(code, "docs/rescore.md", "exec"), {})
    assert "3 madrl" in capsys.readouterr().out


def test_the_published_groups_go_through(test_data, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    files = sorted((test_data / "data" / "completions").glob("*_g*.jsonl"))
    Path("pooled.jsonl").write_text("".join(path.open(encoding="utf-8").readline() for path in files), encoding="utf-8")
    [command] = PUBLISHED
    assert main(command) == 0, capsys.readouterr().err
    assert "8 groups" in capsys.readouterr().out and Path("pooled.html").stat().st_size > 100_000
    lines = [json.loads(line) for line in Path("pooled-rescored.jsonl").read_text().splitlines()]
    assert [len(line["methods"]) for line in lines] == [13] * 8
    labels = [line.split("  ")[0].strip() for line in re.findall(r"^ +\d+ (\S.*)$", PAGE, re.MULTILINE)[:13]]
    assert [label.rstrip(".") for label in labels] == [label[: len(short.rstrip("."))] for label, short in zip(lines[0]["methods"], labels)]
