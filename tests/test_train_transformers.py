"""Transformers policies in the training loop: resumed to the bit, with and without adapters, and learning what can be learned."""

import json

import pytest
import torch
from test_trainer import assert_same_weights, metrics, weights
from tiny_run import SPACE
from tiny_transformers import make_model, make_tokenizer

from setpo_agents.config import TrainConfig
from setpo_agents.distributed import World
from setpo_agents.policies.base import Sampling
from setpo_agents.policies.load import load_policy, make_policy
from setpo_agents.policies.transformers import TransformersPolicy
from setpo_agents.reference import AdaptersOff, with_reference
from setpo_agents.trainer import Trainer

torch.set_num_threads(1)
LORA = {"r": 4, "lora_alpha": 8, "target_modules": "all-linear"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a small random Llama and its tokenizer, in Hugging Face format."""
    folder = tmp_path_factory.mktemp("model")
    make_model(initializer_range=0.05).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return folder


def config(model, lora=None, **fields):
    policy = {"kind": "transformers", "model": str(model), "max_new_tokens": 8, **({} if lora is None else {"lora": lora})}
    sizes = {"steps": 4, "prompts_per_step": 4, "group_size": 4, "checkpoint_every": 2, "learning_rate": 1e-3}
    # a random model answers nothing right: its gradient is that of the credits, over all texts
    shaping = {"shaper": "setpo", "shaper_kwargs": {"scale": "zscore"}, "credit_coefficient": 1.0}
    return TrainConfig(policy=policy, **{"env_kwargs": SPACE, **sizes, **shaping, **fields})


@pytest.mark.parametrize("lora", [None, LORA])
def test_a_run_in_two_parts_is_the_run_in_one(model, tmp_path, lora):
    fields = {"lora": lora, "kl_coefficient": 0.1, "micro_batch_tokens": 60}
    Trainer(config(model, **fields), tmp_path / "whole").run()
    Trainer(config(model, **fields), tmp_path / "parts").run(until=2)
    Trainer(config(model, **fields), tmp_path / "parts").run()
    assert_same_weights(weights(tmp_path / "whole"), weights(tmp_path / "parts"))
    assert metrics(tmp_path / "whole") == metrics(tmp_path / "parts")
    assert all(line["grad_norm"] > 0 for line in metrics(tmp_path / "whole"))
    before = make_policy(config(model, lora).policy).state_dict()
    changed = [name for name, weight in weights(tmp_path / "whole").items() if not torch.equal(before[name], weight)]
    assert len(changed) > 10


def test_a_checkpoint_says_what_policy_it_is_of(model, tmp_path):
    trainer = Trainer(config(model, LORA, steps=1), tmp_path)
    trainer.run()
    loaded = load_policy(tmp_path / "checkpoint.safetensors")
    assert isinstance(loaded, TransformersPolicy) and loaded.adapters is not None
    assert_same_weights(loaded.state_dict(), trainer.policy.state_dict())


def test_another_model_is_another_run_and_a_moved_one_is_not(model, tmp_path):
    Trainer(config(model, steps=2), tmp_path / "run").run(until=1)
    make_policy(config(model).policy).save_pretrained(tmp_path / "moved")
    Trainer(config(tmp_path / "moved", steps=2), tmp_path / "run").run()
    other = make_model(initializer_range=0.05, seed=1)
    other.save_pretrained(tmp_path / "other")
    make_tokenizer().save_pretrained(tmp_path / "other")
    with pytest.raises(ValueError, match="warm_start: saved"):
        Trainer(config(tmp_path / "other", steps=2), tmp_path / "run")


def test_adapters_switched_off_are_the_policy_before_training(model, tmp_path):
    trainer = Trainer(config(model, LORA, kl_coefficient=0.1, learning_rate=1e-2), tmp_path)
    batch, _ = trainer.collect()
    assert isinstance(trainer.scoring.reference, AdaptersOff)
    before = trainer.scoring.base(batch.samples)
    trainer.run()
    assert torch.equal(trainer.scoring.base(batch.samples), before)
    assert not torch.equal(trainer.scoring.current(batch.samples)[0], before)
    assert [line["kl"] for line in metrics(tmp_path)][-1] > 0
    trained, frozen = with_reference(make_policy(config(model).policy), World(), needed=True)
    assert not any(weight.requires_grad for weight in frozen.parameters()) and all(weight.requires_grad for weight in trained.parameters())
    torch.testing.assert_close(frozen.log_probs(batch.samples, temperature=1.0)[0], before)


def test_bfloat16_autocast_trains_float32_weights(model, tmp_path):
    Trainer(config(model, precision="bfloat16", steps=1), tmp_path).run()
    assert all(weight.dtype == torch.float32 for weight in weights(tmp_path).values())
    [line] = metrics(tmp_path)
    assert line["grad_norm"] > 0


def test_unknown_options_of_a_policy_are_named(model, tmp_path):
    bad = config(model)
    bad.policy["colour"] = 1
    with pytest.raises(ValueError, match="unknown option 'colour' of a transformers policy: choose among model, "):
        Trainer(bad, tmp_path)


def test_a_bandit_reaches_its_optimum(model, tmp_path):
    """One token answers each of two prompts: the optimum is probability 1 on it."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"id": answer, "problem": f"{answer}=", "answer": answer}) + "\n" for answer in "37"))
    env = {"env": "setpo/Dataset-v0", "env_kwargs": {"source": str(rows), "prompt_format": "{question}", "order": "sequential"}}
    plain = {"shaper": None, "shaper_kwargs": {}, "credit_coefficient": 0.0}
    sizes = {"max_new_tokens": 1, "prompts_per_step": 2, "group_size": 32, "steps": 80, "learning_rate": 2e-2, "minibatches": 1}
    trainer = Trainer(config(model, **env, **plain, **sizes, checkpoint_every=80), tmp_path / "run")
    trainer.run()
    rewards = [line["reward"] for line in metrics(tmp_path / "run")]
    assert rewards[0] < 0.3 and sum(rewards[-5:]) / 5 > 0.95
    prompts = [trainer.dataset[i].prompt for i in range(2)]
    greedy = trainer.policy.generate(prompts, 1, Sampling(top_k=1, max_new_tokens=1), torch.Generator())
    assert [str(group[0]) for group in greedy.completions_NG] == ["3", "7"]
    assert greedy.log_probs_NGT.abs().max() == 0  # of the one token that is left
    log_probs, _ = trainer.policy.log_probs(greedy)
    assert log_probs.exp().min() > 0.9
