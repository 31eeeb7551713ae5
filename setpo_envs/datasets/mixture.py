"""A mixture: several data sets one after another, with a weight that says how often each is drawn from."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate

from .problem import Dataset, Problem


class MixtureDataset:
    """The problems of all ``parts``, one part after another; ``weights`` are what an environment starts with.

    The weight of a part counts for the part as a whole, whatever its size: with equal weights each is drawn equally often.
    """

    def __init__(self, parts: Sequence[Dataset], weights: Sequence[float]) -> None:
        self.parts = list(parts)
        self.sizes = [len(part) for part in parts]
        self.weights = list(weights)
        self._ends = list(accumulate(self.sizes))

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, index: int) -> Problem:
        if not 0 <= index < len(self):
            raise IndexError(f"expected an index of at least 0 and below {len(self)}, got {index}")
        part = bisect(self._ends, index)
        return self.parts[part][index - self._ends[part] + self.sizes[part]]
