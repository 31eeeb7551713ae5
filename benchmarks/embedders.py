"""Texts a second of the embedders, one thread: 64 groups of 16 texts of about 1,400 characters.

    OMP_NUM_THREADS=1 python benchmarks/embedders.py [MODEL_FOLDER ...]

A model folder is timed with sentence-transformers, on the first 64 texts. Prints texts a CPU second, and the ratio to ``ngram``.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when numpy loads

import sys  # noqa: E402

sys.path.remove(os.path.dirname(os.path.abspath(__file__)))  # datasets.py beside this file would hide the library of that name

import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from types import SimpleNamespace  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

from setpo_envs.embedders import EMBEDDERS, SentenceTransformerEmbedder, TfIdf  # noqa: E402


def texts_per_second(call: Callable[[], object], count: int, repeats: int = 5) -> float:
    call()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return count / float(np.median(times))


def main() -> None:
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("aeioulnrst"), size=rng.integers(2, 9))) for _ in range(2000)]
    completions = []
    for _ in range(64):
        own = rng.choice(words, size=120)  # a problem's vocabulary
        completions.append(
            [" ".join(f"${word} = {i}$" if i % 9 == 0 else word for i, word in enumerate(rng.choice(own, 230))) for _ in range(16)]
        )
    groups: Any = SimpleNamespace(completions_NG=completions, n_groups=64, group_size=16)
    print(f"mean length {np.mean([len(text) for group in completions for text in group]):.0f} characters")
    floor = texts_per_second(lambda: EMBEDDERS["ngram"](groups), 1024)
    rows = {"ngram": floor}
    for name in ("tfidf", "equations"):
        rows[name] = texts_per_second(lambda name=name: EMBEDDERS[name](groups), 1024)
    rows["tfidf, over batch"] = texts_per_second(lambda: TfIdf("batch")(groups), 1024)
    for folder in sys.argv[1:]:
        model = SentenceTransformerEmbedder(folder)
        rows[folder[-40:]] = texts_per_second(
            lambda model=model: model.encode([text for group in completions[:4] for text in group]), 64, 3
        )
    for name, speed in rows.items():
        print(f"{name:<42}{speed:10.0f} texts/s{speed / floor:9.3f}x")


if __name__ == "__main__":
    main()
