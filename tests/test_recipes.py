"""Recipes: each is a configuration that can run; its plan is checked first, and what is wrong is told apart from what is offline."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers")
from setpo_agents.cli import main
from setpo_agents.config import TrainConfig
from setpo_agents.dry_run import dry_run, estimate
from setpo_agents.losses import LOSSES
from setpo_agents.memory import in_words, model_size, peak, training_memory
from setpo_agents.recipes import Recipe, read_recipe, with_assignments

torch.set_num_threads(1)
RECIPES = sorted((Path(__file__).parents[1] / "recipes").glob("*.toml"))
OFFLINE = {
    "setpo/GSM8K-v0": "embedded",
    "setpo/MATH-v0": "embedded",
    "setpo/Countdown-v0": "generator",
    "setpo/KnightsAndKnaves-v0": "generator",
}


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    """A small random Llama with a tokenizer of one token a byte, in a folder."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({text: i for i, text in enumerate(["<eos>", *alphabet])}, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False), decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>")
    fast.chat_template = "{% for m in messages %}{{ m.content }}\n{% endfor %}"
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
    config = LlamaConfig(vocab_size=len(fast), max_position_embeddings=8192, eos_token_id=0, bos_token_id=None, pad_token_id=0, **sizes)
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("stand-in")
    LlamaForCausalLM(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


def test_recipes_are_there():
    assert len(RECIPES) >= 10


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_passes_with_stand_ins(path, stand_in, capsys):
    recipe = read_recipe(path)
    assert recipe.about["title"] and recipe.about["hardware"] and recipe.about["measured"]
    source = OFFLINE[recipe.config.env]
    assert main(["train", str(path), "--dry-run", "--model", str(stand_in), "--data", source]) == 0
    shown = capsys.readouterr().out
    assert "wrong" not in shown and "not checked" not in shown
    for what in ("golds of", "right answer in the format", "parameters", "positions", "GiB", "tokens and"):
        assert what in shown, what


# hidden, layers, intermediate, heads, key-value heads, vocabulary, tied: what the models' cards say
SIZES = {
    "Qwen/Qwen2.5-Math-1.5B": (1536, 28, 8960, 12, 2, 151936, True),
    "Qwen/Qwen2.5-Math-7B": (3584, 28, 18944, 28, 4, 152064, False),
    "Qwen/Qwen2.5-3B": (2048, 36, 11008, 16, 2, 151936, True),
    "Qwen/Qwen2.5-32B": (5120, 64, 27648, 40, 8, 152064, False),
    "meta-llama/Llama-3.2-3B-Instruct": (3072, 28, 8192, 24, 8, 128256, True),
}


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_the_hardware_of_a_recipe_holds_its_estimate(path):
    from transformers import Qwen2Config

    recipe = read_recipe(path)
    names = ("hidden_size", "num_hidden_layers", "intermediate_size", "num_attention_heads", "num_key_value_heads", "vocab_size")
    *sizes, tied = SIZES[recipe.config.policy["model"]]
    size = model_size(Qwen2Config(**dict(zip(names, sizes)), tie_word_embeddings=tied), recipe.config.policy.get("lora"))
    gib, _ = estimate(recipe.config, size, served="--rollout" in recipe.about["hardware"])
    n, each = map(int, re.match(r"(\d+) GPUs? of (\d+) GB", recipe.about["hardware"]).groups())
    assert gib * 1024**3 <= 0.93 * n * each * 1e9


def test_a_recipe_that_cannot_be_reached_is_not_checked_rather_than_wrong(tmp_path):
    path = next(path for path in RECIPES if "gsm8k" in path.stem)
    program = "import sys; from setpo_agents.cli import main; sys.exit(main(sys.argv[1:]))"
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}  # read when the libraries load
    words = ["train", str(path), "--dry-run", "--data", "embedded"]
    done = subprocess.run([sys.executable, "-c", program, *words], env=offline, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "not checked  model" in done.stdout and "wrong" not in done.stdout


@pytest.mark.parametrize(
    ("changes", "what", "says"),
    [
        ({"max_new_tokens": 9000}, "tokenizer", "fit the model's 8192 positions"),
        ({"algorithm": "ppo"}, "objective", "expected algorithm to be one of"),
        ({"regularizers": {"nope": {}}}, "objective", "nope"),
        ({"env_kwargs": {"source": "/nowhere.jsonl"}}, "data", "there is no file"),
        ({"shaper": "nope"}, "data", "unknown shaper 'nope'"),
    ],
)
def test_what_is_wrong_is_named(changes, what, says, stand_in):
    settings = {"env": "setpo/GSM8K-v0", "env_kwargs": {"source": "embedded"}, "policy": {"kind": "transformers", "model": str(stand_in)}}
    wrong = [finding for finding in dry_run(TrainConfig(**{**settings, "max_new_tokens": 64, **changes})) if finding.state == "wrong"]
    assert [finding.what for finding in wrong] == [what] and says in wrong[0].text


def test_a_wrong_plan_has_exit_status_1(stand_in, capsys):
    path = str(RECIPES[0])
    assert main(["train", path, "--dry-run", "--model", str(stand_in), "--data", "generator", "--set", "max_new_tokens=90000"]) == 1
    assert "wrong" in capsys.readouterr().out


def test_assignments_go_into_tables():
    settings = {"steps": 3, "policy": {"kind": "tiny"}}
    changed = with_assignments(settings, ["steps=5", "policy.model=some/dir", "policy.lora.r=4", 'stop=["a"]', "shaper=setpo"])
    assert changed == {"steps": 5, "policy": {"kind": "tiny", "model": "some/dir", "lora": {"r": 4}}, "stop": ["a"], "shaper": "setpo"}
    assert settings == {"steps": 3, "policy": {"kind": "tiny"}}
    for text, message in (("steps", "expected NAME=JSON"), ("steps.more=1", "to be a table")):
        with pytest.raises(ValueError, match=message):
            with_assignments(settings, [text])


def test_files_that_are_no_recipes(tmp_path):
    path = tmp_path / "mine.toml"
    with pytest.raises(FileNotFoundError, match="there is no recipe"):
        read_recipe(path)
    for content, message in (("train = [", "expected TOML"), ("[policy]\n", r"expected the tables \[train\]")):
        path.write_text(content)
        with pytest.raises(ValueError, match=message):
            read_recipe(path)
    with pytest.raises(ValueError, match="got 'stepz'"):
        Recipe({"stepz": 3}).config  # noqa: B018


def test_sizes_are_those_of_the_model(stand_in):
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(stand_in)
    model = AutoModelForCausalLM.from_pretrained(stand_in)
    size = model_size(config)
    assert size.parameters == size.trained == sum(weight.numel() for weight in model.parameters())
    assert size.kv_width == 2 * 1 * 16
    peft = pytest.importorskip("peft")
    for lora in ({"r": 4}, {"r": 4, "target_modules": "all-linear"}):
        adapted = peft.get_peft_model(AutoModelForCausalLM.from_pretrained(stand_in), peft.LoraConfig(task_type="CAUSAL_LM", **lora))
        assert model_size(config, lora).trained == sum(weight.numel() for weight in adapted.parameters() if weight.requires_grad)


def test_memory_by_hand(stand_in):
    from transformers import AutoConfig

    size = model_size(AutoConfig.from_pretrained(stand_in))
    gib = 1024**3
    plain = {
        "weight_bytes": 4,
        "activation_bytes": 2,
        "micro_tokens": 100,
        "cached_tokens": 1000,
        "reference": True,
        "checkpointing": False,
    }
    parts = training_memory(size, logits=10**9, **plain)
    assert (
        parts["weights"] == parts["gradients"] == parts["reference"] == size.parameters * 4 / gib and parts["AdamW"] == 2 * parts["weights"]
    )
    assert parts["sampling cache"] == 1000 * 2 * 32 * 2 / gib and parts["logits"] == 16 * 100 * size.vocabulary / gib
    assert parts["activations"] == 100 * 2 * (8 * 32 + 3 * 64) * 2 / gib
    assert training_memory(size, logits=10, **plain)["logits"] == 160 / gib
    assert training_memory(size, logits=10, **{**plain, "checkpointing": True})["activations"] < parts["activations"]
    assert peak(parts) == pytest.approx(
        sum(parts.values()) - min(parts["sampling cache"], sum(parts[n] for n in ("gradients", "activations", "logits")))
    )
    assert [in_words(n) for n in (12, 1500, 154_368, 1_543_714_304, 32e9)] == ["12", "1.50 k", "154 k", "1.54 B", "32.0 B"]


@pytest.mark.parametrize("algorithm", LOSSES)
def test_two_steps_of_every_loss_from_a_recipe(algorithm, stand_in, tmp_path, capsys):
    path = tmp_path / "small.toml"
    path.write_text(
        f"""
        [train]
        algorithm = "{algorithm}"
        env = "setpo/GSM8K-v0"
        steps = 2
        prompts_per_step = 2
        group_size = 3
        max_new_tokens = 4
        shaper = "setpo"
        credit_coefficient = 1.0
        entropy_coefficient = 0.1
        {"loss_length = 4" if algorithm == "dr_grpo" else ""}
        [train.env_kwargs]
        source = "embedded"
        [train.policy]
        kind = "transformers"
        model = "{stand_in}"
        """
    )
    before = (stand_in / "model.safetensors").read_bytes()
    assert main(["train", str(path), "--out", str(tmp_path / "run")]) == 0
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert len(lines) == 2 and all(line["grad_norm"] > 0 for line in lines)
    assert (stand_in / "model.safetensors").read_bytes() == before
