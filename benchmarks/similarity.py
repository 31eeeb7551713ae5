"""How alike real completions of one problem are, and how large SetPO's raw credit is for it: hashed n-grams, or beside a model's vectors.

    SETPO_TEST_DATA=FOLDER OMP_NUM_THREADS=1 python benchmarks/similarity.py [--groups N] [--members G] [--model FOLDER] [--cache FOLDER]

Of every file in FOLDER/data/completions the first N groups and of each the first G members; all of them by default. With ``--model``
sentence-transformers' vectors of that model too, kept in the folder of ``--cache``. Prints, for each embedder, quantiles of the clamped
cosine of pairs inside groups; the mean of abs s by group size (the first members of each group that has as many), over files sampled
from one policy and over all; and the rank agreement of the two: Spearman's rho over the pairs, and over the credits, of each group of
more than three members.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when numpy loads

import argparse  # noqa: E402
import sys  # noqa: E402

import completions  # noqa: E402

sys.path.remove(os.path.dirname(os.path.abspath(__file__)))  # datasets.py beside this file would hide the library of that name

from collections.abc import Iterable  # noqa: E402
from types import SimpleNamespace  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

from setpo_envs.embedders import SentenceTransformerEmbedder, embed  # noqa: E402
from setpo_envs.shapers.setpo import cosine_kernel, setpo_credits  # noqa: E402

SIZES = (3, 6, 7, 8, 16, 32)
POLICIES = {"aime24 and amc23": ("aime24_g50", "amc23_g50"), "math": ("math_g8",)}  # files sampled from one policy each
QUANTILES = (5, 25, 50, 75, 95)


def main() -> None:
    parser = argparse.ArgumentParser()
    for option in ("--groups", "--members"):
        parser.add_argument(option, type=int)
    for option in ("--model", "--cache"):
        parser.add_argument(option)
    asked = parser.parse_args()
    texts, correct = {}, {}
    for name, groups in completions.groups().items():
        texts[name] = [group[: asked.members] for group in groups.completions_NG[: asked.groups]]
        correct[name] = groups.correct[: asked.groups, : asked.members]
    kernels = {"n-grams": {name: kernels_of(group, "ngram") for name, group in texts.items()}}
    if asked.model:
        model = SentenceTransformerEmbedder(asked.model, cache=asked.cache)
        kernels["model"] = {name: kernels_of(group, model, name) for name, group in texts.items()}

    print(f"{'cosine inside groups':<34}{'pairs':>8}" + "".join(f"{f'{q} %':>8}" for q in QUANTILES))
    for embedder, of_file in kernels.items():
        every = {name: pairs(kernel_NGG) for name, kernel_NGG in of_file.items()}
        right = [pairs(of_file[name], correct[name]) for name in of_file]
        for label, parts in [("all", list(every.values())), ("both correct", right), *((name, [found]) for name, found in every.items())]:
            found = np.concatenate(parts)
            print(f"{embedder + ', ' + label:<34}{len(found):>8}" + "".join(f"{x:>8.3f}" for x in np.percentile(found, QUANTILES)))

    print(f"\n{'mean abs s, raw SetPO':<34}" + "".join(f"{f'G = {size}':>10}" for size in SIZES))
    for embedder, of_file in kernels.items():
        for label, names in (*POLICIES.items(), ("all", tuple(of_file))):
            means = []
            for size in SIZES:
                found = [np.abs(setpo_credits(of_file[name][:, :size, :size])[0]) for name in names if of_file[name].shape[1] >= size]
                means.append(f"{np.concatenate([credits_NG.ravel() for credits_NG in found]).mean():.4f}" if found else "-")
            print(f"{embedder + ', ' + label:<34}" + "".join(f"{mean:>10}" for mean in means))

    if len(kernels) == 2:
        for label, ranks in (("pairs of a group", agreement(kernels, of_pairs)), ("credits of a group", agreement(kernels, of_credits))):
            low, median, high = np.percentile(ranks, (25, 50, 75))
            print(f"\nrank agreement, {label}: median {median:.2f}, quartiles {low:.2f} and {high:.2f}, {len(ranks)} groups")


def kernels_of(groups: list[list[str]], embedder: Any, label: str = "") -> np.ndarray:
    kernels = []
    for n, group in enumerate(groups, start=1):
        one: Any = SimpleNamespace(completions_NG=[group], n_groups=1, group_size=len(group))
        kernels.append(cosine_kernel(embed(one, embedder).astype(np.float64))[0])
        if label:
            print(f"{label}: group {n} of {len(groups)}", file=sys.stderr, flush=True)
    return np.stack(kernels)


def pairs(kernel_NGG: np.ndarray, members_NG: np.ndarray | None = None) -> np.ndarray:
    i, j = np.triu_indices(kernel_NGG.shape[1], 1)
    found = kernel_NGG[:, i, j]
    return found.ravel() if members_NG is None else found[members_NG[:, i] & members_NG[:, j]]


def of_pairs(kernel_NGG: np.ndarray) -> Iterable[np.ndarray]:
    return (pairs(kernel_GG[None]) for kernel_GG in kernel_NGG)


def of_credits(kernel_NGG: np.ndarray) -> Iterable[np.ndarray]:
    return setpo_credits(kernel_NGG)[0]


def agreement(kernels: dict[str, dict[str, np.ndarray]], values_of: Any) -> list[float]:
    """Spearman's rho between the embedders in each group of more than three members; groups of equal values have none."""
    ranks = []
    for first_NGG, second_NGG in zip(*(of_file.values() for of_file in kernels.values())):
        if first_NGG.shape[1] > 3:
            both = zip(values_of(first_NGG), values_of(second_NGG))
            ranks += [np.corrcoef(ranked(x), ranked(y))[0, 1] for x, y in both if np.ptp(x) > 0 < np.ptp(y)]
    return ranks


def ranked(values: np.ndarray) -> np.ndarray:
    """Ranks, equal values (to a float32's rounding) sharing their mean rank."""
    _, inverse, counts = np.unique(values.round(6), return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


if __name__ == "__main__":
    main()
