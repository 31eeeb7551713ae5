"""Embedders that read what comes with a completion besides its text: its answer, or a vector from the policy."""

from __future__ import annotations

import numpy as np

from setpo_verifiers.expressions import ExpressionError, features

from ..group import Groups
from .vectors import unit_rows


def expression(groups: Groups) -> np.ndarray:
    """Counts of the parts of the answer's expression (:func:`setpo_verifiers.expressions.features` of its mode key).

    Every part has a dimension of its own inside the group (no hashing, so no collisions); d is the largest number of parts in
    a group. All members without a mode share one part that no expression has: they are alike, and unlike anything else.

    Raises:
        ValueError: A mode key that is not an arithmetic expression (another task).
    """
    rows: list[int] = []
    columns: list[int] = []
    width = 1
    for n, keys in enumerate(groups.mode_keys.tolist()):
        vocabulary: dict[str | None, int] = {}
        for row, key in enumerate(keys, n * groups.group_size):
            try:
                parts: tuple[str | None, ...] = (None,) if key is None else features(key)
            except ExpressionError as error:
                raise ValueError(
                    f"expected mode keys that are arithmetic expressions, got {key[:80]!r} (task {groups.problems[n].task!r}): "
                    "choose the embedder 'ngram', or kernel='equality_key'"
                ) from error
            rows.extend([row] * len(parts))
            columns.extend([vocabulary.setdefault(part, len(vocabulary)) for part in parts])
        width = max(width, len(vocabulary))
    counts = np.zeros((groups.n_groups * groups.group_size, width), np.float32)
    np.add.at(counts, (np.array(rows), np.array(columns)), np.float32(1))
    return unit_rows(counts).reshape(groups.n_groups, groups.group_size, width)


def policy(groups: Groups) -> np.ndarray:
    """The vectors handed in with the completions: ``Completion(text, embedding=vector)``, for instance mean hidden states.

    They are used as they are, up to length; hidden states of one model share a large common direction, so subtract their
    mean over the batch before handing them in. Zero vectors: see :func:`embed`.

    Raises:
        ValueError: A completion without a vector, or vectors of different sizes.
    """
    flat = [(n, i, getattr(text, "embedding", None)) for n, group in enumerate(groups.completions_NG) for i, text in enumerate(group)]
    size: int | None = None
    for n, i, vector in flat:
        if vector is None or np.ndim(vector) != 1:
            got = "none" if vector is None else f"an array of shape {np.shape(vector)}"
            raise ValueError(
                f"expected an embedding with every completion, got {got} for member {i} of group {n}: "
                "hand in Completion(text, embedding=vector) with a vector of shape (d,), or choose another embedder"
            )
        size = len(vector) if size is None else size
        if len(vector) != size:
            raise ValueError(
                f"expected embeddings of one size, got {size} and {len(vector)} (member {i} of group {n}): use one model for all"
            )
    return np.stack([np.asarray(vector) for _, _, vector in flat]).reshape(groups.n_groups, groups.group_size, -1)
