"""What the trainer does beyond plain steps: filters, schedules, evaluations, samplers, stops and failures."""

import json
import os
import signal
from dataclasses import asdict

import numpy as np
import pytest
import torch
from test_trainer import assert_same_weights, metrics, weights
from tiny_run import SPACE, config, make_warm_start

from setpo_agents import checkpoint
from setpo_agents.losses import importance_weights
from setpo_agents.policies.load import load_policy
from setpo_agents.policies.tiny import TinyPolicy
from setpo_agents.rollout import mixed
from setpo_agents.trainer import Trainer

PLAIN = {"shaper": None, "shaper_kwargs": {}, "credit_coefficient": 0.0}


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    return make_warm_start(tmp_path_factory.mktemp("warm") / "start.pt", steps=400)


class Calls:
    """A logger that calls a function with every step."""

    def __init__(self, function):
        self.log = lambda step, metrics: function(step)

    def close(self):
        pass


class Copies:
    """A sampler: a tiny policy of its own."""

    def __init__(self, start):
        self.policy, self.updates = load_policy(start), []

    def update_weights(self, state):
        self.updates.append(checkpoint.fingerprint(state))
        self.policy.load_state_dict({name: weight.clone() for name, weight in state.items()})

    def generate(self, *args):
        return self.policy.generate(*args)


def test_micro_batches_change_nothing_but_rounding_and_epochs_do(start, tmp_path):
    fields = {"steps": 1, "kl_coefficient": 0.1}
    for name, more in (("whole", {"epochs": 2}), ("parts", {"epochs": 2, "micro_batch_tokens": 100}), ("once", {})):
        Trainer(config(start, **fields, **more), tmp_path / name).run()
    [whole], [parts], [once] = (metrics(tmp_path / name) for name in ("whole", "parts", "once"))
    for name in ("loss", "grad_norm", "kl", "entropy", "clip_fraction"):
        assert parts[name] == pytest.approx(whole[name], rel=1e-3, abs=1e-5)
    assert abs(once["kl"] - whole["kl"]) > 0.1 * whole["kl"]  # the second pass is further from the start


def test_dynamic_sampling_trains_on_mixed_groups(start, tmp_path):
    trainer = Trainer(config(start, dynamic_sampling=20, steps=2), tmp_path)
    batch, n_batches = trainer.collect()
    assert mixed(batch.groups).all() and batch.groups.n_groups == 8 == len(batch.samples.completions_NG) and n_batches > 1
    for group, row in zip(batch.groups.completions_NG, batch.samples.completions_NG):
        assert group == row
    assert np.abs(batch.groups.credits).max() > 0  # of the groups that are trained on
    trainer.run()
    assert all(line["mixed"] == 1 and 1 <= line["generation_batches"] <= 20 for line in metrics(tmp_path))


def test_dynamic_sampling_is_bounded_and_fills_up(start, tmp_path):
    trainer = Trainer(config(start, dynamic_sampling=2, group_size=3, env_kwargs={**SPACE, "order": "sequential"}), tmp_path)
    batch, n_batches = trainer.collect()
    found = mixed(batch.groups)
    assert n_batches == 2 and batch.groups.n_groups == 8 and not found.all()
    assert found.tolist() == sorted(found, reverse=True)  # mixed ones come first


def test_truncated_completions_are_left_out_of_the_loss(start, tmp_path):
    fields = {**PLAIN, "max_new_tokens": 6, "steps": 1, "minibatches": 1}
    trainer = Trainer(config(start, mask_truncated=True, **fields), tmp_path / "masked")
    batch, _ = trainer.collect()
    cut = torch.tensor([[text.truncated for text in group] for group in batch.samples.completions_NG])
    assert 0 < cut.sum() < cut.numel()
    advantages = torch.where(cut, 1.0, 0.0)  # all the signal is in what was cut off
    assert trainer.update(batch, advantages)["grad_norm"] == 0.0
    other = Trainer(config(start, **fields), tmp_path / "kept")
    assert other.update(other.collect()[0], advantages)["grad_norm"] > 0


def test_the_learning_rate_follows_its_schedule(start, tmp_path):
    Trainer(config(start, schedule="linear", warmup_steps=2, steps=4), tmp_path).run()
    assert [line["learning_rate"] for line in metrics(tmp_path)] == pytest.approx([5e-4, 1e-3, 1e-3, 5e-4])


def test_evaluations_keep_the_best_weights_and_end_the_run_early(start, tmp_path):
    fields = {**PLAIN, "eval_every": 2, "eval_split": "test", "eval_problems": 4, "eval_samples": 4, "eval_metric": "pass@1", "steps": 40}
    fields |= {"learning_rate": 0.5, "patience": 2}  # a rate that destroys the policy
    trainer = Trainer(config(start, **fields), tmp_path / "whole")
    trainer.run()
    values = [line["evaluation"]["pass@1"] for line in metrics(tmp_path / "whole") if "evaluation" in line]
    best = checkpoint.load(tmp_path / "whole" / "best.safetensors")
    assert trainer.ended_early and trainer.step < 40
    assert best["step"] == 2 * (1 + values.index(max(values))) and best["evaluation"]["pass@1"] == max(values)
    assert isinstance(load_policy(tmp_path / "whole" / "best.safetensors"), TinyPolicy)
    Trainer(config(start, **fields), tmp_path / "parts").run(until=3)
    again = Trainer(config(start, **fields), tmp_path / "parts")
    again.run()
    assert_same_weights(weights(tmp_path / "whole"), weights(tmp_path / "parts"))
    assert metrics(tmp_path / "whole") == metrics(tmp_path / "parts")
    step = again.step
    ended = Trainer(config(start, **fields), tmp_path / "parts")
    ended.run()
    assert ended.step == step


def test_a_sampler_with_fresh_weights_is_the_policy_itself(start, tmp_path):
    Trainer(config(start), tmp_path / "own").run()
    sampler = Copies(start)
    Trainer(config(start), tmp_path / "sampler", sampler=sampler).run()
    assert len(sampler.updates) == 7  # at the start and after each step
    lines = metrics(tmp_path / "sampler")
    assert all(line["importance_mean"] == pytest.approx(1, abs=1e-4) and line["sampler_max_difference"] < 1e-3 for line in lines)
    own, other = weights(tmp_path / "own"), weights(tmp_path / "sampler")
    assert all(torch.allclose(own[name], other[name], atol=2e-3) for name in own)


def test_a_stale_sampler_is_corrected_for_and_resumed(start, tmp_path):
    fields = {"sync_every": 2, "checkpoint_every": 2, "learning_rate": 1e-2}
    sampler = Copies(start)
    Trainer(config(start, **fields), tmp_path / "whole", sampler=sampler).run()
    assert len(sampler.updates) == 4
    fresh, stale = ([line["sampler_max_difference"] for line in metrics(tmp_path / "whole")][i::2] for i in (0, 1))
    assert max(fresh) < 1e-3 < min(stale)
    Trainer(config(start, **fields), tmp_path / "parts", sampler=Copies(start)).run(until=4)
    Trainer(config(start, **fields), tmp_path / "parts", sampler=Copies(start)).run()
    assert_same_weights(weights(tmp_path / "whole"), weights(tmp_path / "parts"))


def test_ratios_of_a_cut_distribution_are_of_the_whole_one(start, tmp_path):
    trainer = Trainer(config(start, top_k=3, steps=1, minibatches=1, importance_cap=2.0), tmp_path)
    batch, _ = trainer.collect()
    whole, _ = trainer.scoring.current(batch.samples)
    logged = trainer.update(batch, torch.ones(8, 8))
    assert logged["clip_fraction"] == 0.0  # the first update is on-policy
    tensors = (x.flatten(0, 1) for x in (whole, batch.samples.log_probs_NGT, batch.samples.mask_NGT))
    assert logged["importance_mean"] == importance_weights(*tensors)[1]["importance_mean"] < 0.99


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_request_to_stop_finishes_the_step_and_saves(start, tmp_path, capsys, number):
    Trainer(config(start, checkpoint_every=100), tmp_path / "whole").run()
    before = signal.getsignal(number)
    stops = Calls(lambda step: os.kill(os.getpid(), number) if step == 2 else None)
    trainer = Trainer(config(start, checkpoint_every=100), tmp_path / "parts", loggers=[stops])
    trainer.run()
    assert trainer.stopped and trainer.step == 2 and signal.getsignal(number) is before
    assert "stopped on request after step 2 of 6" in capsys.readouterr().err
    Trainer(config(start, checkpoint_every=100), tmp_path / "parts").run()
    assert_same_weights(weights(tmp_path / "whole"), weights(tmp_path / "parts"))


def test_a_second_request_stops_at_once(start, tmp_path):
    def twice(step):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            Trainer(config(start), tmp_path, loggers=[Calls(twice)]).run()
    finally:
        signal.signal(signal.SIGINT, before)


def broken(trainer, error):
    """From now on scoring fails, or gives what is not a number."""
    score = TinyPolicy.log_probs

    def log_probs(samples, **kwargs):
        if isinstance(error, Exception):
            raise error
        log_probs, entropy = score(trainer.policy, samples, **kwargs)
        return log_probs * float("nan"), entropy

    trainer.policy.log_probs = log_probs


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (None, FloatingPointError, "the loss is not finite"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"), MemoryError, "lower micro_batch_tokens"),
        (torch.OutOfMemoryError("CUDA out of memory"), torch.OutOfMemoryError, "lower micro_batch_tokens"),
    ],
)
def test_a_step_that_fails_is_named_with_its_problems_and_leaves_the_last_checkpoint(start, tmp_path, error, kind, message):
    trainer = Trainer(config(start), tmp_path)
    trainer.run(until=2)
    saved = (tmp_path / "checkpoint.safetensors").read_bytes()
    broken(trainer, error)
    with pytest.raises(kind, match=rf"^step 3: .*{message}.*Problems of the batch: ") as raised:
        trainer.run()
    assert len(trainer._problem_ids) == 8 and all(problem in str(raised.value) for problem in trainer._problem_ids)
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == saved and len(metrics(tmp_path)) == 2
    Trainer(config(start), tmp_path / "whole").run()
    Trainer(config(start), tmp_path).run()
    assert_same_weights(weights(tmp_path), weights(tmp_path / "whole"))


def test_another_error_is_left_as_it_is(start, tmp_path):
    trainer = Trainer(config(start), tmp_path)
    broken(trainer, RuntimeError("shapes do not fit"))
    with pytest.raises(RuntimeError, match="^shapes do not fit$"):
        trainer.run()


def test_a_run_of_an_earlier_version_is_resumed(start, tmp_path):
    Trainer(config(start), tmp_path / "whole").run()
    trainer = Trainer(config(start), tmp_path / "parts")
    trainer.run(until=2)
    state = checkpoint.load(tmp_path / "parts" / "checkpoint.safetensors")
    known = (
        "warm_start",
        "env",
        "env_kwargs",
        "seed",
        "steps",
        "prompts_per_step",
        "group_size",
        "temperature",
        "algorithm",
        "learning_rate",
    )
    known += ("base_advantage", "shaper", "shaper_kwargs", "credit_coefficient", "checkpoint_every", "minibatches", "clip")
    earlier = {name: trainer.identity[name] for name in known}
    torch.save(
        {
            "config": json.dumps(earlier),
            "step": 2,
            "policy_config": asdict(trainer.policy.config),
            "policy": trainer.policy.state_dict(),
            "optimizer": trainer.optimizer.state_dict(),
            "generator": trainer.generator.get_state(),
            "shaper": "null",
            "rngs": json.dumps(state["rngs"]),
            "order": json.dumps(state["order"]),
        },
        tmp_path / "parts" / "checkpoint.pt",
    )
    saved = json.loads((tmp_path / "parts" / "config.json").read_text())
    (tmp_path / "parts" / "config.json").write_text(json.dumps({**saved, "identity": earlier}))
    (tmp_path / "parts" / "checkpoint.safetensors").unlink()
    Trainer(config(start), tmp_path / "parts").run()
    assert_same_weights(weights(tmp_path / "whole"), weights(tmp_path / "parts"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"policy": {"kind": "huge"}}, 'kind "tiny" or "transformers"'),
        ({"policy": {"kind": "tiny", "lora": {}}}, r"options \['lora'\]"),
        ({"policy": {"model": "x"}}, 'a dict with a "kind"'),
        ({"warm_start": None}, "no warm_start"),
        ({"top_p": 0.0}, "top_p in"),
        ({"stop": "x"}, "a tuple of texts"),
        ({"schedule": "step"}, "schedule to be one of constant, linear, cosine"),
        ({"micro_batch_tokens": 0}, "micro_batch_tokens"),
        ({"patience": 2}, "eval_every beside patience"),
        ({"eval_every": 1, "eval_metric": "pass@9"}, "eval_metric to be one of pass@1"),
        ({"sync_every": 3}, "checkpoint_every to be a multiple of sync_every"),
        ({"precision": "float16"}, "precision to be one of"),
    ],
)
def test_bad_options_say_what_is_wrong(start, tmp_path, fields, message):
    with pytest.raises(ValueError, match=message):
        Trainer(config(start, **fields), tmp_path / "run")
    assert not (tmp_path / "run").exists()
