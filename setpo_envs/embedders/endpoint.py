"""An embedder behind an OpenAI-compatible ``/v1/embeddings`` endpoint (OpenAI, vLLM, text-embeddings-inference, llama.cpp)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..json_http import LONGEST_WAIT, check_base_url, request_json
from .models import TextEmbedder


@dataclass(frozen=True)
class EndpointEmbedder(TextEmbedder):
    """Vectors from ``POST {base_url}/embeddings``.

    The key is read from the environment when a request is made; it is no option, so no spec, record or error holds it.

    Args:
        model: Name that the server knows.
        base_url: Up to and with the version, such as "http://localhost:8000/v1".
        key_variable: Environment variable that holds the key; unset or empty means that no key is sent.
        dimensions: Asked of the server if given.
        batch_size: Texts a request.
        timeout: Seconds for a request.
        retries: How often a request is repeated after a lost connection, a time-out or a status that says "later".
        cache: Folder for vectors, see :func:`~setpo_envs.embedders.cache.cached`.

    Raises:
        ConnectionError: The server could not be reached, or said "later", ``retries`` + 1 times.
        ValueError: It refused the request, or its reply is not one vector of finite numbers a text.
    """

    model: str
    base_url: str = "https://api.openai.com/v1"
    key_variable: str = "OPENAI_API_KEY"
    dimensions: int | None = None
    batch_size: int = 64
    timeout: float = 60.0
    retries: int = 4
    cache: str | None = None

    def __post_init__(self) -> None:
        check_base_url(self.base_url)
        if not (isinstance(self.batch_size, int) and self.batch_size >= 1 and isinstance(self.retries, int) and self.retries >= 0):
            raise ValueError(f"expected batch_size >= 1 and retries >= 0, got {self.batch_size!r} and {self.retries!r}")

    def encode(self, texts: list[str]) -> np.ndarray:
        batches = [self._request(texts[begin : begin + self.batch_size]) for begin in range(0, len(texts), self.batch_size)]
        if len({batch.shape[1] for batch in batches}) > 1:
            raise ValueError(f"expected vectors of one size from {self.base_url}, got {sorted({batch.shape[1] for batch in batches})}")
        return np.concatenate(batches)

    def _request(self, texts: list[str]) -> np.ndarray:
        # the endpoint refuses empty input; a blank stands for it
        body: dict[str, Any] = {"model": self.model, "input": [text or " " for text in texts], "encoding_format": "float"}
        if self.dimensions is not None:
            body["dimensions"] = self.dimensions
        url = f"{self.base_url.rstrip('/')}/embeddings"
        waits = [min(0.5 * 2**i, LONGEST_WAIT) for i in range(self.retries)]
        return _vectors(request_json(url, body, key_variable=self.key_variable, timeout=self.timeout, waits=waits), len(texts), url)


def _vectors(reply: bytes, count: int, url: str) -> np.ndarray:
    """(count, d) float32 from a reply, in the order of its indices."""
    try:
        rows = {row["index"]: row["embedding"] for row in json.loads(reply)["data"]}
        vectors_Td = np.array([rows[i] for i in range(count)], np.float32)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"expected one vector for each of {count} texts from {url}, got a reply that does not read as that") from error
    if len(rows) != count or vectors_Td.ndim != 2 or not vectors_Td.shape[1] or not np.isfinite(vectors_Td).all():
        raise ValueError(
            f"expected {count} vectors of finite numbers from {url}, got {len(rows)} rows that form an array of {vectors_Td.shape}"
        )
    return vectors_Td
