"""The environment contract, for every registered id."""

import inspect
import json
import os
import pickle
import subprocess
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import setpo_envs
from setpo_envs import Completion
from setpo_envs.checks import check_dataset, right_completion
from setpo_envs.datasets import Problem
from setpo_envs.datasets.table import EMBEDDED
from setpo_envs.group import GROUP_FIELDS
from setpo_envs.order import ORDERS
from setpo_envs.shapers import SetPO, Shaping
from setpo_envs.spaces import Group, Unicode
from setpo_envs.tasks.questions import QuestionEnv
from setpo_verifiers import Status

IDS = [env_id for env_id in gym.registry if env_id.startswith("setpo/")]
# The splits of what data() names.
SPLITS = {
    "setpo/Countdown-v0": ("train", "validation", "test"),
    "setpo/GraphColoring-v0": ("train", "validation", "test"),
    "setpo/KnightsAndKnaves-v0": ("train", "validation", "test"),
    "setpo/GSM8K-v0": ("train", "test"),
    "setpo/MATH-v0": ("train", "test"),
    "setpo/MATH500-v0": ("test",),
    "setpo/AIME-v0": ("train",),
    "setpo/Olympiad-v0": ("train",),
    "setpo/AMC-v0": ("test",),
    "setpo/Minerva-v0": ("test",),
}
SHAPERS = [None, "setpo", "shuffled"]
each_id = pytest.mark.parametrize("env_id", IDS)
pytestmark = pytest.mark.filterwarnings("error")


def data(env_id):
    """What is given to make an environment offline."""
    if env_id == "setpo/Dataset-v0":
        return {"source": str(EMBEDDED / "math_train.jsonl"), "answer": "solution"}
    task = gym.envs.registration.load_env_creator(gym.spec(env_id).entry_point)
    return {"source": "embedded"} if issubclass(task, QuestionEnv) else {}


def make(env_id, **kwargs):
    return gym.make(env_id, **{**data(env_id), **kwargs})


def test_the_table_is_what_is_registered():
    assert IDS == list(setpo_envs.ENVIRONMENTS)


@each_id
@pytest.mark.parametrize("shaper", SHAPERS)
def test_check_env_without_a_warning(env_id, shaper):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = make(env_id, group_size=4, shaper=shaper, render_mode="ansi")
        check_env(env.unwrapped)


@each_id
@pytest.mark.parametrize("order", ORDERS)
def test_check_env_passes_in_every_order(env_id, order):
    check_env(make(env_id, group_size=4, order=order, render_mode="ansi").unwrapped)


@each_id
@pytest.mark.parametrize("order", ORDERS)
def test_the_state_goes_on_in_another_environment(env_id, order):
    env, again = (make(env_id, group_size=3, order=order) for _ in range(2))
    for seed in (2, None, None):
        env.reset(seed=seed)
    again.unwrapped.state = json.loads(json.dumps(env.unwrapped.state))
    assert [again.reset()[0] for _ in range(5)] == [env.reset()[0] for _ in range(5)]


@each_id
def test_spaces_reset_and_step(env_id):
    env = make(env_id, group_size=5)
    assert env.action_space == Group(Unicode(), 5) and env.observation_space == Unicode()
    prompt, info = env.reset(seed=3)
    assert type(info["index"]) is int and env.unwrapped.dataset[info["index"]].problem_id == info["problem_id"]
    assert info["messages"] == [{"role": "user", "content": prompt}]
    completions = ["nothing", Completion("", truncated=True), "1+1", "nothing", "\ud800\0\x1b[2J"]
    observation, reward, terminated, truncated, step_info = env.step(completions)
    assert observation == prompt and type(reward) is float and terminated is True and truncated is False
    group = step_info["group"]
    assert list(group) == list(GROUP_FIELDS)
    for name, dtype in GROUP_FIELDS.items():
        assert type(group[name]) is dtype if name in ("defined", "diversity") else (group[name].shape, group[name].dtype) == ((5,), dtype)
    assert reward == group["rewards"].mean()
    assert group["status"][1] == Status.TRUNCATED
    assert {key: step_info[key] for key in ("index", "problem_id")} == {key: info[key] for key in ("index", "problem_id")}


@each_id
def test_the_gold_modes_are_rewarded_whatever_the_shaper(env_id):
    for shaper in SHAPERS:
        env = make(env_id, group_size=3, shaper=shaper)
        env.reset(seed=0)
        solution = right_completion(env.unwrapped.problem)
        _, reward, _, _, info = env.step([solution, solution, ""])
        assert reward == pytest.approx(2 / 3)
        assert info["group"]["status"].tolist() == [Status.CORRECT, Status.CORRECT, Status.NO_ANSWER]
        assert info["group"]["modes"].tolist() == [0, 0, -1]


@each_id
def test_same_seed_same_prompts_for_every_group_size_and_shaper(env_id):
    def prompts(group_size, shaper):
        env = make(env_id, group_size=group_size, shaper=shaper)
        found = []
        for seed in (11, None, None, 12, None):
            found.append(env.reset(seed=seed)[0])
            env.step(["1+1", "", "2*3"] + ["x"] * (group_size - 3))
        return found

    first = prompts(3, None)
    assert len(set(first)) > 2
    for group_size, shaper in [(4, None), (8, "setpo"), (5, "shuffled")]:
        assert prompts(group_size, shaper) == first


@each_id
def test_a_random_shaper_is_reproducible(env_id):
    env = make(env_id, group_size=6, shaper="shuffled")

    def credits():
        found = []
        for seed in (1, None):
            env.reset(seed=seed)
            found.append(env.step(["1+1", "2+2", "3*3", "4-1", "5-2", "6/2"])[4]["group"]["credits"])
        return np.array(found)

    np.testing.assert_array_equal(credits(), credits())


@each_id
def test_options_pin_a_problem(env_id):
    env = make(env_id, group_size=3)
    dataset = env.unwrapped.dataset
    assert len(dataset) > 7 and isinstance(dataset[7], Problem)
    prompt, info = env.reset(options={"index": 7})
    assert prompt == dataset[7].prompt and info["index"] == 7
    prompt, info = env.reset(options={"problem_id": dataset[5].problem_id})
    assert info["problem_id"] == dataset[5].problem_id and prompt == dataset[5].prompt
    for options, message in [
        ({"index": len(dataset)}, f"below {len(dataset)}"),
        ({"index": -1}, "got -1"),
        ({"problem_id": "no such"}, "'no such'"),
        ({"indx": 1}, "among index, problem_id"),
        ({"index": 1, "problem_id": "x"}, "problem_id alone"),
    ]:
        with pytest.raises(ValueError, match=message):
            env.reset(options=options)


@each_id
def test_misuse_is_an_error_that_says_what_to_do(env_id):
    env = make(env_id, group_size=4).unwrapped
    with pytest.raises(gym.error.ResetNeeded, match="reset"):
        env.step(["x"] * 4)
    env.reset(seed=0)
    with pytest.raises(gym.error.InvalidAction, match=r"expected 4 completions, got 2: .*group_size=2"):
        env.step(["x"] * 2)
    for action, message in [
        ("abcd", "got str"),
        (None, "got NoneType"),
        (["x", "x", "x", 3], "list with int"),
        (np.array(["x"] * 4), "got ndarray"),
    ]:
        with pytest.raises(gym.error.InvalidAction, match=message):
            env.step(action)
    env.step(["x"] * 4)  # a refused action does not end the episode
    with pytest.raises(gym.error.ResetNeeded):
        env.step(["x"] * 4)


@each_id
@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"group_size": 2}, "at least 3"),
        ({"group_size": 0, "shaper": None}, "at least 1"),
        ({"shaper": "sepo"}, "setpo"),
        ({"shaper_kwargs": {"kernle": "rbf"}}, "kernel"),
        ({"shaper": None, "shaper_kwargs": {"g": "linear"}}, "shaper_kwargs"),
        ({"mode": "lax"}, "lenient, strict"),
        ({"order": "alphabetical"}, "random, shuffle, sequential"),
        ({"group_size": "4"}, "integer of at least 1, got '4'"),
        ({"group_size": True}, "integer of at least 1, got True"),
        ({"shaper": 3}, "a shaper or None, got 3"),
        ({"shaper_kwargs": "rbf"}, "dict of options by name, or None, got 'rbf'"),
        ({"shaper_kwargs": {"gamma": "1"}}, "gamma above 0, got '1'"),
    ],
)
def test_a_wrong_argument_is_an_error_with_the_choices(env_id, kwargs, message):
    with pytest.raises(ValueError, match=message):
        make(env_id, **kwargs)


@pytest.mark.parametrize("env_id", SPLITS)
def test_a_split_that_there_is_not(env_id):
    with pytest.raises(ValueError, match=f"expected split among {', '.join(SPLITS[env_id])}.*'dev'"):
        make(env_id, split="dev")


@each_id
def test_a_render_mode_that_there_is_not(env_id):
    with pytest.raises(ValueError, match="None, ansi, got 'human'"), pytest.warns(UserWarning, match="render_mode"):
        make(env_id, render_mode="human")


@each_id
def test_a_misspelt_argument_is_an_error(env_id):
    with pytest.raises(TypeError, match="groupsize"):
        make(env_id, groupsize=4)


@each_id
def test_spec_survives_json(env_id):
    kwargs = {"group_size": 4, "shaper": "setpo", "shaper_kwargs": {"scale": "zscore", "members": "well_formed"}}
    kwargs |= {"split": SPLITS[env_id][-1]} if env_id in SPLITS else {}
    env = make(env_id, **kwargs)
    again = gym.make(gym.envs.registration.EnvSpec.from_json(json.loads(json.dumps(env.spec.to_json()))))
    assert again.spec.kwargs == env.spec.kwargs
    assert again.reset(seed=5)[0] == env.reset(seed=5)[0]
    action = ["1+1", "2+2", "1+1", ""]
    np.testing.assert_array_equal(again.step(action)[4]["group"]["credits"], env.step(action)[4]["group"]["credits"])


@each_id
def test_pickling_keeps_the_state(env_id):
    env = make(env_id, group_size=4, shaper="shuffled")
    env.reset(seed=1)
    other = pickle.loads(pickle.dumps(env))
    action = ["1+1", "2+2", "3+3", "4*4"]
    np.testing.assert_array_equal(other.step(action)[4]["group"]["credits"], env.step(action)[4]["group"]["credits"])
    assert other.reset()[0] == env.reset()[0]


@each_id
def test_objects_in_place_of_names(env_id):
    class Ones:
        def __call__(self, groups, rng):
            return Shaping(credits=np.ones(groups.rewards.shape))

    env = make(env_id, group_size=2, shaper=Ones())
    env.reset(seed=0)
    assert env.step(["a", "b"])[4]["group"]["credits"].tolist() == [1, 1]
    if "source" in inspect.signature(env.unwrapped.make_dataset).parameters:
        listed = [env.unwrapped.dataset[i] for i in range(3)]
        env = make(env_id, source=listed, shaper=SetPO())
        assert env.unwrapped.dataset is listed and env.reset(seed=0)[0] in [problem.prompt for problem in listed]


@each_id
@pytest.mark.parametrize("vectorization, extra", [("sync", {}), ("async", {"shared_memory": False})])
def test_vector_environments_have_arrays_N_G(env_id, vectorization, extra):
    n, g = 3, 3  # equal on purpose: a transposed batch would keep its shape
    vector_kwargs = {"autoreset_mode": gym.vector.AutoresetMode.DISABLED, **extra}
    envs = gym.make_vec(env_id, n, vectorization, vector_kwargs=vector_kwargs, group_size=g, **data(env_id))
    try:
        prompts, infos = envs.reset(seed=[4, 5, 6])
        single = make(env_id, group_size=g)
        problems = []
        for seed, prompt in zip((4, 5, 6), prompts):
            assert single.reset(seed=seed)[0] == prompt
            problems.append(single.unwrapped.problem)
        assert list(infos["problem_id"]) == [problem.problem_id for problem in problems]
        right = right_completion(problems[1])
        _, rewards, terminated, truncated, infos = envs.step(
            (("a", "1+12345", "c"), (right, right, right), ("", "1+12345", Completion("", truncated=True)))
        )
        np.testing.assert_array_equal(rewards, [0, 1, 0])
        assert terminated.all() and not truncated.any()
        group = infos["group"]
        np.testing.assert_array_equal(group["rewards"], [[0] * 3, [1] * 3, [0] * 3])
        assert group["status"][2].tolist() == [Status.NO_ANSWER, group["status"][0, 1], Status.TRUNCATED]
        for name, dtype in GROUP_FIELDS.items():
            assert group[name].shape == ((n,) if name in ("defined", "diversity") else (n, g))
            assert group[name].dtype == np.dtype(dtype)
    finally:
        envs.close()


@each_id
def test_render_is_text_of_80_columns(env_id):
    env = make(env_id, group_size=3, render_mode="ansi")
    _, info = env.reset(seed=0)
    assert info["problem_id"] in env.render()
    env.step(["x " * 200, "\x1b[2Jhidden\n" * 30, right_completion(env.unwrapped.problem)])
    shown = env.render()
    assert max(map(len, shown.split("\n"))) <= 80
    assert "correct" in shown and "no_answer" in shown and "more lines" in shown and "\x1b" not in shown
    env.close()
    env.close()


@each_id
def test_every_split_passes_the_public_check(env_id):
    choices = [{"split": split} for split in SPLITS.get(env_id, ())] or [{}]
    splits = [make(env_id, **choice).unwrapped.dataset for choice in choices]
    for n, dataset in enumerate(splits):
        others = [[other[i] for i in range(min(len(other), 200))] for other in splits[:n] + splits[n + 1 :]]
        check_dataset(dataset, limit=50, disjoint_from=others)


def test_prompts_are_the_same_in_another_process():
    program = (
        "import json, sys, gymnasium as gym, setpo_envs\n"
        "print(json.dumps({i: [gym.make(i, **kw).reset(seed=s)[0] for s in (0, 1)] for i, kw in json.loads(sys.argv[1]).items()}))"
    )
    given = {env_id: data(env_id) for env_id in IDS}
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(given)], capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": "7"}
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {env_id: [make(env_id).reset(seed=seed)[0] for seed in (0, 1)] for env_id in IDS}
