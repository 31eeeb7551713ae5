"""Environments over tables of questions: any data set in one call, prompts and their answer formats, options of one problem."""

import json

import gymnasium as gym
import pytest

from setpo_agents.rescore import rescore
from setpo_envs import Groups, verify_groups
from setpo_envs.checks import check_dataset
from setpo_envs.datasets import Problem
from setpo_envs.datasets.maths import AIME, AMC, GSM8K, MATH, MATH500, MINERVA, OLYMPIAD
from setpo_envs.datasets.table import load
from setpo_envs.prompts import QUESTION_PROMPTS
from setpo_envs.shapers.base import make_shaper
from setpo_verifiers import verify

TABLES = {"GSM8K": GSM8K, "MATH": MATH, "MATH500": MATH500, "AIME": AIME, "Olympiad": OLYMPIAD, "AMC": AMC, "Minerva": MINERVA}


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


# ---- any data set, in one call


def test_rows_in_the_style_of_verl(tmp_path):
    row = {"prompt": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is 2+2?"}]}
    row |= {"reward_model": {"ground_truth": "So it is $\\boxed{4}$.", "style": "rule"}, "extra_info": {"index": 17}}
    path = str(write(tmp_path / "rows.jsonl", row))
    columns = {"question": "prompt", "answer": "reward_model.ground_truth", "id_column": "extra_info.index"}
    env = gym.make("setpo_envs:setpo/Dataset-v0", source=path, prompt_format="plain", group_size=3, **columns)
    prompt, info = env.reset()
    assert (prompt, info["problem_id"]) == ("What is 2+2?", "17")
    assert env.unwrapped.problem.gold == "4"
    assert env.step(["\\boxed{4}", "\\boxed{5}", ""])[4]["group"]["rewards"].tolist() == [1, 0, 0]
    spec = gym.envs.registration.EnvSpec.from_json(env.spec.to_json())
    assert gym.make(spec).reset()[0] == prompt


def test_a_verifier_of_your_own(tmp_path, monkeypatch):
    from setpo_verifiers import TASKS, Status, Verdict

    monkeypatch.setitem(
        TASKS,
        "shout",
        lambda text, gold, mode="lenient", mark="!": Verdict(float(text == gold + mark), Status(int(text == gold + mark)), text, text, ""),
    )
    path = write(tmp_path / "rows.jsonl", {"q": "Say hey.", "a": "hey"})
    kwargs = {"source": path, "question": "q", "answer": "a", "task": "shout", "verifier_options": {"mark": "?"}, "shaper": None}
    env = gym.make("setpo_envs:setpo/Dataset-v0", group_size=2, **kwargs)
    env.reset()
    assert env.step(["hey?", "hey!"])[4]["group"]["rewards"].tolist() == [1, 0]
    for wrong, message in [
        ({"task": "yell"}, "expected task among .*'yell'"),
        ({"config": "x"}, "only with a hub id"),
        ({"question": "p"}, "columns p and a"),
    ]:
        with pytest.raises(ValueError, match=message):
            gym.make("setpo_envs:setpo/Dataset-v0", **{**kwargs, **wrong})
    with pytest.raises(ValueError, match="id in the column 'name'"):
        gym.make("setpo_envs:setpo/Dataset-v0", id_column="name", **kwargs)
    with pytest.raises(ValueError, match="no embedded problems"):
        gym.make("setpo_envs:setpo/Dataset-v0", source="embedded")


# ---- prompts


ANSWERS = {"boxed": "So it is $\\boxed{%s}$.", "think_answer": "<think> hm </think> <answer>%s</answer>", "gsm8k": "Well.\n#### %s"}


@pytest.mark.parametrize("prompt_format", ANSWERS)
@pytest.mark.parametrize("name", TABLES)
def test_who_follows_the_prompt_is_rewarded_in_strict_mode(name, prompt_format):
    env = gym.make(f"setpo_envs:setpo/{name}-v0", source="embedded", prompt_format=prompt_format, mode="strict", shaper=None, group_size=2)
    for index, problem in enumerate(env.unwrapped.dataset):
        env.reset(options={"index": index})
        assert env.step([ANSWERS[prompt_format] % problem.gold, "It is 123456789."])[4]["group"]["rewards"].tolist() == [1, 0], problem


@pytest.mark.parametrize("prompt_format", QUESTION_PROMPTS)
def test_who_repeats_the_prompt_is_not_rewarded(prompt_format):
    for table in TABLES.values():
        for problem in load(table, "embedded", prompt_format=prompt_format):
            assert verify(problem.task, problem.prompt, problem.gold, mode="strict", **problem.options).reward == 0, problem


def test_prompts(tmp_path):
    assert set(QUESTION_PROMPTS) == {*ANSWERS, "plain"}
    path = write(tmp_path / "rows.jsonl", {"problem": "What is $\\frac{1}{2}$ of {question}?", "solution": "\\boxed{2}"})
    for prompt_format, prompt in [
        ("plain", "What is $\\frac{1}{2}$ of {question}?"),
        ("Q: {question} {x}", "Q: What is $\\frac{1}{2}$ of {question}? {x}"),
    ]:
        assert load(MATH, path, prompt_format=prompt_format)[0].prompt == prompt
    for wrong in ("box", None):
        with pytest.raises(ValueError, match="boxed, think_answer, gsm8k, plain, or a template"):
            load(MATH, path, prompt_format=wrong)
    with pytest.raises(ValueError, match="prompt_format='plain' with mode='strict'"):
        gym.make("setpo_envs:setpo/MATH-v0", source=path, prompt_format="plain", mode="strict")
    env = gym.make("setpo_envs:setpo/MATH-v0", source=path, prompt_format="plain", mode="strict", system_prompt="Use a box.")
    prompt, info = env.reset()
    assert info["messages"] == [{"role": "system", "content": "Use a box."}, {"role": "user", "content": prompt}]


# ---- options of one problem


PRECISE = Problem("p", "olympiad", "How large?", "34.0", options={"precision": 0.1})
NEAR = ["\\boxed{33.95}", "\\boxed{33.8}"]


def test_options_of_a_problem_reach_the_verifier_and_its_json_line():
    groups = verify_groups([PRECISE], [NEAR])
    assert groups.rewards.tolist() == [[1, 0]]
    line = json.loads(json.dumps(groups.to_json(0)))
    assert line["options"] == {"precision": 0.1}
    assert Groups.from_json([line]).problems == [PRECISE]
    del line["options"]  # a line of an earlier version
    assert Groups.from_json([line]).problems[0].options == {}


def test_rescoring_uses_the_options(tmp_path):
    line = verify_groups([PRECISE], [NEAR]).to_json(0)
    source = write(tmp_path / "groups.jsonl", line, {**line, "options": {}}, {key: line[key] for key in line if key != "options"})
    found = rescore(source, tmp_path / "out.jsonl", shaper=make_shaper("setpo"))
    assert [line["rewards"] for line in found] == [[1, 0], [0, 0], [0, 0]]
    assert [line["options"] for line in found] == [{"precision": 0.1}, {}, {}]
    write(source, {**line, "options": {"precison": 0.1}})
    with pytest.raises(ValueError, match="line 1: .*precison"):
        rescore(source, tmp_path / "out2.jsonl", shaper=make_shaper("setpo"))


def test_one_of_several_golds():
    options = {"alternatives": ["(10,0)"]}
    for answer, reward in [("(0,0)", 1), ("(10, 0)", 1), ("(0,0), (10,0)", 0), ("(5,0)", 0)]:
        assert verify("math", f"\\boxed{{{answer}}}", "(0,0)", **options).reward == reward
    assert verify("gsm8k", "So 3.", "2", alternatives=["3"]).reward == 1
    with pytest.raises(ValueError, match="empty"):
        verify("math", "1", "1", alternatives=[" "])


# ---- what check_dataset finds


GOOD = Problem("a", "math", "What is 1+1?", "2")


@pytest.mark.parametrize(
    "problems, message",
    [
        ([GOOD, Problem("a", "math", "What is 1+2?", "3")], "index 1: expected a problem_id of its own, got 'a', which index 0 has"),
        ([Problem("a", "math", " \n", "2")], "expected a prompt"),
        ([Problem("a", "math", "?", " ")], "expected a gold that the verifier of 'math' accepts"),
        ([Problem("a", "math", "?", "2", options={"precison": 1})], "precison"),
        ([Problem("a", "math", "?", "2}")], "expected the gold answer, given as .* to be correct"),
        ([GOOD, GOOD, "problem"], "index 2: expected a Problem, got str"),
    ],
)
def test_check_dataset_finds(problems, message):
    with pytest.raises(ValueError, match=message):
        check_dataset(problems)


def test_check_dataset_compares_splits():
    check_dataset([GOOD], disjoint_from=[[Problem("b", "math", "What is 2+2?", "4")]])
    with pytest.raises(ValueError, match="index 0: expected prompts that data set 1 of disjoint_from does not have, got its index 0"):
        check_dataset([GOOD], disjoint_from=[[], [Problem("b", "math", "what is  1+1?\n", "2")]])
    check_dataset([Problem("a", "math", "?", "2}")], answer=lambda problem: None)


@pytest.mark.parametrize(
    "arguments", [{"prompt_format": "Q: {question} A:"}, {"prompt_format": "plain"}, {"prompt_format": "gsm8k", "task": "countdown"}]
)
def test_strict_mode_wants_a_prompt_that_can_be_followed(tmp_path, arguments):
    rows = write(tmp_path / "rows.jsonl", {"problem": "Reach 3.", "answer": {"numbers": [1, 2], "target": 3}})
    source = {"source": rows} if "task" in arguments else {"source": "embedded"}
    env_id = "setpo/Dataset-v0" if "task" in arguments else "setpo/MATH-v0"
    with pytest.raises(ValueError, match="asks for an answer behind .*<answer>"):
        gym.make(env_id, mode="strict", **source, **arguments)
    gym.make(env_id, mode="strict", system_prompt="Put it into <answer></answer>.", **source, **arguments)
