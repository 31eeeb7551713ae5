"""The robustness experiment at a size for tests: every condition of every factor, trained once, resumed, tabled and drawn."""

import json
from pathlib import Path

import numpy as np
from tiny_run import SPACE

from setpo_agents.jsonl import read_lines
from setpo_agents.robustness import CONDITIONS, FACTORS, SETPO, Condition, curve, differences, robustness, write_robustness
from setpo_agents.study import GRPO

SIZES = {
    "env_kwargs": SPACE,
    "seeds": 1,
    "steps": 1,
    "prompts": 2,
    "warm_start_steps": 2,
    "eval_samples": 4,
    "eval_problems": 2,
    "workers": 1,
}


def test_one_factor_at_a_time_and_every_run_once(tmp_path):
    lines_of = robustness(tmp_path, **SIZES)
    assert list(lines_of) == CONDITIONS and len(CONDITIONS) == sum(map(len, FACTORS.values()))
    for condition, both in lines_of.items():
        for name, (line,) in both.items():
            config = json.loads((tmp_path / line["run"] / "config.json").read_text())
            expected = {"group_size": 16, "kl_coefficient": 0.0, "temperature": 1.0}
            if condition.factor == "group size":
                expected["group_size"] = condition.value
            if condition.factor == "KL coefficient":
                expected["kl_coefficient"] = condition.value
            assert {key: config[key] for key in expected} == expected  # trained at temperature 1 whatever it is sampled at
            assert line.get("temperature", 1.0) == condition.temperature
            assert (config["shaper"] is None) == (name == "grpo")
    assert len(list((tmp_path / "runs").iterdir())) == 2 * 5  # the default, two group sizes, two KL coefficients; each with both arms
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.jsonl")}
    assert robustness(tmp_path, **SIZES) == lines_of
    assert {path: path.stat().st_mtime_ns for path in before} == before
    table, figure = write_robustness(tmp_path, lines_of)
    assert len(table.read_text().splitlines()) == 2 + len(CONDITIONS) and figure.stat().st_size > 10_000


def test_differences_are_paired_by_seed():
    def lines(*values):
        return [{"n_samples": 4, "pass@1": v, "pass@4": v + 0.1, "distinct@4": 1.0} for v in values]

    row = differences({CONDITIONS[0]: {"grpo": lines(0.2, 0.4), "setpo": lines(0.3, 0.5)}}).splitlines()[2]
    assert row == (
        "| temperature | 0.6 | 0.300 | +0.100 [+0.100, +0.100] | 0.400 | +0.100 [+0.100, +0.100] | 1.000 | +0.000 [+0.000, +0.000] |"
    )


def test_curves_have_intervals_over_seeds():
    ks, mean, low, high = curve([{"pass@1": 0.2, "pass@2": 0.9}, {"pass@1": 0.4, "pass@2": 1.0}])
    assert ks == [1, 2]
    np.testing.assert_allclose(mean, [0.3, 0.95])
    assert low[0] == 0.0 and high[1] == 1.0  # t intervals of two seeds are wide; a probability is not


def test_temperature_and_defaults_do_not_make_another_run():
    assert Condition("temperature", 0.6).arm(GRPO) is GRPO and Condition("group size", 16).arm(GRPO) is GRPO
    assert Condition("group size", 8).arm(GRPO).settings == {"group_size": 8}


def test_the_published_table_is_that_of_the_stored_results():
    docs = Path(__file__).parents[1] / "docs"
    lines = list(read_lines(docs / "robustness" / "results.jsonl"))
    by_run = {(line["run"], line.get("temperature", 1.0)): line for line in lines}
    lines_of = {
        condition: {
            arm.name: [by_run[f"runs/{condition.arm(arm).name}-seed{seed}", condition.temperature] for seed in range(3)]
            for arm in (GRPO, SETPO)
        }
        for condition in CONDITIONS
    }
    table = differences(lines_of)
    assert (docs / "robustness" / "robustness.md").read_text(encoding="utf-8").strip() == table
    page = (docs / "benchmark.md").read_text(encoding="utf-8")
    assert table in page
    for metric, sign in (("pass@1", -1), ("pass@64", 1), ("distinct@64", 1)):
        for both in lines_of.values():
            gap = np.mean([line[metric] for line in both["setpo"]]) - np.mean([line[metric] for line in both["grpo"]])
            assert sign * gap > 0
