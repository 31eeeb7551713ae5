"""DARLING: verified reward times the completion's share of diversity in its group (arXiv 2509.02534)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..embedders import Embedder, embed, resolve_embedder
from ..group import Groups
from .base import Shaping, register

_FLOOR = 0.1
_CHOICES: dict[str, tuple[str, ...]] = {"partition": ("mode", "embedding", "ngram"), "members": ("all", "correct")}


@register("darling")
@dataclass(frozen=True)
class Darling:
    """DARLING (arXiv 2509.02534): r'_i = r_i max(.1, (G - n_i) / (G - 1)), n_i the size of i's cluster in its group of G.

    Stage: reward, under the advantage r' - mean(r') without a standard deviation (Dr.GRPO's). Formula and settings as in the
    released code, whose clusters are joined by a learned classifier of equivalent answers. That classifier is not here: clusters
    are the verifier's modes or, closest to the original, pairs of similar completions joined transitively.

    A group without a correct member keeps rewards of 0. In one whose members are all right those of smaller clusters get more,
    so it trains; if they form one cluster all get .1. Members without a mode, those without a verdict among them, are one cluster.

    Args:
        partition: "mode", clusters of equal mode keys; "embedding", completions whose cosine is above ``threshold`` are joined;
            "ngram", no clusters: r'_i = r_i times the fraction of i's word 4-grams that no other member has, the alternative of
            the released code (see :func:`unique_ngram_fraction`).
        members: "all", or "correct", where clusters are those of the correct members alone (G becomes their number); members
            outside get .1, and so does every member where fewer than two are correct. Does not go with "ngram".
        embedder: Of partition "embedding": a name or a callable, see :mod:`setpo_envs.embedders`.
        threshold: Of partition "embedding". The paper's .5 is a classifier's probability; this default is not the paper's, and the
            cosines of any one embedder want a value of their own.
    """

    partition: str = "mode"
    members: str = "all"
    embedder: str | Embedder = "ngram"
    threshold: float = 0.9
    min_group_size = 2
    base_advantage = "dr_grpo"

    def __post_init__(self) -> None:
        for option, choices in _CHOICES.items():
            if (value := getattr(self, option)) not in choices:
                raise ValueError(f"unknown {option} {value!r}: choose one of {', '.join(choices)}")
        if self.partition == "ngram" and self.members != "all":
            raise ValueError("expected members='all' beside partition='ngram', which compares each completion with all others")
        if not -1 <= self.threshold <= 1:
            raise ValueError(f"expected a threshold between -1 and 1, a cosine, got {self.threshold!r}")
        resolve_embedder(self.embedder)

    def __call__(self, groups: Groups, rng: np.random.Generator) -> Shaping:
        if groups.group_size < self.min_group_size:
            return Shaping(defined=np.zeros(groups.n_groups, bool))
        if self.partition == "ngram":
            factors_NG = np.array([unique_ngram_fraction(group) for group in groups.completions_NG])
        else:
            factors_NG = darling_factors(self._similar(groups), groups.correct if self.members == "correct" else None)
        return Shaping(shaped_rewards=groups.rewards * factors_NG)

    def _similar(self, groups: Groups) -> np.ndarray:
        if self.partition == "mode":
            return groups.modes[:, :, None] == groups.modes[:, None, :]
        embeddings_NGd = embed(groups, self.embedder)
        return embeddings_NGd @ embeddings_NGd.swapaxes(1, 2) > self.threshold


def darling_factors(similar_NGG: np.ndarray, members_NG: np.ndarray | None = None) -> np.ndarray:
    """max(.1, (n - n_i) / (n - 1)) for each member of N groups, (N, G) float64 (arXiv 2509.02534).

    n_i is the size of the cluster of member i and n that of the group. Clusters are the connected parts of the graph
    ``similar_NGG`` (N, G, G), bool and symmetric; the diagonal is not read. With ``members_NG`` (N, G) bool they are clusters of
    these alone, n is their number, and whoever is outside, or in a group of fewer than two, gets .1.
    """
    similar_NGG = np.asarray(similar_NGG, bool)
    size = similar_NGG.shape[1]
    members_NG = np.ones(similar_NGG.shape[:2], bool) if members_NG is None else np.asarray(members_NG, bool)
    linked_NGG = (similar_NGG | np.eye(size, dtype=bool)) & members_NG[:, :, None] & members_NG[:, None, :]
    n_N1 = members_NG.sum(axis=1, keepdims=True)
    sizes_NG = transitive_closure(linked_NGG).sum(axis=2)
    return np.where(members_NG, np.maximum(_FLOOR, (n_N1 - sizes_NG) / np.maximum(n_N1 - 1, 1)), _FLOOR)


def transitive_closure(linked_NGG: np.ndarray) -> np.ndarray:
    """Who is reached from whom over any number of links, (N, G, G) bool; for ``linked_NGG`` symmetric, with itself linked."""
    while True:  # paths double in length: at most log2(G) rounds
        wider_NGG = (reach := linked_NGG.astype(np.float32)) @ reach > 0
        if (wider_NGG == linked_NGG).all():
            return linked_NGG
        linked_NGG = wider_NGG


def unique_ngram_fraction(texts: Sequence[str], n: int = 4) -> list[float]:
    """For each text the fraction of its n-grams that no other text has, n-grams of words between spaces.

    As the code of arXiv 2509.02534 counts: distinct n-grams above, n-grams with repeats below the line; 0 for fewer than n words.
    """
    words = [text.split() for text in texts]
    grams: list[set[tuple[Any, ...]]] = [set(zip(*(text[i:] for i in range(n)))) for text in words]
    holders = Counter(gram for own in grams for gram in own)
    return [sum(holders[gram] == 1 for gram in own) / max(1, len(text) - n + 1) for own, text in zip(grams, words)]
