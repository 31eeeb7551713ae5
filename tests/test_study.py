"""The demo and the study at a size for tests: whole runs in worker processes, resumed, compared, selected."""

import json
from dataclasses import asdict

import numpy as np
import pytest
import torch
from tiny_run import SPACE

from setpo_agents import checkpoint
from setpo_agents import study as studies
from setpo_agents.compare import compare, write_tables
from setpo_agents.jobs import Arm, Plan
from setpo_agents.policies.base import Sampling
from setpo_agents.policies.load import load_policy
from setpo_agents.study import demo, select, study
from setpo_agents.warm_start import WarmStartConfig
from setpo_envs import verify_groups

# A space that each worker enumerates in milliseconds.
SIZES = {
    "env_kwargs": SPACE,
    "steps": 2,
    "warm_start_steps": 4,
    "eval_samples": 4,
    "eval_problems": 3,
    "snapshot_problems": 2,
    "snapshots": 2,
}


@pytest.fixture(scope="module")
def demo_folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo")
    return out, demo(out, **SIZES)


def test_demo_has_every_arm_on_the_test_split(demo_folder):
    out, lines = demo_folder
    assert [line["label"] for line in lines] == ["base model", "GRPO", "SetPO+GRPO", "GSPO", "SetPO+GSPO"]
    assert {line["split"] for line in lines} == {"test"} and {line["n_problems"] for line in lines} == {3}
    stored = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert sorted(stored, key=str) == sorted(lines, key=str)
    for line in lines:
        files = sorted(path.name for path in (out / line["run"] / "eval").iterdir())
        steps = [0] if line["arm"] == "base" else [1, 2]
        assert files == [f"test-{steps[-1]:06d}.groups.jsonl", *(f"validation-{step:06d}.groups.jsonl" for step in steps)]


def test_demo_again_does_nothing_again(demo_folder):
    out, lines = demo_folder
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file() and path.name != "study.json"}
    assert demo(out, **SIZES) == lines
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_lost_results_are_made_again_from_what_is_there(demo_folder, tmp_path):
    out, lines = demo_folder
    (out / "results.jsonl").write_text("")
    assert demo(out, **SIZES) == lines


def test_a_folder_of_another_size_is_refused(demo_folder):
    out, _ = demo_folder
    with pytest.raises(ValueError, match="eval_samples: saved 4, asked 8"):
        demo(out, **{**SIZES, "eval_samples": 8})


def test_packaged_warm_start_is_what_this_configuration_trains():
    path = studies.packaged_warm_start()
    assert path is not None, "its hash does not match"
    problems = [Plan(path, studies.ENV_KWARGS).dataset("train")[i] for i in (0, 1, 2)]
    identity = checkpoint.load(path)["identity"]
    assert identity["warm_start"] == asdict(WarmStartConfig(seed=0))
    samples = load_policy(path).generate([problem.prompt for problem in problems], 64, Sampling(), torch.Generator().manual_seed(0))
    assert verify_groups(problems, samples.completions_NG).well_formed.mean() > 0.9


def test_a_demo_from_scratch_does_not_mix_with_one_that_is_not(demo_folder):
    out, _ = demo_folder
    with pytest.raises(ValueError, match="packaged_warm_start: saved False, asked True"):
        demo(out, **SIZES, packaged=studies.packaged_warm_start())


def test_study_selects_on_validation_and_reports_test(tmp_path, monkeypatch):
    monkeypatch.setattr(studies, "LAMBDAS", (0.1,))
    monkeypatch.setattr(studies, "ENTROPY_COEFFICIENTS", (0.01,))
    monkeypatch.setattr(studies, "KL_COEFFICIENTS", (0.1,))
    lines = study(tmp_path, seeds=2, **SIZES)
    assert {line["split"] for line in lines} == {"test"}
    assert {(line["seed"], line["warm_start_seed"]) for line in lines if line["arm"] != "base"} == {(0, 0), (1, 1)}
    labels = {"base model", "GRPO", "SetPO+GRPO", "SetPO raw (paper)", "shuffled credit", "GRPO+entropy", "GRPO+KL", "SetPO+GRPO+KL"}
    labels |= {"GSPO", "SetPO+GSPO"}
    assert {line["label"] for line in lines} == labels
    chosen = json.loads((tmp_path / "chosen.json").read_text())
    assert chosen["entropy"] == "entropy-0.01" and chosen["setpo"].startswith("setpo_grpo-")
    table = write_tables(lines, tmp_path)
    assert "| SetPO+GRPO − GRPO |" in table and "| SetPO+GRPO − shuffled credit |" in table
    assert (tmp_path / "tables.md").read_text().strip() == table


def lines_of(arm, values, metric="pass@64", split="validation", **more):
    return [
        {"arm": arm, "split": split, "seed": seed, metric: value, "pass@1": 0.3, "n_samples": 64, **more}
        for seed, value in enumerate(values)
    ]


def test_selection_rule():
    grid = [Arm("a", "a"), Arm("b", "b"), Arm("c", "c")]
    lines = [
        *lines_of("grpo", [0.7, 0.7]),
        *lines_of("a", [0.8, 0.8]),
        *lines_of("b", [0.9, 0.9], **{"pass@1": 0.295}),
        *lines_of("c", [0.99, 0.99], **{"pass@1": 0.28}),
        *lines_of("a", [1.0, 1.0], split="test"),  # must not be looked at
    ]
    assert select(grid, lines).name == "b"  # c costs more than the margin
    assert select(grid[2:], lines).name == "c"  # nothing affordable: the one that costs least


def test_comparison_is_paired_by_seed():
    per_problem = {"per_problem": {"correct": [1, 3], "distinct": [1, 2]}, "n_samples": 4}
    lines = [
        *lines_of("a", [0.9, 0.7, 0.5], **per_problem),
        *lines_of("b", [0.7, 0.6, 0.4], **{**per_problem, "per_problem": {"correct": [1, 2], "distinct": [0, 2]}}),
    ]
    result = compare(lines, "a", "b", "pass@64")
    assert result["mean"] == pytest.approx(0.4 / 3) and result["seeds"] == pytest.approx([0.2, 0.1, 0.1])
    half = 4.302653 * np.std([0.2, 0.1, 0.1], ddof=1) / np.sqrt(3)  # t quantile of 2 degrees of freedom
    assert (result["low"], result["high"]) == pytest.approx((0.4 / 3 - half, 0.4 / 3 + half), abs=1e-5)
    assert compare(lines, "a", "b", "pass@1")["problem_interval"][0] == pytest.approx(0.125)
    with pytest.raises(ValueError, match="same seeds"):
        compare(lines, "a", "missing", "pass@64")
