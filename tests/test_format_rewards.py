"""Format rewards: templates as ruled on collected cases, apart from answers, and the scores of papers by name only."""

import inspect
import time

import pytest

from setpo_verifiers import TASKS, Status, Verdict, verify
from setpo_verifiers.format import TEMPLATES, partial_score, verify_format


@pytest.mark.parametrize(
    ("template", "completion", "kept"),
    [
        ("think_answer", "<think>a</think><answer>b</answer>", True),
        ("think_answer", " \n<think></think>\n\n<answer> b </answer>\n", True),
        ("think_answer", "<|im_start|>assistant\n<think>a</think><answer>b</answer><|im_end|>\n<|endoftext|>", True),
        ("think_answer", "First: <think>a</think><answer>b</answer>", False),
        ("think_answer", "<think>a</think> so <answer>b</answer>", False),
        ("think_answer", "<think>a</think><answer>b</answer> done", False),
        ("think_answer", "<think>a</think><answer> </answer>", False),
        ("think_answer", "<answer>b</answer><think>a</think>", False),
        ("think_answer", "<think>a<answer>b</answer></think>", False),
        ("think_answer", "<think>a</think><answer>b</answer><answer>b</answer>", False),
        ("think_answer", "<think>a</think></answer><answer>", False),
        ("think", "<think>a</think>b", True),
        ("think", "<think>a</think> ", False),
        ("think", "a</think>b", False),
        ("think", "</think><think>b", False),
        ("boxed", "<think>so</think> \\boxed{\\frac{1}{2}}", True),
        ("boxed", "<think>so \\boxed{1}</think> 1", False),
        ("boxed", "\\boxed{ }", False),
        ("boxed", "\\boxed{1", False),
        ("hash", "So 4.\n#### 4", True),
        ("hash", "#### 4\n####\n5", False),
        ("hash", "4", False),
        *((template, "", False) for template in TEMPLATES),
    ],
)
def test_templates(template, completion, kept):
    verdict = verify_format(completion, template)
    assert (verdict.reward, verdict.status) == ((1.0, Status.CORRECT) if kept else (0.0, Status.WRONG))
    assert verify_format(completion, template, mode="strict") == verdict


@pytest.mark.parametrize("template", TEMPLATES)
def test_long_texts_take_no_time(template):
    start = time.perf_counter()
    for unit in ("\\boxed{", "{}", "#", "<think>", "</think>", "<answer>", "<|", " ", "\\"):
        assert verify_format(unit * (10**6 // len(unit)), template).reward == 0.0
    assert verify_format("\\boxed{" + "{}" * 200_000 + "}", template).reward == 0.0
    assert time.perf_counter() - start < 5


def test_a_prompt_that_opened_the_thinking():
    for text in ("a</think><answer>b</answer>", "<think>a</think><answer>b</answer>"):
        assert verify_format(text, prefilled=True).reward == 1.0
    assert verify_format("a</think><answer>b</answer>").reward == 0.0
    assert verify_format("<think>a</think><think>b</think>c", "think", prefilled=True).reward == 0.0


def test_no_other_verifier_pays_for_format():
    for verifier in set(TASKS.values()) - {verify_format}:
        assert not {"format_score", "format_reward"} & set(inspect.signature(verifier).parameters)
    gold = {"numbers": [1, 2, 3], "target": 6}
    assert verify("countdown", "<think>a</think><answer>1+2</answer>", gold).reward == 0.0


RIGHT, WRONG = Verdict(1.0, Status.CORRECT, "1+2", "1+2", "correct"), Verdict(0.0, Status.WRONG, "1+3", "1+3", "value")
UNREADABLE, NOTHING = Verdict(0.0, Status.WRONG, "?", None, "syntax"), Verdict(0.0, Status.NO_ANSWER, None, None, "no_answer")
LATE = Verdict(0.0, Status.TIMEOUT, None, None, "timeout")


@pytest.mark.parametrize(
    ("scheme", "keeps_format", "scores"),
    [
        ("tinyzero", True, [1.0, 0.1, 0.1, 0.0, 0.0]),
        ("logic_rl", True, [3.0, -0.5, -1.0, -1.0, 0.0]),
        ("logic_rl", False, [-3.0, -3.0, -3.0, -3.0, 0.0]),
    ],
)
def test_scores_of_papers(scheme, keeps_format, scores):
    assert [partial_score(verdict, keeps_format, scheme) for verdict in (RIGHT, WRONG, UNREADABLE, NOTHING, LATE)] == scores


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: verify_format("a", "tags"), ValueError, "expected a template out of think_answer, think, boxed, hash, got 'tags'"),
        (lambda: verify_format("a", ["think"]), ValueError, "expected a template"),
        (lambda: verify_format(b"a"), TypeError, "got bytes"),
        (lambda: verify_format("a", mode="loose"), ValueError, "got 'loose'"),
        (lambda: partial_score(RIGHT, True, "r1"), ValueError, "expected a scheme out of tinyzero, logic_rl, got 'r1'"),
    ],
)
def test_errors_say_what_was_expected(call, error, words):
    with pytest.raises(error, match=words):
        call()
