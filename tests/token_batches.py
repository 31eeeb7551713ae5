"""Token tensors for tests of losses and regularisers: from an oracle's line, or drawn."""

import torch

from setpo_agents.regularizers import Experience, Minibatch


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def mask_of(lens, width):
    return (torch.arange(width) < torch.tensor(lens)[:, None]).double()


def tensors(line):
    """(logp_BT, differentiable; old_logp_BT; advantages_B1; mask_BT) of a line."""
    given = line["in"]
    logp = tensor(given["logp"]).requires_grad_()
    old = tensor(given["old_logp"]) if "old_logp" in given else logp.detach()
    return logp, old, tensor(given["advantages"])[:, None], mask_of(given["lens"], logp.shape[1])


def experience(old_logp, mask, *, correct=None, valid=None, modes=None, group_size=None, entropies=None):
    B = len(mask)
    correct = torch.ones(B, dtype=torch.bool) if correct is None else torch.as_tensor(correct, dtype=torch.bool)
    valid = torch.ones(B, dtype=torch.bool) if valid is None else torch.as_tensor(valid, dtype=torch.bool)
    modes = torch.zeros(B, dtype=torch.int64) if modes is None else torch.as_tensor(modes)
    return Experience(old_logp, mask, correct, valid, modes, group_size or B, entropies)


def minibatch(logp, old_logp, advantages_BX, mask, loss, **more):
    old = more.pop("old", None) or experience(old_logp, mask)
    return Minibatch(old, logp, more.pop("entropies", torch.zeros_like(logp)), advantages_BX, loss.aggregate, **more)


def drawn(B=6, T=5, seed=0):
    """(logp, differentiable; old_logp; advantages_B1; mask): float64, ratios away from 1, one sequence empty, one full."""
    generator = torch.Generator().manual_seed(seed)
    old = -torch.rand(B, T, generator=generator, dtype=torch.float64) * 3
    logp = (old + torch.randn(B, T, generator=generator, dtype=torch.float64) * 0.3).requires_grad_()
    advantages = torch.randn(B, 1, generator=generator, dtype=torch.float64)
    return logp, old, advantages, mask_of([T, 3, 0, 2, 1, 4][:B], T)
