"""Embedders: N groups of G completions -> (N, G, d) float32 unit vectors, whose cosines are the similarities of a kernel.

Two completions are compared only inside a group, so an embedder may choose its space per group. These need no weights:

- ``ngram`` (default): hashed byte n-grams of the text; any task, lexical similarity.
- ``tfidf``: words and signs, those that all completions share weighing least (option ``over``).
- ``equations``: the formulas that a text writes, and nothing else of it.
- ``expression``: what the answer's arithmetic expression is made of; Countdown.
- ``policy``: vectors that the agent handed in with each completion (``Completion(text, embedding=vector)``).

These ask a model, with options; vectors can be kept on disk (option ``cache``):

- ``transformers`` (the model of SetPO's paper unless named otherwise) and ``sentence_transformers``: by hub name or path.
- ``endpoint``: an OpenAI-compatible ``/v1/embeddings`` server.

Options go beside the name: ``shaper_kwargs={"embedder": {"name": "transformers", "model": "folder", "pooling": "mean"}}``. Any
``callable(groups) -> (N, G, d)`` array is an embedder too; :func:`embed` checks and normalises what it returns.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..group import Groups
from .endpoint import EndpointEmbedder
from .members import expression, policy
from .models import SentenceTransformerEmbedder, TextEmbedder, TransformersEmbedder
from .ngrams import DIMENSIONS, hash_ngrams, ngram, ngrams_of
from .vectors import unit_rows
from .words import TfIdf, equations, formulas, tfidf

__all__ = [
    "CONFIGURED",
    "DIMENSIONS",
    "EMBEDDERS",
    "Embedder",
    "EmbedderSpec",
    "EndpointEmbedder",
    "SentenceTransformerEmbedder",
    "TextEmbedder",
    "TfIdf",
    "TransformersEmbedder",
    "embed",
    "equations",
    "expression",
    "formulas",
    "hash_ngrams",
    "ngram",
    "ngrams_of",
    "policy",
    "resolve_embedder",
    "tfidf",
]

Embedder = Callable[[Groups], np.ndarray]
EmbedderSpec = str | Mapping[str, Any] | Embedder  # a name, a name with options, or the embedder itself

EMBEDDERS: dict[str, Embedder] = {"ngram": ngram, "expression": expression, "policy": policy, "tfidf": tfidf, "equations": equations}
CONFIGURED: dict[str, Callable[..., Embedder]] = {
    "tfidf": TfIdf,
    "transformers": TransformersEmbedder,
    "sentence_transformers": SentenceTransformerEmbedder,
    "endpoint": EndpointEmbedder,
}


def resolve_embedder(embedder: EmbedderSpec) -> Embedder:
    """The embedder of that name, of a mapping ``{"name": name, option: value, ...}``, or the callable itself.

    Raises:
        ValueError: Unknown name or option, or a value that the embedder refuses.
        ImportError: The embedder needs a package that is not installed.
    """
    if callable(embedder):
        return embedder
    if isinstance(embedder, str) and embedder in EMBEDDERS:
        return EMBEDDERS[embedder]
    options = dict(embedder) if isinstance(embedder, Mapping) else {"name": embedder}
    name = options.pop("name", None)
    if isinstance(name, str) and name in EMBEDDERS and not options:
        return EMBEDDERS[name]
    if not isinstance(name, str) or name not in EMBEDDERS.keys() | CONFIGURED.keys():
        known = ", ".join(dict.fromkeys([*EMBEDDERS, *CONFIGURED]))
        raise ValueError(f"unknown embedder {name!r}: choose one of {known}, or give a callable(groups) -> (N, G, d)")
    parameters = inspect.signature(CONFIGURED[name]).parameters if name in CONFIGURED else {}
    if unknown := [option for option in options if option not in parameters]:
        choices = ", ".join(parameters) or "none, it has no options"
        raise ValueError(f"unknown option {unknown[0]!r} of embedder {name!r}: choose among {choices}")
    required = [key for key, parameter in parameters.items() if parameter.default is parameter.empty and key not in options]
    if required:
        raise ValueError(f"embedder {name!r} needs the option {required[0]!r}: give it beside the name")
    return CONFIGURED[name](**options)


def embed(groups: Groups, embedder: EmbedderSpec) -> np.ndarray:
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
    if isinstance(embedder, str) and embedder in ("ngram", "expression"):  # unit rows already
        return embeddings_NGd
    if not np.isfinite(embeddings_NGd).all():
        raise ValueError(f"expected finite embeddings from {embedder!r}, got nan or inf")
    return unit_rows(embeddings_NGd)
