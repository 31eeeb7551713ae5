"""The real GRPOTrainer, a few steps on a CPU with a tiny model: the rewards that TRL received and logged are the verdicts of ``verify``."""

import copy
import json
import math

import odd_verifiers
import pytest

from setpo_envs.datasets.countdown import countdown_dataset
from setpo_envs.integrations.trl import VerifierReward
from setpo_verifiers import register, verify

trl = pytest.importorskip("trl", reason='trl is not installed: pip install -e ".[trl]"')
datasets, pandas, tokenizers, torch, transformers = map(pytest.importorskip, ("datasets", "pandas", "tokenizers", "torch", "transformers"))

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:You are using 'rollout_func'")
register("odd", odd_verifiers.verify_odd)

G = 8
STEPS = 3
TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


def characters(texts):
    """A tokenizer of single characters, those of ``texts``."""
    known = ["<pad>", "<eos>", *sorted(set("".join(texts)))]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({token: i for i, token in enumerate(known)}, unk_token="<pad>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = tokenizers.decoders.Fuse()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", chat_template=TEMPLATE)
    fast.clean_up_tokenization_spaces = False
    return fast


def scripted(said, tokenizer):
    """A rollout_func that answers a prompt with the completions of ``said`` in turn."""
    turns = {}

    def rollout(prompts, trainer):
        prompts = [prompt if isinstance(prompt, str) else prompt[-1]["content"] for prompt in prompts]
        texts = []
        for prompt in prompts:
            turns[prompt] = turns.get(prompt, -1) + 1
            texts.append(said[prompt][turns[prompt] % len(said[prompt])])
        ids = [tokenizer(text)["input_ids"] + [tokenizer.eos_token_id] for text in texts]
        return {"prompt_ids": tokenizer(prompts)["input_ids"], "completion_ids": ids, "logprobs": [[0.0] * len(each) for each in ids]}

    return rollout


def train(folder, reward, rows, said=None, *, prompts_a_step=2, **config):
    """(the completions that TRL logged, as dicts with their row; its metrics of every step; whether the model changed)"""
    torch.set_num_threads(1)
    transformers.set_seed(0)
    prompts = [row["prompt"] if isinstance(row["prompt"], str) else row["prompt"][-1]["content"] for row in rows]
    tokenizer = characters([*prompts, *(text for texts in (said or {}).values() for text in texts), "0123456789+-*/=>"])
    shape = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
    special = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id, "bos_token_id": None}
    model = transformers.Qwen2ForCausalLM(
        transformers.Qwen2Config(vocab_size=len(tokenizer), max_position_embeddings=8192, **shape, **special)
    )
    args = trl.GRPOConfig(
        output_dir=str(folder),
        max_steps=STEPS,
        per_device_train_batch_size=prompts_a_step * G,
        num_generations=G,
        logging_steps=1,
        log_completions=True,
        num_completions_to_print=0,
        report_to="none",
        save_strategy="no",
        use_cpu=True,
        bf16=False,
        disable_tqdm=True,
        **config,
    )
    before = copy.deepcopy(model.state_dict())
    trainer = trl.GRPOTrainer(
        model=model,
        reward_funcs=reward,
        args=args,
        train_dataset=datasets.Dataset.from_list(rows),
        processing_class=tokenizer,
        rollout_func=said and scripted(said, tokenizer),
    )
    trainer.train()
    learned = any(not torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    by_prompt = dict(zip(prompts, rows))
    logged = []
    for step in range(1, STEPS + 1):
        for line in pandas.read_parquet(folder / "completions" / f"completions_{step:05d}.parquet").to_dict("records"):
            prompt, completion = (text if isinstance(text, str) else text[-1]["content"] for text in (line["prompt"], line["completion"]))
            logged.append({**line, "text": completion, "row": by_prompt[prompt]})
    assert len(logged) == STEPS * prompts_a_step * G
    return logged, [line for line in trainer.state.log_history if "reward" in line], learned


def check(logged, metrics, name, gold=lambda row: row["answer"], **options):
    """TRL's rewards are ``verify``'s on the same completions, on every line and in every step's mean; how many lines were right."""
    expected = [verify(line["row"]["task"], line["text"], gold(line["row"]), **options) for line in logged]
    assert [line[name] for line in logged] == [verdict.reward for verdict in expected]
    assert [line[f"{name}/status"] for line in logged] == [verdict.status.name.lower() for verdict in expected]
    keys = [line[f"{name}/mode_key"] for line in logged]
    assert [key if isinstance(key, str) else None for key in keys] == [verdict.mode_key for verdict in expected]
    size = len(logged) // STEPS
    assert len(metrics) == STEPS
    for step, line in enumerate(metrics):
        mean = sum(verdict.reward for verdict in expected[step * size : (step + 1) * size]) / size
        assert line[f"rewards/{name}/mean"] == pytest.approx(mean) and line["reward"] == pytest.approx(mean)
        assert line[f"{name}/no_verdict"] == 0
    right = sum(verdict.reward for verdict in expected)
    assert 0 < right < len(expected)
    return right


def test_sampled_by_the_model(tmp_path):
    """One token of 18 characters: some guesses are right."""
    rows = [{"prompt": f"{n}={n:02d}>", "task": "countdown", "answer": json.dumps({"numbers": [n], "target": n})} for n in (3, 7)]
    rows += [{"prompt": f"{n}-1=", "task": "math", "answer": str(n - 1)} for n in (5, 9)]
    logged, metrics, _ = train(tmp_path, VerifierReward(), rows, max_completion_length=1, prompts_a_step=4)
    check(logged, metrics, "verify")
    assert {line["row"]["task"] for line in logged} == {"countdown", "math"}


def test_countdown_rows(tmp_path):
    problems = countdown_dataset("enumerate", settings={"max_numbers": 3, "number_range": (1, 9), "min_modes": 3})
    rows, said = [], {}
    for problem in (problems[i] for i in range(0, len(problems), len(problems) // 6)):
        rows.append({"prompt": problem.prompt, "task": problem.task, "nums": problem.gold["numbers"], "target": problem.gold["target"]})
        right = [f"<think>try</think>\n<answer>{mode}</answer>" for mode in problem.metadata["modes"][:3]]
        total = "+".join(map(str, problem.gold["numbers"]))
        said[problem.prompt] = [*right, f"<answer>{total}+1</answer>", f"{total} = 9**9**9**9", "<think><answer>1", "", total]
    reward = VerifierReward("countdown", gold=("nums", "target"))
    logged, metrics, learned = train(tmp_path, reward, rows, said)
    right = check(logged, metrics, "verify_countdown", lambda row: {"nums": row["nums"], "target": row["target"]})
    assert right >= 3 * len(logged) / G
    assert learned
    assert len({line["verify_countdown/mode_key"] for line in logged if line["verify_countdown"]}) >= 9


def test_maths_rows_in_chat_format(tmp_path):
    golds = {"Half of one?": "\\frac12", "Roots of x^2=4?": "-2, 2", "2x<4, x?": "x<2", "Five percent?": "5\\%"}
    texts = [
        "\\boxed{0.5}",
        "\\boxed{2, -2}",
        "\\boxed{(-\\infty, 2)}",
        "so it is \\boxed{0.05}.",
        "\\boxed{2}",
        "<think>\\boxed{5}",
        "",
        "\\boxed{",
    ]
    rows = [{"prompt": [{"role": "user", "content": prompt}], "task": "math", "solution": gold} for prompt, gold in golds.items()]
    logged, metrics, learned = train(tmp_path, VerifierReward("math", gold="solution", mode="strict"), rows, dict.fromkeys(golds, texts))
    check(logged, metrics, "verify_math", lambda row: row["solution"], mode="strict")
    assert learned


def test_completion_without_a_verdict_is_left_out_of_its_group(tmp_path):
    said = {"?": ["hang", "right", "wrong", "wrong", "right", "right", "kill", "wrong"]}
    reward = VerifierReward("odd", gold="solution", timeout=1.0)
    logged, metrics, _ = train(tmp_path, reward, [{"prompt": "?", "task": "odd", "solution": "right"}], said, prompts_a_step=1)
    for line in logged:
        assert math.isnan(line["verify_odd"]) == (line["text"] in ("hang", "kill"))
        assert line["advantage"] == pytest.approx({"right": 1, "wrong": -1}.get(line["text"], 0) * 0.5 / (0.3**0.5 + 1e-4))
    assert [line["verify_odd/no_verdict"] for line in metrics] == [0.25] * STEPS
    assert [line["rewards/verify_odd/mean"] for line in metrics] == [0.5] * STEPS


def test_malformed_gold_stops_the_training(tmp_path):
    rows = [{"prompt": "a", "answer": "7"}, {"prompt": "b", "answer": " "}]
    with pytest.raises(ValueError, match="expected a gold answer"):
        train(tmp_path, VerifierReward("math"), rows, {"a": ["7"], "b": [" "]})


@pytest.mark.parametrize("file", ["math_g8", "gsm8k_g8", "rg_countdown_g19", "rg_knights_knaves_g19"])
def test_real_completions(tmp_path, test_data, file):
    with open(test_data / "data" / "completions" / f"{file}.jsonl", encoding="utf-8") as lines:
        problems = [json.loads(line) for line in lines]
    said = {row["question"]: [each["text"][-600:] for each in row["completions"]] for row in problems}
    rows = [{"prompt": row["question"], "task": row["task"], "answer": row["gold_raw"]} for row in problems]
    logged, metrics, _ = train(tmp_path, VerifierReward(), rows, said)
    check(logged, metrics, "verify")
