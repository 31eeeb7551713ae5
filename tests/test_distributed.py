"""Two processes compute what one does on the same samples: credits, losses, gradients, metrics; only one of them writes."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from test_trainer import metrics
from tiny_run import SETPO, SPACE, make_warm_start
from tiny_transformers import make_model, make_tokenizer

from setpo_agents.config import TrainConfig

torch.set_num_threads(1)

RUN = """
import json, sys, zlib
from pathlib import Path
import torch
from setpo_agents.batches import join_samples
from setpo_agents.config import TrainConfig
from setpo_agents.policies.load import make_policy
from setpo_agents.trainer import Trainer
torch.set_num_threads(1)
config, folder = TrainConfig(**json.loads(sys.argv[1])), Path(sys.argv[2])
policy = make_policy(config.policy, config.warm_start)
generate = policy.generate

def by_prompt(prompts, n, sampling, generator):  # what is sampled depends on the prompt alone, not on who else is sampled for
    seeds = [torch.Generator().manual_seed(zlib.crc32(prompt.encode())) for prompt in prompts]
    return join_samples([generate([prompt], n, sampling, seed) for prompt, seed in zip(prompts, seeds)])

policy.generate = by_prompt
trainer = Trainer(config, folder, policy=policy)
seen, step, update = {"gradients": []}, trainer.optimizer.step, trainer.update

def spy_step():
    from setpo_agents.sharding import whole
    seen["gradients"].append(torch.cat([whole(weight.grad).flatten() for weight in trainer.parameters]))
    step()

def spy_update(batch, advantages):
    seen.update(credits=torch.as_tensor(batch.groups.credits), advantages=advantages)
    return update(batch, advantages)

trainer.optimizer.step, trainer.update = spy_step, spy_update
trainer.run(until=1)
torch.save(seen, folder.with_name(f"{folder.name}-{trainer.world.rank}.pt"))
trainer.run()
"""


def run(folder, config, processes=1, **environment):
    """What each process saw in the first step of a run."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", RUN, json.dumps(config), str(folder)]
    base = {**os.environ, "WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), **environment}
    started = [subprocess.Popen(command, env={**base, "RANK": str(rank)}, stderr=subprocess.PIPE) for rank in range(processes)]
    try:
        errors = [process.communicate(timeout=900)[1].decode() for process in started]
    finally:  # processes that wait for each other wait for ever
        for process in started:
            process.kill()
    assert all(process.returncode == 0 for process in started), "\n".join(errors)
    return [torch.load(folder.with_name(f"{folder.name}-{rank}.pt")) for rank in range(processes)]


def assert_equal_runs(tmp_path, config, **environment):
    [alone], together = run(tmp_path / "one", config), run(tmp_path / "two", config, processes=2, **environment)
    for seen in together:
        assert torch.equal(seen["credits"], alone["credits"]) and torch.equal(seen["advantages"], alone["advantages"])
        assert len(seen["gradients"]) == len(alone["gradients"]) == 2
        first, expected = seen["gradients"][0], alone["gradients"][0]
        assert expected.norm() > 0 and (first - expected).norm() <= 1e-5 * expected.norm()
    one, two = metrics(tmp_path / "one"), metrics(tmp_path / "two")
    assert len(one) == len(two) == 2
    for name, value in one[0].items():
        assert two[0][name] == pytest.approx(value, rel=1e-5, abs=1e-6), name


COMMON = {"env_kwargs": SPACE, "prompts_per_step": 5, "group_size": 6, "steps": 2, "learning_rate": 1e-3, "minibatches": 2}
COMMON |= {"shaper": "setpo", "shaper_kwargs": SETPO, "credit_coefficient": 0.5, "kl_coefficient": 0.1, "checkpoint_every": 1}


def test_groups_dealt_to_two_processes_train_as_in_one(tmp_path):
    start = make_warm_start(tmp_path / "start.pt")
    config = {**COMMON, "warm_start": str(start), "algorithm": "dapo", "regularizers": {"kl_cov": {"share": 0.1}}, "micro_batch_tokens": 80}
    assert_equal_runs(tmp_path, config)


def test_weights_split_over_two_processes_train_as_in_one(tmp_path):
    make_model(initializer_range=0.05).save_pretrained(tmp_path / "model")
    make_tokenizer().save_pretrained(tmp_path / "model")
    policy = {"kind": "transformers", "model": str(tmp_path / "model"), "max_new_tokens": 8}
    # a random model answers nothing right: its gradient is that of the credits, over all texts
    config = {**COMMON, "policy": policy, "micro_batch_tokens": 80, "shaper_kwargs": {"scale": "zscore"}}
    assert_equal_runs(tmp_path, config, ACCELERATE_USE_FSDP="true")


def test_a_batch_too_small_for_its_processes_is_refused(tmp_path):
    from setpo_agents.distributed import World
    from setpo_agents.trainer import Trainer

    config = TrainConfig(warm_start="absent.pt", env_kwargs=SPACE, prompts_per_step=1)
    with pytest.raises(ValueError, match="a prompt for each of 2 processes"):
        Trainer(config, Path(tmp_path) / "run", world=World(0, 2))
    assert [World(rank, 3).share(7) for rank in range(3)] == [slice(0, 2), slice(2, 4), slice(4, 7)]
