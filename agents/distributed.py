"""Training in more than one process: whole groups are dealt to processes, and everything is computed as one process would.

Started by ``accelerate launch``, ``torchrun`` or anything that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Every process
holds all groups of a batch, with their verdicts and credits, and samples and scores its share of them. Log-probabilities are gathered,
so losses, denominators and advantages are those of the whole batch in every process; gradients are summed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch import distributed as dist

Value = TypeVar("Value")
BUCKET = 1 << 26
"""Most numbers that are summed over processes in one call."""


@dataclass(frozen=True)
class World:
    """This process among all; the default is a process alone, which needs no communication."""

    rank: int = 0
    size: int = 1
    sharded: bool = False
    """Whether weights are split over processes, by ``accelerate launch --use_fsdp``; else each has all of them."""

    @classmethod
    def from_environment(cls) -> World:
        """The processes that a launcher has started: joined by nccl where there are accelerators, else by gloo."""
        rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        if size == 1:
            return cls()
        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
        if not dist.is_initialized():
            # a process waits while another one evaluates or its verifiers are slow
            dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo", timeout=timedelta(hours=2))
        return cls(rank, size, os.environ.get("ACCELERATE_USE_FSDP", "").lower() in ("1", "true"))

    def prepared(self, policy: Any) -> Any:
        """The policy as it is trained here."""
        if not self.sharded or self.size == 1:
            return policy
        from .sharding import ShardedPolicy

        return ShardedPolicy(policy)

    @property
    def main(self) -> bool:
        """Whether this is the process that writes."""
        return self.rank == 0

    def share(self, n: int) -> slice:
        """Which of ``n`` consecutive items are this process's; shares differ by one item at most."""
        return slice(n * self.rank // self.size, n * (self.rank + 1) // self.size)

    def rows(self, own: tuple[Tensor, Tensor], n: int) -> tuple[Tensor, Tensor]:
        """The rows of all processes, ``n`` together, of two tensors of which each process has its share."""
        if self.size == 1:
            return own
        first, second = (self._rows(tensor.contiguous(), n) for tensor in own)
        return first, second

    def _rows(self, own: Tensor, n: int) -> Tensor:
        counts = [World(rank, self.size).share(n) for rank in range(self.size)]
        most = max(count.stop - count.start for count in counts)
        padded = own.new_zeros(most, *own.shape[1:])
        padded[: len(own)] = own
        parts = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(parts, padded)
        return torch.cat([part[: count.stop - count.start] for part, count in zip(parts, counts)])

    def objects(self, own: Value) -> list[Value]:
        """What every process has, by rank."""
        if self.size == 1:
            return [own]
        every: list[Any] = [None] * self.size
        dist.all_gather_object(every, own)
        return every

    def from_main(self, value: Value | None) -> Value:
        """What the main process has."""
        if self.size == 1:
            return value  # type: ignore[return-value]
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]  # type: ignore[return-value]

    def most(self, number: int) -> int:
        """The largest ``number`` of a process."""
        return max(self.objects(number))

    def any(self, flag: bool) -> bool:
        """Whether ``flag`` is true in some process."""
        return any(self.objects(flag))

    def sum_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Replace every gradient by its sum over processes; sharded ones are sums already."""
        if self.size == 1 or self.sharded:
            return
        bucket: list[Tensor] = []
        for weight in parameters:
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)
            if bucket and (bucket[0].dtype != weight.grad.dtype or sum(g.numel() for g in bucket) + weight.numel() > BUCKET):
                self._sum(bucket)
                bucket = []
            bucket.append(weight.grad)
        self._sum(bucket)

    @staticmethod
    def _sum(gradients: list[Tensor]) -> None:
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        for gradient, total in zip(gradients, flat.split([gradient.numel() for gradient in gradients])):
            gradient.copy_(total.view_as(gradient))
