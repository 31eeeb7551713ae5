"""The experiment of this repository: does SetPO keep a policy's solutions diverse, and is it still right?

``demo``: the base model, GRPO and GSPO with and without SetPO, one seed. ``study``: five paired seeds over two warm starts,
the paper's raw credit, a shuffled-credit control, and entropy and KL baselines tuned on validation over as many values as
lambda. Settings are chosen on the validation split; the test split is looked at once, by the arms that were chosen.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from setpo_envs.metrics import hierarchical_interval, paired_interval

from .jobs import Arm, Job, Plan, run_jobs, run_warm_starts, save_plan

# Four one-digit numbers, targets to 30, at least two modes: a space that a 154k-parameter policy learns in minutes and
# in which it still has more than six solutions a problem to lose.
ENV_KWARGS: dict[str, Any] = {
    "source": "enumerate",
    "prompt_format": "terse",
    "settings": {"min_numbers": 4, "max_numbers": 4, "number_range": [1, 7], "target_range": [1, 30], "min_modes": 2},
}

SETPO: dict[str, Any] = {"embedder": "expression", "members": "well_formed", "scale": "zscore", "malformed": "min_minus_one"}
"""The variant behind the headline: z-scored credit among well-formed answers, malformed ones at the bottom."""
SETPO_PAPER: dict[str, Any] = {"embedder": "expression"}
"""The paper's credit as it stands (arXiv 2602.01062, eqs. 3-4): raw, over all completions."""

LAMBDAS = (0.05, 0.1, 0.2, 0.4)
ENTROPY_COEFFICIENTS = (0.01, 0.03, 0.06, 0.12)
KL_COEFFICIENTS = (0.01, 0.03, 0.1, 0.3)
DEMO_LAMBDA = 0.1
PAPER_LAMBDA = 0.5
"""The paper's setting for Countdown."""
PASS_1_MARGIN = 0.01
"""A setting may cost so much validation pass@1 against GRPO, no more."""

GRPO = Arm("grpo", "GRPO")
GSPO = Arm("gspo", "GSPO", {"algorithm": "gspo"})


def setpo_arm(coefficient: float, algorithm: str = "grpo") -> Arm:
    """SetPO on GRPO or GSPO with the headline variant's credit."""
    settings = {"algorithm": algorithm, "shaper": "setpo", "shaper_kwargs": SETPO, "credit_coefficient": coefficient}
    return Arm(f"setpo_{algorithm}-{coefficient:g}", f"SetPO+{algorithm.upper()}", settings)


def shuffled_arm(coefficient: float) -> Arm:
    """The control: the same credits, given to other completions of the group."""
    settings = {"shaper": "shuffled", "shaper_kwargs": {"of": "setpo", "of_kwargs": SETPO}, "credit_coefficient": coefficient}
    return Arm(f"shuffled-{coefficient:g}", "shuffled credit", settings)


def paper_arm() -> Arm:
    """The paper's raw credit at the paper's Countdown coefficient."""
    settings = {"shaper": "setpo", "shaper_kwargs": SETPO_PAPER, "credit_coefficient": PAPER_LAMBDA}
    return Arm(f"setpo_raw-{PAPER_LAMBDA:g}", "SetPO raw (paper)", settings)


def entropy_arm(coefficient: float) -> Arm:
    return Arm(f"entropy-{coefficient:g}", "GRPO+entropy", {"entropy_coefficient": coefficient})


def kl_arm(coefficient: float) -> Arm:
    return Arm(f"kl-{coefficient:g}", "GRPO+KL", {"kl_coefficient": coefficient})


def demo(out: Path, *, workers: int = 2, warm_start: Path | None = None, **sizes: Any) -> list[dict[str, Any]]:
    """Base, GRPO, SetPO+GRPO, GSPO and SetPO+GSPO on seed 0, evaluated on the test split; returns the result lines.

    ``warm_start`` is a checkpoint to begin with; it is used if it was made by this configuration, and made anew if not.
    """
    plan = Plan(out, ENV_KWARGS, **sizes)
    arms = [GRPO, setpo_arm(DEMO_LAMBDA), GSPO, setpo_arm(DEMO_LAMBDA, "gspo")]
    save_plan(plan, {"arms": [arm.name for arm in arms]})
    if warm_start is not None and not plan.warm_start_path(0).exists():
        plan.warm_start_path(0).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(warm_start, plan.warm_start_path(0))
    run_warm_starts(plan, [0])
    jobs = [Job(plan, None, 0, 0, ("test",)), *(Job(plan, arm, 0, 0, ("test",)) for arm in arms)]
    return run_jobs(jobs, workers=workers)


def study(out: Path, *, seeds: int = 5, workers: int = 2, **sizes: Any) -> list[dict[str, Any]]:
    """Tune on validation, then compare on test over paired seeds; returns the test lines of the base and the chosen arms."""
    plan = Plan(out, ENV_KWARGS, **sizes)
    warm_starts = [0, 1]
    save_plan(plan, {"seeds": seeds, "warm_starts": warm_starts, "pass_1_margin": PASS_1_MARGIN})
    run_warm_starts(plan, warm_starts, workers=workers)

    def jobs(arms: Sequence[Arm], n_seeds: int, *splits: str) -> list[Job]:
        return [Job(plan, arm, seed, seed % 2, splits) for seed in range(n_seeds) for arm in arms]

    grids = {
        "setpo": [setpo_arm(value) for value in LAMBDAS],
        "entropy": [entropy_arm(value) for value in ENTROPY_COEFFICIENTS],
        "kl": [kl_arm(value) for value in KL_COEFFICIENTS],
    }
    tuning = run_jobs(jobs([GRPO, *(arm for grid in grids.values() for arm in grid)], 2, "validation"), workers=workers)
    chosen = {name: select(grid, tuning) for name, grid in grids.items()}
    coefficient = chosen["setpo"].settings["credit_coefficient"]
    arms = [GRPO, chosen["setpo"], paper_arm(), shuffled_arm(coefficient), chosen["entropy"], chosen["kl"], GSPO, setpo_arm(coefficient, "gspo")]
    (out / "chosen.json").write_text(json.dumps({name: arm.name for name, arm in chosen.items()}, indent=2) + "\n", encoding="utf-8")
    base = [Job(plan, None, seed, seed, ("validation", "test")) for seed in warm_starts]
    lines = run_jobs(base + jobs(arms, seeds, "validation", "test"), workers=workers)
    return [line for line in lines if line["split"] == "test"]


def select(grid: Sequence[Arm], lines: Sequence[dict[str, Any]]) -> Arm:
    """The arm with the best validation pass@64 among those that cost at most PASS_1_MARGIN of GRPO's validation pass@1.

    If every value costs more, the one that costs least. Means over the tuning seeds.
    """

    def mean(arm: Arm, metric: str) -> float:
        return float(np.mean([line[metric] for line in lines if line["arm"] == arm.name and line["split"] == "validation"]))

    metric = max((key for key in lines[0] if key.startswith("pass@")), key=lambda key: int(key.split("@")[1]))
    affordable = [arm for arm in grid if mean(arm, "pass@1") >= mean(GRPO, "pass@1") - PASS_1_MARGIN]
    return max(affordable, key=lambda arm: mean(arm, metric)) if affordable else max(grid, key=lambda arm: mean(arm, "pass@1"))


def compare(lines: Sequence[dict[str, Any]], arm: str, baseline: str, metric: str) -> dict[str, Any]:
    """Arm minus baseline, paired by seed: mean, 95 % t interval over seeds, every seed's difference.

    ``problem_interval`` resamples seeds and problems together, for metrics that are stored per problem.
    """
    by_seed = {(line["arm"], line["seed"]): line for line in lines}
    seeds = sorted(seed for name, seed in by_seed if name == arm and (baseline, seed) in by_seed)
    if not seeds:
        raise ValueError(f"expected results of {arm!r} and {baseline!r} with the same seeds, got {sorted({name for name, _ in by_seed})}")
    differences = [by_seed[arm, seed][metric] - by_seed[baseline, seed][metric] for seed in seeds]
    interval = paired_interval(differences)
    result = {"arm": arm, "baseline": baseline, "metric": metric, "mean": interval[0], "low": interval[1], "high": interval[2], "seeds": differences}
    per_problem = {"pass@1": "correct", "distinct": "distinct"}.get(metric.split("@64")[0])
    if per_problem is not None:
        scale = 1 / lines[0]["n"] if per_problem == "correct" else 1
        table = [
            np.subtract(by_seed[arm, seed]["per_problem"][per_problem], by_seed[baseline, seed]["per_problem"][per_problem]) * scale
            for seed in seeds
        ]
        result["problem_interval"] = list(hierarchical_interval(np.array(table), np.random.default_rng(0)))
    return result


COMPARISONS = (("setpo_grpo", "grpo"), ("setpo_grpo", "shuffled"), ("shuffled", "grpo"), ("setpo_raw", "grpo"), ("entropy", "grpo"), ("kl", "grpo"),
               ("setpo_grpo", "entropy"), ("setpo_grpo", "kl"), ("gspo", "grpo"), ("setpo_gspo", "gspo"))  # fmt: skip
"""Pairs of arms whose difference the study reports."""


def write_comparisons(lines: Sequence[dict[str, Any]], out: Path) -> str:
    """Every comparison and metric into ``comparisons.json``; returns the same as a Markdown table."""
    by_kind = {line["arm"].rsplit("-", 1)[0]: line["arm"] for line in lines}
    metrics = ("pass@1", "pass@8", "pass@64", "distinct@64", "recovery", "pcmd")
    done = [compare(lines, by_kind[a], by_kind[b], metric) for a, b in COMPARISONS if a in by_kind and b in by_kind for metric in metrics]
    (out / "comparisons.json").write_text(json.dumps(done, indent=1) + "\n", encoding="utf-8")
    rows = ["| difference, paired by seed | " + " | ".join(metrics) + " |", "|---" * (len(metrics) + 1) + "|"]
    for a, b in dict.fromkeys((item["arm"], item["baseline"]) for item in done):
        cells = [f"{item['mean']:+.3f} [{item['low']:+.3f}, {item['high']:+.3f}]" for item in done if (item["arm"], item["baseline"]) == (a, b)]
        rows.append(f"| {a} - {b} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def packaged_warm_start() -> Path:
    """The warm start of seed 0 that comes with the package."""
    return Path(__file__).with_name("warm_start_seed0.pt")
