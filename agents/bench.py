"""The fair benchmark: shapers x environments x seeds on one policy, with equal budgets and scales matched.

Every method sees the same warm starts, problems, verdicts and seeds. In the raw comparison its strength (1 is the method as its
paper has it) is chosen on the validation split from a grid of the same size for all. In the scale-matched comparison what it
changes of the advantages has the same RMS beside the base advantage in every batch, so that no method wins by being louder.
Controls, and GRPO without any shaper, are always there. Test problems are looked at once, by the settings that were chosen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from setpo_envs.shapers import load_shaper_file, make_shaper

from .jobs import Arm, Job, Plan, run_jobs, run_warm_starts, save_plan
from .leaderboard import area
from .study import ENV_KWARGS, VARIANT

STRENGTHS = (0.3, 1.0, 3.0)
"""Factors on what a method changes, chosen among on validation; the regularisers' coefficients take the same factors."""
MATCHED_RATIO = 0.2
"""RMS of shaping / RMS of base advantage of every method in the scale-matched comparison."""
WARM_STARTS = (0, 1)


@dataclass(frozen=True)
class BenchEnv:
    """An environment that the tiny policy learns and whose problems have several solutions."""

    env: str
    env_kwargs: Mapping[str, Any]
    policy: Mapping[str, Any] = field(default_factory=dict)
    warm_start_steps: int = 3000


ENVS: dict[str, BenchEnv] = {"countdown": BenchEnv("setpo/Countdown-v0", ENV_KWARGS)}


@dataclass(frozen=True)
class Method:
    """A method at strength 1.

    name: what its arms and rows are called; label: what tables call it.
    shaper: registered shaper, or None for a method on the policy's side.
    settings: what it changes in :class:`TrainConfig` besides shaper and options.
    scaled: field of ``settings`` that a strength multiplies where there is no shaper.
    """

    name: str
    label: str
    shaper: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    scaled: str = ""
    source: str = ""
    """For a control: the method whose strength it takes."""
    plugins: tuple[str, ...] = ()

    def arm(self, strength: float = 1.0, ratio: float | None = None) -> Arm:
        """The arm of one strength, or of one matched ratio."""
        name = f"{self.name}-x{strength:g}" if ratio is None else f"{self.name}-matched"
        settings = dict(self.settings)
        if self.shaper is None:
            if self.scaled:
                settings[self.scaled] *= strength
            return Arm(name if self.scaled else self.name, self.label, settings)
        shaper = make_shaper(self.shaper, **self.options)
        credit = settings.pop("credit_coefficient", getattr(shaper, "credit_coefficient", 1.0))
        base = getattr(shaper, "base_advantage", None) or "grpo"
        scale = {"shaping_strength": strength} if ratio is None else {"match_shaping_ratio": ratio}
        base = base if ratio is None else "grpo"  # one base for all where scales are compared
        shaping = {"shaper": self.shaper, "shaper_kwargs": dict(self.options), "credit_coefficient": credit, "base_advantage": base}
        return Arm(name, self.label, {**settings, **shaping, **scale})


GRPO = Method("grpo", "GRPO")
SETPO_Z = {"kernel": "equality_key", **VARIANT}


def _set(name: str, label: str, **options: Any) -> Method:
    return Method(name, label, name, options)


METHODS = (
    Method("setpo", "SetPO, raw", "setpo", settings={"credit_coefficient": 0.5}),
    Method("setpo_z", "SetPO, z-scored by mode", "setpo", SETPO_Z, {"credit_coefficient": 0.1}),
    _set("gapo", "GAPO"),
    _set("ips", "IPS-GRPO"),
    _set("darling", "DARLING"),
    _set("dra_grpo", "DRA-GRPO"),
    _set("diver", "DIVER"),
    _set("rarity_aware", "rarity-aware"),
    _set("edas", "EDAS"),
    _set("batch_exploration", "batch exploration"),
    _set("ucb_exploration", "UCB exploration"),
    _set("logdet", "log-det"),
    _set("vendi", "Vendi"),
    _set("passk_training", "Pass@k training", k=4),
    _set("pkpo", "PKPO", k=4),
    _set("madrl", "MaD-RL"),
    _set("poly_epo", "Poly-EPO"),
    Method("entropy", "entropy bonus", settings={"entropy_coefficient": 0.02}, scaled="entropy_coefficient"),
    Method("kl", "KL penalty", settings={"kl_coefficient": 0.02}, scaled="kl_coefficient"),
)
CONTROLS = tuple(
    Method(name, label, name, {"of": "setpo", "of_kwargs": SETPO_Z}, {"credit_coefficient": 0.1}, source="setpo_z")
    for name, label in (
        ("shuffled", "control: SetPO's credit shuffled"),
        ("random_partition", "control: random partition"),
        ("mean_matched", "control: class means"),
    )
)


def file_methods(paths: Iterable[str]) -> list[Method]:
    """A method for each shaper that the files register, with the base advantage and coefficient that its class declares."""
    return [Method(name, name, name, plugins=(str(path),)) for path in paths for name in load_shaper_file(path)]


def bench(
    out: Path,
    *,
    envs: Sequence[str] = tuple(ENVS),
    methods: Sequence[str] | None = None,
    shapers: Sequence[str] = (),
    seeds: int = 5,
    workers: int = 2,
    steps: int = 60,
    prompts: int = 32,
    group_size: int = 8,
    learning_rate: float = 2e-4,
    **sizes: Any,
) -> None:
    """Run what is missing of a benchmark in ``out``: one folder an environment, each with its ``results.jsonl``.

    Args:
        envs: Names of ``ENVS``.
        methods: Names of ``METHODS`` to run; None is all. GRPO and the controls are always run.
        shapers: Files that register shapers of your own; each is one more method.

    Raises:
        ValueError: Unknown names, a shaper file that cannot be used, or a folder that holds another plan.
    """
    chosen = [*pick("method", {method.name: method for method in METHODS}, methods), *file_methods(shapers)]
    train = {"prompts_per_step": prompts, "group_size": group_size, "learning_rate": learning_rate}
    for name, env in zip(envs, pick("environment", ENVS, envs)):
        sizes = {"warm_start_steps": env.warm_start_steps, "snapshots": 1, "snapshot_problems": 0, **sizes}
        plan = Plan(out / name, env=env.env, env_kwargs=dict(env.env_kwargs), policy=dict(env.policy), steps=steps, train=train, **sizes)
        save_plan(plan)
        run_warm_starts(plan, WARM_STARTS, workers=workers)
        run_env(plan, chosen, seeds, workers)


def run_env(plan: Plan, methods: Sequence[Method], seeds: int, workers: int) -> list[dict[str, Any]]:
    """Choose each method's strength on validation with seed 0, then run methods, controls and GRPO over all seeds; test lines."""

    def jobs(arms: Iterable[tuple[Method, Arm]], n_seeds: int, split: str) -> list[Job]:
        start = len(WARM_STARTS)
        return [Job(plan, arm, seed, seed % start, (split,), plugins=method.plugins) for seed in range(n_seeds) for method, arm in arms]

    grid = [(method, method.arm(strength)) for method in methods for strength in STRENGTHS]
    tuned = run_jobs(jobs(grid, 1, "validation"), workers=workers)
    best = {method.name: best_strength(method, tuned) for method in methods}
    path = plan.out / "chosen.json"
    path.write_text(json.dumps({**(json.loads(path.read_text()) if path.exists() else {}), **best}, indent=1) + "\n", encoding="utf-8")
    strength_of = {**best, "setpo_z": best.get("setpo_z", 1.0)}
    raw = [(GRPO, GRPO.arm())]
    raw += [(method, method.arm(strength_of[method.source or method.name])) for method in (*methods, *CONTROLS)]
    matched = [(method, method.arm(ratio=MATCHED_RATIO)) for method in (*methods, *CONTROLS) if method.shaper]
    base = [Job(plan, None, seed, seed, ("test",)) for seed in WARM_STARTS]
    return run_jobs(base + jobs([*raw, *matched], seeds, "test"), workers=workers)


def best_strength(method: Method, lines: Sequence[Mapping[str, Any]]) -> float:
    """The strength with the largest area under validation pass@k; the first of equals."""
    return max(STRENGTHS, key=lambda strength: sum(area(line) for line in lines if line["arm"] == method.arm(strength).name))


def pick(what: str, table: Mapping[str, Any], names: Sequence[str] | None) -> list[Any]:
    """The entries of ``table`` by name, all for None; ValueError for a name that is not in it."""
    for name in names or ():
        if name not in table:
            raise ValueError(f"expected a {what} out of {', '.join(table)}, got {name!r}")
    return [table[name] for name in (table if names is None else names)]
