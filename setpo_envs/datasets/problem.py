"""What a dataset is made of: one problem, and the two methods every dataset has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from operator import index as as_index
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
    for an unknown name. One that a policy can be warmed up on has ``write_mode(problem, mode, rng) -> str``: the text of an answer
    of that mode, in one of the ways to write it that ``rng`` (``random.Random``) draws.
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


class Problems(Sequence[Problem]):
    """Problems listed in memory. ``left_out`` names the rows that could not be used: (where, why)."""

    def __init__(self, problems: Sequence[Problem], left_out: Sequence[tuple[str, str]] = ()) -> None:
        self._problems = tuple(problems)
        self.left_out = tuple(left_out)

    def __len__(self) -> int:
        return len(self._problems)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._problems[index]
        if not 0 <= as_index(index) < len(self):
            raise IndexError(f"expected an index of at least 0 and below {len(self)}, got {index}")
        return self._problems[as_index(index)]


def normalised(text: str) -> str:
    """``text`` in lower case with single spaces: what makes two questions the same."""
    return " ".join(text.split()).lower()


def fingerprint(text: str) -> str:
    """12 hexadecimal digits that name a question whatever file, order or split it comes in; problem ids hang on it."""
    return blake2b(normalised(text).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def is_dataset(source: Any) -> bool:
    """Whether ``source`` is a non-empty data set of problems."""
    indexed = hasattr(source, "__len__") and hasattr(source, "__getitem__") and not isinstance(source, (str, Mapping))
    return indexed and len(source) > 0 and isinstance(source[0], Problem)
