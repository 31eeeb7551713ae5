"""Rows of unit length, and vectors of the distinct texts of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """``vectors`` (..., d) with rows of length 1, float32; zero rows share one direction in a further dimension."""
    # scaled by the largest entry first: squares of very small or large entries would not fit a float
    vectors = vectors.astype(np.result_type(vectors, np.float32), copy=False)  # half precision would overflow and round
    largest = np.abs(vectors).max(axis=-1, keepdims=True, initial=0.0)
    zero = largest == 0.0
    vectors = vectors / np.where(zero, 1.0, largest)
    lengths = np.sqrt(np.einsum("...d,...d->...", vectors, vectors))[..., None]
    vectors = (vectors / np.where(zero, 1.0, lengths)).astype(np.float32, copy=False)
    return np.concatenate([vectors, zero.astype(np.float32)], axis=-1) if zero.any() else vectors


def of_distinct(completions_NG: Sequence[Sequence[str]], encode: Callable[[list[str]], np.ndarray]) -> np.ndarray:
    """(N, G, d): ``encode``, from T texts to (T, d), for all completions; a policy repeats itself, so each text goes in once."""
    rows: dict[str, int] = {}
    index = [rows.setdefault(text, len(rows)) for group in completions_NG for text in group]
    vectors_Td = encode(list(rows))
    return vectors_Td[index].reshape(len(completions_NG), -1, vectors_Td.shape[1])
