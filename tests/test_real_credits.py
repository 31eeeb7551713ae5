"""Every registered shaper on 385 groups of real completions (SETPO_TEST_DATA): finite everywhere, defined as it declares."""

import json

import numpy as np
import pytest

from setpo_envs import Completion, verify_groups
from setpo_envs.datasets import Problem
from setpo_envs.shapers import apply_shaper, make_shaper, registry

TASKS = {"aime24": "aime", "gsm8k": "gsm8k", "olympiadbench": "olympiad", "rg_countdown": "countdown", "rg_knights_knaves": "kk"}


@pytest.fixture(scope="module")
def files(test_data):
    """Groups by file; the members of a file's groups are as many for all."""
    found = {}
    for path in sorted((test_data / "data" / "completions").glob("*_g*.jsonl")):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        problems = [Problem(row["problem_id"], TASKS.get(row["task"], "math"), row["question"], row["reference_answer"]) for row in rows]
        texts = [[Completion(each["text"], n_tokens=len(each["text"]) // 4) for each in row["completions"]] for row in rows]
        found[path.stem] = verify_groups(problems, texts)
    return found


def test_the_groups_are_those_counted(files):
    assert sum(groups.n_groups for groups in files.values()) == 385
    assert sum(groups.n_groups for groups in files.values() if groups.group_size == 2) == 150
    assert all(groups.valid.all() for groups in files.values())


@pytest.mark.parametrize("name", sorted(registry()))
def test_credits_of_real_groups(files, name):
    shaper = make_shaper(name)
    least = getattr(shaper, "min_group_size", 1)
    said = 0.0
    for groups in files.values():
        rewards = groups.rewards.copy()
        if hasattr(shaper, "state"):  # it remembers: what is new to it is all alike
            apply_shaper(groups, shaper, np.random.default_rng(0))
        apply_shaper(groups, shaper, np.random.default_rng(0))
        # by default no method leaves out a group of verified members that is large enough
        assert (groups.defined == (groups.group_size >= least)).all()
        np.testing.assert_array_equal(groups.rewards, rewards)
        for values_NG, neutral_NG in ((groups.credits, 0), (groups.shaped_rewards, rewards), (groups.weights, 1)):
            assert np.isfinite(values_NG).all()
            changes_NG = np.abs(values_NG - neutral_NG)
            assert not changes_NG[~groups.defined].any()
            said += changes_NG.sum()
    assert (said > 0) == (name != "overlong")  # none of these texts is as long as its 16 384 tokens
