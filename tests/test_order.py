"""Which problem comes next: each order, its seed, and its state."""

import json
import pickle
import tracemalloc
from collections import Counter

import gymnasium as gym
import numpy as np
import pytest

from setpo_envs.datasets import Problem
from setpo_envs.order import ORDERS, Order

each_order = pytest.mark.parametrize("order", ORDERS)


def make(n=10, **kwargs):
    problems = [Problem(f"p{i}", "countdown", f"{i},1>", {"numbers": [i, 1], "target": i + 1}) for i in range(n)]
    return gym.make("setpo/Countdown-v0", **{"source": problems, "group_size": 3, **kwargs})


def indices(env, n, **first):
    return [env.reset(**(first if i == 0 else {}))[1]["index"] for i in range(n)]


@each_order
def test_a_seed_begins_the_order_again_whatever_came_before(order):
    env = make(order=order)
    first = indices(env, 25, seed=4)
    assert indices(env, 25, seed=4) == first
    assert indices(make(order=order, group_size=7, shaper="shuffled"), 25, seed=4) == first
    assert (indices(env, 25, seed=5) == first) is (order == "sequential")


def test_sequential_goes_round():
    assert indices(make(4, order="sequential"), 10) == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]


@pytest.mark.parametrize("n", [1, 2, 7, 300])
def test_shuffle_gives_each_problem_once_an_epoch_and_each_epoch_its_own_order(n):
    env = make(n, order="shuffle")
    epochs = [tuple(indices(env, n, **({"seed": 2} if i == 0 else {}))) for i in range(6)]
    assert all(sorted(epoch) == list(range(n)) for epoch in epochs)
    assert n < 7 or len(set(epochs)) == 6


def test_shuffle_puts_every_problem_everywhere():
    order, rng = Order("shuffle", [5], [1.0]), np.random.default_rng(0)
    places = Counter()
    for _ in range(2000):
        places.update((order.next(rng), place) for place in range(5))
    assert len(places) == 25 and all(abs(count - 400) < 5 * 18 for count in places.values())  # binomial(2000, 1/5): sd 18


@pytest.mark.parametrize("order", ["shuffle", "sequential"])
def test_a_pinned_problem_does_not_move_the_order_on(order):
    env, plain = make(order=order), make(order=order)
    expected = indices(plain, 12, seed=1)
    found = [env.reset(seed=1)[1]["index"]]
    for i in range(11):
        pinned = env.reset(options={"index": i % 10} if i % 2 else {"problem_id": f"p{i % 10}"})[1]["index"]
        assert pinned == i % 10
        found.append(env.reset()[1]["index"])
    assert found == expected


def test_a_named_difficulty_takes_the_next_index_from_another_data_set():
    class Graded(list):
        def with_difficulty(self, name):
            if name != "hard":
                raise ValueError("expected difficulty among hard, got 'easy'")
            return Graded(Problem(f"hard{i}", p.task, p.prompt, p.gold) for i, p in enumerate(self))

    env = make(source=Graded(make().unwrapped.dataset), order="sequential")
    found = [env.reset(options=options)[1] for options in (None, {"difficulty": "hard"}, {"difficulty": "hard", "index": 7}, None)]
    assert [info["problem_id"] for info in found] == ["p0", "hard1", "hard7", "p2"]
    with pytest.raises(ValueError, match="difficulty among hard"):
        env.reset(options={"difficulty": "easy"})
    with pytest.raises(ValueError, match="with difficulties"):
        make().reset(options={"difficulty": "hard"})


@each_order
@pytest.mark.parametrize("begun", [False, True])
def test_the_state_goes_on_in_another_environment(order, begun):
    def play(env, n):
        found = []
        for _ in range(n):
            prompt, info = env.reset()
            found.append((info["index"], *env.step(["1+1", "2+1", "3"])[4]["group"]["credits"]))
        return found

    env = make(order=order, shaper="shuffled")
    if begun:
        env.reset(seed=3)
        play(env, 13)
    state = json.loads(json.dumps(env.unwrapped.state))
    expected = play(env, 30)
    again = make(order=order, shaper="shuffled")
    again.set_wrapper_attr("state", state)
    assert again.get_wrapper_attr("state") == state
    with pytest.raises(gym.error.ResetNeeded):
        again.unwrapped.step(["1", "2", "3"])
    assert play(again, 30) == expected
    assert play(pickle.loads(pickle.dumps(again)), 5) == play(env, 5)


def test_a_state_does_not_change_afterwards():
    env = make(order="shuffle")
    env.reset(seed=1)
    state = env.unwrapped.state
    kept = json.dumps(state)
    env.reset()
    assert json.dumps(state) == kept != json.dumps(env.unwrapped.state)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"order": "random"}, r"order='shuffle' over \[10\] problems, got one of order='random'"),
        ({"sizes": [11]}, r"over \[10\] problems, got one of order='shuffle' over \[11\]"),
        ({"weights": [1, 2]}, "expected 1 weights"),
        ({"positions": [1, 2]}, "1 positions that are integers of at least 0"),
        ({"positions": [-1]}, r"got .* and \[-1\]"),
        ({"positions": 3}, "got .* and 3"),
        ({"root": "x"}, "got 'x' and"),
        ({"np_random": {}}, "expected np_random as env.state gives it, got {}"),
        ({"side_rng": {"bit_generator": "MT19937"}}, "expected side_rng"),
        ({"side_rng": None}, "expected side_rng"),
    ],
)
def test_the_state_of_something_else_is_refused(change, message):
    env, other = (make(order="shuffle").unwrapped for _ in range(2))
    env.reset(seed=1)
    other.reset(seed=2)
    before = env.state
    with pytest.raises(ValueError, match=message):
        env.state = {**other.state, **change}
    assert env.state == before != other.state


@pytest.mark.parametrize("state", [{}, {"order": "shuffle"}, None, "x"])
def test_what_is_no_state_is_refused(state):
    env = make(order="shuffle").unwrapped
    with pytest.raises(ValueError, match="expected a state with order, sizes, weights, root, positions, np_random, side_rng"):
        env.state = state


@each_order
def test_memory_is_flat_over_100_000_resets(order):
    env = make(1000, order=order).unwrapped
    env.reset(seed=0)
    for _ in range(2000):
        env.reset()
    tracemalloc.start()
    try:
        for _ in range(2000):
            env.reset()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(100_000):
            env.reset()
        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name, weights", [("random", [1, 2, 3]), ("shuffle", [-1, 2]), ("random", [0, 0]), ("random", ["a", 1])])
def test_weights_that_make_no_sense(name, weights):
    with pytest.raises(ValueError, match="expected 2 weights, finite, none negative and one of them above 0"):
        Order(name, [3, 4], weights)
