"""A verdict says one thing, in values that travel between processes."""

import pickle
import re

import pytest

from setpo_envs import Completion
from setpo_verifiers import Status, Verdict, VerifierPool, register, verify


@pytest.mark.parametrize(("reward", "status"), [(0.5, Status.WRONG), (2.0, Status.CORRECT), (1.0, Status.WRONG), (0.0, Status.CORRECT)])
def test_reward_and_status_fit(reward, status):
    with pytest.raises(ValueError, match="reward 1.0 with CORRECT"):
        Verdict(reward, status, None, None, "")


@pytest.mark.parametrize("field", ["answer", "mode_key", "reason"])
def test_evidence_is_text(field):
    fields = {"answer": None, "mode_key": None, "reason": ""}
    with pytest.raises(TypeError, match=f"expected {field} as a str or None, got Match"):
        Verdict(1.0, Status.CORRECT, **{**fields, field: re.match("a", "a")})
    verdict = Verdict(1.0, Status.CORRECT, **{**fields, field: Completion("text", truncated=True)})
    assert type(getattr(verdict, field)) is str
    assert pickle.loads(pickle.dumps(verdict)) == verdict


def verify_match(completion, gold, *, mode="lenient"):
    return Verdict(1.0, Status.CORRECT, re.match(".", completion), None, "")


def test_a_verdict_that_cannot_travel_is_an_error_and_costs_nothing_else():
    register("a match object", verify_match)
    with VerifierPool(1, timeout=5.0) as pool:
        results = pool.verify_many([("a match object", "1", "1"), ("math", "\\boxed{1}", "1")])
    assert [verdict.status for verdict, _ in results] == [Status.ERROR, Status.CORRECT]
    assert "got Match" in results[0][0].reason


def test_an_item_that_a_worker_has_no_memory_for_is_an_error_and_costs_nothing_else():
    honest = ("math", "\\boxed{1}", "1")
    with VerifierPool(1, timeout=5.0, memory_mb=64) as pool:
        results = pool.verify_many([honest, ("math", "x" * 90_000_000, "1"), honest, honest])
    assert [verdict.status for verdict, _ in results] == [Status.CORRECT, Status.ERROR, Status.CORRECT, Status.CORRECT]


@pytest.mark.parametrize(
    "options, error",
    [
        ({"alternatives": "23"}, TypeError),
        ({"alternatives": 3}, TypeError),
        ({"precision": "0.5"}, ValueError),
        ({"precision": -1}, ValueError),
        ({"precision": float("nan")}, ValueError),
        ({"precision": [0.1, None]}, ValueError),
        ({"precision": True}, ValueError),
    ],
)
def test_options_of_the_maths_verifiers_are_checked(options, error):
    with pytest.raises(error, match=f"expected {next(iter(options))} as"):
        verify("math", "\\boxed{3}", "1", **options)


@pytest.mark.parametrize("gold", [float("nan"), float("inf"), None, True, ""])
def test_a_gold_that_is_no_answer_is_an_error(gold):
    with pytest.raises(ValueError, match="gold answer"):
        verify("math", "\\boxed{1}", gold)


@pytest.mark.parametrize(
    "text",
    [
        "The answer is 3 or maybe 4",
        "The answer is maybe 3, maybe 4",
        "Answer: 3 or possibly 4",
        "What is the value of $\\frac{9}{3}$?",
        "Is it 3?",
    ],
)
def test_wavering_and_questions_state_nothing(text):
    assert verify("math", text, "3").reward == 0
