"""Vector environments: sync and async, every autoreset mode, and the state of each."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import setpo_envs  # noqa: F401 (registers the environments)
from setpo_envs.group import GROUP_FIELDS
from setpo_envs.shapers import ShaperWrapper
from setpo_verifiers import verify

N, G = 3, 3  # equal on purpose: a transposed batch would keep its shape
SPACE = {"source": "enumerate", "settings": {"number_range": [1, 4], "target_range": [1, 20], "max_numbers": 3}}
pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(params=["sync", "async"])
def make(request):
    made = []

    def make(mode, **kwargs):
        vector_kwargs = {"autoreset_mode": mode, **({"shared_memory": False} if request.param == "async" else {})}
        envs = gym.make_vec("setpo/Countdown-v0", N, request.param, vector_kwargs=vector_kwargs, group_size=G, **{**SPACE, **kwargs})
        made.append(envs)
        return envs

    yield make
    for envs in made:
        envs.close()


def singles(seeds, steps, **kwargs):
    """Prompts and problems that single environments have, one list a seed."""
    found = []
    for seed in seeds:
        env = gym.make("setpo/Countdown-v0", group_size=G, **{**SPACE, **kwargs}).unwrapped
        env.reset(seed=seed)
        found.append([env.problem] + [(env.reset(), env.problem)[1] for _ in range(steps)])
    return found


def solution(problem):
    return f"<answer>{problem.metadata['modes'][0]}</answer>"


def check_group(group, rewards_NG):
    np.testing.assert_array_equal(group["rewards"], rewards_NG)
    for name, dtype in GROUP_FIELDS.items():
        assert group[name].shape == ((N,) if name in ("defined", "diversity") else (N, G)) and group[name].dtype == np.dtype(dtype)


def test_disabled_every_step_is_a_group(make):
    envs, problems = make(AutoresetMode.DISABLED), singles([4, 5, 6], 2)
    for round in range(3):
        prompts, infos = envs.reset(seed=[4, 5, 6]) if round == 0 else envs.reset()
        assert prompts == tuple(problems[n][round].prompt for n in range(N))
        assert list(infos["problem_id"]) == [problems[n][round].problem_id for n in range(N)]
        action = [[solution(problems[n][round]) if g <= n else "no" for g in range(G)] for n in range(N)]
        _, rewards, terminated, truncated, infos = envs.step(action)
        expected = [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
        np.testing.assert_allclose(rewards, np.mean(expected, axis=1))
        assert terminated.all() and not truncated.any()
        check_group(infos["group"], expected)


def test_same_step_has_the_group_in_final_info_and_the_next_prompt_beside_it(make):
    envs, problems = make(AutoresetMode.SAME_STEP), singles([1, 2, 3], 3)
    envs.reset(seed=[1, 2, 3])
    for round in range(3):
        action = [[solution(problems[n][round]) if g == n else "no" for g in range(G)] for n in range(N)]
        prompts, rewards, terminated, _, infos = envs.step(action)
        np.testing.assert_allclose(rewards, [1 / 3] * N)
        assert terminated.all() and prompts == tuple(problems[n][round + 1].prompt for n in range(N))
        check_group(infos["final_info"]["group"], np.eye(N))
        assert list(infos["final_info"]["problem_id"]) == [problems[n][round].problem_id for n in range(N)]
        assert list(infos["problem_id"]) == [problems[n][round + 1].problem_id for n in range(N)] and "group" not in infos


def test_next_step_spends_every_second_step_on_a_reset(make):
    envs, problems = make(AutoresetMode.NEXT_STEP), singles([1, 2, 3], 1)
    envs.reset(seed=[1, 2, 3])
    for round in range(2):
        action = [[solution(problems[n][round])] * G for n in range(N)]
        _, rewards, terminated, _, infos = envs.step(action)
        assert terminated.all() and rewards.tolist() == [1, 1, 1]
        check_group(infos["group"], np.ones((N, G)))
        prompts, rewards, terminated, _, infos = envs.step(action)
        assert not terminated.any() and not rewards.any() and "group" not in infos
        assert round or prompts == tuple(problems[n][1].prompt for n in range(N))


def test_options_go_to_every_environment(make):
    envs = make(AutoresetMode.DISABLED)
    assert list(envs.reset(options={"index": 2})[1]["index"]) == [2] * N


def test_a_seed_makes_each_environment_another_order(make):
    envs = make(AutoresetMode.DISABLED, order="shuffle")
    assert len(set(envs.reset(seed=0)[0])) > 1
    problems = singles([0, 1, 2], 1, order="shuffle")  # an integer seed is seed + n
    assert envs.reset()[0] == tuple(problems[n][1].prompt for n in range(N))


def test_states_are_read_and_set_for_each_environment(make):
    envs = make(AutoresetMode.DISABLED, order="shuffle", shaper="shuffled")
    envs.reset(seed=7)
    states = envs.get_attr("state")
    action = [["1+1", "2+1", "3"]] * N

    def play(envs):
        prompts = [envs.reset()[0] for _ in range(4)]
        return prompts, envs.step(action)[4]["group"]["credits"].tolist()

    expected = play(envs)
    again = make(AutoresetMode.DISABLED, order="shuffle", shaper="shuffled")
    again.set_attr("state", list(states))
    assert play(again) == expected


def test_a_wrapper_shapes_every_environment(make):
    vector_kwargs = {"autoreset_mode": AutoresetMode.DISABLED}
    envs = gym.make_vec(
        "setpo/Countdown-v0", N, "sync", vector_kwargs=vector_kwargs, wrappers=[ShaperWrapper], group_size=G, shaper=None, **SPACE
    )
    plain = make(AutoresetMode.DISABLED)
    for each in (envs, plain):
        each.reset(seed=1)
    action = [["1+1", "2+1", "3"], ["1", "1", "2+2"], ["a", "b", "a"]]
    credits = [each.step(action)[4]["group"]["credits"] for each in (envs, plain)]
    np.testing.assert_array_equal(*credits)
    assert np.abs(credits[0]).min(axis=1).max() > 0


def test_the_right_answers_of_this_space_are_right():
    [[problem]] = singles([0], 0)
    assert verify(problem.task, solution(problem), problem.gold).reward == 1
