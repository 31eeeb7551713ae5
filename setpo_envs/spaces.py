"""Two spaces: any text, and a fixed number of texts.

Neither is built on ``gymnasium.spaces.Text`` (it needs a character set, is slow over all of Unicode, and reads back stale
from shared memory in ``AsyncVectorEnv``) nor on ``Tuple`` (``make_vec`` transposes its batches without a word).
"""

from __future__ import annotations

import string
from typing import Any

import numpy as np
from gymnasium.spaces import Sequence, Space

_SAMPLE_CHARACTERS = np.array(list(string.printable))


class Unicode(Space[str]):
    """Any ``str`` of at most ``max_length`` characters, the empty one included. Membership takes constant time."""

    def __init__(self, max_length: int = 1_000_000, seed: int | np.random.Generator | None = None) -> None:
        if max_length < 1:
            raise ValueError(f"expected max_length of at least 1, got {max_length}")
        self.max_length = int(max_length)
        super().__init__(shape=None, dtype=None, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Up to 32 printable ASCII characters; neither ``mask`` nor ``probability`` is supported."""
        if mask is not None or probability is not None:
            raise ValueError("expected neither mask nor probability: Unicode cannot sample with them")
        length = self.np_random.integers(min(32, self.max_length) + 1)
        return "".join(self.np_random.choice(_SAMPLE_CHARACTERS, size=length))

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and len(x) <= self.max_length

    def __repr__(self) -> str:
        return f"Unicode({self.max_length})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unicode) and self.max_length == other.max_length


class Group(Sequence):
    """Exactly ``group_size`` elements of ``space``, as a tuple or a list.

    As a ``Sequence`` it is batched environment by environment: N groups of G elements.
    """

    def __init__(self, space: Space[Any], group_size: int, seed: int | np.random.Generator | None = None) -> None:
        if isinstance(group_size, bool) or not isinstance(group_size, (int, np.integer)) or group_size < 1:
            raise ValueError(f"expected group_size to be an integer of at least 1, got {group_size!r}")
        self.group_size = int(group_size)
        super().__init__(space, seed=seed)

    def sample(self, mask: Any = None, probability: Any = None) -> tuple[Any, ...]:
        """``group_size`` samples of the element space, each with ``mask`` or ``probability`` if given."""
        return tuple(self.feature_space.sample(mask=mask, probability=probability) for _ in range(self.group_size))

    def contains(self, x: Any) -> bool:
        return isinstance(x, (tuple, list)) and len(x) == self.group_size and all(map(self.feature_space.contains, x))

    def __repr__(self) -> str:
        return f"Group({self.feature_space}, {self.group_size})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and self.group_size == other.group_size and self.feature_space == other.feature_space
