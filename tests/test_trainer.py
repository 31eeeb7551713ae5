"""The training loop: it learns, it logs, and a run killed at any moment ends in the same weights."""

import json
import multiprocessing
import random
import signal
import time
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from tiny_run import SETPO, SPACE, config, make_warm_start

from setpo_agents import checkpoint
from setpo_agents.config import TrainConfig
from setpo_agents.policies.load import load_policy
from setpo_agents.policies.tiny import TinyPolicy
from setpo_agents.trainer import Trainer
from setpo_envs.shapers import registry
from setpo_verifiers import VerifierPool

MIXTURE = [
    {"id": "setpo/Countdown-v0", "weight": weight, "kwargs": {**SPACE, "settings": {**SPACE["settings"], "target_range": targets}}}
    for weight, targets in ((3, [1, 5]), (1, [6, 12]))
]


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    return make_warm_start(tmp_path_factory.mktemp("warm") / "start.pt")


def weights(folder: Path):
    return checkpoint.load(folder / "checkpoint.safetensors")["policy"]


def assert_same_weights(a, b):
    assert a.keys() == b.keys()
    assert all(torch.equal(a[name], b[name]) for name in a), "weights differ"


def metrics(folder: Path):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in ("seconds", "tokens_per_second", "peak_memory_mib")} for line in lines]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"algorithm": "gspo"},
        {"shaper": None, "shaper_kwargs": {}, "credit_coefficient": 0.0, "kl_coefficient": 0.1, "entropy_coefficient": 0.01},
        {"shaper": "shuffled", "shaper_kwargs": {"of": "setpo", "of_kwargs": SETPO}, "base_advantage": "dr_grpo"},
        {"env_kwargs": {**SPACE, "order": "shuffle"}},
        {"env": "setpo/Mixture-v0", "env_kwargs": {"components": MIXTURE, "order": "shuffle"}},
    ],
)
def test_a_run_in_two_parts_is_the_run_in_one(start, tmp_path, fields):
    Trainer(config(start, **fields), tmp_path / "whole").run()
    Trainer(config(start, **fields), tmp_path / "parts").run(until=3)
    Trainer(config(start, **fields), tmp_path / "parts").run()
    assert_same_weights(weights(tmp_path / "whole"), weights(tmp_path / "parts"))
    assert metrics(tmp_path / "whole") == metrics(tmp_path / "parts")
    assert [line["step"] for line in metrics(tmp_path / "whole")] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("shaper", ["setpo", "shuffled"])
def test_a_pool_decides_nothing(start, tmp_path, shaper):
    fields = {"steps": 2, "shaper": shaper, "shaper_kwargs": {}}  # n-grams: their kernel is computed while the pool verifies
    Trainer(config(start, **fields), tmp_path / "alone").run()
    with VerifierPool(1) as pool:
        Trainer(config(start, **fields), tmp_path / "pool", pool).run()
    assert_same_weights(weights(tmp_path / "alone"), weights(tmp_path / "pool"))
    assert metrics(tmp_path / "alone") == metrics(tmp_path / "pool")


def test_problems_come_in_the_order_of_the_environment(start, tmp_path):
    trainer = Trainer(config(start, env_kwargs={**SPACE, "order": "shuffle"}, prompts_per_step=4), tmp_path)
    n = len(trainer.dataset)
    asked = []
    trainer.policy.generate = lambda prompts, *args, **kwargs: (
        asked.extend(prompts) or TinyPolicy.generate(trainer.policy, prompts, *args, **kwargs)
    )
    trainer.run()
    epoch = asked[: min(n, len(asked))]
    assert len(asked) == 24 and len(set(epoch)) == len(epoch)


def begin(settings, folder):
    """Start, or resume, a run in a process of its own, which has all modules already."""
    process = multiprocessing.get_context("fork").Process(target=lambda: Trainer(settings, folder).run())
    process.start()
    return process


def test_killed_runs_resume_to_the_same_weights(start, tmp_path):
    settings = config(start, steps=40, checkpoint_every=3)
    Trainer(settings, tmp_path / "whole").run()
    folder, log, delays = tmp_path / "killed", tmp_path / "killed" / "metrics.jsonl", random.Random(0)
    killed = 0
    for steps in (2, 11, 23):  # wait for that many steps and for a part of one, then kill without warning
        process = begin(settings, folder)
        while process.is_alive() and (not log.exists() or log.read_bytes().count(b"\n") < steps):
            time.sleep(0.002)
        time.sleep(delays.uniform(0, 0.05))
        process.kill()
        process.join()
        killed += process.exitcode == -signal.SIGKILL
    assert killed >= 2, "the run ended before it could be killed"
    last = begin(settings, folder)
    last.join()
    assert last.exitcode == 0
    assert_same_weights(weights(tmp_path / "whole"), weights(folder))
    assert metrics(tmp_path / "whole") == metrics(folder)


def test_what_a_shaper_remembers_is_resumed(start, tmp_path):
    settings = config(start, shaper="ucb_exploration", shaper_kwargs={"variant": "ucb"}, credit_coefficient=0.5)
    Trainer(settings, tmp_path / "whole").run()
    Trainer(settings, tmp_path / "cut").run(until=2)
    again = Trainer(settings, tmp_path / "cut")
    assert again.shaper.state
    again.run()
    assert_same_weights(weights(tmp_path / "whole"), weights(tmp_path / "cut"))
    assert again.shaper.state == checkpoint.load(tmp_path / "whole" / "checkpoint.safetensors")["shaper"]


@pytest.mark.parametrize("name", [name for name, factory in registry().items() if getattr(factory, "base_advantage", "") is None])
def test_a_shaper_that_is_the_whole_advantage_needs_its_coefficient(start, tmp_path, name):
    with pytest.raises(ValueError, match=f"credit_coefficient above 0 .* shaper='{name}'"):
        Trainer(config(start, shaper=name, shaper_kwargs={}, credit_coefficient=0.0), tmp_path)
    Trainer(config(start, shaper=name, shaper_kwargs={}, credit_coefficient=1.0), tmp_path).run(until=1)


def test_a_damaged_tail_of_the_log_is_repaired(start, tmp_path):
    Trainer(config(start), tmp_path / "whole").run()
    Trainer(config(start), tmp_path / "cut").run(until=4)
    with open(tmp_path / "cut" / "metrics.jsonl", "a") as file:
        file.write('{"step": 5, "reward": 0.')
    Trainer(config(start), tmp_path / "cut").run()
    assert metrics(tmp_path / "whole") == metrics(tmp_path / "cut")


def test_reinforcement_learning_raises_the_reward(tmp_path):
    start = make_warm_start(tmp_path / "start.pt", steps=400)
    plain = {"shaper": None, "shaper_kwargs": {}, "credit_coefficient": 0.0}
    Trainer(config(start, steps=80, prompts_per_step=16, group_size=16, checkpoint_every=80, **plain), tmp_path / "run").run()
    rewards = [line["reward"] for line in metrics(tmp_path / "run")]
    assert sum(rewards[-20:]) > 1.5 * sum(rewards[:20])  # about .07 to .20


def test_what_is_logged(start, tmp_path):
    Trainer(config(start, steps=2), tmp_path).run()
    line = json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[-1])
    assert {"mean_abs_credit", "shaping_ratio", "diversity", "entropy", "length", "tokens_per_second", "kl", "clip_fraction"} <= line.keys()
    assert line["all_wrong"] + line["mixed"] + line["all_right"] == pytest.approx(1)
    assert set(line["seconds"]) == {"generate", "verify", "credit", "update"}
    assert line["mean_abs_credit"] > 0 and line["entropy"] > 0 and 0 < line["well_formed"] <= 1


def test_credit_changes_the_weights_and_a_zero_coefficient_does_not(start, tmp_path):
    for name, coefficient, shaper in (("with", 0.5, "setpo"), ("zero", 0.0, "setpo"), ("without", 0.0, None)):
        Trainer(config(start, shaper=shaper, shaper_kwargs=SETPO if shaper else {}, credit_coefficient=coefficient), tmp_path / name).run()
    assert_same_weights(weights(tmp_path / "zero"), weights(tmp_path / "without"))
    assert not torch.equal(weights(tmp_path / "with")["head.weight"], weights(tmp_path / "zero")["head.weight"])


@pytest.mark.parametrize("shaper, coefficient", [("setpo", 0.5), ("madrl", 1.0), ("gapo", 0.0)])
def test_a_matched_ratio_is_what_is_logged(start, tmp_path, shaper, coefficient):
    """For what adds credit, what replaces the advantage and what shapes rewards."""
    fields = {"steps": 3, "shaper": shaper, "shaper_kwargs": {}, "credit_coefficient": coefficient}
    Trainer(config(start, **fields), tmp_path / "own").run()
    Trainer(config(start, **fields, match_shaping_ratio=0.2), tmp_path / "matched").run()
    own, matched = ([line["shaping_ratio"] for line in metrics(tmp_path / name)] for name in ("own", "matched"))
    assert all(ratio != pytest.approx(0.2, rel=1e-3) for ratio in own) and matched == pytest.approx([0.2] * 3, rel=1e-12)


def test_strength_is_a_factor_on_the_coefficient_and_one_changes_nothing(start, tmp_path):
    fields = {"steps": 2, "credit_coefficient": 0.5}
    for name, settings in (("one", {"shaping_strength": 1.0}), ("plain", {}), ("half", {"shaping_strength": 0.5})):
        Trainer(config(start, **fields, **settings), tmp_path / name).run()
    assert_same_weights(weights(tmp_path / "one"), weights(tmp_path / "plain"))
    plain, half = (metrics(tmp_path / name)[0]["shaping_ratio"] for name in ("plain", "half"))
    assert half == pytest.approx(plain / 2) and plain > 0


def test_another_configuration_is_refused_before_any_work(start, tmp_path):
    Trainer(config(start), tmp_path).run(until=2)
    before = (tmp_path / "metrics.jsonl").read_bytes()
    with pytest.raises(ValueError, match=r"learning_rate: saved 0.001, asked 0.5"):
        Trainer(config(start, learning_rate=0.5), tmp_path)
    assert (tmp_path / "metrics.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"algorithm": "ppo"}, "expected algorithm to be one of"),
        ({"base_advantage": "none"}, "base_advantage to be one of"),
        ({"shaper": "setpoo"}, "setpoo"),
        ({"shaper_kwargs": {"kernle": "rbf"}}, "kernle"),
        ({"group_size": 2}, "at least 3"),
        ({"minibatches": 0}, "minibatches to be an integer of at least 1, got 0"),
        ({"steps": "abc"}, "steps to be an integer"),
        ({"clip": 0.2}, "clip to be None or a pair"),
        ({"shaping_strength": -1.0}, "shaping_strength to be a number of at least 0"),
        ({"match_shaping_ratio": -0.1}, "match_shaping_ratio to be None, or a number of at least 0"),
        ({"shaper": None, "shaper_kwargs": {}, "credit_coefficient": 0.0, "match_shaping_ratio": 0.2}, "beside a shaper"),
        ({"shaper": None, "shaper_kwargs": {}}, "expected a shaper beside credit_coefficient"),
        ({"warm_start": "/nowhere.pt"}, "no checkpoint at /nowhere.pt"),
    ],
)
def test_bad_configurations_say_what_is_wrong(start, tmp_path, fields, message):
    with pytest.raises(ValueError, match=message):
        Trainer(config(start, **fields), tmp_path)
    assert not (tmp_path / "config.json").exists(), "a folder was claimed by a configuration that cannot run"


def test_damaged_checkpoint_is_named(start, tmp_path):
    path = tmp_path / "broken.pt"
    path.write_bytes(start.read_bytes()[:1000])
    with pytest.raises(ValueError, match="expected a checkpoint at .*broken.pt"):
        load_policy(path)


def test_a_warm_start_is_its_weights_not_its_path(start, tmp_path):
    Trainer(config(start), tmp_path / "run").run(until=2)
    moved = tmp_path / "moved.pt"
    moved.write_bytes(start.read_bytes())
    Trainer(config(moved), tmp_path / "run").run(until=3)
    make_warm_start(tmp_path / "other.pt", steps=3)
    with pytest.raises(ValueError, match="warm_start: saved"):
        Trainer(config(tmp_path / "other.pt"), tmp_path / "run")


def test_config_is_saved(start, tmp_path):
    settings = config(start, steps=1)
    Trainer(settings, tmp_path)
    saved = json.loads((tmp_path / "config.json").read_text())
    assert saved.pop("identity")["steps"] == 1
    assert json.loads(json.dumps(asdict(TrainConfig(**saved)))) == json.loads(json.dumps(asdict(settings))) == saved
