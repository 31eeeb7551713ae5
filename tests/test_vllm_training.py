"""vLLM samples, the transformers policy is trained: it learns what it learns when it samples for itself (scripts/test-vllm.sh)."""

import pytest
from character_model import import_vllm, make_model

import_vllm()

import numpy as np  # noqa: E402
import torch  # noqa: E402

from setpo_agents.advantages import grpo  # noqa: E402
from setpo_agents.losses import make_loss  # noqa: E402
from setpo_agents.policies.base import Sampling  # noqa: E402
from setpo_agents.policies.transformers import TransformersPolicy  # noqa: E402
from setpo_agents.policies.vllm import VLLMPolicy  # noqa: E402

PROMPTS = [f"1+{digit}=" for digit in range(8)]
SAMPLING = Sampling(max_new_tokens=3)
GROUP, STEPS = 16, 12


def reward(completion):
    """1 where the completion begins with a seven."""
    return float(completion.startswith("7"))


def learn(policy, sampler, steps, update):
    """(steps,) mean rewards of on-policy GRPO, and the largest difference that sampler and policy ever had on a sampled token."""
    optimizer = torch.optim.AdamW(policy.parameters(), lr=3e-3, weight_decay=0.0)
    generator, rewards, apart = torch.Generator().manual_seed(0), [], 0.0
    loss_of = make_loss("grpo")
    for _ in range(steps):
        samples = sampler.generate(PROMPTS, GROUP, SAMPLING, generator)
        rewards_NG = np.array([[reward(text) for text in group] for group in samples.completions_NG])
        rewards.append(rewards_NG.mean())
        log_probs_NGT, _ = policy.log_probs(samples, temperature=SAMPLING.temperature)
        apart = max(apart, float((log_probs_NGT.detach() - samples.log_probs_NGT).abs().max()))
        flat = [array.flatten(0, 1) for array in (log_probs_NGT, samples.log_probs_NGT, samples.mask_NGT)]
        advantages_B1 = torch.tensor(grpo(rewards_NG), dtype=torch.float32).view(-1, 1)
        loss, _ = loss_of(flat[0], flat[1], advantages_B1, flat[2])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        update(policy.merged_state_dict())
    return np.array(rewards), apart


@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
def test_training_with_vllm_as_sampler_learns_what_the_policy_learns_alone(tmp_path, tied):
    make_model(tmp_path, tied=tied)
    options = {"chat": False, "max_new_tokens": 3}
    alone, _ = learn(policy := TransformersPolicy.from_pretrained(tmp_path, **options), policy, STEPS, lambda state: None)
    engine = VLLMPolicy(str(tmp_path), dtype="float32", max_model_len=128, enforce_eager=True, max_num_seqs=128, **options)
    try:
        trained = TransformersPolicy.from_pretrained(tmp_path, **options)
        served, apart = learn(trained, engine, STEPS, engine.update_weights)
    finally:
        engine.llm.llm_engine.engine_core.shutdown()
    assert apart < 1e-3  # at every step the engine sampled with the weights of the step before: all of them, and no others
    for curve in (alone, served):
        assert curve[0] < 0.3 < 0.9 < curve[-3:].mean(), curve.round(2)
    assert engine.weight_version == STEPS
