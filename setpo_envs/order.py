"""In which order an environment takes the problems of its data set, and where in that order it stands."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

ORDERS = ("random", "shuffle", "sequential")


class Order:
    """Indices into a data set of one or more parts, one after another, for ever.

    "random" draws with replacement. "shuffle" gives every problem once an epoch, each epoch a new permutation, which depends on
    nothing but the seed and the number of the epoch. "sequential" goes from the first to the last and begins again.

    A mixture has several parts, each with an order of its own; which part is next is drawn by weight.

    Args:
        name: One of ``ORDERS``.
        sizes: Number of problems in each part; a part's indices follow those of the part before it.
        weights: How often each part is drawn, up to a common factor.
    """

    def __init__(self, name: str, sizes: Sequence[int], weights: Sequence[float]) -> None:
        if name not in ORDERS:
            raise ValueError(f"expected order among {', '.join(ORDERS)}, got {name!r}")
        self.name = name
        self.sizes = list(sizes)
        self.weights = checked_weights(weights, len(sizes))
        self._starts = [0, *accumulate(sizes)]
        self._root = 0
        self._positions = [0] * len(sizes)
        self._permutations: dict[int, tuple[tuple[int, int], np.ndarray]] = {}  # part -> (root, epoch), its permutation

    def restart(self, rng: np.random.Generator) -> None:
        """Begin again, as ``rng`` says."""
        if self.name == "shuffle":
            self._root = int(rng.integers(2**53))
        self._positions = [0] * len(self.sizes)

    def next(self, rng: np.random.Generator) -> int:
        """The next index."""
        part = 0
        if len(self.sizes) > 1:
            bounds = list(accumulate(self.weights))
            part = bisect(bounds, rng.random() * bounds[-1])
        size = self.sizes[part]
        if self.name == "random":
            return self._starts[part] + int(rng.integers(size))
        epoch, place = divmod(self._positions[part], size)
        self._positions[part] += 1
        return self._starts[part] + (int(self._permutation(part, epoch)[place]) if self.name == "shuffle" else place)

    def part(self, index: int) -> int:
        """The part that an index belongs to."""
        return bisect(self._starts, index) - 1

    @property
    def state(self) -> dict[str, Any]:
        """Where the order stands, in JSON values."""
        values = {"order": self.name, "sizes": self.sizes, "weights": self.weights, "root": self._root, "positions": self._positions}
        return {name: list(value) if isinstance(value, list) else value for name, value in values.items()}

    @state.setter
    def state(self, state: Mapping[str, Any]) -> None:
        if (state["order"], state["sizes"]) != (self.name, self.sizes):
            raise ValueError(
                f"expected the state of an environment with order={self.name!r} over {self.sizes} problems, "
                f"got one of order={state['order']!r} over {state['sizes']}: make the environment as it was made then"
            )
        weights, root, positions = checked_weights(state["weights"], len(self.sizes)), state["root"], state["positions"]
        counts = [root, *positions] if isinstance(positions, (list, tuple)) else []
        if len(counts) != 1 + len(self.sizes) or not all(isinstance(count, int) and count >= 0 for count in counts):
            raise ValueError(
                f"expected a root and {len(self.sizes)} positions that are integers of at least 0, got {root!r} and {positions!r}"
            )
        self.weights, self._root, self._positions = weights, root, list(positions)

    def _permutation(self, part: int, epoch: int) -> np.ndarray:
        """The permutation of an epoch; 8 bytes a problem, and only the current one is kept."""
        key, permutation = self._permutations.get(part, (None, None))
        if permutation is None or key != (self._root, epoch):
            stream = np.random.SeedSequence([self._root, part, epoch])
            permutation = np.random.default_rng(stream).permutation(self.sizes[part])
            self._permutations[part] = (self._root, epoch), permutation
        return permutation


def checked_weights(weights: Any, n: int) -> list[float]:
    """``n`` weights as a list of floats. Raises ValueError unless they are finite, none negative and one of them above 0."""
    try:
        values = np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (n,) or not np.isfinite(values).all() or (values < 0).any() or not values.any():
        raise ValueError(f"expected {n} weights, finite, none negative and one of them above 0, got {weights!r}")
    return values.tolist()
