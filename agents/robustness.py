"""Does the effect of SetPO depend on the settings around it? pass@k of SetPO+GRPO against GRPO, one factor at a time.

The factors are those of figure 3 of the SetPO paper (arXiv 2602.01062): decoding temperature, group size and KL coefficient. All
but one stand at their middle or least value; temperature only changes how the trained policies are sampled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from setpo_envs.metrics import paired_interval

from .jobs import Arm, Job, Plan, run_jobs, run_warm_starts, save_plan
from .results import pass_ks
from .study import DEMO_SETPO, ENV_KWARGS, GRPO, WARM_STARTS, setpo_arm

GROUP_SIZE = 16
LEARNING_RATE = 2e-4
"""High, so that diversity is lost within few steps."""
FACTORS: dict[str, tuple[float, ...]] = {"temperature": (0.6, 1.0, 1.2), "group size": (8, 16, 32), "KL coefficient": (0.0, 1e-3, 1e-2)}
DEFAULTS: dict[str, float] = {"temperature": 1.0, "group size": GROUP_SIZE, "KL coefficient": 0.0}
SETPO = Arm("setpo", "SetPO+GRPO", setpo_arm(*DEMO_SETPO).settings)


@dataclass(frozen=True)
class Condition:
    """One factor at one value."""

    factor: str
    value: float

    @property
    def is_default(self) -> bool:
        return DEFAULTS[self.factor] == self.value

    @property
    def temperature(self) -> float:
        return self.value if self.factor == "temperature" else 1.0

    def arm(self, arm: Arm) -> Arm:
        """The arm under this condition; the same one where training does not differ from the default."""
        if self.is_default or self.factor == "temperature":
            return arm
        field = "group_size" if self.factor == "group size" else "kl_coefficient"
        value = int(self.value) if self.factor == "group size" else self.value
        return Arm(f"{arm.name}-{field}-{value:g}", arm.label, {**arm.settings, field: value})


CONDITIONS = [Condition(factor, value) for factor, values in FACTORS.items() for value in values]


def robustness(
    out: Path, *, seeds: int = 3, workers: int = 2, steps: int = 60, prompts: int = 16, **sizes: Any
) -> dict[Condition, dict[str, list[dict[str, Any]]]]:
    """Train and evaluate what is missing in ``out``; {condition: {"grpo" or "setpo": test lines, one a seed}}."""
    sizes = {"env_kwargs": ENV_KWARGS, "snapshots": 1, "snapshot_problems": 0, **sizes}
    plan = Plan(out, steps=steps, train={"prompts_per_step": prompts, "group_size": GROUP_SIZE, "learning_rate": LEARNING_RATE}, **sizes)
    save_plan(plan)
    run_warm_starts(plan, WARM_STARTS, workers=workers)

    def jobs(condition: Condition, arm: Arm) -> list[Job]:
        made = condition.arm(arm)
        return [Job(plan, made, seed, seed % len(WARM_STARTS), ("test",), condition.temperature) for seed in range(seeds)]

    # A run is trained by one job; those that sample it at another temperature come after.
    order = sorted(CONDITIONS, key=lambda condition: condition.temperature != 1.0)
    for sampled_anew in (False, True):
        todo = [job for c in order if (c.temperature != 1.0) == sampled_anew for arm in (GRPO, SETPO) for job in jobs(c, arm)]
        run_jobs(list({(job.run, job.temperature): job for job in todo}.values()), workers=workers)
    return {c: {arm.name: run_jobs(jobs(c, arm), workers=workers) for arm in (GRPO, SETPO)} for c in CONDITIONS}


def differences(lines_of: dict[Condition, dict[str, list[dict[str, Any]]]]) -> str:
    """SetPO minus GRPO under every condition as a Markdown table: mean and 95 % t interval over paired seeds."""
    first = next(iter(lines_of.values()))["grpo"]
    names = ["pass@1", f"pass@{first[0]['n_samples']}", f"distinct@{first[0]['n_samples']}"]
    rows = [["factor", "value", *(f"GRPO {name} | SetPO − GRPO" for name in names)], ["---"] * (2 + 2 * len(names))]
    for condition, both in lines_of.items():
        cells = [condition.factor, f"{condition.value:g}"]
        for name in names:
            base, ours = ([line[name] for line in both[arm]] for arm in ("grpo", "setpo"))
            mean, low, high = paired_interval(np.subtract(ours, base))
            cells += [f"{np.mean(base):.3f}", f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]" if len(base) > 1 else f"{mean:+.3f}"]
        rows.append(cells)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows)


def draw(lines_of: dict[Condition, dict[str, list[dict[str, Any]]]], path: Path) -> None:
    """pass@k over log2 k, one row a factor and one panel a value: means and 95 % t intervals over seeds."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(len(FACTORS), 3, figsize=(9.5, 8), sharex=True, sharey=True)
    for (condition, both), axis in zip(lines_of.items(), axes.flat):
        for name, label, colour in (("grpo", GRPO.label, "tab:gray"), ("setpo", SETPO.label, "tab:blue")):
            ks, mean, low, high = curve(both[name])
            axis.plot(ks, mean, "o-", ms=3, color=colour, label=label)
            axis.fill_between(ks, low, high, color=colour, alpha=0.2, lw=0)
        axis.set_title(f"{condition.factor} {condition.value:g}" + (" (default)" if condition.is_default else ""), fontsize=9)
        axis.set_xscale("log", base=2)
        axis.grid(alpha=0.3)
    for axis in axes[-1]:
        axis.set_xlabel("k")
    for axis in axes[:, 0]:
        axis.set_ylabel("pass@k")
    axes[0, 0].legend(fontsize=8)
    axes[0, 0].set_ylim(0, 1)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)


def curve(lines: Sequence[dict[str, Any]]) -> tuple[list[int], list[float], list[float], list[float]]:
    """(k, mean, low, high) of pass@k over the seeds; low and high are nan for a single seed."""
    ks = pass_ks(lines)
    intervals = [paired_interval([line[f"pass@{k}"] for line in lines]) for k in ks]
    clipped = [(mean, max(low, 0.0), min(high, 1.0)) for mean, low, high in intervals]
    mean, low, high = ([interval[i] for interval in clipped] for i in range(3))
    return ks, mean, low, high


def write_robustness(out: Path, lines_of: dict[Condition, dict[str, list[dict[str, Any]]]]) -> list[Path]:
    """Write ``robustness.md`` and ``robustness.png`` into ``out``; returns their paths."""
    (out / "robustness.md").write_text(differences(lines_of) + "\n", encoding="utf-8")
    draw(lines_of, out / "robustness.png")
    return [out / "robustness.md", out / "robustness.png"]
