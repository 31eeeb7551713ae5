"""The real verl calls compute_score as configured and stacks what it returns (scripts/test-verl.sh installs it and runs this)."""

import json
import re
from pathlib import Path

import numpy as np
import odd_verifiers
import pytest

import setpo_envs.integrations.verl as adapter
from setpo_verifiers import register, verify

pytest.importorskip("verl", reason="verl is not installed: scripts/test-verl.sh makes an environment for it")
hydra, ray, tokenizers, torch, transformers = map(pytest.importorskip, ("hydra", "ray", "tokenizers", "torch", "transformers"))

register("odd", odd_verifiers.verify_odd)

ROLES = {"solution_text_format": "(1) Ava is a knight\n(2) Ben is a knave"}
ROWS = [  # data_source, ground_truth, completion
    ("openai/gsm8k", "1080", "9 times 60 is 540, twice that\n#### 1,080"),
    ("openai/gsm8k", "1080", "#### 180"),
    ("DigitalLearningGmbH/MATH-lighteval", "\\frac12", "so \\boxed{0.5}"),
    ("DigitalLearningGmbH/MATH-lighteval", "\\frac12", "<think>\\boxed{0.5}"),
    ("countdown", {"numbers": [1, 2, 3], "target": 7}, "<answer>1+2*3</answer>"),
    ("countdown", {"numbers": [1, 2, 3], "target": 7}, "9**9**9**9"),
    (
        "kk_logic",
        {"solution_text_format": "(1) Ava is a knight\n(2) Ben is a knave"},
        "<answer>(1) Ava is a knight (2) Ben is a knave</answer>",
    ),
    ("kk_logic", ROLES, "<answer>Ava is a knave, Ben is a knave</answer>"),
]
VERDICTS = [verify(adapter.DATA_SOURCES.get(source, source), text, gold) for source, gold, text in ROWS]


README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
PATH, NAME, STRICT = re.findall(r"^ +(\+?reward\.custom_reward_function\.\S+)", README, flags=re.MULTILINE)
BY_FILE = f"reward.custom_reward_function.path={adapter.__file__}"


def configuration(*overrides, path=PATH):
    """verl's own, with the overrides of the README."""
    ours = [path, NAME]
    with hydra.initialize_config_module("verl.trainer.config", version_base=None):
        return hydra.compose("ppo_trainer", overrides=[*ours, *overrides])


@pytest.fixture(scope="module")
def tokenizer():
    """Every character of the Basic Latin block and the end of text."""
    known = ["<pad>", "<eos>", "\n", *map(chr, range(32, 127))]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({token: i for i, token in enumerate(known)}, unk_token="<pad>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = tokenizers.decoders.Fuse()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", clean_up_tokenization_spaces=False
    )


def rollouts(rows, tokenizer):
    """A DataProto as verl's agent loop fills it: left-padded prompts, right-padded responses."""
    from verl import DataProto

    ids = [torch.tensor(tokenizer(text)["input_ids"] + [tokenizer.eos_token_id]) for _, _, text in rows]
    responses = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=tokenizer.pad_token_id)
    seen = torch.nn.utils.rnn.pad_sequence([torch.ones_like(each) for each in ids], batch_first=True)
    prompts = torch.full((len(rows), 3), 5)
    return DataProto.from_dict(
        tensors={"prompts": prompts, "responses": responses, "attention_mask": torch.cat([torch.ones_like(prompts), seen], dim=1)},
        non_tensors={
            "data_source": np.array([source for source, _, _ in rows], dtype=object),
            "reward_model": np.array([{"style": "rule", "ground_truth": gold} for _, gold, _ in rows], dtype=object),
            "extra_info": np.array([{"index": i, "split": "train"} for i in range(len(rows))], dtype=object),
        },
    )


def run_single(config, rows, tokenizer):
    from verl.trainer.ppo.reward import load_reward_manager

    manager = load_reward_manager(config, tokenizer)
    data = rollouts(rows, tokenizer)
    return [manager.loop.run_until_complete(manager.run_single(data[i : i + 1])) for i in range(len(rows))]


@pytest.mark.parametrize("path", [PATH, BY_FILE])
@pytest.mark.parametrize("manager", ["naive", "dapo"])
def test_reward_managers_return_the_verdicts(tokenizer, path, manager):
    outputs = run_single(configuration(f"reward.reward_manager.name={manager}", path=path), ROWS, tokenizer)
    assert [output["reward_score"] for output in outputs] == [verdict.reward for verdict in VERDICTS] == [1.0, 0.0] * 4
    for output, verdict in zip(outputs, VERDICTS):
        extra = output["reward_extra_info"]
        assert (extra["status"], extra["mode_key"]) == (verdict.status.name.lower(), verdict.mode_key or "")


def test_reward_kwargs_reach_the_verifier(tokenizer):
    from verl.trainer.ppo.reward import get_custom_reward_fn

    bare = [("countdown", {"numbers": [1, 2], "target": 3}, "1+2")]
    assert run_single(configuration(), bare, tokenizer)[0]["reward_score"] == 1.0
    assert run_single(configuration(STRICT), bare, tokenizer)[0]["reward_score"] == 0.0
    score = get_custom_reward_fn(configuration("+reward.custom_reward_function.reward_kwargs.task=math"))
    assert score(data_source="mine", solution_str="\\boxed{0.5}", ground_truth="1/2")["score"] == 1.0


def test_a_completion_without_a_verdict_does_not_hang_and_a_malformed_gold_stops(tokenizer):
    limit = "+reward.custom_reward_function.reward_kwargs.timeout=1.0"
    outputs = run_single(configuration(limit), [("odd", "right", "hang"), ("odd", "right", "right")], tokenizer)
    assert [output["reward_score"] for output in outputs] == [0.0, 1.0]
    assert [output["reward_extra_info"]["status"] for output in outputs] == ["timeout", "correct"]
    assert [output["reward_extra_info"]["valid"] for output in outputs] == [0.0, 1.0]
    with pytest.raises(ValueError, match="expected a gold answer"):
        run_single(configuration(), [("openai/gsm8k", " ", " ")], tokenizer)


def test_in_ray_workers_and_stacked(tokenizer, tmp_path):
    """verl's reward loop: rewards on the last token, extras as arrays, validation metrics from them."""
    from verl.experimental.reward_loop.reward_loop import RewardLoopManager
    from verl.trainer.ppo.metric_utils import process_validation_metrics

    tokenizer.save_pretrained(tmp_path / "model")
    config = configuration("reward.num_workers=2", f"actor_rollout_ref.model.path={tmp_path / 'model'}")
    remote = configuration("reward.reward_manager.name=remote", "reward.num_workers=1", path=BY_FILE)
    ray.init(num_cpus=4, include_dashboard=False, logging_level="ERROR")
    try:
        scored = RewardLoopManager(config).compute_rm_score(rollouts(ROWS, tokenizer))
        assert [output["reward_score"] for output in run_single(remote, ROWS, tokenizer)] == [verdict.reward for verdict in VERDICTS]
    finally:
        ray.shutdown()
    assert scored.batch["rm_scores"].sum(dim=1).tolist() == [verdict.reward for verdict in VERDICTS]
    extras = {key: scored.non_tensor_batch[key] for key in scored.meta_info["reward_extra_keys"]}
    assert all(array.shape == (len(ROWS),) and array.dtype != object for array in extras.values())
    assert extras["answer"].tolist() == [verdict.answer or "" for verdict in VERDICTS]
    json.dumps({key: array.tolist() for key, array in extras.items()})
    sources = [source for source, _, _ in ROWS]
    metrics = process_validation_metrics(sources, sources, {key: array.tolist() for key, array in extras.items()})
    assert metrics["countdown"]["acc"]["mean@2"] == 0.5 and metrics["countdown"]["valid"]["mean@2"] == 1.0
    assert "maj@2/mean" in metrics["countdown"]["acc"]
