"""Time of set-level credit against the bare product of the embeddings, and accuracy of SetPO's. One thread.

    OMP_NUM_THREADS=1 python benchmarks/credit.py

Every row goes from embeddings (d = 384, float32) to credits or shaped rewards (float64), so its kernel is in the time; "naive" is
SetPO recomputed on every leave-one-out set as equations 3 and 4 stand (at larger G measured on a few removals and scaled to all).
"E @ E.T" is the product of the embeddings alone, which no method on a full kernel can do without. Calls of one size are timed in
turn, in blocks, so that another process slows all of them: printed are the median CPU milliseconds of a call, and the median over
the turns of its ratio to the product. Last comes the largest difference of SetPO's credits from the definition in float64 on the
same float32 kernel, relative to the credits' spread.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when numpy loads

import time  # noqa: E402
from collections.abc import Callable  # noqa: E402

import numpy as np  # noqa: E402

from setpo_envs.shapers import dra_rewards, logdet_credits, setpo_credits, vendi_credits  # noqa: E402
from setpo_envs.shapers.setpo import cosine_kernel  # noqa: E402

SIZES = ((1, 8), (1, 16), (1, 64), (1, 256), (1, 1024), (1, 4096), (64, 16))
BAR = 2.5  # times E @ E.T that SetPO may take from G = 64 on, and at 64 x 16


def blocks_ms(calls: dict[str, Callable[[], object]], seconds: float = 4.0) -> dict[str, np.ndarray]:
    """CPU time of each call over blocks of about 5 ms; blocks of all calls in turn until ``seconds`` are over, at least three."""
    repeats = {}
    for name, call in calls.items():
        call()
        start = time.process_time()
        call()
        repeats[name] = max(1, int(5e-3 / max(time.process_time() - start, 1e-6)))
    times: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or min(map(len, times.values())) < 3:
        for name, call in calls.items():
            call()  # brings its own data and code into the cache
            start = time.process_time()
            for _ in range(repeats[name]):
                call()
            times[name].append(1e3 * (time.process_time() - start) / repeats[name])
    return {name: np.array(values) for name, values in times.items()}


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


def product(e: np.ndarray) -> np.ndarray:
    return e @ e.swapaxes(1, 2)


def main() -> None:
    rng = np.random.default_rng(0)
    names = ("setpo", "dra_grpo", "logdet", "vendi", "naive")
    print(" " * 15 + f"{'E @ E.T':>10}" + "".join(f"{name:>19}" for name in names) + f"{'error/spread':>14}")
    met = True
    for groups, size in SIZES:
        # one common direction plus noise, mean cosine about 0.7: completions of one prompt resemble each other
        e = rng.normal(size=(groups, size, 384)) + 1.5 * rng.normal(size=(groups, 1, 384))
        e = (e / np.linalg.norm(e, axis=2, keepdims=True)).astype(np.float32)
        rewards = (rng.random((groups, size)) < 0.5).astype(np.float64)
        removals = min(size, 16 if size <= 256 else 4)
        calls: dict[str, Callable[[], object]] = {
            "E @ E.T": lambda e=e: product(e),
            "setpo": lambda e=e: setpo_credits(cosine_kernel(e)),
        }
        if size <= 256:
            calls |= {
                "dra_grpo": lambda e=e, r=rewards: dra_rewards(r, product(e)),
                "logdet": lambda e=e: logdet_credits(product(e.astype(np.float64))),
                "vendi": lambda e=e: vendi_credits(product(e.astype(np.float64))),
                "naive": lambda e=e, k=removals: naive(cosine_kernel(e), k),
            }
        blocks = blocks_ms(calls)
        ms = {name: float(np.median(values)) for name, values in blocks.items()}
        ratio = {name: float(np.median(values / blocks["E @ E.T"])) for name, values in blocks.items()}
        if "naive" in ms:
            ms["naive"], ratio["naive"] = ms["naive"] * size / removals, ratio["naive"] * size / removals
        kernel = cosine_kernel(e)
        credits = setpo_credits(kernel)[0]
        error = (np.abs(credits[:, :removals] - naive(kernel, removals)).max(axis=1) / credits.std(axis=1)).max()
        columns = "".join(f"{ms[name]:10.3f} {ratio[name]:7.1f}x" if name in ms else f"{'-':>19}" for name in names)
        print(f"N={groups:<4}G={size:<7}{ms['E @ E.T']:11.3f}{columns}{error:14.0e}", flush=True)
        met = met and error <= 1e-8 and (size < 64 and groups == 1 or ratio["setpo"] <= BAR)
    print(f"SetPO within {BAR} times E @ E.T from G = 64 on and at 64 x 16, and within 1e-8 of the definition: {'yes' if met else 'no'}")


if __name__ == "__main__":
    main()
