"""TRL: the verifiers as one of the ``reward_funcs`` of ``GRPOTrainer`` and its relatives (tried with 1.16.0)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from setpo_verifiers.registry import verifier_of

from .judge import judge


@dataclass(frozen=True)
class VerifierReward:
    """A reward function: 1.0 for a right completion, 0.0 for any other, None where no verdict was reached.

        trainer = GRPOTrainer(model, reward_funcs=VerifierReward("math", gold="answer"), train_dataset=dataset)

    TRL (1.6 or newer) leaves a completion that every reward function answers with None out of its group; beside another function's reward
    it adds None as 0. The reward is logged as ``verify_<task>`` (``verify`` without one), with the share that got no verdict; TRL's table
    of completions has every status and mode key.

    Args:
        task: A name out of ``setpo_verifiers.TASKS``; None for a data set with a column ``task``.
        gold: The column of the data set with the gold answer, in any form that the task's verifier accepts. Several columns make one
            mapping: ``("nums", "target")`` for Countdown-Tasks-3to4, ``("names", "solution")`` for knights-and-knaves.
        mode: "lenient", or "strict" where an answer counts only in its marked place.
        options: Further options of the task's verifier.
        workers: Processes that judge, for each process of the trainer: a completion that overruns or breaks one has no verdict. 0 judges
            in the trainer's own process, without limits (the only way outside POSIX).
        timeout: Seconds that a completion may take.
    """

    task: str | None = None
    gold: str | Sequence[str] = "answer"
    mode: str = "lenient"
    options: Mapping[str, Any] = field(default_factory=dict)
    workers: int = 2
    timeout: float = 5.0

    def __post_init__(self) -> None:
        if self.task:
            verifier_of(self.task)

    @property
    def __name__(self) -> str:  # what TRL logs a reward function under
        return f"verify_{self.task}" if self.task else "verify"

    def __call__(
        self,
        completions: Sequence[str | Sequence[Mapping[str, Any]]],
        *,
        log_extra: Callable[[str, list[Any]], None] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        """Rewards of B completions, texts or lists of chat messages; ``columns`` are lists of B values, as TRL passes them.

        Raises ValueError for a column that the data set lacks, an unknown task, an unknown mode or a malformed gold; TypeError for a
        completion that is neither text nor messages and for an option that the task does not have.
        """
        for name, values in columns.items():
            if name in (self.gold, "task", *self.gold) and isinstance(values, Sequence) and len(values) != len(completions):
                raise ValueError(f"expected a value of column {name!r} for each of {len(completions)} completions, got {len(values)}")
        tasks = [self.task] * len(completions) if self.task else _column("task", columns)
        if isinstance(self.gold, str):
            golds = _column(self.gold, columns)
        else:
            golds = [dict(zip(self.gold, row)) for row in zip(*(_column(name, columns) for name in self.gold))]
        texts = [_text(completion) for completion in completions]
        items = [(task, text, gold, self.mode, dict(self.options)) for task, text, gold in zip(tasks, texts, golds)]
        verdicts = judge(items, workers=self.workers, timeout=self.timeout)
        if log_extra and log_metric:
            log_extra(f"{self.__name__}/status", [verdict.status.name.lower() for verdict in verdicts])
            log_extra(f"{self.__name__}/mode_key", [verdict.mode_key for verdict in verdicts])
            log_metric(f"{self.__name__}/no_verdict", sum(not verdict.valid for verdict in verdicts) / len(verdicts))
        return [verdict.reward if verdict.valid else None for verdict in verdicts]


def _column(name: str, columns: Mapping[str, Any]) -> Sequence[Any]:
    if name not in columns:
        there = [key for key, values in columns.items() if isinstance(values, list) and key not in ("prompts", "completion_ids")]
        raise ValueError(
            f"expected a data set with a column {name!r}, got {', '.join(sorted(there)) or 'none'}; name the task and the gold's column in "
            "VerifierReward(task, gold=...)"
        )
    return columns[name]


def _text(completion: Any) -> str:
    """The text itself, or that of the last message of the assistant: what it says after its last tool call. Blank where there is none."""
    if isinstance(completion, str):
        return completion
    if not isinstance(completion, Sequence) or not all(isinstance(message, Mapping) for message in completion):
        raise TypeError(f"expected a completion as text or as a list of chat messages, got {repr(completion)[:200]}")
    said = [message.get("content") for message in completion if message.get("role") == "assistant"]
    content = (said[-1] if said else None) or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or "" for part in content if part.get("type") == "text")
