"""Diversity read off the words and formulas of the completions: DIVER's textual and equational diversity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..embedders import formulas
from ..group import Groups
from .base import Shaping, register

BLEU_WEIGHTS = (0.02, 0.1, 0.15, 0.25, 0.38)  # of 1- to 5-grams, as released; they sum to 0.9
CHARACTERS = 1000  # of a completion that are looked at, as released


def bleu_matrix(texts_G: Sequence[str], weights: Sequence[float] = BLEU_WEIGHTS) -> np.ndarray:
    """Sentence BLEU of text i as candidate against text j as its one reference, (G, G) float64 in [0, 1]; words split at blanks.

    b_ij = min(1, exp(1 - |j|/|i|)) * prod_n p_n^weights[n-1], p_n the share of i's n-grams that j has too (clipped counts).
    No smoothing: without one common n-gram of every length b_ij = 0, also for two equal texts shorter than the longest n-gram.
    """
    words_G = [text.split() for text in texts_G]
    lengths_G = np.array([len(words) for words in words_G], np.float64)
    brevity_GG = np.exp(np.minimum(0.0, 1.0 - lengths_G[None, :] / np.maximum(lengths_G, 1)[:, None]))
    log_GG = np.zeros((len(words_G), len(words_G)))
    for n, weight in enumerate(weights, start=1):
        common_GG = _common_ngrams(words_G, n)
        precision_GG = common_GG / np.maximum(lengths_G - n + 1, 1)[:, None]
        with np.errstate(divide="ignore"):
            log_GG += weight * np.log(precision_GG)
    return brevity_GG * np.exp(log_GG)


def _common_ngrams(words_G: Sequence[Sequence[str]], n: int) -> np.ndarray:
    """(G, G): how many n-grams texts i and j have in common, each counted as often as both have it."""
    numbers: dict[tuple[str, ...], int] = {}
    grams = [numbers.setdefault(tuple(words[k : k + n]), len(numbers)) for words in words_G for k in range(len(words) - n + 1)]
    sizes_G = np.array([max(0, len(words) - n + 1) for words in words_G])
    size = max(1, len(numbers))
    pairs, counts = np.unique(np.repeat(np.arange(len(words_G)) * size, sizes_G) + np.array(grams, np.int64), return_counts=True)
    rows, columns = np.divmod(pairs, size)
    shared = np.bincount(columns, minlength=size) > 1  # most n-grams are one text's own: left out, they cost nothing
    kept = shared[columns]
    counts_GV = np.zeros((len(words_G), int(shared.sum())), np.int64)
    counts_GV[rows[kept], (np.cumsum(shared) - 1)[columns[kept]]] = counts[kept]
    common_GG = np.stack([np.minimum(row, counts_GV).sum(axis=1) for row in counts_GV])
    np.fill_diagonal(common_GG, sizes_G)
    return common_GG


def textual_diversity(texts_G: Sequence[str]) -> np.ndarray:
    """TD_i = 1 - mean over j != i of (b_ij + b_ji) / 2 with b of :func:`bleu_matrix`, (G,) float64; ones for a single text."""
    bleu_GG = bleu_matrix([text[:CHARACTERS] for text in texts_G])
    np.fill_diagonal(bleu_GG, 0.0)
    return 1.0 - (bleu_GG + bleu_GG.T).sum(axis=1) / 2 / max(1, len(texts_G) - 1)


def equational_diversity(texts_G: Sequence[str]) -> np.ndarray:
    """ED_i: the share of the distinct formulas of text i that no other text has, (G,) float64; 0 without a formula."""
    sets_G = [formulas(text[:CHARACTERS]) for text in texts_G]
    texts_with: dict[str, int] = {}
    for found in sets_G:
        for formula in found:
            texts_with[formula] = texts_with.get(formula, 0) + 1
    return np.array([sum(texts_with[formula] == 1 for formula in found) / max(1, len(found)) for found in sets_G], np.float64)


@register("diver")
@dataclass(frozen=True)
class DIVER:
    """DIVER's diversity bonus on the reward of correct completions (arXiv 2509.26209; formula as in the released code).

        r'_i = r_i * (1 + a min(TD_i, 0.91) + b min(ED_i, 0.42))

    r_i is the verified reward, TD_i one minus the mean symmetric sentence BLEU of completion i with the others (1- to 5-grams,
    first 1000 characters, self excluded), ED_i the share of its formulas (between dollar signs or LaTeX brackets) that no
    other completion has, a = ``textual``, b = ``equational``; the caps stop a policy from being paid for ever stranger text.

    Stage: reward; then GRPO (``base_advantage``). Wrong completions get no bonus, so an all-wrong group gives no signal; in an
    all-right group the bonus is the only difference, and GRPO's standard deviation makes it as loud as correctness is elsewhere.

    The released code gives the bonus in the first 100 steps only; a shaper knows no step, so that schedule is the trainer's. Its
    other modes are ``textual`` alone on groups that are all right (``only="solved_groups"``, ``cap_textual=1``) and a cosine
    schedule of ED with cap 0.68, which is not here. Its shipped script sets a to 0, which leaves its textual mode without effect;
    which a and b the paper's runs had was not found: the values here are defaults of this package. The paper speaks of
    potential-based shaping; what is here is what its code adds to the reward.

    BLEU has no smoothing: completions of fewer than five words, even equal ones, have TD = 1. On tasks with such answers use
    another shaper.

    Args:
        textual: a >= 0, weight of TD.
        equational: b >= 0, weight of ED.
        cap_textual: Largest TD that counts.
        cap_equational: Largest ED that counts.
        only: "correct" completions, or those in "solved_groups" (all members correct), get the bonus.
    """

    textual: float = 0.5
    equational: float = 0.5
    cap_textual: float = 0.91
    cap_equational: float = 0.42
    only: str = "correct"
    base_advantage = "grpo"

    def __post_init__(self) -> None:
        for option in ("textual", "equational", "cap_textual", "cap_equational"):
            value = getattr(self, option)
            if not (isinstance(value, (int, float)) and 0 <= value < float("inf")):
                raise ValueError(f"expected {option} to be a number >= 0, got {value!r}")
        if self.only not in ("correct", "solved_groups"):
            raise ValueError(f"unknown only {self.only!r}: choose one of correct, solved_groups")

    def __call__(self, groups: Groups, rng: np.random.Generator) -> Shaping:
        paid_NG = groups.correct if self.only == "correct" else groups.correct & groups.correct.all(axis=1, keepdims=True)
        bonus_NG = np.zeros(groups.rewards.shape)
        for bonus_G, texts_G, paid_G in zip(bonus_NG, groups.completions_NG, paid_NG):
            if paid_G.any():
                bonus_G += self.textual * np.minimum(textual_diversity(texts_G), self.cap_textual)
                bonus_G += self.equational * np.minimum(equational_diversity(texts_G), self.cap_equational)
        return Shaping(shaped_rewards=groups.rewards * (1.0 + bonus_NG * paid_NG))
