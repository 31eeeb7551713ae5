"""Embedders of words (TF-IDF) and of formulas; neither needs weights."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..group import Groups
from .vectors import unit_rows

_TERM = re.compile(r"\w+|[^\w\s]")  # words, and each sign by itself: in mathematics signs carry the meaning


@dataclass(frozen=True)
class TfIdf:
    """Counts of words and signs (lower case), each times log((1 + T)/(1 + t)) + 1 for a term that t of T texts have.

    What all texts share weighs least, so the vectors show how they differ.

    Args:
        over: Which T texts are counted: those of the "group", or of the whole "batch" of groups in one call. With "batch" the
            similarity of two completions depends on the groups that are embedded with theirs.
    """

    over: str = "group"

    def __post_init__(self) -> None:
        if self.over not in ("group", "batch"):
            raise ValueError(f"unknown over {self.over!r}: choose one of group, batch")

    def __call__(self, groups: Groups) -> np.ndarray:
        counts_NG = [[Counter(_TERM.findall(text.lower())) for text in group] for group in groups.completions_NG]
        texts_with = [Counter(term for counts in group for term in counts) for group in counts_NG]
        total = groups.group_size
        if self.over == "batch":
            total *= groups.n_groups
            texts_with = [sum(texts_with, Counter())] * groups.n_groups
        weighted = [
            [{term: count * (math.log((1 + total) / (1 + seen[term])) + 1) for term, count in counts.items()} for counts in group]
            for group, seen in zip(counts_NG, texts_with)
        ]
        return rows_of(weighted)


tfidf = TfIdf()


def equations(groups: Groups) -> np.ndarray:
    """One dimension a distinct formula of the group, 1 where the text has it: the cosine of two sets of formulas.

    Equation diversity in the sense of R1-zero-Div (arXiv 2505.23433) and DIVER (arXiv 2509.26209): what counts is which formulas
    a solution writes, not its words. Texts without a formula are alike, and unlike those with one.
    """
    return rows_of([[dict.fromkeys(formulas(text), 1.0) for text in group] for group in groups.completions_NG])


def formulas(text: str) -> set[str]:
    """Distinct formulas of a text: what stands inside ``\\[ \\]`` (without "]"), ``\\( \\)`` (without ")") or a pair of dollar signs.

    A doubled dollar sign counts as one sign. Time is linear in the text, whatever is left open in it.
    """
    pieces = text.replace("$$", "$").split("$")
    found = set(pieces[1 : len(pieces) - 1 : 2])  # after an odd last sign nothing is closed
    for opening, last in (("\\[", "]"), ("\\(", ")")):
        start = text.find(opening)
        while start >= 0 and (end := text.find(last, start)) >= 0:
            if text[end - 1] == "\\":
                found.add(text[start + 2 : end - 1])
            start = text.find(opening, end + 1)
    return found


def rows_of(weights_NG: Sequence[Sequence[dict[str, float]]]) -> np.ndarray:
    """Unit rows (N, G, d) of sparse vectors; every name has a dimension of its own inside its group, and so has "nothing"."""
    columns_N: list[dict[str, int]] = []
    for group in weights_NG:
        columns: dict[str, int] = {}
        for weights in group:
            for name in weights:
                columns.setdefault(name, len(columns))
        columns_N.append(columns)
    vectors_NGd = np.zeros((len(weights_NG), len(weights_NG[0]), max(1, *map(len, columns_N))), np.float32)
    for vectors_Gd, group, columns in zip(vectors_NGd, weights_NG, columns_N):
        for vector_d, weights in zip(vectors_Gd, group):
            vector_d[[columns[name] for name in weights]] = list(weights.values())
    return unit_rows(vectors_NGd)
