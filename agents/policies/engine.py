"""What sampling engines return, put into the arrays that the trainer and the evaluator read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from setpo_envs import Completion

from .base import Samples, Sampling


@dataclass(frozen=True)
class Drawn:
    """One completion as the engine reports it; tokens and log-probabilities (nats) are None where it reports none."""

    text: str
    finish_reason: str
    """ "length" where the limit of tokens cut the completion off, "stop" where it ended by itself; other words are the engine's own."""
    token_ids: Sequence[int] | None = None
    log_probs: Sequence[float] | None = None

    def completion(self) -> Completion:
        """The text, flagged as truncated where the engine says so; nothing is concluded from the text."""
        n_tokens = None if self.token_ids is None else len(self.token_ids)
        return Completion(self.text, truncated=self.finish_reason == "length", n_tokens=n_tokens)


@dataclass
class EngineSamples(Samples):
    """Samples with what only an engine knows of them.

    finish_reasons_NG  N lists of G finish reasons
    weight_version     how often the engine's weights had been updated when it sampled, for measuring staleness
    """

    finish_reasons_NG: list[list[str]] = field(default_factory=list)
    weight_version: int = 0

    def __getitem__(self, rows: Any) -> EngineSamples:
        fields: dict[str, Any] = vars(super().__getitem__(rows))
        return EngineSamples(**fields, finish_reasons_NG=_picked(self.finish_reasons_NG, rows), weight_version=self.weight_version)


class TextSamples(Samples):
    """Completions without the tokens and log-probabilities that training needs: for evaluation only.

    Asking for an array raises AttributeError that says why there is none.
    """

    def __init__(self, completions_NG: list[list[Any]], finish_reasons_NG: list[list[str]], reason: str) -> None:
        self.completions_NG, self.finish_reasons_NG, self.reason = completions_NG, finish_reasons_NG, reason

    def __getattr__(self, name: str) -> Any:
        if name in Samples.__dataclass_fields__:
            raise AttributeError(f"there is no {name}, so these completions are for evaluation and not for training: {self.reason}")
        raise AttributeError(name)

    def __getitem__(self, rows: Any) -> TextSamples:
        return TextSamples(_picked(self.completions_NG, rows), _picked(self.finish_reasons_NG, rows), self.reason)

    def __repr__(self) -> str:
        return f"TextSamples({len(self.completions_NG)} groups, reason={self.reason!r})"


def _picked(groups: list[list[Any]], rows: Any) -> list[list[Any]]:
    return [groups[i] for i in torch.arange(len(groups))[rows].tolist()]


def text_samples(groups: Sequence[Sequence[Drawn]], reason: str) -> TextSamples:
    """Completions for evaluation only; ``reason`` is what a trainer that asks for tokens is told."""
    return TextSamples(
        [[d.completion() for d in group] for group in groups], [[d.finish_reason for d in group] for group in groups], reason
    )


def engine_samples(prompts: Sequence[Sequence[int]], groups: Sequence[Sequence[Drawn]], weight_version: int) -> EngineSamples:
    """Token ids of N prompts and N groups of G completions, all with tokens and log-probabilities, as padded arrays."""
    prompt_NP = _padded(prompts, torch.int64, left=True)
    drawn = [d for group in groups for d in group]
    tokens = _padded([d.token_ids or () for d in drawn], torch.int64)
    mask = _padded([[1.0] * len(d.token_ids or ()) for d in drawn], torch.float32)
    log_probs = _padded([d.log_probs or () for d in drawn], torch.float32)
    shape = len(groups), len(groups[0]) if groups else 0, -1 if drawn else 0
    return EngineSamples(
        completions_NG=[[d.completion() for d in group] for group in groups],
        prompt_NP=prompt_NP,
        tokens_NGT=tokens.view(shape),
        mask_NGT=mask.view(shape),
        log_probs_NGT=log_probs.view(shape),
        prompt_mask_NP=_padded([[True] * len(prompt) for prompt in prompts], torch.bool, left=True),
        finish_reasons_NG=[[d.finish_reason for d in group] for group in groups],
        weight_version=weight_version,
    )


def alters_distribution(sampling: Sampling) -> bool:
    """Whether tokens are drawn from something else than softmax(logits)."""
    return sampling.temperature != 1.0 or sampling.top_p < 1.0 or sampling.top_k > 0


def seeds_of(generator: torch.Generator, n: int) -> list[int]:
    """``n`` seeds for requests, of 31 bits with room for a group above each: some servers keep no more."""
    return torch.randint(2**31 - 2**20, (n,), generator=generator).tolist()


def _padded(rows: Sequence[Sequence[Any]], dtype: torch.dtype, left: bool = False) -> Tensor:
    """(B, longest) with zeros where a row has ended, or has not begun."""
    width = max(map(len, rows), default=0)
    empty = [0] * width
    padded = [empty[len(row) :] + list(row) if left else list(row) + empty[len(row) :] for row in rows]
    return torch.tensor(padded, dtype=dtype).view(len(rows), width)
