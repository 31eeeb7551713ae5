"""setpo/Mixture-v0 and its data set."""

import json
from collections import Counter

import gymnasium as gym
import numpy as np
import pytest
from odd_verifiers import verify_odd

import setpo_envs  # noqa: F401 (registers the environments)
from setpo_envs.checks import check_dataset
from setpo_envs.datasets import Problem
from setpo_envs.datasets.mixture import MixtureDataset
from setpo_verifiers import TASKS, Status


def component(name, size, weight=1.0, task="countdown"):
    gold = {"numbers": [1, 2], "target": 3} if task == "countdown" else "right"
    problems = [Problem(f"{name}{i}", task, f"{name} {i}", gold) for i in range(size)]
    return {"id": "setpo/Countdown-v0", "weight": weight, "kwargs": {"source": problems}}


def make(*components, **kwargs):
    return gym.make("setpo/Mixture-v0", components=list(components), **{"group_size": 3, **kwargs})


def drawn(env, n):
    return [env.reset()[1] for _ in range(n)]


def test_components_lie_one_behind_the_other():
    env = make(component("a", 3), component("b", 2), component("c", 4))
    dataset = env.unwrapped.dataset
    assert [dataset[i].problem_id for i in range(len(dataset))] == ["a0", "a1", "a2", "b0", "b1", "c0", "c1", "c2", "c3"]
    for index, problem_id, place in ((2, "a2", 0), (3, "b0", 1), (4, "b1", 1), (8, "c3", 2)):
        for options in ({"index": index}, {"problem_id": problem_id}):
            info = env.reset(options=options)[1]
            assert (info["index"], info["problem_id"], info["component"]) == (index, problem_id, place)
            assert env.step(["x"] * 3)[4]["component"] == place
    for index in (-1, 9):
        with pytest.raises(IndexError, match="below 9"):
            dataset[index]
    check_dataset(dataset)


@pytest.mark.parametrize("order", ["random", "shuffle", "sequential"])
def test_weights_are_of_components_whatever_their_sizes(order):
    env = make(component("a", 50, 3), component("b", 5, 1), order=order)
    env.reset(seed=0)
    share = Counter(info["component"] for info in drawn(env, 4000))[0] / 4000
    assert abs(share - 0.75) < 4 * np.sqrt(0.75 * 0.25 / 4000)


def test_each_component_has_epochs_of_its_own():
    env = make(component("a", 6, 1), component("b", 3, 2), order="shuffle")
    env.reset(seed=0)
    seen = {0: [], 1: []}
    for info in [env.reset(seed=0)[1], *drawn(env, 300)]:
        seen[info["component"]].append(info["index"])
    for part, members in ((0, range(6)), (1, range(6, 9))):
        epochs = [seen[part][i : i + len(members)] for i in range(0, len(seen[part]) - len(members) + 1, len(members))]
        assert len(epochs) > 10 and all(sorted(epoch) == list(members) for epoch in epochs)
        assert len(set(map(tuple, epochs))) > 1


def test_weights_change_at_a_reset_and_stay():
    env = make(component("a", 4), component("b", 4), order="shuffle")
    assert env.reset(seed=0, options={"weights": [0, 1]})[1]["component"] == 1
    assert {info["component"] for info in drawn(env, 50)} == {1}
    state = json.loads(json.dumps(env.unwrapped.state))
    env.reset(options={"weights": [1, 1]})
    assert {info["component"] for info in drawn(env, 50)} == {0, 1}
    env.unwrapped.state = state
    assert {info["component"] for info in drawn(env, 50)} == {1}
    for weights in ([1], [0, 0], "ab", None, [1, float("nan")]):
        with pytest.raises(ValueError, match="expected 2 weights"):
            env.reset(options={"weights": weights})
    with pytest.raises(ValueError, match="among index, problem_id, difficulty, got"):
        gym.make("setpo/Countdown-v0").reset(options={"weights": [1]})


def test_the_state_goes_on_in_another_environment():
    components = component("a", 5, 2), component("b", 3)
    env, again = (make(*components, order="shuffle") for _ in range(2))
    env.reset(seed=0)
    drawn(env, 17)
    again.unwrapped.state = json.loads(json.dumps(env.unwrapped.state))
    assert drawn(again, 40) == drawn(env, 40)


def test_each_problem_is_judged_by_its_own_task(monkeypatch):
    monkeypatch.setitem(TASKS, "odd", verify_odd)
    env = make(component("a", 2), component("b", 2, task="odd"))
    for index, status in ((0, [Status.CORRECT, Status.NO_ANSWER, Status.NO_ANSWER]), (2, [Status.WRONG, Status.CORRECT, Status.ERROR])):
        env.reset(options={"index": index})
        assert env.step(["1+2", "right", "raise boom"])[4]["group"]["status"].tolist() == status


def test_the_spec_survives_json_and_the_split_reaches_the_components():
    settings = {"min_numbers": 3, "max_numbers": 3, "size": 20}
    components = [{"id": "setpo/Countdown-v0", "kwargs": {"settings": settings}}, {"id": "setpo/Countdown-v0", "kwargs": {"split": "test"}}]
    env = gym.make("setpo/Mixture-v0", components=components, split="validation")
    assert [part.split for part in env.unwrapped.dataset.parts] == ["validation", "test"]
    again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert [again.reset(seed=s)[0] for s in range(5)] == [env.reset(seed=s)[0] for s in range(5)]


@pytest.mark.parametrize(
    "components, message",
    [
        ([], "list of at least one"),
        ("setpo/Countdown-v0", "list of at least one"),
        (["setpo/Countdown-v0"], "a component with id"),
        ([{"weight": 1}], "a component with id"),
        ([{"id": "setpo/Countdown-v0", "wieght": 1}], "a component with id"),
        ([{"id": "setpo/Countdown-v0", "kwargs": [1]}], "kwargs of a component as a dict"),
        ([{"id": "setpo/Countdown-v0", "kwargs": {"group_size": 4}}], "group_size as an argument of the mixture"),
        ([{"id": "setpo/Countdown-v0", "weight": -1}], "expected 1 weights"),
        ([{"id": "setpo/Mixture-v0"}], "no mixtures themselves"),
        ([{"id": "CartPole-v1"}], "CartPole|shaper"),
    ],
)
def test_components_that_make_no_sense(components, message):
    with pytest.raises((ValueError, TypeError), match=message):
        gym.make("setpo/Mixture-v0", components=components)


def test_a_mixture_of_data_sets_of_your_own():
    parts = [[Problem(f"{name}{i}", "countdown", "1>", {"numbers": [1], "target": 1}) for i in range(2)] for name in "ab"]
    env = setpo_envs.GroupEnv(MixtureDataset(parts, [1, 0]), shaper=None)
    assert {env.reset(seed=s)[1]["component"] for s in range(20)} == {0}
