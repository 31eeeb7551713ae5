"""Every registered verifier keeps the contract, and check_verifier notices one that does not."""

import re

import pytest

from setpo_verifiers import TASKS, Status, Verdict
from setpo_verifiers.check import check_verifier

MATHS = {"gold": "\\frac{1}{2}", "right": ["\\frac{1}{2}", "1/2", "0.5"], "wrong": ["1/3", "2", "-0.5"], "prompt": "What is half of $1$?"}
CONTRACTS = {
    "countdown": {
        "gold": {"numbers": [1, 2, 3], "target": 7},
        "right": ["1+2*3", "3*2+1 = 7"],
        "wrong": ["1+2+3", "7", "6+1"],
        "prompt": "Using the numbers 1, 2, 3, make 7. Answer in <answer> tags, for example <answer>(1+2)*3</answer>.",
    },
    "graph_coloring": {
        "gold": {"n": 5, "edges": [[0, 1], [0, 2], [1, 2], [1, 4], [3, 4]], "colors": 3},
        "right": ["01202", "1 2 3 1 3", "[0, 2, 1, 2, 0]", "ABCAC"],
        "wrong": ["01201", "0120", "012023", "01232", "red, green, blue, red, blue", "00000"],
        "prompt": "A graph has the edges 0-1, 0-2, 1-2, 1-4, 3-4. Give 5 vertices 3 colours, for example <answer>01</answer> for 2.",
    },
    "knights_and_knaves": {
        "gold": {"roles": {"Ava": "knight", "Ben": "knave"}, "role_names": ["knight", "knave"]},
        "right": ["Ava is a knight, Ben is a knave"],
        "wrong": ["Ava is a knave, Ben is a knave", "Ava is a knight"],
        "prompt": 'Ava says: "Ben is a knave". Who is what? Answer like: Ava is a knight/knave, Ben is a knight/knave.',
    },
    "math": {**MATHS, "symmetric": True},
    "gsm8k": {"gold": "72", "right": ["72", "72.0"], "wrong": ["71", "-72"], "prompt": "How many clips did Ann sell?"},
}
NOT_ANSWERS = {"format"}  # pays for tags, which hostile text has


def canonical(name):
    return next(other for other in (*CONTRACTS, *NOT_ANSWERS) if other in TASKS and TASKS[other] is TASKS[name])


@pytest.mark.parametrize("name", sorted(TASKS))
def test_registered_verifiers_keep_the_contract(name):
    if name.startswith(("odd", "slow")) or canonical(name) in NOT_ANSWERS:
        return
    if name != canonical(name):
        assert TASKS[name] is TASKS[canonical(name)]  # an alias: checked under its first name
        return
    check_verifier(name, **CONTRACTS[name])


def verdict(right):
    return Verdict(float(right), Status(int(right)), None, None, "correct" if right else "wrong")


def read(completion):
    if not isinstance(completion, str):
        raise TypeError("expected a str")
    if "<think>" in completion or completion.count("<answer>") != 1 or not completion.endswith("</answer>"):
        return None
    return completion.partition("<answer>")[2][: -len("</answer>")]


def good(completion, gold, *, mode):
    return verdict(read(completion) == gold)


def raises(completion, gold, *, mode):
    return verdict(int(read(completion) or 0) == int(gold))


def finds_anywhere(completion, gold, *, mode):
    read(completion)
    return verdict(gold in completion)


def evaluates(completion, gold, *, mode):
    try:
        return verdict(str(eval(read(completion) or "")) == gold)
    except Exception:
        return verdict(False)


def pays_a_little(completion, gold, *, mode):
    found = read(completion)
    return verdict(True) if found == gold else Verdict(0.1 if found else 0.0, Status.WRONG, None, None, "format")


def takes_anything(completion, gold, *, mode):
    return verdict(gold in str(completion) and read(str(completion)) == gold or isinstance(completion, dict))


def forgets(completion, gold, *, mode, calls=[0]):  # noqa: B006
    calls[0] += 1
    return verdict(read(completion) == gold and calls[0] % 2)


def test_a_verifier_of_ones_own():
    check_verifier(good, gold="42", right=["42"], wrong=["43"], symmetric=True)


@pytest.mark.parametrize(
    ("verifier", "words"),
    [
        (raises, "raised ValueError"),
        (finds_anywhere, "the answer only in the thinking, lenient: .*expected reward 0.0"),
        (evaluates, "the text was run as code"),
        (pays_a_little, "expected reward 1.0 with CORRECT and 0.0 with every other status, got 0.1"),
        (takes_anything, "a completion of type dict earned 1.0"),
        (forgets, "the first time, .* the second"),
        (lambda completion, gold, mode: verdict(False), "a right answer, lenient: .*expected reward 1.0"),
        (lambda completion, gold, mode: 1.0, "expected a Verdict, got float"),
    ],
)
def test_broken_promises_are_named(verifier, words):
    with pytest.raises(AssertionError, match=re.compile(words)):
        check_verifier(verifier, gold="42", right=["42"], wrong=["43"])
