"""Embedders: N groups of G completions -> (N, G, d) float32 unit vectors, whose cosines are the similarities of a kernel.

Two completions are compared only inside a group, so an embedder may choose its space per group. Three need no weights:

- ``ngram`` (default): hashed byte n-grams of the text; any task, lexical similarity.
- ``expression``: what the answer's arithmetic expression is made of; Countdown.
- ``policy``: vectors that the agent handed in with each completion (``Completion(text, embedding=vector)``).

Any ``callable(groups) -> (N, G, d)`` array is an embedder too; :func:`embed` checks and normalises what it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from setpo_verifiers.expressions import ExpressionError, features

from .group import Groups

Embedder = Callable[[Groups], np.ndarray]

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
    rows: dict[str, int] = {}  # a policy repeats itself: each text once
    index = [rows.setdefault(text, len(rows)) for group in completions_NG for text in group]
    return hash_ngrams(list(rows))[index].reshape(len(completions_NG), -1, DIMENSIONS)


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
    return _unit_rows(counts_Td)


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
    return _unit_rows(counts).reshape(groups.n_groups, groups.group_size, width)


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


EMBEDDERS: dict[str, Embedder] = {"ngram": ngram, "expression": expression, "policy": policy}


def resolve_embedder(embedder: str | Embedder) -> Embedder:
    """The embedder of that name, or the callable itself; anything else raises ValueError."""
    if callable(embedder):
        return embedder
    if not isinstance(embedder, str) or embedder not in EMBEDDERS:
        raise ValueError(f"unknown embedder {embedder!r}: choose one of {', '.join(EMBEDDERS)}, or give a callable(groups) -> (N, G, d)")
    return EMBEDDERS[embedder]


def embed(groups: Groups, embedder: str | Embedder) -> np.ndarray:
    """Embeddings of ``groups``, (N, G, d) float32 with unit rows.

    A zero vector has no direction of its own. All of them get one that nothing else has (a further dimension): they count as
    equal to each other and unlike the rest, as members without a mode do.

    Raises:
        ValueError: Unknown embedder, or embeddings of another shape, or not finite.
    """
    embeddings_NGd = np.asarray(resolve_embedder(embedder)(groups))
    if embeddings_NGd.ndim != 3 or embeddings_NGd.shape[:2] != (groups.n_groups, groups.group_size):
        raise ValueError(
            f"expected embeddings of shape ({groups.n_groups}, {groups.group_size}, d) from {embedder!r}, got {embeddings_NGd.shape}"
        )
    if embedder in ("ngram", "expression"):  # unit rows already
        return embeddings_NGd
    if not np.isfinite(embeddings_NGd).all():
        raise ValueError(f"expected finite embeddings from {embedder!r}, got nan or inf")
    return _unit_rows(embeddings_NGd)


def _unit_rows(vectors: np.ndarray) -> np.ndarray:
    """``vectors`` (..., d) with rows of length 1, float32; zero rows share one direction in a further dimension."""
    # scaled by the largest entry first: squares of very small or large entries would not fit a float
    vectors = vectors.astype(np.result_type(vectors, np.float32), copy=False)  # half precision would overflow and round
    largest = np.abs(vectors).max(axis=-1, keepdims=True, initial=0.0)
    zero = largest == 0.0
    vectors = vectors / np.where(zero, 1.0, largest)
    lengths = np.sqrt(np.einsum("...d,...d->...", vectors, vectors))[..., None]
    vectors = (vectors / np.where(zero, 1.0, lengths)).astype(np.float32, copy=False)
    return np.concatenate([vectors, zero.astype(np.float32)], axis=-1) if zero.any() else vectors
