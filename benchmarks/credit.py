"""Time of the SetPO credit against the naive leave-one-out and against the bare product of embeddings. One thread.

    OMP_NUM_THREADS=1 python benchmarks/credit.py

Prints medians in milliseconds. "ours" is kernel and credit, from embeddings (d = 384, float32) to credits (float64); "naive" is
the credit alone, recomputed on every leave-one-out set from the same kernel with numpy (at G = 1024 measured on 8 removals and
scaled to all 1024); "E @ E.T" is the product of the embeddings alone, which no method on a full kernel can do without;
"difference" is the largest between ours and the naive credits.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when numpy loads

import time  # noqa: E402
from collections.abc import Callable  # noqa: E402

import numpy as np  # noqa: E402

from setpo_envs.shapers.setpo import cosine_kernel, setpo_credits  # noqa: E402


def median_ms(call: Callable[[], object], seconds: float = 1.5) -> float:
    call()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * float(np.median(times))


def diversity(kernel_SS: np.ndarray) -> float:
    size = len(kernel_SS)
    masses = (kernel_SS.sum(axis=1) - kernel_SS.diagonal()) / (size - 1)
    return float(-np.log1p(masses).mean())


def naive(kernel_NGG: np.ndarray, removals: int) -> np.ndarray:
    """Equations 3 and 4 as they stand, for the first ``removals`` members of each group."""
    credits = np.empty((len(kernel_NGG), removals))
    for n, kernel_GG in enumerate(kernel_NGG.astype(np.float64)):
        whole = diversity(kernel_GG)
        for i in range(removals):
            rest = np.delete(np.arange(len(kernel_GG)), i)
            credits[n, i] = whole - diversity(kernel_GG[np.ix_(rest, rest)])
    return credits


def main() -> None:
    rng = np.random.default_rng(0)
    columns = ("ours", "its kernel", "E @ E.T", "naive", "naive/ours", "ours/E@E.T", "difference")
    print(" " * 14 + "".join(f"{column:>12}" for column in columns))
    for groups, size, removals in ((1, 16, 16), (64, 16, 16), (1, 256, 64), (1, 1024, 8)):
        # one common direction plus noise, mean cosine about 0.7: completions of one prompt resemble each other
        embeddings = rng.normal(size=(groups, size, 384)) + 1.5 * rng.normal(size=(groups, 1, 384))
        embeddings = (embeddings / np.linalg.norm(embeddings, axis=2, keepdims=True)).astype(np.float32)
        kernel = cosine_kernel(embeddings)
        difference = np.abs(setpo_credits(kernel)[0][:, :removals] - naive(kernel, removals)).max()
        bare = median_ms(lambda e=embeddings: e @ e.swapaxes(1, 2))
        kernel_only = median_ms(lambda e=embeddings: cosine_kernel(e))
        ours = median_ms(lambda e=embeddings: setpo_credits(cosine_kernel(e)))
        slow = median_ms(lambda k=kernel, r=removals: naive(k, r)) * size / removals
        times = "".join(f"{ms:12.3f}" for ms in (ours, kernel_only, bare, slow))
        print(f"N={groups:<4}G={size:<6} {times}{slow / ours:11.0f}x{ours / bare:11.1f}x{difference:12.0e}")


if __name__ == "__main__":
    main()
