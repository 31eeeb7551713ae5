"""Learning-rate schedules at points where their value is known."""

import pytest

from setpo_agents.schedules import learning_rate_factor


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [("constant", [1, 1, 1, 1]), ("linear", [1, 0.75, 0.5, 0.25]), ("cosine", [1, 0.8535533905932737, 0.5, 0.14644660940672627])],
)
def test_values_after_warm_up(schedule, expected):
    factors = [learning_rate_factor(step, steps=6, schedule=schedule, warmup_steps=2) for step in range(6)]
    assert factors == pytest.approx([0.5, 1.0, *expected])


def test_a_warm_up_as_long_as_the_run_reaches_the_full_rate():
    assert [learning_rate_factor(step, steps=2, schedule="linear", warmup_steps=2) for step in range(2)] == [0.5, 1.0]
