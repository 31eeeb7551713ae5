"""What the trainer and the evaluator need from a policy, and what either may use of an engine that only samples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn: softmax(logits / temperature), cut to the top_k likeliest and then to the nucleus of mass top_p.

    The sampling distribution is what is left after all three, renormalised. ``top_k=1`` is greedy decoding.

    Raises:
        ValueError: a field outside its range.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    """Mass of the nucleus, in (0, 1]; 1 keeps every token (Holtzman et al. 2020, arXiv:1904.09751)."""
    top_k: int = 0
    """How many of the likeliest tokens are kept; 0 keeps every token."""
    max_new_tokens: int | None = None
    """Most tokens of a completion, the end token included; None takes the policy's own limit."""
    stop: tuple[str, ...] = ()
    """A completion ends with the first of these texts that it produces, and its text is cut before it."""

    def __post_init__(self) -> None:
        if not _is_number(self.temperature) or not 0 < self.temperature < math.inf:
            raise ValueError(f"expected a finite temperature above 0, got {self.temperature!r}; for greedy decoding use top_k=1")
        if not _is_number(self.top_p) or not 0 < self.top_p <= 1:
            raise ValueError(f"expected top_p in (0, 1], where 1 keeps every token, got {self.top_p!r}")
        if not _is_integer(self.top_k) or self.top_k < 0:
            raise ValueError(f"expected top_k as an integer of at least 0, where 0 keeps every token, got {self.top_k!r}")
        if self.max_new_tokens is not None and (not _is_integer(self.max_new_tokens) or self.max_new_tokens < 1):
            raise ValueError(f"expected max_new_tokens as an integer of at least 1, or None, got {self.max_new_tokens!r}")
        if not isinstance(self.stop, tuple) or not all(isinstance(text, str) and text for text in self.stop):
            raise ValueError(f"expected stop as a tuple of texts that are not empty, got {self.stop!r}")


@dataclass
class Samples:
    """G sampled completions of each of N prompts, as tokens. T is the longest completion of the batch.

    completions_NG  N lists of G strings (``setpo_envs.Completion``: they know whether they were cut off, and their length)
    prompt_NP       (N, P) int64, prompts padded on the left
    tokens_NGT      (N, G, T) int64, end token included, padded on the right
    mask_NGT        (N, G, T) float32, 1 on sampled tokens (the end token included), 0 on padding
    log_probs_NGT   (N, G, T) float32, log-probability under the sampling distribution; 0 on padding
    prompt_mask_NP  (N, P) bool, False on the prompts' padding; None where every position counts
    """

    completions_NG: list[list[Any]]
    prompt_NP: Tensor
    tokens_NGT: Tensor
    mask_NGT: Tensor
    log_probs_NGT: Tensor
    prompt_mask_NP: Tensor | None = None

    def __getitem__(self, rows: Any) -> Samples:
        """The prompts ``rows`` (a slice or an index tensor) with all their completions."""
        indices = torch.arange(len(self.completions_NG))[rows].tolist()
        picked = [self.completions_NG[i] for i in indices]
        prompt_mask_NP = None if self.prompt_mask_NP is None else self.prompt_mask_NP[rows]
        return Samples(picked, self.prompt_NP[rows], self.tokens_NGT[rows], self.mask_NGT[rows], self.log_probs_NGT[rows], prompt_mask_NP)


class Generates(Protocol):
    """A language model that samples groups of completions."""

    def generate(self, prompts: Sequence[str], n: int, sampling: Sampling, generator: torch.Generator) -> Samples:
        """Sample ``n`` completions of every prompt; the only randomness is ``generator``.

        Raises:
            ValueError: a prompt that does not fit the model, or a field of ``sampling`` that the policy does not support.
        """
        ...


class Sampler(Generates, Protocol):
    """An engine that samples but does not train: it is given the weights of the policy that does."""

    def update_weights(self, state: Mapping[str, Tensor]) -> None:
        """Sample from now on with these weights, named and shaped as in the policy's ``state_dict()``."""
        ...


class Policy(Generates, Protocol):
    """A language model that samples groups and scores them under its current weights."""

    def log_probs(self, samples: Samples, *, temperature: float) -> tuple[Tensor, Tensor]:
        """(log-probabilities, entropies in nats), each (N, G, T), differentiable, under the current weights.

        They are of softmax(logits / temperature); those of sampling with top_k or top_p are not computed again.
        """
        ...

    def parameters(self) -> Iterable[torch.nn.Parameter]: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> Any: ...


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
