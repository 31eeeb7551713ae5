"""The bandit benchmark: its metrics by hand, and the collapse that it shows."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

spec = importlib.util.spec_from_file_location("bandit", Path(__file__).parents[1] / "benchmarks" / "bandit.py")
bandit = importlib.util.module_from_spec(spec)
sys.modules["bandit"] = bandit
spec.loader.exec_module(bandit)


def test_hill_number_and_accuracy_by_hand():
    policy = np.zeros(bandit.MODES)
    policy[:2], policy[5] = 0.25, 0.5
    assert bandit.hill(policy) == pytest.approx(2.0) and bandit.accuracy(policy) == pytest.approx(0.5)


def test_grpo_collapses_to_one_mode_and_z_scored_credit_does_not():
    plain, shaped = bandit.train({"scale": "zscore"}, (0.0, 0.5), seeds=8, steps=1500)
    assert bandit.accuracy(plain).min() > 0.99 and bandit.hill(plain).mean() < 1.3
    assert bandit.accuracy(shaped).mean() > 0.98 and bandit.hill(shaped).mean() > 3.0


def test_one_step_is_the_policy_gradient():
    policies = bandit.train({}, (0.0,), seeds=1, steps=1, learning_rate=0.1)
    rng = np.random.default_rng(1)
    modes = (rng.random((1, 6)) * bandit.MODES).astype(int)[0]
    advantages = (modes < bandit.RIGHT) - np.mean(modes < bandit.RIGHT)
    advantages = advantages / (np.std(modes < bandit.RIGHT, ddof=1) + 1e-6)
    logits = np.zeros(bandit.MODES)
    for mode, advantage in zip(modes, advantages):
        logits += 0.1 * advantage / 6 * (np.eye(bandit.MODES)[mode] - 1 / bandit.MODES)
    np.testing.assert_allclose(policies[0, 0], bandit.softmax(logits), rtol=1e-12)
