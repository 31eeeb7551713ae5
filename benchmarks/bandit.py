"""Which solutions does a policy keep? A bandit with 12 modes, 4 of them right, under exact softmax policies (SetPO paper, figure 1).

    python benchmarks/bandit.py

Each of 40 policies (one a seed) draws groups of 6 modes, advantages are GRPO's plus lambda times the SetPO credit of this package, and
logits move along the exact gradient of log softmax. Printed: the Hill number of order 2 of the final policy over the right modes (1 is
collapsed, 4 is uniform), mean over seeds, and the accuracy where it is below .99. All columns see the same embeddings and seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from setpo_agents.advantages import combine, grpo
from setpo_envs.shapers.setpo import SetPO, cosine_kernel

MODES, RIGHT, DIMENSIONS = 12, 4, 50
LAMBDAS = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "raw, all rollouts": {},
    "raw, zeroed on wrong rollouts": {"apply_to": "correct"},
    "raw, mixed groups only": {"apply_to": "mixed_groups"},
    "scaled by (G-2)": {"scale": "g_minus_2"},
    "z-scored": {"scale": "zscore"},
}


def train(
    options: Mapping[str, Any],
    lambdas: Sequence[float],
    *,
    seeds: int = 40,
    steps: int = 3000,
    group_size: int = 6,
    learning_rate: float = 0.2,
    embedding_seed: int = 0,
) -> np.ndarray:
    """Final policies (L, seeds, MODES) for each lambda, with ``SetPO(**options)``; the first ``RIGHT`` modes are right."""
    L, B, G = len(lambdas), len(lambdas) * seeds, group_size
    vectors = np.random.default_rng(embedding_seed).normal(size=(1, MODES, DIMENSIONS))
    kernel = cosine_kernel(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))[0]
    shaper, rng = SetPO(**options), np.random.default_rng(1)
    coefficients_B1 = np.repeat(lambdas, seeds)[:, None]
    logits_BM = np.zeros((B, MODES))
    everyone = np.ones((B, G), bool)
    for _ in range(steps):
        policy_BM = softmax(logits_BM)
        uniform_BG = np.tile(rng.random((seeds, G)), (L, 1))  # a seed draws the same numbers at every lambda
        modes_BG = (policy_BM.cumsum(1)[:, None, :] < uniform_BG[..., None]).sum(-1).clip(max=MODES - 1)
        correct_BG = modes_BG < RIGHT
        groups: Any = SimpleNamespace(valid=everyone, correct=correct_BG, well_formed=everyone, group_size=G)
        shaping = shaper(groups, rng, kernel_NGG=kernel[modes_BG[:, :, None], modes_BG[:, None, :]])
        advantages_BG = combine(grpo(correct_BG), shaping.credits, coefficients_B1)
        # mean over the group of A_i * (one-hot of its mode - policy)
        gradient_BM = -advantages_BG.mean(1, keepdims=True) * policy_BM
        np.add.at(gradient_BM, (np.arange(B)[:, None], modes_BG), advantages_BG / G)
        logits_BM += learning_rate * gradient_BM
    return softmax(logits_BM).reshape(L, seeds, MODES)


def softmax(logits_BM: np.ndarray) -> np.ndarray:
    weights = np.exp(logits_BM - logits_BM.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def hill(policies: np.ndarray) -> np.ndarray:
    """Hill number of order 2, 1 / sum q^2, of the policies (..., MODES) among right modes."""
    right = policies[..., :RIGHT]
    q = right / right.sum(-1, keepdims=True)
    return 1 / np.square(q).sum(-1)


def accuracy(policies: np.ndarray) -> np.ndarray:
    """Probability of a right mode."""
    return policies[..., :RIGHT].sum(-1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--embedding-seed", type=int, default=0)
    sizes = vars(parser.parse_args())
    columns = []
    for options in VARIANTS.values():
        policies = train(options, LAMBDAS, **sizes)
        columns.append(list(zip(hill(policies).mean(1), accuracy(policies).mean(1))))
    print(f"| lambda | {' | '.join(VARIANTS)} |\n|---|{'---|' * len(VARIANTS)}")
    for i, value in enumerate(LAMBDAS):
        cells = [f"{column[i][0]:.2f}" + (f", accuracy {column[i][1]:.3f}" if column[i][1] < 0.99 else "") for column in columns]
        print(f"| {value:g} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
