"""Errors that end a step say which step, on what problems, and what is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, of the accelerator or of this machine (where torch raises a plain RuntimeError)."""
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in str(error)


@contextmanager
def naming_the_step(step: int, folder: Path, problem_ids: Sequence[str]) -> Iterator[None]:
    """Within it a number that is not finite, or the end of memory, is raised again with the step and the ids that are known by then."""
    try:
        yield
    except (FloatingPointError, MemoryError, RuntimeError) as error:
        memory = ran_out_of_memory(error)
        if not memory and not isinstance(error, FloatingPointError):
            raise
        kind = MemoryError if type(error) is RuntimeError else type(error)
        advice = ": lower micro_batch_tokens, prompts_per_step or max_new_tokens" if memory else ""
        raise kind(
            f"step {step}: {error}{advice}; {folder} holds the last checkpoint before it. Problems of the batch: {', '.join(problem_ids)}"
        ) from error
