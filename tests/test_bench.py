"""The benchmark at a size for tests: complete rows, resumed after kills, extended by a file, refused where plans differ."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest
from tiny_run import POLICY, SPACE

from setpo_agents import bench as benches
from setpo_agents import jobs
from setpo_agents.bench import ENVS, MATCHED_RATIO, STRENGTHS, bench, overview, pick
from setpo_agents.bench_methods import CONTROL_METHODS, GRPO, METHODS, file_methods
from setpo_agents.config import TrainConfig
from setpo_agents.jsonl import read_lines
from setpo_agents.leaderboard import CONTROLS
from setpo_agents.leaderboard_page import write_leaderboard
from setpo_agents.tiny_tasks import TinyTask
from setpo_agents.warm_start import WarmStartConfig
from setpo_envs.shapers import base

# of two or three numbers to 3: the policy is right now and then after a few steps
EASY = {**SPACE, "settings": {**SPACE["settings"], "min_numbers": 2, "number_range": [1, 3], "target_range": [1, 9]}}
ENV = TinyTask("setpo/Countdown-v0", EASY, POLICY, WarmStartConfig(steps=150))
SIZES = {"methods": ["setpo_z"], "seeds": 2, "steps": 2, "prompts": 4, "group_size": 4, "eval_samples": 4, "eval_problems": 3, "workers": 1}
RUN = f"""
import json, sys
from pathlib import Path
from setpo_agents import bench
from setpo_agents.policies.tiny import TinyConfig
from setpo_agents.tiny_tasks import TinyTask
from setpo_agents.warm_start import WarmStartConfig
bench.ENVS = {{"countdown": {ENV!r}}}
bench.bench(Path(sys.argv[1]), **json.loads(sys.argv[2]))
"""
MINE = """
from setpo_envs.shapers import Shaping, register

@register("seldom")
class Seldom:
    base_advantage = "dr_grpo"
    credit_coefficient = 0.25

    def __call__(self, groups, rng):
        same_NGG = groups.modes[:, :, None] == groups.modes[:, None, :]
        return Shaping(credits=1 / same_NGG.sum(axis=2))
"""


@pytest.fixture(autouse=True, scope="module")
def small():
    """The registry as it was, and one small environment, for all tests of this file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "_SHAPERS", dict(base._SHAPERS))
        patch.setattr(benches, "ENVS", {"countdown": ENV})
        yield


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    monkeypatch.setattr(base, "_SHAPERS", dict(base._SHAPERS))


@dataclass
class Finished:
    """A benchmark that was run without and then with a shaper file, by jobs in this process, and what there was in between."""

    out: Path
    mine: Path
    times: dict[Path, int]
    lines: bytes

    @property
    def results(self):
        return self.out / "countdown" / "results.jsonl"


@pytest.fixture(scope="module")
def finished(tmp_path_factory, small):
    out, mine = tmp_path_factory.mktemp("bench"), tmp_path_factory.mktemp("shapers") / "mine.py"
    mine.write_text(MINE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "_pool", ThreadPoolExecutor)
        bench(out, **SIZES)
        between = Finished(out, mine, times(out), (out / "countdown" / "results.jsonl").read_bytes())
        bench(out, **SIZES, shapers=[str(mine)])
    return between


def results(out):
    """{(run, split): line} without what is measured in seconds."""
    lines = list(read_lines(out / "countdown" / "results.jsonl"))
    found = {}
    for line in lines:
        line.get("training", {}).pop("seconds", None)
        found[line["run"], line["split"]] = line
    assert len(found) == len(lines), "a run has two lines"
    return found


def times(out):
    changing = ("results.jsonl", "study.json", "chosen.json")
    return {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file() and path.name not in changing}


def test_every_row_is_there(finished):
    found = {key: line for key, line in results(finished.out).items() if not line["arm"].startswith("seldom")}
    validation = {run for run, split in found if split == "validation"}
    assert validation == {f"runs/setpo_z-x{strength:g}-seed0" for strength in STRENGTHS}
    chosen = json.loads((finished.out / "countdown" / "chosen.json").read_text())
    assert chosen.pop("seldom") in STRENGTHS
    assert set(chosen) == {"setpo_z", *CONTROLS} and len(set(chosen.values())) == 1  # the controls at the strength of SetPO
    raw = {"grpo", *(f"{name}-x{strength:g}" for name, strength in chosen.items())}
    arms = raw | {f"{name}-matched" for name in chosen}
    expected = {f"runs/{arm}-seed{seed}" for arm in arms for seed in (0, 1)} | {"base/seed0", "base/seed1"}
    assert {run for run, split in found if split == "test"} == expected
    assert {(line["seed"], line["warm_start_seed"]) for line in found.values()} == {(0, 0), (1, 1)}
    assert {(line["n_problems"], line["n_samples"]) for line in found.values()} == {(3, 4)}
    for line in found.values():
        if line["arm"] in ("grpo", "base"):
            assert line.get("training", {}).get("shaping_ratio", 0.0) == 0.0
    ratios = [
        step["shaping_ratio"]
        for line in found.values()
        if line["arm"].endswith("-matched")
        for step in read_lines(finished.out / "countdown" / line["run"] / "metrics.jsonl")
    ]
    assert all(ratio in (0.0, pytest.approx(MATCHED_RATIO, rel=1e-9)) for ratio in ratios)  # 0 where a batch has nothing to shape
    assert any(ratios)
    boards = json.loads(write_leaderboard(finished.out)[1].read_text())["countdown"]
    assert {row["method"]: row["seeds"] for row in boards["raw"]} == dict.fromkeys(("base", "grpo", "setpo_z", "seldom", *CONTROLS), 2)
    assert {row["method"] for row in boards["matched"]} == {row["method"] for row in boards["raw"]}
    assert {row["method"] for row in boards["raw"] if row["rank"]} == {"setpo_z", "seldom"}


def test_again_does_nothing_again(finished, monkeypatch):
    monkeypatch.setattr(jobs, "run_job", None)
    before, stored = times(finished.out), finished.results.read_bytes()
    bench(finished.out, **SIZES)
    bench(finished.out, **SIZES, shapers=[str(finished.mine)])
    assert times(finished.out) == before and finished.results.read_bytes() == stored


def test_a_shaper_file_adds_its_row_and_runs_nothing_else_again(finished, capsys):
    assert {path: when for path, when in times(finished.out).items() if path in finished.times} == finished.times
    now = finished.results.read_bytes()
    assert now.startswith(finished.lines)
    added = [json.loads(line) for line in now[len(finished.lines) :].splitlines()]
    assert {line["arm"].rpartition("-")[0] for line in added} == {"seldom"}
    assert sorted((line["split"], line["seed"]) for line in added) == [("test", 0)] * 2 + [("test", 1)] * 2 + [("validation", 0)] * 3
    settings = {line["arm"]: line["settings"] for line in added}
    assert settings["seldom-x1"]["base_advantage"] == "dr_grpo" and settings["seldom-matched"]["base_advantage"] == "grpo"
    assert {each["credit_coefficient"] for each in settings.values()} == {0.25}


def test_a_changed_shaper_file_is_told_of(finished, monkeypatch, capsys):
    kept = finished.out / "countdown" / "shapers" / "seldom.py"
    assert kept.read_text() == MINE
    monkeypatch.setattr(jobs, "run_job", None)
    try:
        finished.mine.write_text(MINE.replace("1 /", "2 /"))
        bench(finished.out, **SIZES, shapers=[str(finished.mine)])
        assert "mine.py has changed since 'seldom' was run" in capsys.readouterr().err and kept.read_text() == MINE
    finally:
        finished.mine.write_text(MINE)
        bench(finished.out, **SIZES, shapers=[str(finished.mine)])
    assert "has changed" not in capsys.readouterr().err


def workers_of(pid):
    processes = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    return {int(line.split()[0]) for line in processes.splitlines() if int(line.split()[1]) == pid}


def alive(pid):
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")


def test_killed_without_warning_it_goes_on_to_the_same_results(finished, tmp_path, monkeypatch):
    """Killed with its worker processes, which have loaded the shaper file for themselves, in the midst of the test runs."""
    shutil.copytree(finished.out / "countdown" / "warm_start", tmp_path / "countdown" / "warm_start")
    log, sizes = tmp_path / "countdown" / "results.jsonl", {**SIZES, "shapers": [str(finished.mine)]}
    process = subprocess.Popen([sys.executable, "-c", RUN, str(tmp_path), json.dumps(sizes)], stderr=subprocess.DEVNULL)
    while process.poll() is None and (not log.exists() or log.read_bytes().count(b"\n") < 2 * len(STRENGTHS) + 2):
        time.sleep(0.01)
    workers = workers_of(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "the benchmark ended before it could be killed"
    assert workers
    deadline = time.monotonic() + 60
    while any(map(alive, workers)):  # what outlives it would write into the run that is gone on with
        assert time.monotonic() < deadline, "a worker outlived the benchmark"
        time.sleep(0.01)
    assert log.read_bytes().count(b"\n") < len(results(finished.out))
    monkeypatch.setattr(jobs, "_pool", ThreadPoolExecutor)
    bench(tmp_path, **sizes)
    assert results(tmp_path) == results(finished.out)
    assert (tmp_path / "countdown" / "chosen.json").read_bytes() == (finished.out / "countdown" / "chosen.json").read_bytes()


def test_another_plan_is_refused_and_an_older_one_is_not(finished, monkeypatch):
    monkeypatch.setattr(jobs, "run_job", None)
    path = finished.out / "countdown" / "study.json"
    with pytest.raises(ValueError, match="holds runs of another plan.*steps: saved 2, asked 3"):
        bench(finished.out, **{**SIZES, "steps": 3})
    saved = json.loads(path.read_text())
    assert saved["plan"].pop("packaged_warm_start") is False and saved["plan"].pop("runs") == "runs"  # fields that it had not yet
    path.write_text(json.dumps(saved))
    bench(finished.out, **SIZES)
    assert json.loads(path.read_text())["plan"]["runs"] == "runs"


def test_each_environment_has_its_own_plan_and_all_are_checked_first(tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(benches, "run_env", lambda plan, *_: ran.append((plan.out.name, plan.warm_start_steps)))
    monkeypatch.setattr(benches, "ENVS", {"a": ENV, "b": TinyTask(ENV.env, SPACE, warm_start=WarmStartConfig(steps=7))})
    bench(tmp_path)
    assert ran == [("a", 150), ("b", 7)]
    bench(tmp_path / "other", envs=["b"], warm_start_steps=9)
    assert ran.pop() == ("b", 9)
    with pytest.raises(ValueError, match="warm_start_steps: saved 7"):
        bench(tmp_path, warm_start_steps=150)
    assert len(ran) == 2


# --- methods ---


def taken_out(settings, path):
    """(the number at the end of a path of keys, everything else)."""
    rest = deepcopy(settings)
    *keys, last = path.split(".")
    return reduce(getitem, keys, rest).pop(last), rest


@pytest.mark.parametrize("method", [*METHODS, *CONTROL_METHODS], ids=lambda method: method.name)
def test_arms_of_a_method(method):
    """The arms differ in strength alone; those of the matched comparison share base and ratio."""
    scaled = method.scaled or "shaping_strength"
    one, others = taken_out(method.arm(1.0).settings, scaled)
    assert one > 0 and (method.scaled or one == 1.0)
    for strength in STRENGTHS:
        arm = method.arm(strength)
        assert (arm.name, arm.label) == (f"{method.name}-x{strength:g}", method.label)
        assert taken_out(arm.settings, scaled) == (pytest.approx(strength * one), others)
        config = TrainConfig("warm.pt", **arm.settings)
        config.named_regularizers()
        assert config.match_shaping_ratio is None and (method.scaled == "" or config.shaping_strength == 1.0)
    if method.shaper:
        matched = TrainConfig("warm.pt", **method.arm(ratio=0.2).settings)
        assert (matched.match_shaping_ratio, matched.base_advantage, matched.shaping_strength) == (0.2, "grpo", 1.0)
        assert matched.credit_coefficient == others["credit_coefficient"]


def test_grpo_is_nothing_but_grpo():
    assert (GRPO.arm().name, GRPO.arm().settings) == ("grpo", {})
    assert len({method.name for method in (GRPO, *METHODS, *CONTROL_METHODS)}) == 1 + len(METHODS) + len(CONTROL_METHODS)


def test_methods_of_a_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    [method] = file_methods([str(path)])
    assert (method.name, method.label, method.plugins) == ("seldom", "seldom", (str(path),))
    arm = method.arm(3.0)
    assert arm.settings == {
        "shaper": "seldom",
        "shaper_kwargs": {},
        "credit_coefficient": 0.25,
        "base_advantage": "dr_grpo",
        "shaping_strength": 3.0,
    }
    assert file_methods([]) == []


@pytest.mark.parametrize("name", ["kl", "grpo", "base", "setpo_z", "../up", "a b", ""])
def test_a_name_that_is_taken_or_no_folder_is_refused(tmp_path, name):
    path = tmp_path / "mine.py"
    path.write_text(MINE.replace('"seldom"', repr(name)))
    with pytest.raises(ValueError, match="expected a name of its own, .* for each shaper of .*mine.py, got"):
        file_methods([str(path)])


def test_unknown_names_list_what_there_is(tmp_path):
    assert pick("a thing", {"a": 1, "b": 2}, None) == [1, 2] and pick("a thing", {"a": 1, "b": 2}, ["b", "b"]) == [2]
    with pytest.raises(ValueError, match="expected a method out of setpo, setpo_z, gapo, .*, kl, got 'gappo'"):
        bench(tmp_path, methods=["gapo", "gappo"])
    with pytest.raises(ValueError, match="expected an environment out of countdown, got 'chess'"):
        bench(tmp_path, envs=["chess"])
    assert not list(tmp_path.iterdir())


def test_the_overview_names_everything():
    named = {line.split()[0] for line in overview() if line.startswith("  ")}
    assert named == {"grpo", *ENVS, *(method.name for method in (*METHODS, *CONTROL_METHODS))}
