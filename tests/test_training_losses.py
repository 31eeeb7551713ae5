"""Every loss with every regulariser trains the tiny policy; what draws at random resumes; fields and names say the same."""

import json
import math

import pytest
import torch
from tiny_run import POLICY, SPACE, config, dataset

from setpo_agents import checkpoint
from setpo_agents.losses import LOSSES
from setpo_agents.regularizers import Regularizer, register, registry
from setpo_agents.regularizers import base as registered
from setpo_agents.trainer import Trainer
from setpo_agents.warm_start import WarmStartConfig, warm_start

# Two numbers from 1 to 3: soon learned well enough that groups hold right and wrong completions, several of each.
EASY = {**SPACE, "settings": {**SPACE["settings"], "min_numbers": 2, "max_numbers": 2, "number_range": [1, 3]}}
PLAIN = {"env_kwargs": EASY, "shaper": None, "shaper_kwargs": {}, "credit_coefficient": 0.0, "loss_length": 13}
SMALL = {**PLAIN, "steps": 2, "prompts_per_step": 4, "group_size": 16, "base_advantage": "dr_grpo", "weight_decay": 0.0}
OPTIONS = {"clip_cov": {"share": 0.2, "low": 0.0}, "kl_cov": {"share": 0.2}, "kl": {"coefficient": 1.0}, "dph_rl": {"coefficient": 1.0}}


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    path = tmp_path_factory.mktemp("warm") / "start.pt"
    warm_start(dataset(**EASY), WarmStartConfig(steps=100, problems_per_step=8, learning_rate=1e-2), path, policy_config=POLICY)
    return path


def train(start, folder, **fields):
    """(weights by name, lines of the log)."""
    trainer = Trainer(config(start, **fields), folder)
    trainer.run()
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return {name: weight.clone() for name, weight in trainer.policy.state_dict().items()}, lines


def same(a, b):
    return all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("algorithm", LOSSES)
def test_every_loss_trains_with_every_regularizer(start, tmp_path, algorithm):
    before = checkpoint.load(start)["policy"]
    plain, lines = train(start, tmp_path / "plain", algorithm=algorithm, **SMALL)
    assert not same(plain, before) and len(lines) == 2 and "regularizers" not in lines[0]
    assert lines[0]["mixed"] > 0
    for name in registry():
        weights, lines = train(start, tmp_path / name, algorithm=algorithm, regularizers={name: OPTIONS.get(name, {})}, **SMALL)
        assert not same(weights, plain), f"{name} did nothing"
        for line in lines:
            assert all(math.isfinite(line[key]) for key in ("loss", "entropy", "kl", "clip_fraction", "grad_norm"))
            assert line["regularizers"].keys() == {name} and math.isfinite(line["regularizers"][name])


def test_runs_that_draw_at_random_resume_to_the_same_weights(start, tmp_path):
    fields = {**SMALL, "steps": 4, "regularizers": {"clip_cov": OPTIONS["clip_cov"], "dph_rl": {}, "entropy_advantage": {}}}
    whole, _ = train(start, tmp_path / "whole", **fields)
    Trainer(config(start, **fields), tmp_path / "parts").run(until=2)
    parts, _ = train(start, tmp_path / "parts", **fields)
    assert same(whole, parts)


def test_fields_and_regularizers_of_one_name_are_one_thing(start, tmp_path):
    by_field, _ = train(start, tmp_path / "field", **SMALL, entropy_coefficient=0.01, kl_coefficient=0.1)
    named = {"entropy": {"coefficient": 0.01}, "kl": {"coefficient": 0.1}}
    by_name, _ = train(start, tmp_path / "name", **SMALL, regularizers=named)
    assert same(by_field, by_name)
    with pytest.raises(ValueError, match="entropy_coefficient or regularizers"):
        Trainer(config(start, **SMALL, entropy_coefficient=0.01, regularizers=named), tmp_path / "both")
    assert not (tmp_path / "both").exists()


def test_importance_correction_finds_that_the_sampler_is_the_trainer(start, tmp_path):
    corrected, lines = train(start, tmp_path / "run", **SMALL, importance_cap=2.0)
    for line in lines:
        assert line["importance_mean"] == pytest.approx(1.0, abs=1e-4) and line["importance_capped"] == 0.0
        assert 0 <= line["sampler_max_difference"] < 1e-3 and abs(line["sampler_kl"]) < 1e-6
    plain, _ = train(start, tmp_path / "plain", **SMALL)
    assert all(torch.allclose(corrected[name], plain[name], atol=1e-3) for name in plain)


def test_a_regularizer_of_ones_own_trains(start, tmp_path):
    @register("test_doubled")
    class Doubled(Regularizer):
        def advantages(self, advantages_BX, old):
            return 2 * advantages_BX

    try:
        _, lines = train(start, tmp_path / "run", **SMALL, regularizers={"test_doubled": {}})
    finally:
        del registered._REGULARIZERS["test_doubled"]
    assert lines[0]["regularizers"]["test_doubled"] > 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"algorithm": "dr_grpo", "loss_length": None}, "a length above 0"),
        ({"regularizers": {"nothing": {}}}, "unknown regularizer"),
        ({"regularizers": {"kl_cov": None}}, "a dict of options by name"),
        ({"importance_cap": 0}, "importance_cap"),
        ({"aggregation": "mean"}, "an aggregation among"),
        ({"dual_clip": 0.5}, "dual_clip to be above 1"),
    ],
)
def test_a_configuration_that_makes_no_sense_claims_no_folder(start, tmp_path, fields, message):
    with pytest.raises(ValueError, match=message):
        Trainer(config(start, **{**SMALL, **fields}), tmp_path / "run")
    assert not (tmp_path / "run").exists()
