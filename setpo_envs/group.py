"""The group record: N groups of G completions with their verdicts and credits, and its JSON line.

It is the one record that the environment, the trainer, the evaluator and the rescorer share, and
:func:`verify_groups` is the one place where it is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from setpo_verifiers import Status, Verdict, verify

from .datasets.problem import Problem

if TYPE_CHECKING:
    from .shapers.base import Shaper

# info["group"]: (G,) arrays of these dtypes, except for the last two, which are one Python value a group
GROUP_FIELDS: dict[str, Any] = {
    "rewards": np.float64,  # verified reward
    "status": np.int8,  # setpo_verifiers.Status
    "valid": np.bool_,  # False where no verdict was reached (TIMEOUT, ERROR)
    "answers": np.object_,  # extracted answer (str) or None
    "mode_keys": np.object_,  # canonical key of the answer (str), None where there is no well-formed answer
    "modes": np.int64,  # the same as integers local to the group, by first appearance; -1 for None
    "reasons": np.object_,  # why the verdict is what it is (str)
    "shaped_rewards": np.float64,  # r': rewards after reward-stage shapers
    "weights": np.float64,  # w: factor on the base advantage
    "credits": np.float64,  # c: what a shaper adds, unweighted
    "defined": bool,  # False where the shaper is undefined on this group; credits are then zeros
    "diversity": float,  # set diversity D of the group under the active shaper's kernel
}
_MEMBER_FIELDS = tuple(name for name in GROUP_FIELDS if name not in ("defined", "diversity"))
_WRITTEN_FIELDS = tuple(name for name in GROUP_FIELDS if name not in ("valid", "modes"))  # the two follow from the others
_PROBLEM_FIELDS = ("task", "problem_id", "prompt", "gold", "metadata")
_HAS_VERDICT = np.array([status not in (Status.TIMEOUT, Status.ERROR) for status in Status])


class Completion(str):
    """A completion that knows whether it was cut off and, optionally, its embedding ((d,) float array).

    It is a ``str``: wherever a completion is expected a plain ``str`` will do, and counts as complete, without embedding.
    """

    __slots__ = ("truncated", "embedding")
    truncated: bool
    embedding: np.ndarray | None

    def __new__(cls, text: str, truncated: bool = False, embedding: np.ndarray | None = None) -> Completion:
        self = super().__new__(cls, text)
        self.truncated = truncated
        self.embedding = embedding
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:  # pickle and copy build the str with it
        return str(self), self.truncated, self.embedding


@dataclass
class Groups:
    """N groups of G completions each; arrays are (N, G) with the dtypes of ``GROUP_FIELDS`` unless a shape is given."""

    problems: list[Problem]  # N
    completions_NG: list[list[str]]
    rewards: np.ndarray
    status: np.ndarray
    valid: np.ndarray
    answers: np.ndarray
    mode_keys: np.ndarray
    modes: np.ndarray
    reasons: np.ndarray
    shaped_rewards: np.ndarray
    weights: np.ndarray
    credits: np.ndarray
    defined: np.ndarray  # (N,) bool
    diversity: np.ndarray  # (N,) float64

    @property
    def n_groups(self) -> int:
        return len(self.problems)

    @property
    def group_size(self) -> int:
        return self.rewards.shape[1]

    @property
    def correct(self) -> np.ndarray:
        """(N, G) bool: the verifier accepted the answer."""
        return self.status == Status.CORRECT

    @property
    def well_formed(self) -> np.ndarray:
        """(N, G) bool: the answer, right or wrong, has a mode."""
        return self.modes >= 0

    @property
    def mean_rewards(self) -> np.ndarray:
        """(N,) float64: mean verified reward of the members that have a verdict (0 where none has one)."""
        return (self.rewards * self.valid).sum(axis=1) / np.maximum(self.valid.sum(axis=1), 1)

    def info(self, n: int) -> dict[str, Any]:
        """Group ``n`` as ``info["group"]``: fresh (G,) arrays, ``defined`` and ``diversity`` as Python values."""
        info: dict[str, Any] = {name: getattr(self, name)[n].copy() for name in _MEMBER_FIELDS}
        info["defined"] = bool(self.defined[n])
        info["diversity"] = float(self.diversity[n])
        return info

    def to_json(self, n: int, **extra: Any) -> dict[str, Any]:
        """Group ``n`` as one JSONL line; ``extra`` (such as ``index`` and ``seed``) is what the caller knows besides."""
        problem = self.problems[n]
        line = {
            "task": problem.task,
            "problem_id": problem.problem_id,
            **extra,
            "prompt": problem.prompt,
            "gold": problem.gold,
            "metadata": {key: list(value) if isinstance(value, tuple) else value for key, value in problem.metadata.items()},
            "options": dict(problem.options),
            "completions": [str(text) for text in self.completions_NG[n]],
            "truncated": [is_truncated(text) for text in self.completions_NG[n]],
        }
        line.update((name, getattr(self, name)[n].tolist()) for name in _WRITTEN_FIELDS)
        line["status"] = [Status(code).name.lower() for code in line["status"]]
        return line

    @classmethod
    def from_json(cls, lines: Iterable[Mapping[str, Any]]) -> Groups:
        """Groups from lines written by :meth:`to_json`, without verifying again; all need the same group size.

        Raises ValueError for a line without one of the fields, or for groups of different sizes.
        """
        lines = list(lines)
        for number, line in enumerate(lines, start=1):
            missing = [name for name in (*_PROBLEM_FIELDS, "completions", "truncated", *_WRITTEN_FIELDS) if name not in line]
            if missing:
                raise ValueError(f"group {number}: expected the fields of Groups.to_json, got none called {', '.join(missing)}")
        problems = [_problem_from_json(line) for line in lines]
        completions_NG = [[_completion(text, cut) for text, cut in zip(line["completions"], line["truncated"])] for line in lines]
        _check_shape(problems, completions_NG)
        columns = {name: [line[name] for line in lines] for name in _WRITTEN_FIELDS}
        columns["status"] = [[Status[name.upper()] for name in names_G] for names_G in columns["status"]]
        return _from_columns(problems, completions_NG, columns)


def verify_groups(
    problems: Sequence[Problem],
    completions_NG: Sequence[Sequence[str]],
    *,
    mode: str = "lenient",
    shaper: Shaper | str | None = None,
    rng: np.random.Generator | None = None,
) -> Groups:
    """Verify G completions of each of N problems and apply ``shaper``: the one implementation of a group's record.

    Args:
        problems: N problems.
        completions_NG: N groups of G completions (``str`` or :class:`Completion`), the same G for all.
        mode: "lenient", or "strict" where an answer counts only in its marked place.
        shaper: A shaper, or the name of a registered one with its default options; None leaves credits at zero, weights at
            one and shaped rewards equal to the rewards.
        rng: What a shaper that draws at random draws from; by default ``np.random.default_rng(0)``.

    Returns:
        The groups. A completion marked as truncated in which no answer is found has status TRUNCATED.

    Raises:
        ValueError: No problem, no completion, groups of different sizes, or an unknown task, mode or shaper.
        TypeError: A completion that is not a ``str``.
    """
    problems = list(problems)
    lists_NG = [list(group) for group in completions_NG]
    _check_shape(problems, lists_NG)
    verdicts_NG = []
    for problem, completions_G in zip(problems, lists_NG):
        verdicts: dict[str, Verdict] = {}  # a policy repeats itself: the same text is verified once a group
        for text in completions_G:
            if text not in verdicts:
                verdicts[text] = _verdict(problem, text, mode)
        verdicts_NG.append([verdicts[text] for text in completions_G])
    columns: dict[str, list[Any]] = {
        "rewards": [[verdict.reward for verdict in verdicts_G] for verdicts_G in verdicts_NG],
        "status": [[_status(verdict, text) for verdict, text in zip(*pair)] for pair in zip(verdicts_NG, lists_NG)],
        "answers": [[verdict.answer for verdict in verdicts_G] for verdicts_G in verdicts_NG],
        "mode_keys": [[verdict.mode_key for verdict in verdicts_G] for verdicts_G in verdicts_NG],
        "reasons": [[verdict.reason for verdict in verdicts_G] for verdicts_G in verdicts_NG],
    }
    groups = _from_columns(problems, lists_NG, columns)
    if shaper is not None:
        from .shapers.base import apply_shaper, make_shaper  # shapers know this module, not the other way round

        shaper = make_shaper(shaper) if isinstance(shaper, str) else shaper
        apply_shaper(groups, shaper, np.random.default_rng(0) if rng is None else rng)
    return groups


def _verdict(problem: Problem, text: str, mode: str) -> Verdict:
    """The verifier's verdict; a verifier that fails gives ERROR, which is not a wrong answer, and costs no other completion."""
    try:
        return verify(problem.task, text, problem.gold, mode=mode, **problem.options)
    except (ValueError, TypeError):
        raise  # the caller's: an unknown task or mode, a malformed gold
    except Exception as error:
        return Verdict(0.0, Status.ERROR, None, None, f"{type(error).__name__}: {error}"[:200])


def is_truncated(text: str) -> bool:
    """Whether the agent marked the completion as cut off; a plain ``str`` never is."""
    return isinstance(text, Completion) and text.truncated


def _check_shape(problems: list[Problem], completions_NG: list[list[str]]) -> None:
    if len(problems) != len(completions_NG) or not problems:
        raise ValueError(
            f"expected one group for each of one or more problems, got {len(completions_NG)} groups for {len(problems)} problems"
        )
    sizes = {len(group) for group in completions_NG}
    if len(sizes) > 1 or 0 in sizes:
        raise ValueError(f"expected groups of one size, at least 1, got sizes {sorted(sizes)}: verify each size in a call of its own")
    for n, group in enumerate(completions_NG):
        for g, text in enumerate(group):
            if not isinstance(text, str):
                raise TypeError(f"expected completions of type str or Completion, got {type(text).__name__} for member {g} of group {n}")


def _from_columns(problems: list[Problem], completions_NG: list[list[str]], columns: Mapping[str, list[Any]]) -> Groups:
    """Groups from nested lists by field; what is missing follows from the rest or is what holds without a shaper."""
    arrays = {name: np.array(column, GROUP_FIELDS[name]) for name, column in columns.items()}
    shape = n_groups, _ = arrays["rewards"].shape
    neutral = {
        "shaped_rewards": arrays["rewards"].copy(),
        "weights": np.ones(shape),
        "credits": np.zeros(shape),
        "defined": np.ones(n_groups, np.bool_),
        "diversity": np.zeros(n_groups),
    }
    modes = np.array([_numbered(keys_G) for keys_G in columns["mode_keys"]], np.int64)
    return Groups(problems, completions_NG, **{**neutral, **arrays}, valid=_HAS_VERDICT[arrays["status"]], modes=modes)


def _numbered(keys_G: list[str | None]) -> list[int]:
    """Mode keys as integers by first appearance, -1 for None."""
    numbers: dict[str, int] = {}
    return [-1 if key is None else numbers.setdefault(key, len(numbers)) for key in keys_G]


def _status(verdict: Verdict, text: str) -> Status:
    return Status.TRUNCATED if is_truncated(text) and verdict.status == Status.NO_ANSWER else verdict.status


def _problem_from_json(line: Mapping[str, Any]) -> Problem:
    metadata = dict(line["metadata"])
    if "modes" in metadata:
        metadata["modes"] = tuple(metadata["modes"])
    return Problem(**{**{name: line[name] for name in _PROBLEM_FIELDS}, "metadata": metadata, "options": line.get("options", {})})


def _completion(text: str, truncated: bool) -> str:
    return Completion(text, truncated=True) if truncated else text
