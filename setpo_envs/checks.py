"""Checks for what others write: run them on your own data set before you train on it."""

from __future__ import annotations

from setpo_verifiers import Status, verify

from .datasets.problem import Dataset, Problem


def check_dataset(dataset: Dataset, limit: int = 1000) -> None:
    """Raise ValueError, naming the index, if ``dataset`` breaks what environments rely on.

    The first ``limit`` items are problems; the same index gives the same problem; the verifier of the task accepts the gold
    and does not reward an empty completion; every mode in the metadata, given as the completion, is correct.
    """
    if len(dataset) < 1:
        raise ValueError("expected at least one problem, got an empty data set")
    for index in range(min(len(dataset), limit)):
        problem = dataset[index]
        if not isinstance(problem, Problem):
            raise ValueError(f"index {index}: expected a Problem, got {type(problem).__name__}")
        if dataset[index] != problem:
            raise ValueError(f"index {index}: expected the same problem each time, got two different ones")
        if not problem.prompt:
            raise ValueError(f"index {index}: expected a prompt, got an empty one")
        try:
            empty = verify(problem.task, "", problem.gold)
        except ValueError as error:
            raise ValueError(f"index {index}: expected a gold that the verifier of {problem.task!r} accepts ({error})") from None
        if empty.reward != 0:
            raise ValueError(f"index {index}: expected no reward for an empty completion, got {empty.reward}")
        modes = problem.metadata.get("modes", ())
        if "n_modes" in problem.metadata and problem.metadata["n_modes"] != len(modes):
            raise ValueError(f"index {index}: expected n_modes={len(modes)} as there are modes, got {problem.metadata['n_modes']}")
        for key in modes:
            verdict = verify(problem.task, key, problem.gold)
            if verdict.status != Status.CORRECT or verdict.mode_key != key:
                raise ValueError(f"index {index}: expected mode {key!r} to be correct and its own key, got {verdict}")
