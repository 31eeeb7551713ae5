"""What a dataset is made of: one problem, and the two methods every dataset has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Problem:
    """One problem as the environment asks it and the verifier grades it.

    ``gold`` is a JSON value in a form that the verifier of ``task`` accepts. ``metadata`` may hold ``modes``, the tuple
    of all valid mode keys, and ``n_modes``, their number, where the dataset knows them.
    """

    problem_id: str
    task: str
    prompt: str
    gold: Any
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Dataset(Protocol):
    """A finite sequence of problems; the same index always gives the same problem.

    A data set may also have ``reset_options``, a mapping from the name of an option of ``reset(options={name: value})`` to a
    function (value, rng) -> index. It draws from nothing but ``rng``, so it does not move the environment's order on.
    """

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Problem: ...


def is_dataset(source: Any) -> bool:
    """Whether ``source`` is a non-empty data set of problems."""
    indexed = hasattr(source, "__len__") and hasattr(source, "__getitem__") and not isinstance(source, (str, Mapping))
    return indexed and len(source) > 0 and isinstance(source[0], Problem)
