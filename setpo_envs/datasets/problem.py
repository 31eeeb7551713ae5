"""What a dataset is made of: one problem, and the two methods every dataset has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Problem:
    """One problem as the environment asks it and the verifier grades it.

    ``gold`` is a JSON value in a form that the verifier of ``task`` accepts. ``metadata`` may hold ``modes``, the tuple
    of all valid mode keys, and ``n_modes``, their number, where the dataset knows them. ``options`` are those of the
    verifier that this one problem needs, such as a ``precision``.
    """

    problem_id: str
    task: str
    prompt: str
    gold: Any
    metadata: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


class Dataset(Protocol):
    """A finite sequence of problems; the same index always gives the same problem.

    One whose problems come in named difficulties has a third method, ``with_difficulty(name) -> Dataset``, which raises ValueError
    for an unknown name.
    """

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Problem: ...


def with_difficulty(dataset: Dataset, name: str) -> Dataset:
    """The data set of a named difficulty; ValueError where there are none."""
    offered = getattr(dataset, "with_difficulty", None)
    if offered is None:
        raise ValueError(
            f"expected a data set with difficulties, such as source='generator', to take one of difficulty {name!r} from; "
            f"got {type(dataset).__name__}, whose problems are not sorted by it"
        )
    return offered(name)


def is_dataset(source: Any) -> bool:
    """Whether ``source`` is a non-empty data set of problems."""
    indexed = hasattr(source, "__len__") and hasattr(source, "__getitem__") and not isinstance(source, (str, Mapping))
    return indexed and len(source) > 0 and isinstance(source[0], Problem)
