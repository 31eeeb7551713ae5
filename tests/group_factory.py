"""Groups for tests of shapers and embedders, without a verifier."""

import numpy as np

from setpo_envs.completion import Completion
from setpo_envs.datasets.problem import Problem
from setpo_envs.group import Groups
from setpo_verifiers import Status


def make_groups(completions_NG, mode_keys_NG=None, correct_NG=None, status_NG=None):
    """Groups with these texts. Without mode keys every text is its own; by default a completion with a key is correct."""
    shape = len(completions_NG), len(completions_NG[0])
    keys = np.empty(shape, object)
    for n, row in enumerate(completions_NG if mode_keys_NG is None else mode_keys_NG):
        keys[n] = [None if key is None else str(key) for key in row]
    correct = keys != None if correct_NG is None else np.array(correct_NG, bool)  # noqa: E711 (elementwise)
    status = np.where(correct, Status.CORRECT, np.where(keys == None, Status.NO_ANSWER, Status.WRONG))  # noqa: E711
    status = (status if status_NG is None else np.array(status_NG)).astype(np.int8)
    modes = np.empty(shape, np.int64)
    for n, row in enumerate(keys.tolist()):
        numbers = {}
        modes[n] = [-1 if key is None else numbers.setdefault(key, len(numbers)) for key in row]
    rewards = (status == Status.CORRECT).astype(np.float64)
    return Groups(
        problems=[Problem(f"p{n}", "countdown", "12=3>", {"numbers": [1, 2], "target": 3}) for n in range(shape[0])],
        completions_NG=[[counted(text) for text in row] for row in completions_NG],
        rewards=rewards,
        status=status,
        valid=~np.isin(status, (Status.TIMEOUT, Status.ERROR)),
        answers=keys.copy(),
        mode_keys=keys,
        modes=modes,
        reasons=np.full(shape, "", object),
        shaped_rewards=rewards.copy(),
        weights=np.ones(shape),
        credits=np.zeros(shape),
        defined=np.ones(shape[0], bool),
        diversity=np.zeros(shape[0]),
    )


def counted(text):
    """With a number of tokens, which a sampled completion has."""
    return text if isinstance(text, Completion) else Completion(text, n_tokens=len(text))
