"""Vectors of texts on disk, by the content of the text and of what made the vector."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np


def cached(folder: str | os.PathLike[str], identity: str, texts: Sequence[str], encode: Callable[[list[str]], np.ndarray]) -> np.ndarray:
    """``encode(texts)``, (T, d) float32, from ``folder`` where it is there; only the other texts are encoded, then stored.

    A vector's file is named by the SHA-256 of ``identity`` (model and options) and the text, one ``.npy`` each. Files are moved
    into place complete, so processes may share a folder; one that cannot be read counts as missing and is written again.
    """
    paths = [_path(Path(folder), identity, text) for text in texts]
    vectors = [_read(path) for path in paths]
    missing = [i for i, vector in enumerate(vectors) if vector is None]
    if missing:
        for i, vector in zip(missing, np.asarray(encode([texts[i] for i in missing]), np.float32)):
            vectors[i] = vector
            _write(paths[i], vector)
    return np.stack([vector for vector in vectors if vector is not None])


def _path(folder: Path, identity: str, text: str) -> Path:
    digest = hashlib.sha256()
    for part in (identity, text):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)  # lengths, so that no two pairs run into the same bytes
    name = digest.hexdigest()
    return folder / name[:2] / f"{name[2:]}.npy"


def _read(path: Path) -> np.ndarray | None:
    try:
        vector = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return vector if isinstance(vector, np.ndarray) and vector.ndim == 1 and vector.dtype == np.float32 and vector.size else None


def _write(path: Path, vector: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            np.save(file, vector, allow_pickle=False)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
