"""The adapters keep the contracts of TRL and verl; neither library is needed here (test_trl.py and test_verl.py run the real ones)."""

import importlib.util
import json
import logging
import pickle
import threading

import numpy as np
import odd_verifiers
import pytest

from setpo_envs.integrations import judge, verl
from setpo_envs.integrations.trl import VerifierReward
from setpo_envs.integrations.verl import DATA_SOURCES, compute_score
from setpo_verifiers import TASKS, register, verify

register("odd", odd_verifiers.verify_odd)

ROLES = {"names": ["Ava", "Ben"], "solution": [True, False]}
CASES = [  # task, gold, completion, whether it is right
    ("countdown", {"numbers": [1, 2, 3], "target": 7}, "<think>2*3</think><answer>1+2*3</answer>", True),
    ("countdown", {"nums": [1, 2, 3], "target": 7}, "<answer>1+2+3</answer>", False),
    ("math", "\\frac12", "so \\boxed{0.5}", True),
    ("math", "\\frac12", "so \\boxed{0.5} or \\boxed{2}", False),
    ("math", "204", "<think>it is \\boxed{204}", False),  # cut off in its thoughts
    ("gsm8k", "some steps\n#### 1,080", "that makes 1080", True),
    ("gsm8k", "1080", "", False),
    ("knights_and_knaves", ROLES, "<answer>Ava is a knight, Ben is a knave</answer>", True),
    ("kk", "Ava is a knight, and Ben is a knave.", "<answer>Ava is a knave, Ben is a knave</answer>", False),
]
UNUSABLE = [
    ("math", ""),
    ("math", None),
    ("gsm8k", "####"),
    ("countdown", {"numbers": [], "target": 1}),
    ("countdown", ""),
    ("kk", {"roles": {}}),
]


def columns(cases):
    tasks, golds, completions, _ = zip(*cases)
    return {"completions": list(completions), "prompts": ["?"] * len(cases), "task": list(tasks), "answer": list(golds)}


def chat(text):
    return [
        {"role": "assistant", "content": "", "tool_calls": [{}]},
        {"role": "tool", "content": "7"},
        {"role": "assistant", "content": text},
    ]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("shape", [str, chat, lambda text: [{"role": "assistant", "content": [{"type": "text", "text": text}]}]])
def test_trl_rewards_are_the_verdicts(workers, shape):
    batch = columns(CASES)
    rewards = VerifierReward(workers=workers)(**{**batch, "completions": [shape(text) for text in batch["completions"]]})
    assert rewards == [float(right) for *_, right in CASES]
    assert rewards == [verify(task, text, gold).reward for task, gold, text, _ in CASES]


def test_trl_takes_mode_options_and_a_gold_of_several_columns():
    given = {"task": "countdown", "gold": ("nums", "target"), "workers": 0}
    subset = {**given, "options": {"allow_subset": True}}
    batch = {"prompts": ["?"] * 2, "completions": ["1+2", "<answer>1+2</answer>"], "nums": [[1, 2, 9]] * 2, "target": [3, 3]}
    assert VerifierReward(**subset)(**batch) == [1.0, 1.0]
    assert VerifierReward(**subset, mode="strict")(**batch) == [0.0, 1.0]
    assert VerifierReward(**given)(**batch) == [0.0, 0.0]


def test_trl_messages_without_words_of_the_assistant_are_no_answer():
    silent = [[], [{"role": "assistant", "content": None}], [{"role": "tool", "content": "\\boxed{7}"}]]
    assert VerifierReward("math", workers=0)(completions=silent, answer=["7"] * 3) == [0.0] * 3
    with pytest.raises(TypeError, match="text or as a list of chat messages, got 7"):
        VerifierReward("math", workers=0)(completions=[7], answer=["7"])


def test_trl_completion_without_a_verdict_is_none_and_harms_no_other(caplog):
    texts = ["right", "hang", "kill", "raise oh", "wrong"]
    logged = {}
    with caplog.at_level(logging.WARNING):
        rewards = VerifierReward("odd", workers=2, timeout=1.0)(
            completions=texts, answer=["right"] * 5, log_extra=logged.__setitem__, log_metric=logged.__setitem__
        )
    assert rewards == [1.0, None, None, None, 0.0]
    assert logged["verify_odd/status"] == ["correct", "timeout", "error", "error", "wrong"]
    assert logged["verify_odd/no_verdict"] == 3 / 5
    assert "no verdict for 3 of 5 completions, first TIMEOUT" in caplog.text
    assert VerifierReward("odd", workers=0)(completions=["raise oh", "right"], answer=["right"] * 2) == [None, 1.0]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("task, gold", UNUSABLE)
def test_a_gold_that_cannot_be_used_raises(workers, task, gold):
    for text in ("\\boxed{}", "<answer></answer>", repr(gold)):
        with pytest.raises(ValueError, match="expected a"):
            VerifierReward(task, workers=workers)(completions=["fine", text], answer=[CASES[0][1] if task == "countdown" else "7", gold])
        with pytest.raises(ValueError, match="expected a"):
            compute_score("x", text, gold, task=task, workers=workers)


def test_trl_errors_of_the_caller_are_named():
    batch = {"prompts": ["?"], "completions": ["7"], "completion_ids": [[7]], "solution": ["7"], "level": [1], "trainer_state": None}
    with pytest.raises(ValueError, match="column 'answer', got level, solution; .*VerifierReward"):
        VerifierReward("math")(**batch)
    with pytest.raises(ValueError, match="column 'task'"):
        VerifierReward(gold="solution")(**batch)
    with pytest.raises(ValueError, match="expected a task out of"):
        VerifierReward("maths", gold="solution")(**batch)
    with pytest.raises(ValueError, match="mode"):
        VerifierReward("math", gold="solution", mode="loose")(**batch)
    with pytest.raises(TypeError, match="colour"):
        VerifierReward("math", gold="solution", options={"colour": 1})(**batch)


def test_trl_names_for_its_logs_and_pickles():
    reward = VerifierReward("math", gold="solution")
    assert (reward.__name__, VerifierReward().__name__) == ("verify_math", "verify")
    assert pickle.loads(pickle.dumps(reward)) == reward  # some trainers score in another process


def test_verl_scores_are_the_verdicts_under_the_same_keys_and_types():
    results = [compute_score(task, text, gold) for task, gold, text, _ in CASES]
    results += [compute_score("odd", text, "right", timeout=1.0) for text in ("hang", "raise oh")]
    verdicts = [verify(task, text, gold) for task, gold, text, _ in CASES]
    assert [result["score"] for result in results] == [verdict.reward for verdict in verdicts] + [0.0, 0.0]
    assert [result["status"] for result in results] == [verdict.status.name.lower() for verdict in verdicts] + ["timeout", "error"]
    assert [result["mode_key"] for result in results] == [verdict.mode_key or "" for verdict in verdicts] + ["", ""]
    assert [result["valid"] for result in results] == [1.0] * len(CASES) + [0.0] * 2
    for key in results[0]:  # stacked as verl stacks them: no None, no object array
        assert np.array([result[key] for result in results]).dtype.kind == ("f" if key in ("score", "acc", "valid") else "U"), key
        assert all(set(result) == set(results[0]) for result in results)
    json.dumps(results)


def test_verl_completion_without_a_verdict_is_reported(caplog):
    with caplog.at_level(logging.WARNING):
        result = compute_score("odd", "raise oh", "right", workers=0)
    assert (result["score"], result["valid"], result["reason"]) == (0.0, 0.0, "RuntimeError: oh")
    assert "no verdict for 1 of 1 completions, first ERROR: RuntimeError: oh" in caplog.text


def test_verl_majority_vote_goes_by_the_solution():
    texts = ["\\boxed{0.5}", "\\boxed{\\frac12}", "\\boxed{1/2}", "\\boxed{2}", "no idea"]
    votes = [compute_score("math", text, "1/2")["pred"] for text in texts]
    assert len(set(votes[:3])) == 1 and len(set(votes)) == 3


def test_verl_task_comes_from_kwargs_then_extra_info_then_the_data_source():
    assert set(DATA_SOURCES.values()) <= set(TASKS)
    for source, gold, text in [
        ("openai/gsm8k", "5", "that makes 5"),
        ("DigitalLearningGmbH/MATH-lighteval", "5", "\\boxed{5}"),
        ("HuggingFaceH4/MATH-500", "5", "\\boxed{5}"),
        ("math-ai/aime24", "\\boxed{025}", "\\boxed{25}"),
        ("countdown", {"numbers": np.array([1, 2]), "target": np.int64(3)}, "<answer>1+2</answer>"),
        ("kk_logic", {"solution_text_format": "(1) Ava is a knight\n(2) Ben is a knave", "statements": ""}, CASES[-2][2]),
    ]:
        assert compute_score(source, text, gold)["score"] == 1.0, source
        assert compute_score(source, "nothing", gold, {"task": None})["score"] == 0.0, source
    gold = {"numbers": [1, 2], "target": 3}
    assert compute_score("mine", "1+2", gold, {"task": "countdown", "index": 3})["score"] == 1.0
    assert compute_score("openai/gsm8k", "1+2", gold, {"task": "math"}, task="countdown")["score"] == 1.0
    assert compute_score("countdown", "1+2", gold, mode="strict")["status"] == "no_answer"
    assert (
        compute_score("countdown", "1", gold, reward_router_address="a:1", reward_model_tokenizer=None, allow_subset=True)["reason"]
        == "value"
    )
    with pytest.raises(ValueError, match="task for data_source 'mine', got 'mine'.*reward_kwargs or in extra_info"):
        compute_score("mine", "1+2", gold)
    with pytest.raises(TypeError, match="colour"):
        compute_score("math", "1", "1", colour=1)


def test_verl_may_load_the_file_by_its_path_and_call_from_many_threads():
    spec = importlib.util.spec_from_file_location("loaded_by_path", verl.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    judge._POOLS.clear()
    scores = {}

    def score(i):
        scores[i] = module.compute_score("math", f"\\boxed{{{i % 3}}}", "1")["score"]

    threads = [threading.Thread(target=score, args=(i,)) for i in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert scores == {i: float(i % 3 == 1) for i in range(32)}
    assert list(judge._POOLS) == [(1, 5.0)]


def test_real_rows_judge_as_they_are_called(test_data):
    """Gold columns under the names of the hub: the gold's own words are right, the next row's are judged as by a direct call."""
    for file, task, gold in [
        ("gsm8k_test", "gsm8k", "answer"),
        ("math500", "math", "answer"),
        ("math500", "math", "solution"),
        ("aime24", "aime", "answer"),
        ("countdown_3to4", "countdown", ("nums", "target")),
        ("kk/test/people3_num100", "knights_and_knaves", ("names", "solution")),
    ]:
        with open(test_data / "data" / f"{file}.jsonl", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines][:200]
        said = [f"<answer>{row.get('solution_text_format') or row.get('answer') or row['target']}</answer>" for row in rows]
        said = [text.rpartition("####")[2] if task == "gsm8k" else text for text in said]
        batch = {key: [row[key] for row in rows] * 2 for key in rows[0]}
        golds = [row[gold] if isinstance(gold, str) else {key: row[key] for key in gold} for row in rows] * 2
        texts = said + said[1:] + said[:1]
        rewards = VerifierReward(task, gold=gold)(completions=texts, **batch)
        assert rewards == [verify(task, text, answer).reward for text, answer in zip(texts, golds)]
        assert sum(rewards[: len(rows)]) == (0 if task == "countdown" else len(rows)), file
        assert 0 < 2 * sum(rewards[len(rows) :]) < len(rows) or task not in ("gsm8k", "math"), file
        assert all(compute_score(task, text, answer)["score"] == reward for text, answer, reward in zip(texts[:20], golds, rewards))
