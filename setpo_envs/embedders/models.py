"""Embedders with a language model: transformers (any pooling) or sentence-transformers, by name on the hub or by path.

Neither package is imported before the first text is embedded. A model is loaded once a process and shared. Embedding, not the
credit, is what takes the time: small models do some tens of texts a second on a CPU core, so name a ``cache`` folder where the
same texts come again (rescoring, or several shapers on the same samples).
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..group import Groups
from .cache import cached
from .vectors import of_distinct

_HOW = {"cache", "batch_size", "device", "timeout", "retries", "key_variable"}  # options on which no vector depends


class TextEmbedder:
    """What embedders of texts alone share: each distinct text once, from the cache if there is one. Subclasses have ``encode``."""

    cache: str | None
    model: str

    def __call__(self, groups: Groups) -> np.ndarray:
        return of_distinct(groups.completions_NG, self.vectors)

    def vectors(self, texts: list[str]) -> np.ndarray:
        """(T, d) float32 vectors, not normalised, of T texts."""
        return self.encode(texts) if self.cache is None else cached(self.cache, self._identity(), texts, self.encode)

    def encode(self, texts: list[str]) -> np.ndarray:
        raise NotImplementedError

    def _identity(self) -> str:
        """All that a vector depends on besides the text: options of the dataclass, and the files of a local model."""
        options = {key: value for key, value in sorted(vars(self).items()) if key not in _HOW}
        folder = Path(self.model)
        files = sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []
        stamps = [(str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
        return repr((type(self).__name__, options, stamps))


@dataclass(frozen=True)
class TransformersEmbedder(TextEmbedder):
    """A model of the transformers library, pooled over tokens.

    The default is what SetPO's paper embeds complete outputs with, pooled as that model family means it to be. Whether the
    paper puts the prompt in front, and where it truncates, it does not say: ``instruction`` and ``max_tokens`` are ours.

    Args:
        model: Name on the hub, or a folder.
        pooling: "last" token, "mean" over tokens, or "cls" (first token).
        max_tokens: Longer texts are cut at their end.
        instruction: Put in front of every text.
        batch_size: Texts at a time, of similar length.
        device: Torch device; by default CUDA if there is one.
        dtype: "float32", "bfloat16" or "float16".
        cache: Folder for vectors, see :func:`~setpo_envs.embedders.cache.cached`.
    """

    model: str = "Qwen/Qwen3-Embedding-0.6B"
    pooling: str = "last"
    max_tokens: int = 1024
    instruction: str = ""
    batch_size: int = 32
    device: str | None = None
    dtype: str = "float32"
    cache: str | None = None

    def __post_init__(self) -> None:
        _check(self, "transformers")
        if self.pooling not in ("last", "mean", "cls"):
            raise ValueError(f"unknown pooling {self.pooling!r}: choose one of last, mean, cls")
        if self.dtype not in ("float32", "bfloat16", "float16"):
            raise ValueError(f"unknown dtype {self.dtype!r}: choose one of float32, bfloat16, float16")

    def encode(self, texts: list[str]) -> np.ndarray:
        import torch

        tokenizer, network = _transformers_model(self.model, self.device, self.dtype)
        prompted = [_encodable(self.instruction + text) for text in texts]
        ids_T = tokenizer(prompted, truncation=True, max_length=self.max_tokens)["input_ids"]
        order = sorted((i for i in range(len(texts)) if ids_T[i]), key=lambda i: len(ids_T[i]))
        vectors_Td = np.zeros((len(texts), network.config.hidden_size), np.float32)  # a text without a token has no direction
        for begin in range(0, len(order), self.batch_size):
            batch = order[begin : begin + self.batch_size]
            longest = len(ids_T[batch[-1]])
            ids = torch.zeros((len(batch), longest), dtype=torch.long)
            mask = torch.zeros((len(batch), longest), dtype=torch.long)
            for row, i in enumerate(batch):  # padded on the right, where neither causal nor masked attention sees it
                ids[row, : len(ids_T[i])] = torch.tensor(ids_T[i])
                mask[row, : len(ids_T[i])] = 1
            with torch.inference_mode():
                output = network(input_ids=ids.to(network.device), attention_mask=mask.to(network.device))
            hidden = output.last_hidden_state.float().cpu()
            if self.pooling == "mean":
                pooled = (hidden * mask[:, :, None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
            else:
                place = mask.sum(dim=1) - 1 if self.pooling == "last" else torch.zeros(len(batch), dtype=torch.long)
                pooled = hidden[torch.arange(len(batch)), place]
            vectors_Td[batch] = pooled.numpy()
        return vectors_Td


@dataclass(frozen=True)
class SentenceTransformerEmbedder(TextEmbedder):
    """A model of the sentence-transformers library, which brings its own pooling.

    Args:
        model: Name on the hub, or a folder.
        max_tokens: Longer texts are cut; by default where the model says.
        instruction: Put in front of every text.
        batch_size: Texts at a time.
        device: Torch device; by default what the library chooses.
        cache: Folder for vectors, see :func:`~setpo_envs.embedders.cache.cached`.
    """

    model: str = "sentence-transformers/all-MiniLM-L6-v2"
    max_tokens: int | None = None
    instruction: str = ""
    batch_size: int = 32
    device: str | None = None
    cache: str | None = None

    def __post_init__(self) -> None:
        _check(self, "sentence_transformers")

    def encode(self, texts: list[str]) -> np.ndarray:
        network = _sentence_transformer(self.model, self.device, self.max_tokens)
        prompted = [_encodable(self.instruction + text) for text in texts]
        return np.asarray(network.encode(prompted, batch_size=self.batch_size, show_progress_bar=False), np.float32)


def _encodable(text: str) -> str:
    """Tokenizers refuse lone surrogates, which a decoded completion may hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _check(embedder: Any, package: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise ImportError(
            f"{type(embedder).__name__} needs the package {package.replace('_', '-')}, which is not installed: "
            'pip install "setpo-envs[embeddings]", or choose an embedder without a model, such as "ngram"'
        )
    for option in ("max_tokens", "batch_size"):
        value = getattr(embedder, option)
        if value is not None and not (isinstance(value, int) and value >= 1):
            raise ValueError(f"expected {option} to be an integer >= 1, got {value!r}")


@lru_cache(maxsize=2)
def _transformers_model(model: str, device: str | None, dtype: str) -> tuple[Any, Any]:
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    network = transformers.AutoModel.from_pretrained(model).eval()
    return tokenizer, network.to(device=device or ("cuda" if torch.cuda.is_available() else "cpu"), dtype=getattr(torch, dtype))


@lru_cache(maxsize=2)
def _sentence_transformer(model: str, device: str | None, max_tokens: int | None) -> Any:
    import sentence_transformers

    network = sentence_transformers.SentenceTransformer(os.fspath(model), device=device)
    if max_tokens is not None:
        network.max_seq_length = max_tokens
    return network
