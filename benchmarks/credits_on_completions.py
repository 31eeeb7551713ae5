"""Every registered shaper on real completions: the groups on which it is defined, the size of what it says, and its time.

    SETPO_TEST_DATA=FOLDER OMP_NUM_THREADS=1 python benchmarks/credits_on_completions.py

The completions are the 385 groups of FOLDER/data/completions, 150 of them of two members. "size" is the mean over the members of
defined groups of abs c; of abs(r' - r) for a shaper of rewards, of abs(w - 1) for one of weights. "share" is the share of these
members for which it is not zero. One that remembers is shown every group once before. Seconds are processor time on one thread, all
groups together, the verdicts not counted.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when numpy loads

import time  # noqa: E402

import completions  # noqa: E402
import numpy as np  # noqa: E402

from setpo_envs.shapers import apply_shaper, make_shaper, registry  # noqa: E402


def main() -> None:
    files = completions.groups()
    total = sum(groups.n_groups for groups in files.values())
    print(f"{'shaper':<20}{'defined':>10} of {total}   {'':<8}{'size':>8}{'share':>8}{'seconds':>10}")
    for name in sorted(registry()):
        shaper, defined, seconds = make_shaper(name), 0, 0.0
        said: dict[str, list[np.ndarray]] = {"c": [], "r' - r": [], "w - 1": []}
        for groups in files.values():
            if hasattr(shaper, "state"):
                apply_shaper(groups, shaper, np.random.default_rng(0))
            start = time.process_time()
            apply_shaper(groups, shaper, np.random.default_rng(0))
            seconds += time.process_time() - start
            defined += int(groups.defined.sum())
            changes = groups.credits, groups.shaped_rewards - groups.rewards, groups.weights - 1
            for what, values_NG in zip(said, changes):
                said[what].append(np.abs(values_NG[groups.defined]).ravel())
        if getattr(shaper, "base_advantage", "") is None:
            del said["w - 1"]  # it is -1 everywhere, since the base advantage is replaced
        sizes = {what: np.concatenate(parts) for what, parts in said.items()}
        for what, values in {what: values for what, values in sizes.items() if values.any()}.items() or [("-", np.zeros(1))]:
            print(f"{name:<20}{defined:>10}{'':<10}{what:<8}{values.mean():>8.4f}{(values != 0).mean():>8.2f}{seconds:>10.2f}", flush=True)


if __name__ == "__main__":
    main()
