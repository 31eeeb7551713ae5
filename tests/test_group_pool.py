"""verify_groups through a pool: the same record as in this process, whatever single completions do to their worker."""

import json
import random

import numpy as np
import pytest
from odd_verifiers import verify_odd

from setpo_envs import Completion, GroupEnv, verify_groups
from setpo_envs.datasets import Problem
from setpo_envs.group import GROUP_FIELDS
from setpo_envs.shapers import SetPO, Shaping, make_shaper
from setpo_verifiers import TASKS, Status, VerifierPool, register

ODD = "odd_groups"
register(ODD, verify_odd)
SHAPERS = [None, "setpo", SetPO(kernel="rbf"), SetPO(kernel="equality_key", members="well_formed"), "shuffled"]


@pytest.fixture(scope="module")
def pool():
    with VerifierPool(2, timeout=1.0) as pool:
        yield pool


def batch(n=6, g=4):
    """Groups of three tasks, with repeated and truncated completions, none of which does anything odd."""
    problems, completions = [], []
    for i in range(n):
        kind = i % 3
        problems.append(
            Problem(f"c{i}", "countdown", "1,2,3=06>", {"numbers": [1, 2, 3], "target": 6})
            if kind == 0
            else Problem(f"m{i}", "math", "?", "3.14", options={"precision": 0.1} if i > 3 else {})
            if kind == 1
            else Problem(f"o{i}", ODD, "?", "right")
        )
        texts = [
            ["1+2+3", "1*2*3", "1+2", "hm"],
            ["\\boxed{3.2}", "\\boxed{3.14}", "I think it is 3", "?"],
            ["right", "wrong", "", "right"],
        ]
        completions.append([Completion(text, truncated=i % 2 == 0, n_tokens=9) for text in (texts[kind] * g)[i : i + g]])
    return problems, completions


def same(a, b):
    for name in GROUP_FIELDS:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
        assert getattr(a, name).dtype == getattr(b, name).dtype
    assert a.problems == b.problems and a.completions_NG == b.completions_NG
    assert [type(text) for group in a.completions_NG for text in group] == [type(text) for group in b.completions_NG for text in group]


@pytest.mark.parametrize("shaper", SHAPERS, ids=str)
@pytest.mark.parametrize("mode", ["lenient", "strict"])
def test_pool_process_and_single_steps_give_the_same_record(pool, shaper, mode):
    problems, completions = batch()
    shaper = make_shaper(shaper) if isinstance(shaper, str) else shaper
    here, there = (
        verify_groups(problems, completions, mode=mode, shaper=shaper, rng=np.random.default_rng(3), pool=each) for each in (None, pool)
    )
    same(there, here)
    assert mode == "strict" or {Status.CORRECT, Status.WRONG, Status.NO_ANSWER, Status.TRUNCATED} <= set(here.status.ravel().tolist())
    if shaper is not None and type(shaper).__name__ != "Shuffled":  # whose draws depend on what was drawn before
        env = GroupEnv(problems, group_size=4, shaper=shaper, mode=mode, order="sequential")
        for n, group in enumerate(completions):
            env.reset(options={"index": n})
            info = env.step(group)[4]["group"]
            for name, value in here.info(n).items():
                if name in ("credits", "diversity"):  # a matrix product rounds by the size of its batch
                    np.testing.assert_allclose(info[name], value, atol=1e-6)
                else:
                    np.testing.assert_array_equal(info[name], value, err_msg=name)


def test_what_one_completion_does_to_its_worker_costs_no_other(pool):
    problems, completions = batch()
    odd = [Problem("odd", ODD, "?", "right"), Problem("odd", ODD, "?", "right")]
    texts = [["right", "hang", "kill", "raise boom"], ["sleep 9", "wrong", "nothing", "right"]]
    groups = verify_groups(problems + odd, completions + texts, pool=pool, shaper="setpo")
    kept = verify_groups(problems, completions, shaper="setpo")
    for name in GROUP_FIELDS:
        if name not in ("credits", "diversity"):
            np.testing.assert_array_equal(getattr(groups, name)[:6], getattr(kept, name), err_msg=name)
    assert groups.status[6:].tolist() == [
        [Status.CORRECT, Status.TIMEOUT, Status.ERROR, Status.ERROR],
        [Status.TIMEOUT, Status.WRONG, Status.ERROR, Status.CORRECT],
    ]
    assert groups.valid[6:].tolist() == [[True, False, False, False], [False, True, False, True]]
    assert groups.mean_rewards[6:].tolist() == [1.0, 0.5]  # over those with a verdict
    assert groups.reasons[6, 3] == "RuntimeError: boom" and groups.reasons[6, 1] == "timeout"
    assert groups.modes[6:].tolist() == [[-1] * 4] * 2 and np.isfinite(groups.credits).all()


@pytest.mark.parametrize("text", ["raise ValueError bad", "raise TypeError worse", "raise RuntimeError " + "x" * 900, "nothing"])
def test_a_verifier_that_fails_on_a_completion_is_the_same_error_everywhere(pool, text):
    problem = Problem("p", ODD, "?", "right")
    here, there = (verify_groups([problem], [["right", text, "wrong"]], pool=each) for each in (None, pool))
    same(there, here)
    assert here.status[0].tolist() == [Status.CORRECT, Status.ERROR, Status.WRONG] and len(here.reasons[0, 1]) <= 500


@pytest.mark.parametrize(
    "problem, mode, message",
    [
        (Problem("p", "chess", "?", "e4"), "lenient", "expected a task out of .*'chess'"),
        (Problem("p", "countdown", "?", "e4 e5"), "lenient", "expected"),
        (Problem("p", "countdown", "?", {"numbers": [1], "target": 1}), "lax", "mode"),
        (Problem("p", "math", "?", "1", options={"precison": 1}), "lenient", "precison"),
    ],
)
def test_what_the_caller_did_wrong_is_raised(pool, problem, mode, message):
    errors = []
    for each in (None, pool):
        with pytest.raises((ValueError, TypeError), match=message) as caught:
            verify_groups([problem], [["1"]], mode=mode, pool=each)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


def test_a_shaper_is_told_of_the_texts_while_the_pool_verifies(pool):
    class Early:
        def before_verdicts(self, completions_NG):
            self.seen = completions_NG
            return lambda groups, rng: Shaping(credits=np.full(groups.rewards.shape, 7.0))

        def __call__(self, groups, rng):
            return Shaping(credits=np.full(groups.rewards.shape, 7.0))

    problems, completions = batch()
    early = Early()
    same(verify_groups(problems, completions, shaper=early, pool=pool), verify_groups(problems, completions, shaper=early))
    assert early.seen == completions


def test_real_completions_give_the_same_record(pool, test_data):
    problems, completions = [], []
    for name in ("amc23_g50", "rg_countdown_g19", "rg_knights_knaves_g19", "aime24_g50"):
        with open(test_data / "data" / "completions" / f"{name}.jsonl", encoding="utf-8") as file:
            for line in random.Random(0).sample([json.loads(text) for text in file], 3):
                task = line["task"] if line["task"] in TASKS else "math"
                problems.append(Problem(line["problem_id"], task, line["question"], line["gold_raw"]))
                completions.append([completion["text"] for completion in line["completions"][:16]])
    here, there = (verify_groups(problems, completions, shaper="setpo", pool=each) for each in (None, pool))
    same(there, here)
    assert 0.1 < here.correct.mean() < 0.9
