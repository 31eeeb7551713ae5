"""What the trainer and the evaluator need from a policy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor


@dataclass
class Samples:
    """G sampled completions of each of N prompts, as tokens. T is the longest completion of the batch.

    completions_NG  N lists of G strings (``setpo_envs.Completion``: they know whether they were cut off, and their length)
    prompt_NP       (N, P) int64, prompts padded on the left
    tokens_NGT      (N, G, T) int64, end token included, padded on the right
    mask_NGT        (N, G, T) float32, 1 on sampled tokens (the end token included), 0 on padding
    log_probs_NGT   (N, G, T) float32, log-probability under the sampling distribution; 0 on padding
    """

    completions_NG: list[list[Any]]
    prompt_NP: Tensor
    tokens_NGT: Tensor
    mask_NGT: Tensor
    log_probs_NGT: Tensor

    def __getitem__(self, rows: Any) -> Samples:
        """The prompts ``rows`` (a slice or an index tensor) with all their completions."""
        indices = torch.arange(len(self.completions_NG))[rows].tolist()
        picked = [self.completions_NG[i] for i in indices]
        return Samples(picked, self.prompt_NP[rows], self.tokens_NGT[rows], self.mask_NGT[rows], self.log_probs_NGT[rows])


class Policy(Protocol):
    """A language model that samples groups and scores them under its current weights."""

    def generate(self, prompts: Sequence[str], n: int, *, temperature: float, generator: torch.Generator) -> Samples:
        """Sample ``n`` completions of every prompt; the only randomness is ``generator``."""
        ...

    def log_probs(self, samples: Samples, *, temperature: float) -> tuple[Tensor, Tensor]:
        """(log-probabilities, entropies in nats), each (N, G, T), differentiable, under the current weights."""
        ...

    def parameters(self) -> Iterable[torch.nn.Parameter]: ...

    def state_dict(self) -> dict[str, Any]: ...
