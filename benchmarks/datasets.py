"""Time to load a data set of the size of MATH with every gold checked, against reading its JSON lines alone. One thread.

    OMP_NUM_THREADS=1 python benchmarks/datasets.py

12,500 rows are made of the embedded problems, each with a gold answer that no other row has, so that no cache of golds helps. The ratio is
what checks, prompts and ids cost on top of ``json.loads``.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from setpo_envs.datasets.maths import MATH
from setpo_envs.datasets.table import EMBEDDED, load

N_ROWS = 12_500


def seconds(call: Callable[[], object], times: int = 3) -> float:
    """The least of ``times`` runs."""
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        spent.append(time.perf_counter() - start)
    return min(spent)


def main() -> None:
    rows = [json.loads(line) for line in (EMBEDDED / "math_train.jsonl").read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        with open(path, "w", encoding="utf-8") as file:
            for n in range(N_ROWS):
                row = dict(rows[n % len(rows)])
                row |= {"problem": f"{row['problem']} ({n})", "solution": row["solution"].replace("\\boxed{", f"\\boxed{{{n} + ")}
                file.write(json.dumps(row) + "\n")
        reading = seconds(lambda: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()])
        loading = seconds(lambda: load(MATH, path, split=None), times=1)  # a second run would find its golds read already
        print(f"{N_ROWS} rows: json {reading:.2f} s, load with every gold checked {loading:.2f} s, ratio {loading / reading:.0f}")


if __name__ == "__main__":
    main()
