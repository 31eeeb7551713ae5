"""Two processes compute what one does on the same samples: credits, losses, gradients, metrics; only one of them writes."""

import multiprocessing
import os
import socket
import zlib
from pathlib import Path

import pytest
import torch
from test_trainer import metrics
from tiny_run import SETPO, SPACE, make_warm_start
from tiny_transformers import make_model, make_tokenizer

from setpo_agents.batches import join_samples
from setpo_agents.config import TrainConfig
from setpo_agents.distributed import World
from setpo_agents.policies.load import make_policy
from setpo_agents.sharding import whole
from setpo_agents.trainer import Trainer

torch.set_num_threads(1)


def train(config, folder):
    """Train; what this process sees in the first step goes to a file beside the folder."""
    policy = make_policy(config.policy, config.warm_start)
    generate = policy.generate

    def by_prompt(prompts, n, sampling, generator):
        """What is sampled depends on the prompt alone, not on who else is sampled for."""
        seeds = [torch.Generator().manual_seed(zlib.crc32(prompt.encode())) for prompt in prompts]
        return join_samples([generate([prompt], n, sampling, seed) for prompt, seed in zip(prompts, seeds)])

    policy.generate = by_prompt
    trainer = Trainer(config, folder, policy=policy)
    seen, step, update = {"gradients": []}, trainer.optimizer.step, trainer.update

    def spy_step():
        seen["gradients"].append(torch.cat([whole(weight.grad).flatten() for weight in trainer.parameters]))
        step()

    def spy_update(batch, advantages):
        seen.update(credits=torch.as_tensor(batch.groups.credits), advantages=advantages)
        return update(batch, advantages)

    trainer.optimizer.step, trainer.update = spy_step, spy_update
    trainer.run(until=1)
    torch.save(seen, folder.with_name(f"{folder.name}-{trainer.world.rank}.pt"))
    trainer.run()


def train_as(rank, environment, config, folder):
    os.environ.update(environment, RANK=str(rank))
    train(config, folder)


def run(folder, config, processes=1, **environment):
    """What each process saw in the first step of a run."""
    if processes == 1:
        train(config, folder)
    else:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = {**environment, "WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        context = multiprocessing.get_context("fork")  # they have all modules already
        started = [context.Process(target=train_as, args=(rank, environment, config, folder)) for rank in range(processes)]
        for process in started:
            process.start()
        try:
            for process in started:
                process.join(timeout=600)
            assert [process.exitcode for process in started] == [0] * processes
        finally:  # processes that wait for each other wait for ever
            for process in started:
                process.kill()
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
    assert_equal_runs(tmp_path, TrainConfig(**config))


def test_weights_split_over_two_processes_train_as_in_one(tmp_path):
    make_model(initializer_range=0.05).save_pretrained(tmp_path / "model")
    make_tokenizer().save_pretrained(tmp_path / "model")
    policy = {"kind": "transformers", "model": str(tmp_path / "model"), "max_new_tokens": 8}
    # a random model answers nothing right: its gradient is that of the credits, over all texts
    config = {**COMMON, "policy": policy, "micro_batch_tokens": 80, "shaper_kwargs": {"scale": "zscore"}}
    assert_equal_runs(tmp_path, TrainConfig(**config), ACCELERATE_USE_FSDP="true")


def test_a_batch_too_small_for_its_processes_is_refused(tmp_path):
    config = TrainConfig(warm_start="absent.pt", env_kwargs=SPACE, prompts_per_step=1)
    with pytest.raises(ValueError, match="a prompt for each of 2 processes"):
        Trainer(config, Path(tmp_path) / "run", world=World(0, 2))
    assert [World(rank, 3).share(7) for rank in range(3)] == [slice(0, 2), slice(2, 4), slice(4, 7)]
