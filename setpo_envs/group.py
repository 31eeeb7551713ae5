"""The group record: N groups of G completions with their verdicts and credits, and its JSON line.

It is the one record that the environment, the trainer, the evaluator and the rescorer share, and
:func:`verify_groups` is the one place where it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from setpo_verifiers import Status, Verdict, verifier_of, verify

from .completion import is_truncated, n_tokens, stored_completions
from .datasets.problem import Problem

if TYPE_CHECKING:
    from setpo_verifiers import VerifierPool

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
        return np.array([_mean(*group) for group in zip(self.rewards.tolist(), self.valid.tolist())])

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
        if any(counts := [n_tokens(text) for text in self.completions_NG[n]]):
            line["n_tokens"] = counts
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
        completions_NG = [stored_completions(line["completions"], line) for line in lines]
        _checked_shape(problems, completions_NG, [text for group in completions_NG for text in group])
        columns = {name: [line[name] for line in lines] for name in _WRITTEN_FIELDS}
        columns["status"] = [[Status[name.upper()] for name in names_G] for names_G in columns["status"]]
        return _groups(problems, completions_NG, **{name: np.array(column, GROUP_FIELDS[name]) for name, column in columns.items()})


def verify_groups(
    problems: Sequence[Problem],
    completions_NG: Sequence[Sequence[str]],
    *,
    mode: str = "lenient",
    shaper: Shaper | str | Sequence[Any] | None = None,
    rng: np.random.Generator | None = None,
    pool: VerifierPool | None = None,
) -> Groups:
    """Verify G completions of each of N problems and apply ``shaper``: the one implementation of a group's record.

    Args:
        problems: N problems.
        completions_NG: N groups of G completions (``str`` or :class:`Completion`), the same G for all.
        mode: "lenient", or "strict" where an answer counts only in its marked place.
        shaper: A shaper, the name of a registered one with its default options, or a list of either; None leaves credits at zero,
            weights at one and shaped rewards equal to the rewards.
        rng: What a shaper that draws at random draws from; by default ``np.random.default_rng(0)``.
        pool: Worker processes that verify, with a deadline for each completion: one that overruns has status TIMEOUT, one that
            ends its worker ERROR. Without a pool this process verifies, which pays for few or cheap completions.

    Returns:
        The groups. A completion marked as truncated in which no answer is found has status TRUNCATED.

    Raises:
        ValueError: No problem, no completion, groups of different sizes, an unknown task, mode or shaper, or a gold that the
            verifier cannot use.
        TypeError: A completion that is not a ``str``, or an option that the verifier does not have.
    """
    if isinstance(completions_NG, str) or any(isinstance(group, str) for group in completions_NG):
        raise TypeError("expected a list of completions for each problem, got a str: for one completion pass a list of one")
    problems, lists_NG = list(problems), [list(group) for group in completions_NG]
    flat = [text for group in lists_NG for text in group]  # member g of group n is n * G + g
    shape = _checked_shape(problems, lists_NG, flat)
    for problem in problems:  # an unknown task, mode or option and a malformed gold are the caller's errors, not a completion's
        verify(problem.task, "", problem.gold, mode=mode, **problem.options)
    made: Any = shaper
    if isinstance(shaper, (str, list, tuple)):
        from .shapers.base import make_shaper  # shapers know this module, not the other way round

        made = make_shaper(shaper)
    if pool is None:
        verdicts = _verdicts(problems, lists_NG, mode)
    else:
        awaited = _submit(problems, lists_NG, mode, pool)
        made = getattr(made, "before_verdicts", lambda _: made)(lists_NG)
        verdicts = awaited()
    status = [verdict.status for verdict in verdicts]
    if set(map(type, flat)) != {str}:
        cut = map(is_truncated, flat)
        status = [Status.TRUNCATED if flag and code == Status.NO_ANSWER else code for code, flag in zip(status, cut)]
    # few calls of numpy, since on one group each takes longer than what it does
    texts = [[verdict.answer for verdict in verdicts], [verdict.mode_key for verdict in verdicts], [verdict.reason for verdict in verdicts]]
    answers, mode_keys, reasons = np.array(texts, np.object_).reshape(3, *shape)
    groups = _groups(
        problems,
        lists_NG,
        rewards=np.array([verdict.reward for verdict in verdicts], np.float64).reshape(shape),
        status=np.frombuffer(bytearray(status), np.int8).reshape(shape),
        answers=answers,
        mode_keys=mode_keys,
        reasons=reasons,
    )
    if made is not None:
        from .shapers.base import apply_shaper

        apply_shaper(groups, made, np.random.default_rng(0) if rng is None else rng)
    return groups


def _verdicts(problems: list[Problem], completions_NG: list[list[str]], mode: str) -> list[Verdict]:
    """Verdicts of all completions, group by group, in this process.

    A verifier that fails gives ERROR, which is not a wrong answer, and costs no other completion.
    """
    found: list[Verdict] = []
    for problem, group in zip(problems, completions_NG):
        judge, gold = verifier_of(problem.task), problem.gold
        if problem.options:
            judge = partial(judge, **problem.options)
        verdicts: dict[str, Verdict] = {}  # a policy repeats itself: the same text is verified once a group
        for text in group:
            if text not in verdicts:
                try:
                    verdict = judge(text, gold, mode=mode)
                    if not isinstance(verdict, Verdict):
                        raise TypeError(f"expected the verifier of {problem.task!r} to return a Verdict, got {type(verdict).__name__}")
                except Exception as error:
                    verdict = Verdict.failure(f"{type(error).__name__}: {error}")
                verdicts[text] = verdict
            found.append(verdicts[text])
    return found


def _submit(problems: list[Problem], completions_NG: list[list[str]], mode: str, pool: VerifierPool) -> Callable[[], list[Verdict]]:
    """Have the processes of ``pool`` judge all groups as one batch; what is returned waits for what :func:`_verdicts` returns."""
    places: dict[tuple[int, str], int] = {}
    index = [places.setdefault((n, text), len(places)) for n, group in enumerate(completions_NG) for text in group]
    asked = [(problem.task, problem.gold, dict(problem.options)) for problem in problems]
    job = pool.submit((asked[n][0], str(text), asked[n][1], mode, asked[n][2]) for n, text in places)

    def wait() -> list[Verdict]:
        results = job.wait()
        return [results[place][0] for place in index]

    return wait


def _mean(rewards_G: list[float], valid_G: list[bool]) -> float:
    # four calls of numpy on sixteen numbers would take longer than all else that a step does with them
    kept = [reward for reward, valid in zip(rewards_G, valid_G) if valid]
    return sum(kept) / max(len(kept), 1)


def _checked_shape(problems: list[Problem], completions_NG: list[list[str]], flat: list[str]) -> tuple[int, int]:
    """(N, G). Raises ValueError for what is no batch, TypeError for a completion that is no ``str``."""
    if len(problems) != len(completions_NG) or not problems:
        raise ValueError(
            f"expected one group for each of one or more problems, got {len(completions_NG)} groups for {len(problems)} problems"
        )
    sizes = set(map(len, completions_NG))
    if len(sizes) > 1 or 0 in sizes:
        raise ValueError(f"expected groups of one size, at least 1, got sizes {sorted(sizes)}: verify each size in a call of its own")
    [size] = sizes
    for kind in set(map(type, flat)):
        if not issubclass(kind, str):
            n, g = divmod(list(map(type, flat)).index(kind), size)
            raise TypeError(f"expected completions of type str or Completion, got {kind.__name__} for member {g} of group {n}")
    return len(problems), size


def _groups(problems: list[Problem], completions_NG: list[list[str]], **given: Any) -> Groups:
    """Groups from (N, G) arrays by field; what is missing follows from the rest or is what holds without a shaper."""
    shape = given["rewards"].shape
    weights, defined = np.empty(shape), np.empty(shape[0], np.bool_)
    weights.fill(1.0)  # a third of the time of np.ones
    defined.fill(True)
    fields = {
        "valid": given["status"] < Status.TIMEOUT.value,
        "modes": np.array([_numbered(keys_G) for keys_G in given["mode_keys"].tolist()], np.int64),
        "shaped_rewards": given["rewards"].copy(),
        "weights": weights,
        "credits": np.zeros(shape),
        "defined": defined,
        "diversity": np.zeros(shape[0]),
        **given,
    }
    return Groups(problems, completions_NG, **fields)


def _numbered(keys_G: list[str | None]) -> list[int]:
    """Mode keys as integers by first appearance, -1 for None."""
    numbers: dict[str, int] = {}
    return [-1 if key is None else numbers.setdefault(key, len(numbers)) for key in keys_G]


def _problem_from_json(line: Mapping[str, Any]) -> Problem:
    metadata = dict(line["metadata"])
    if "modes" in metadata:
        metadata["modes"] = tuple(metadata["modes"])
    return Problem(**{**{name: line[name] for name in _PROBLEM_FIELDS}, "metadata": metadata, "options": line.get("options", {})})
