"""Hashed byte n-grams: the default embedder, which needs no weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..group import Groups
from .vectors import of_distinct, unit_rows

DIMENSIONS = 1024  # of the n-gram embedding, a power of two: bins are high bits of a hash
_SHIFT = np.uint32(32 - (DIMENSIONS.bit_length() - 1))
_BLOCK = 64  # texts whose counts are in work at a time: they stay in cache until they are normalised
_WINDOW = 1 << 14  # positions hashed at a time: stays in cache, and bounds memory whatever a text's length
_START, _END = 0xFF, 0xFE  # bytes that UTF-8 never produces


def ngram(groups: Groups) -> np.ndarray:
    """Signed hashed counts of the 3-, 4- and 5-grams of a text's UTF-8 bytes, d = 1024.

    A start marker and four end markers belong to the text, so the empty text and texts shorter than an n-gram are ordinary
    unit vectors: two empty texts have similarity 1, and an empty and another text about 0. The sign makes two n-grams that
    share a bin as likely to cancel as to add up, so the cosine estimates that of the full count vectors without bias.
    """
    return ngrams_of(groups.completions_NG)


def ngrams_of(completions_NG: Sequence[Sequence[str]]) -> np.ndarray:
    """(N, G, 1024) float32: what :func:`ngram` does, from the texts alone."""
    return of_distinct(completions_NG, hash_ngrams)


def hash_ngrams(texts: Sequence[str]) -> np.ndarray:
    """Unit n-gram vectors of ``texts``, (len(texts), 1024) float32: what :func:`ngram` does with each distinct text."""
    vectors_Td = np.empty((len(texts), DIMENSIONS), np.float32)
    for begin in range(0, len(texts), _BLOCK):
        vectors_Td[begin : begin + _BLOCK] = _hash_block(texts[begin : begin + _BLOCK])
    return vectors_Td


def _hash_block(texts: Sequence[str]) -> np.ndarray:
    start, end = bytes([_START]), bytes([_END] * 4)
    encoded = [start + text.encode("utf-8", "surrogatepass") + end for text in texts]
    buffer = np.frombuffer(b"".join(encoded), np.uint8)
    row_starts = np.repeat(np.arange(0, len(texts) * DIMENSIONS, DIMENSIONS), [len(text) for text in encoded])
    counts = np.zeros(len(texts) * DIMENSIONS, np.float32)
    for begin in range(0, len(buffer) - 4, _WINDOW):
        window = buffer[begin : begin + _WINDOW + 4].astype(np.uint32)  # each position with the four bytes that follow it
        rows = row_starts[begin : begin + len(window) - 4]
        # a gram that starts in the end markers would run into the next text: it weighs nothing
        inside = (window[:-4] != _END).astype(np.float32)
        two = window[:-1] | window[1:] << 8
        four = (two[:-2] | two[2:] << 16)[:-1]
        for gram in (four & 0xFFFFFF, four, (four ^ four >> 15) * np.uint32(0x85EBCA6B) + window[4:]):
            gram = (gram ^ gram >> 15) * np.uint32(0x9E3779B1)
            sign = 1.0 - 2.0 * (gram >> 8 & 1).astype(np.float32)
            np.add.at(counts, rows + (gram >> _SHIFT), sign * inside)
    counts_Td = counts.reshape(len(texts), DIMENSIONS)
    counts_Td[~counts_Td.any(axis=1), 0] = 1.0  # should signs ever cancel in every bin
    return unit_rows(counts_Td)
