"""Scores of a minibatch, and their gradient, from parts that fit in memory, on one or more processes.

An objective is a function of the minibatch's log-probabilities and entropies, (N, G, T) each. It is computed once, on all of them, and
its gradient with respect to them is then carried to the weights part by part, each part being scored once more (gradient caching:
Gao et al. 2021, arXiv 2101.06983). So every denominator, clip and covariance is that of the whole minibatch whatever the objective is,
and the gradient is that of one big batch. A minibatch of a single part is scored once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .distributed import World
from .policies.base import Policy, Samples

Scores = tuple[Tensor, Tensor]
Part = tuple[slice, slice]


def micro_batches(samples: Samples, tokens: int | None) -> list[Part]:
    """(rows, members) of parts that hold at most ``tokens`` tokens, prompts once a group: whole groups, or some members of one.

    A single completion with its prompt may exceed ``tokens``. Nothing is padding for this count.
    """
    N, G = samples.tokens_NGT.shape[:2]
    if tokens is None:
        return [(slice(0, N), slice(0, G))] if N else []
    lengths_NG = samples.mask_NGT.sum(-1).long()
    P = samples.prompt_NP.shape[1]
    prompts = [P] * N if samples.prompt_mask_NP is None else samples.prompt_mask_NP.sum(-1).tolist()
    costs = [prompt + total for prompt, total in zip(prompts, lengths_NG.sum(-1).tolist())]
    parts = []
    for rows in _runs(costs, tokens):
        if rows.stop - rows.start == 1 and costs[rows.start] > tokens:
            members = _runs(lengths_NG[rows.start].tolist(), tokens - prompts[rows.start])
            parts += [(rows, each) for each in members]
        else:
            parts.append((rows, slice(0, G)))
    return parts


def _runs(costs: Sequence[int], most: int) -> list[slice]:
    """Consecutive items whose costs sum to at most ``most``; one that alone exceeds it stands alone."""
    runs, start, total = [], 0, 0
    for i, cost in enumerate(costs):
        if i > start and total + cost > most:
            runs.append(slice(start, i))
            start, total = i, 0
        total += cost
    return [*runs, slice(start, len(costs))] if costs else []


def pick(samples: Samples, part: Part) -> Samples:
    """Some members of some groups, without columns in which none of them has a token."""
    rows, members = part
    used_T = samples.mask_NGT[rows, members].flatten(0, 1).any(0).nonzero()
    T = int(used_T.max()) + 1 if len(used_T) else 1
    tokens_NGT, mask_NGT, log_probs_NGT = (x[rows, members, :T] for x in (samples.tokens_NGT, samples.mask_NGT, samples.log_probs_NGT))
    return Samples(
        [group[members] for group in samples.completions_NG[rows]],
        samples.prompt_NP[rows],
        tokens_NGT,
        mask_NGT,
        log_probs_NGT,
        None if samples.prompt_mask_NP is None else samples.prompt_mask_NP[rows],
    )


@dataclass(frozen=True)
class Scoring:
    """What the policy in training and the one before it (``reference``, may be None) say of tokens, at one temperature."""

    policy: Policy
    reference: Any
    temperature: float
    micro_batch_tokens: int | None = None
    precision: str = "float32"
    world: World = World()

    def autocast(self, device: torch.device) -> torch.autocast:
        """The configured precision, for sampling and scoring alike: they must be one distribution."""
        return torch.autocast(device.type, torch.bfloat16, enabled=self.precision == "bfloat16")

    def score(self, policy: Policy, samples: Samples) -> Scores:
        """(log-probabilities, entropies), each (N, G, T), in the configured precision."""
        with self.autocast(samples.tokens_NGT.device):
            return policy.log_probs(samples, temperature=self.temperature)

    def current(self, samples: Samples) -> Scores:
        """(log-probabilities, entropies) under the current weights, each (N, G, T), without a gradient."""
        return self.world.rows(self._own(self.policy, samples), len(samples.tokens_NGT))

    def base(self, samples: Samples) -> Tensor:
        """Log-probabilities (N, G, T) under the reference."""
        assert self.reference is not None
        return self.world.rows(self._own(self.reference, samples), len(samples.tokens_NGT))[0]

    def differentiable(self, samples: Samples, known: Scores | None = None) -> Differentiable:
        """Scores under the current weights whose gradient can be carried to the weights; ``known`` are theirs, if they are known."""
        return Differentiable(self, samples, known)

    @torch.no_grad()
    def _own(self, policy: Policy, samples: Samples) -> Scores:
        """The scores of this process's share of the groups."""
        own, parts, fillers = self.parts(samples)
        if len(parts) == 1 and not fillers:
            return self.score(policy, own)
        whole: list[Tensor] = []
        for part in parts + fillers:
            scores = self.score(policy, pick(own, part))
            whole = whole or [score.new_zeros(own.mask_NGT.shape) for score in scores]
            for target, score in zip(whole, scores):
                target[part][..., : score.shape[-1]] = score
        if not parts:  # more processes than groups
            whole = [torch.zeros_like(own.mask_NGT), torch.zeros_like(own.mask_NGT)]
        return whole[0], whole[1]

    def parts(self, samples: Samples) -> tuple[Samples, list[Part], list[Part]]:
        """This process's share of the groups, its micro-batches, and fillers.

        Where weights are sharded every process scores as often as the others, since each gives them its weights: fillers are
        scored besides, without an effect.
        """
        own = samples if self.world.size == 1 else samples[self.world.share(len(samples.tokens_NGT))]
        parts = micro_batches(own, self.micro_batch_tokens)
        missing = self.world.most(len(parts)) - len(parts) if self.world.sharded else 0
        return own, parts, parts[:1] * missing


class Differentiable:
    """Scores as leaves, ``log_probs_NGT`` and ``entropies_NGT``: after an objective's ``backward()`` this one's goes on to the weights."""

    def __init__(self, scoring: Scoring, samples: Samples, known: Scores | None) -> None:
        self.scoring = scoring
        self.own, self.parts, self.fillers = scoring.parts(samples)
        n = len(samples.tokens_NGT)
        self.graph: Scores | None = None
        if len(self.parts) == 1 and not scoring.world.sharded:  # FSDP has one forward pass before a backward pass
            self.graph = scoring.score(scoring.policy, self.own)
        if known is None and self.graph is not None:
            known = scoring.world.rows((self.graph[0].detach(), self.graph[1].detach()), n)
        elif known is None:  # gathers as well: other processes may have other numbers of parts
            known = scoring.current(samples)
        self.log_probs_NGT, self.entropies_NGT = (score.clone().requires_grad_() for score in known)
        self.share = scoring.world.share(n)

    def backward(self) -> None:
        """Add to the weights' ``grad`` what this process's part of the scores gives."""
        leaves = (self.log_probs_NGT, self.entropies_NGT)
        gradients = [None if leaf.grad is None else leaf.grad[self.share] for leaf in leaves]
        for i, part in enumerate(self.parts + self.fillers):
            scores = self.graph or self.scoring.score(self.scoring.policy, pick(self.own, part))
            pairs = [
                (score, gradient[part][..., : score.shape[-1]] * (i < len(self.parts)))
                for score, gradient in zip(scores, gradients)
                if gradient is not None and score.requires_grad
            ]
            torch.autograd.backward([score for score, _ in pairs], [gradient for _, gradient in pairs])
