"""The experiment of this repository: does SetPO keep a policy's solutions diverse, and is it still right?

``demo``: the base model, GRPO and GSPO with and without SetPO, one seed. ``study``: five paired seeds over two warm starts,
the paper's raw credit, a shuffled-credit control, and entropy and KL baselines that get as many settings to choose from as
SetPO. Settings are chosen on the validation split; the test split is looked at once, by the arms that were chosen.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .jobs import Arm, Job, Plan, run_jobs, run_warm_starts, save_plan

# Four one-digit numbers, targets to 30, at least two modes: a space that a 154k-parameter policy learns in minutes and
# in which it still has more than six solutions a problem to lose.
ENV_KWARGS: dict[str, Any] = {
    "source": "enumerate",
    "prompt_format": "terse",
    "settings": {"min_numbers": 4, "max_numbers": 4, "number_range": [1, 7], "target_range": [1, 30], "min_modes": 2},
}

KERNELS: dict[str, dict[str, Any]] = {"equality": {"kernel": "equality_key"}, "expression": {"embedder": "expression"}}
"""What two completions have in common: the mode and nothing else, or the cosine of their expressions' parts."""
VARIANT: dict[str, Any] = {"members": "well_formed", "scale": "zscore", "malformed": "min_minus_one"}
"""z-scored credit among well-formed answers, malformed ones at the bottom."""
PAPER: dict[str, Any] = {"embedder": "expression"}
"""The credit as the paper has it (arXiv 2602.01062, eqs. 3-4): raw, over all completions, clamped cosine."""
PAPER_LAMBDA = 0.5
"""The paper's setting for Countdown."""

# Eight settings each.
LAMBDAS = (0.05, 0.1, 0.2, 0.4)
ENTROPY_COEFFICIENTS = (0.003, 0.01, 0.02, 0.03, 0.045, 0.06, 0.08, 0.12)
KL_COEFFICIENTS = (0.003, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3)
PASS_1_MARGIN = 0.01
"""A setting may cost so much validation pass@1 against GRPO, no more."""
TUNING_SEEDS = 2
SPLITS = ("validation", "test")
WARM_STARTS = (0, 1)

GRPO = Arm("grpo", "GRPO")
GSPO = Arm("gspo", "GSPO", {"algorithm": "gspo"})


def setpo_arm(kernel: str, coefficient: float, algorithm: str = "grpo") -> Arm:
    """SetPO on GRPO or GSPO."""
    shaper_kwargs = {**KERNELS[kernel], **VARIANT}
    settings = {"algorithm": algorithm, "shaper": "setpo", "shaper_kwargs": shaper_kwargs, "credit_coefficient": coefficient}
    return Arm(f"setpo_{algorithm}-{kernel}-{coefficient:g}", f"SetPO+{algorithm.upper()}", settings)


def paper_arm() -> Arm:
    """The paper's raw credit at the paper's Countdown coefficient."""
    return Arm("setpo_raw", "SetPO raw (paper)", {"shaper": "setpo", "shaper_kwargs": PAPER, "credit_coefficient": PAPER_LAMBDA})


def shuffled_arm(setpo: Arm) -> Arm:
    """The control: the same credits, given to other completions of the group."""
    shuffled = {"shaper": "shuffled", "shaper_kwargs": {"of": "setpo", "of_kwargs": setpo.settings["shaper_kwargs"]}}
    return Arm(setpo.name.replace("setpo_grpo", "shuffled"), "shuffled credit", {**setpo.settings, **shuffled})


def entropy_arm(coefficient: float) -> Arm:
    """GRPO with an entropy bonus."""
    return Arm(f"entropy-{coefficient:g}", "GRPO+entropy", {"entropy_coefficient": coefficient})


def kl_arm(coefficient: float) -> Arm:
    """GRPO with a KL penalty towards the warm start."""
    return Arm(f"kl-{coefficient:g}", "GRPO+KL", {"kl_coefficient": coefficient})


def both_arm(setpo: Arm, kl: Arm) -> Arm:
    """SetPO and KL together, each with the coefficient that was chosen for it alone."""
    return Arm(setpo.name.replace("setpo_grpo", "setpo_kl"), "SetPO+GRPO+KL", {**setpo.settings, **kl.settings})


DEMO_SETPO = ("equality", 0.1)
"""Kernel and lambda that the study chose."""
PACKAGED_SHA256 = "c4d57ba149af3e5d5fa2404c36c9d298bfec5edf3d8653bd2e4087e35286767b"


def demo(out: Path, *, workers: int = 2, packaged: Path | None = None, **sizes: Any) -> list[dict[str, Any]]:
    """Base, GRPO, SetPO+GRPO, GSPO and SetPO+GSPO on seed 0, evaluated on the test split; returns the result lines.

    ``packaged`` is a warm start to begin with; it is used if it was made by this configuration, and made anew if not.
    """
    plan = Plan(out, **{"env_kwargs": ENV_KWARGS, "packaged_warm_start": packaged is not None, **sizes})
    arms = [None, GRPO, setpo_arm(*DEMO_SETPO), GSPO, setpo_arm(*DEMO_SETPO, "gspo")]
    save_plan(plan)
    if packaged is not None and not plan.warm_start_path(0).exists():
        plan.warm_start_path(0).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(packaged, plan.warm_start_path(0))
    run_warm_starts(plan, [0])
    return run_jobs([Job(plan, arm, 0, 0, ("test",)) for arm in arms], workers=workers)


def packaged_warm_start() -> Path | None:
    """The warm start of seed 0 that comes with the package, which ``--from-scratch`` trains again; None if it was altered."""
    path = Path(__file__).with_name("warm_start_seed0.pt")
    return path if path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == PACKAGED_SHA256 else None


def study(out: Path, *, seeds: int = 5, workers: int = 2, **sizes: Any) -> list[dict[str, Any]]:
    """Tune on validation, then compare on test over paired seeds; returns the test lines of the base and the chosen arms.

    Every setting of a grid gets runs of half the length, over two seeds.
    """
    plan = Plan(out, **{"env_kwargs": ENV_KWARGS, **sizes})
    save_plan(plan)
    run_warm_starts(plan, WARM_STARTS, workers=workers)

    def jobs(plan: Plan, arms: Sequence[Arm], n_seeds: int, *splits: str) -> list[Job]:
        return [Job(plan, arm, seed, seed % len(WARM_STARTS), splits) for seed in range(n_seeds) for arm in arms]

    grids = {
        "setpo": [setpo_arm(kernel, value) for kernel in KERNELS for value in LAMBDAS],
        "entropy": [entropy_arm(value) for value in ENTROPY_COEFFICIENTS],
        "kl": [kl_arm(value) for value in KL_COEFFICIENTS],
    }
    half = replace(plan, runs="tuning", steps=max(1, plan.steps // 2))
    tuning = run_jobs(jobs(half, [GRPO, *(arm for grid in grids.values() for arm in grid)], TUNING_SEEDS, "validation"), workers=workers)
    chosen = {name: select(grid, tuning) for name, grid in grids.items()}
    (out / "chosen.json").write_text(json.dumps({name: arm.name for name, arm in chosen.items()}, indent=2) + "\n", encoding="utf-8")
    setpo, kl = chosen["setpo"], chosen["kl"]
    on_gspo = Arm(setpo.name.replace("grpo", "gspo"), "SetPO+GSPO", {**setpo.settings, "algorithm": "gspo"})
    base = [Job(plan, None, seed, seed, SPLITS) for seed in WARM_STARTS]
    on_grpo = [GRPO, setpo, paper_arm(), shuffled_arm(setpo), chosen["entropy"], kl]
    final = [*jobs(plan, on_grpo, seeds, *SPLITS), *jobs(plan, [GSPO, on_gspo, both_arm(setpo, kl)], seeds, *SPLITS)]
    lines = run_jobs(base + final, workers=workers)
    return [line for line in lines if line["split"] == "test"]


def select(grid: Sequence[Arm], lines: Sequence[dict[str, Any]]) -> Arm:
    """The arm with the best validation pass@n among those that cost at most PASS_1_MARGIN of GRPO's validation pass@1.

    If every setting costs more, the one that costs least. Means over the tuning seeds.
    """

    def mean(arm: Arm, metric: str) -> float:
        return float(np.mean([line[metric] for line in lines if line["arm"] == arm.name and line["split"] == "validation"]))

    pass_n = f"pass@{lines[0]['n_samples']}"
    affordable = [arm for arm in grid if mean(arm, "pass@1") >= mean(GRPO, "pass@1") - PASS_1_MARGIN]
    return max(affordable, key=lambda arm: mean(arm, pass_n)) if affordable else max(grid, key=lambda arm: mean(arm, "pass@1"))
