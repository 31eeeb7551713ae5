import copy
import json
import pickle

import numpy as np
import pytest

from setpo_envs import Completion, Groups, verify_groups
from setpo_envs.datasets import Problem
from setpo_envs.group import GROUP_FIELDS
from setpo_envs.shapers import Shaping
from setpo_verifiers import TASKS, Status, verify


def problem(numbers=(1, 2, 3), target=6):
    key = f"{','.join(map(str, numbers))}={target}"
    return Problem(
        f"countdown/{key}",
        "countdown",
        f"{key}>",
        {"numbers": list(numbers), "target": target},
        {"modes": ("1+2+3", "1*2*3"), "n_modes": 2},
    )


ANSWERS = ["1+2+3", "3+(2+1)", "1*2*3", "1+2", "I do not know", Completion("1+", truncated=True)]


@pytest.fixture
def groups():
    return verify_groups([problem(), problem((2, 4), 8)], [ANSWERS, ["2*4", "4*2", "8", "2+4", "", "4/2"]])


def test_completion_is_a_str_with_two_attributes():
    text = Completion("1+2", truncated=True, embedding=np.arange(3.0))
    assert text == "1+2" and isinstance(text, str) and hash(text) == hash("1+2")
    for other in (pickle.loads(pickle.dumps(text)), copy.deepcopy(text), copy.copy(text)):
        assert type(other) is Completion and other == "1+2" and other.truncated
        np.testing.assert_array_equal(other.embedding, np.arange(3.0))
    assert Completion("x").truncated is False and Completion("x").embedding is None


def test_verdicts_become_arrays(groups):
    assert groups.n_groups == 2 and groups.group_size == 6
    np.testing.assert_array_equal(groups.rewards, [[1, 1, 1, 0, 0, 0], [1, 1, 0, 0, 0, 0]])
    assert groups.status[0].tolist() == [Status.CORRECT] * 3 + [Status.WRONG, Status.NO_ANSWER, Status.TRUNCATED]
    assert groups.modes.tolist() == [[0, 0, 1, 2, -1, -1], [0, 0, 1, 2, -1, 3]]
    assert [key is None for key in groups.mode_keys[0]] == [False] * 4 + [True] * 2
    np.testing.assert_array_equal(groups.well_formed, groups.modes >= 0)
    np.testing.assert_array_equal(groups.correct, groups.rewards == 1)
    np.testing.assert_array_equal(groups.mean_rewards, [1 / 2, 1 / 3])
    assert groups.valid.all() and groups.defined.all()
    np.testing.assert_array_equal(groups.shaped_rewards, groups.rewards)
    np.testing.assert_array_equal(groups.weights, 1)
    np.testing.assert_array_equal(groups.credits, 0)


def test_truncated_means_cut_off_and_without_answer():
    cut = [Completion("1+2+3", truncated=True), Completion("<answer>1+2", truncated=True), "<answer>1+2"]
    assert verify_groups([problem()], [cut]).status[0].tolist() == [Status.CORRECT, Status.TRUNCATED, Status.NO_ANSWER]


def test_the_same_text_may_be_cut_off_once_and_complete_once():
    status = verify_groups([problem()], [["hm", Completion("hm", truncated=True)]]).status
    assert status[0].tolist() == [Status.NO_ANSWER, Status.TRUNCATED]


def test_info_has_the_fields_fresh_each_time(groups):
    info = groups.info(0)
    assert list(info) == list(GROUP_FIELDS)
    for name, dtype in GROUP_FIELDS.items():
        if name in ("defined", "diversity"):
            assert type(info[name]) is dtype
        else:
            assert info[name].shape == (6,) and info[name].dtype == dtype
            assert not np.shares_memory(info[name], getattr(groups, name))
    info["credits"][:] = 9
    assert groups.credits.max() == 0


def test_mean_reward_leaves_out_members_without_a_verdict(groups):
    groups.status[0, 3], groups.valid[0, 3] = Status.TIMEOUT, False
    assert groups.mean_rewards[0] == 3 / 5
    groups.valid[0] = False
    assert groups.mean_rewards[0] == 0


def test_json_round_trip(groups):
    groups.credits[0] = np.linspace(-1, 1, 6)
    groups.defined[1], groups.diversity[0] = False, -0.25
    lines = [json.loads(json.dumps(groups.to_json(n, index=n, seed=7))) for n in range(2)]
    assert lines[0]["status"] == ["correct", "correct", "correct", "wrong", "no_answer", "truncated"]
    assert lines[0]["index"] == 0 and lines[0]["seed"] == 7 and lines[0]["task"] == "countdown"
    back = Groups.from_json(lines)
    assert back.problems == groups.problems
    assert back.completions_NG == groups.completions_NG and back.completions_NG[0][5].truncated
    for name in [*GROUP_FIELDS]:
        np.testing.assert_array_equal(getattr(back, name), getattr(groups, name))
        assert getattr(back, name).dtype == getattr(groups, name).dtype


def test_a_line_without_a_field_is_named(groups):
    lines = [groups.to_json(n) for n in range(2)]
    del lines[1]["reasons"]
    with pytest.raises(ValueError, match="group 2: .* reasons"):
        Groups.from_json(lines)


def test_a_shaper_is_applied_and_draws_from_the_given_stream():
    class Noise:
        def __call__(self, groups, rng):
            return Shaping(credits=rng.random(groups.rewards.shape), diversity=np.full(groups.n_groups, -0.5))

    shaped = verify_groups([problem()], [ANSWERS], shaper=Noise(), rng=np.random.default_rng(5))
    np.testing.assert_array_equal(shaped.credits, np.random.default_rng(5).random((1, 6)))
    assert shaped.diversity[0] == -0.5
    np.testing.assert_array_equal(shaped.rewards, verify_groups([problem()], [ANSWERS]).rewards)
    named = verify_groups([problem()], [ANSWERS], shaper="setpo")
    assert np.abs(named.credits).max() > 0


@pytest.mark.parametrize(
    "problems, completions, message",
    [
        ([], [], "one or more problems, got 0 groups for 0 problems"),
        ([problem()], [["a"], ["b"]], "2 groups for 1 problems"),
        ([problem()] * 2, [["a", "b"], ["c"]], r"sizes \[1, 2\]"),
        ([problem()], [[]], r"at least 1, got sizes \[0\]"),
    ],
)
def test_shapes_that_are_no_batch(problems, completions, message):
    with pytest.raises(ValueError, match=message):
        verify_groups(problems, completions)


def test_a_completion_that_is_no_text_is_an_error_not_a_reward():
    with pytest.raises(TypeError, match="int for member 1 of group 0"):
        verify_groups([problem()], [["1+2+3", 6]])


def test_an_unknown_task_is_an_error():
    with pytest.raises(ValueError, match="countdown"):
        verify_groups([Problem("x", "chess", "?", {})], [["e4"]])


def test_a_verifier_that_fails_gives_an_error_status_and_costs_no_other_completion(monkeypatch):
    def broken(text, gold, *, mode):
        if text == "bug":
            raise RuntimeError("boom")
        return verify("countdown", text, gold, mode=mode)

    monkeypatch.setitem(TASKS, "broken", broken)
    problem = Problem("p", "broken", "1,2=03>", {"numbers": [1, 2], "target": 3}, {})
    groups = verify_groups([problem], [["1+2", "bug", "2+1"]])
    assert groups.status[0].tolist() == [Status.CORRECT, Status.ERROR, Status.CORRECT]
    assert groups.valid[0].tolist() == [True, False, True] and groups.reasons[0, 1] == "RuntimeError: boom"
    assert groups.mean_rewards[0] == 1.0


def test_a_text_is_no_group():
    for completions_NG in ("abc", ["abc"]):
        with pytest.raises(TypeError, match="list of one"):
            verify_groups([problem()], completions_NG)
