"""How alike real completions of one problem are, and how large SetPO's raw credit is for it: hashed n-grams beside a model's vectors.

    SETPO_TEST_DATA=FOLDER OMP_NUM_THREADS=1 python benchmarks/similarity.py [MODEL_FOLDER [CACHE_FOLDER]]

Of every file in FOLDER/data/completions the first 40 groups and of each the first 16 members. With MODEL_FOLDER, its vectors by
sentence-transformers too, kept in CACHE_FOLDER. Prints, for each embedder, quantiles of the clamped cosine of pairs inside groups; the
mean of abs s by group size, over the files sampled from one policy (aime24, amc23, math) and over all; and the rank agreement of the two:
Spearman's rho over the pairs of a group, the median over groups and its quartiles, and of the credits alike.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when numpy loads

import sys  # noqa: E402

import completions  # noqa: E402

sys.path.remove(os.path.dirname(os.path.abspath(__file__)))  # datasets.py beside this file would hide the library of that name

from collections.abc import Iterable  # noqa: E402
from types import SimpleNamespace  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

from setpo_envs.embedders import SentenceTransformerEmbedder, embed  # noqa: E402
from setpo_envs.shapers.setpo import cosine_kernel, setpo_credits  # noqa: E402

N_GROUPS, N_MEMBERS, SIZES = 40, 16, (3, 6, 8, 16)
ONE_POLICY = ("aime24_g50", "amc23_g50", "math_g8")
QUANTILES = (5, 25, 50, 75, 95)


def main() -> None:
    texts, correct = {}, {}
    for name, groups in completions.groups().items():
        texts[name] = [group[:N_MEMBERS] for group in groups.completions_NG[:N_GROUPS]]
        correct[name] = groups.correct[:N_GROUPS, :N_MEMBERS]
    kernels = {"n-grams": {name: kernel_of(group, "ngram") for name, group in texts.items()}}
    if len(sys.argv) > 1:
        model = SentenceTransformerEmbedder(sys.argv[1], cache=sys.argv[2] if len(sys.argv) > 2 else None)
        kernels["model"] = {}
        for name, group in texts.items():
            kernels["model"][name] = kernel_of(group, model)
            print(f"{name}: {len(group)} groups of {len(group[0])}", file=sys.stderr, flush=True)

    print(f"{'cosine inside groups':<34}{'pairs':>8}" + "".join(f"{f'{q} %':>8}" for q in QUANTILES))
    for embedder, of_file in kernels.items():
        every = {name: pairs(kernel_NGG) for name, kernel_NGG in of_file.items()}
        right = [pairs(of_file[name], correct[name]) for name in of_file]
        for label, parts in [("all", list(every.values())), ("both correct", right), *((name, [found]) for name, found in every.items())]:
            found = np.concatenate(parts)
            print(f"{embedder + ', ' + label:<34}{len(found):>8}" + "".join(f"{x:>8.3f}" for x in np.percentile(found, QUANTILES)))

    print(f"\n{'mean abs s, raw SetPO':<34}" + "".join(f"{f'G = {size}':>10}" for size in SIZES))
    for embedder, of_file in kernels.items():
        for label, names in (("one policy", ONE_POLICY), ("all", tuple(of_file))):
            means = []
            for size in SIZES:
                found = [np.abs(setpo_credits(of_file[name][:, :size, :size])[0]) for name in names if of_file[name].shape[1] >= size]
                means.append(np.concatenate([credits_NG.ravel() for credits_NG in found]).mean())
            print(f"{embedder + ', ' + label:<34}" + "".join(f"{mean:>10.4f}" for mean in means))

    if len(kernels) == 2:
        for label, ranks in (("pairs of a group", agreement(kernels, of_pairs)), ("credits of a group", agreement(kernels, of_credits))):
            low, median, high = np.percentile(ranks, (25, 50, 75))
            print(f"\nrank agreement, {label}: median {median:.2f}, quartiles {low:.2f} and {high:.2f}, {len(ranks)} groups")


def kernel_of(groups: list[list[str]], embedder: Any) -> np.ndarray:
    batch: Any = SimpleNamespace(completions_NG=groups, n_groups=len(groups), group_size=len(groups[0]))
    return cosine_kernel(embed(batch, embedder)).astype(np.float64)


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
