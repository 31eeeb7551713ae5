"""Groups on which :func:`~setpo_envs.shapers.contract.check_shaper` tries a shaper: every kind that a training run meets."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np

from setpo_verifiers import Status

from ..completion import Completion
from ..datasets.problem import Problem
from ..group import Groups

Member = tuple[str, str | None, Status]  # text, mode key, status: what a shaper may tell completions apart by

_GOLD = {"numbers": [1, 2, 3], "target": 9}
_N_MODES = {"right_and_wrong": 3}  # one problem knows how many solutions it has


def member(key: str, status: Status = Status.CORRECT, how: str = "Add") -> Member:
    """A completion that declares ``key``, with a formula in it."""
    return f"{how} what is given: ${key} = 9$ holds, so the answer is\n<answer>{key}</answer>", key, status


def sample_rows(size: int) -> dict[str, list[Member]]:
    """Groups of ``size`` members by what they are."""
    wrong, none = Status.WRONG, Status.NO_ANSWER
    twin = member("(1+2)*3")
    rows: dict[str, list[Member]] = {
        "right_and_wrong": [twin, member("3*(1+2)"), member("1+2", wrong), twin, ("no idea", None, none), ("who knows, 9?", None, none)],
        "identical": [twin],
        "all_right": [member("+".join(["1"] * (i + 1)), how=f"Sum up {i} times") for i in range(size)],
        "all_wrong": [member("1+2", wrong), member("1*2", wrong, "Take"), member("1+2", wrong), member("2-1", wrong)],
        "no_answer": [("", None, none), ("I see", None, none), ("", None, none)],
        "without_verdicts": [twin, ("(((1+2)*3", None, Status.TIMEOUT), member("1+2", wrong), ("9^9", None, Status.ERROR), member("3+6")],
        "none_with_verdict": [("9^9^9", None, Status.TIMEOUT), ("9^", None, Status.ERROR)],
    }
    return {name: [row[i % len(row)] for i in range(size)] for name, row in rows.items()}


def odd_rows(size: int) -> dict[str, list[Member]]:
    """Groups with empty texts, and texts of a million characters, of one word, and of what is no text."""
    none = Status.NO_ANSWER
    odd: list[Member] = [
        ("", None, none),
        ("1+2 " * 250_000, None, Status.TRUNCATED),
        ("9" * 1_000_000, "9", Status.WRONG),
        (" \n\t", None, none),
        ("\ud800\0\x1b[2J\u202e $", None, Status.ERROR),
        member("(1+2)*3"),
    ]
    return {"odd_texts": [odd[i % len(odd)] for i in range(size)], "empty_texts": [odd[0]] * size}


def groups_of(rows: Sequence[Sequence[Member]], names: Sequence[str] = ()) -> Groups:
    """The groups as they would have been verified, of one size; ``names`` say which problem each answers."""
    shape = len(rows), len(rows[0])
    status = np.array([[status for _, _, status in row] for row in rows], np.int8)
    keys = np.empty(shape, np.object_)
    modes = np.empty(shape, np.int64)
    for n, row in enumerate(rows):
        numbers: dict[str, int] = {}
        keys[n] = [key for _, key, _ in row]
        modes[n] = [-1 if key is None else numbers.setdefault(key, len(numbers)) for _, key, _ in row]
    rewards = (status == Status.CORRECT).astype(np.float64)
    return Groups(
        problems=[_problem(names[n] if names else str(n)) for n in range(shape[0])],
        completions_NG=[[completion(text, status == Status.TRUNCATED) for text, _, status in row] for row in rows],
        rewards=rewards,
        status=status,
        valid=status < Status.TIMEOUT.value,
        answers=keys.copy(),
        mode_keys=keys,
        modes=modes,
        reasons=np.full(shape, "", np.object_),
        shaped_rewards=rewards.copy(),
        weights=np.ones(shape),
        credits=np.zeros(shape),
        defined=np.ones(shape[0], np.bool_),
        diversity=np.zeros(shape[0]),
    )


def completion(text: str, truncated: bool = False) -> Completion:
    """With all that an agent may know of it: a number of tokens, and a vector that is a function of the text."""
    embedding = np.random.default_rng(crc32(text.encode("utf-8", "surrogatepass"))).normal(size=8)
    return Completion(text, truncated, embedding, n_tokens=len(text) // 4)


def _problem(name: str) -> Problem:
    metadata = {"n_modes": _N_MODES[name]} if name in _N_MODES else {}
    return Problem(f"check/{name}", "countdown", "Make 9 of 1, 2 and 3.", _GOLD, metadata)
