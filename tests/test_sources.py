import json
import os
from pathlib import Path

import gymnasium as gym
import pytest

from setpo_envs.checks import check_dataset
from setpo_envs.datasets import countdown
from setpo_envs.datasets.countdown import countdown_dataset
from setpo_envs.datasets.sources import rows

ROWS = [{"target": 98, "nums": [44, 19, 35]}, {"target": 64, "nums": [63, 95, 96]}, {"target": 2, "nums": [1, 1, 1, 7]}]


@pytest.fixture
def jsonl(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


@pytest.fixture
def parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    (tmp_path / "hub" / "data").mkdir(parents=True)
    path = tmp_path / "hub" / "data" / "train-00000-of-00001.parquet"
    pyarrow.parquet.write_table(pa.Table.from_pylist(ROWS), path)
    return path


def check_rows(dataset):
    assert [dataset[i].gold for i in range(len(dataset))] == [{"numbers": row["nums"], "target": row["target"]} for row in ROWS]
    check_dataset(dataset)  # the last row has no solution, which is no error


def test_json_lines(jsonl):
    check_rows(countdown_dataset(jsonl))
    check_rows(countdown_dataset(str(jsonl), split="test"))
    jsonl.rename(jsonl.with_suffix(".json"))
    check_rows(countdown_dataset(jsonl.with_suffix(".json")))


def test_a_json_array(tmp_path):
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(ROWS, indent=1))
    check_rows(countdown_dataset(path))
    path.write_text(json.dumps([ROWS[0], 3]))
    with pytest.raises(ValueError, match="rows.json, row 2: expected a JSON object, got '3'"):
        countdown_dataset(path)
    path.write_text("[{]")
    with pytest.raises(ValueError, match="expected a JSON array"):
        countdown_dataset(path)


def test_parquet(parquet):
    check_rows(countdown_dataset(parquet))


def test_a_path_in_gym_make(jsonl):
    env = gym.make("setpo_envs:setpo/Countdown-v0", source=str(jsonl))
    assert len(env.unwrapped.dataset) == 3
    assert "98" in env.reset(options={"index": 0})[0]


def test_the_hub_through_a_local_repository_of_the_same_layout(parquet, monkeypatch):
    pytest.importorskip("datasets")
    monkeypatch.setattr(countdown, "HUB_ID", str(parquet.parent.parent))
    check_rows(countdown_dataset("hub"))
    with pytest.raises(ValueError, match="split='train', the only one"):
        countdown_dataset("hub", split="test")


def test_a_dataset_object():
    datasets = pytest.importorskip("datasets")
    check_rows(countdown_dataset(datasets.Dataset.from_list(ROWS)))


def test_the_hub_out_of_reach_names_the_ways_out(monkeypatch, tmp_path):
    datasets = pytest.importorskip("datasets")

    def unreachable(*args, **kwargs):
        raise OSError("Couldn't reach the Hub")

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    with pytest.raises(ConnectionError, match="Jiayi-Pan/Countdown-Tasks-3to4.*local copy.*source='generator'"):
        countdown_dataset("hub")


@pytest.mark.parametrize(
    "line, message",
    [
        ("{nums: 1}", "expected one JSON object a line"),
        ("", "expected one JSON object a line"),
        ("[1, 2]", "expected a JSON object"),
        ('{"nums": [1, 2]}', "expected columns nums .* and target, got nums"),
        ('{"target": 3}', "expected columns"),
        ('{"nums": [1, 2.5], "target": 3}', "2.5"),
        ('{"nums": [1, "2"], "target": 3}', "'2'"),
        ('{"nums": [1, true], "target": 3}', "True"),
        ('{"nums": [], "target": 3}', "numbers"),
        ('{"nums": 12, "target": 3}', "numbers"),
        ('{"nums": [1, -2], "target": 3}', "-2"),
        ('{"nums": [1, 2], "target": "3"}', "target"),
        ('{"nums": [1, 2], "target": null}', "target"),
    ],
)
def test_a_malformed_row_is_named_by_file_and_line(jsonl, line, message):
    lines = jsonl.read_text().split("\n")
    jsonl.write_text("\n".join([lines[0], line, lines[1]]))
    with pytest.raises(ValueError, match=message) as caught:
        countdown_dataset(jsonl)
    assert f"{jsonl}, line 2: " in str(caught.value)


def test_files_that_hold_no_rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n")
    with pytest.raises(ValueError, match="empty file"):
        countdown_dataset(path)
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(ValueError, match="UTF-8"):
        countdown_dataset(path)
    with pytest.raises(FileNotFoundError, match="no file"):
        countdown_dataset(tmp_path / "other.jsonl")
    with pytest.raises(ValueError, match="no settings beside"):
        countdown_dataset(path, settings={"max_numbers": 3})
    pytest.importorskip("pyarrow")
    path.rename(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="Parquet"):
        countdown_dataset(tmp_path / "rows.parquet")


def test_a_line_separator_inside_a_string_is_no_end_of_line(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"nums": [1, 2], "target": 3, "note": "a\u2028b"}\n', encoding="utf-8")
    assert [(where, row["target"]) for where, row in rows(path, hub_id="")] == [(f"{path}, line 1", 3)]


@pytest.mark.skipif("SETPO_TEST_DATA" not in os.environ, reason="SETPO_TEST_DATA is not set: no sample of the hub's rows")
def test_real_rows():
    dataset = countdown_dataset(Path(os.environ["SETPO_TEST_DATA"]) / "data" / "countdown_3to4.jsonl", prompt_format="terse")
    assert len(dataset) == 2000
    assert dataset[0].gold == {"numbers": [44, 19, 35], "target": 98} and dataset[0].prompt == "19,35,44=98>"
    check_dataset(dataset)
