"""The fair benchmark: shapers x environments x seeds on one policy, with equal budgets and scales matched.

Every method sees the same warm starts, problems, verdicts and seeds. In the raw comparison its strength (1 is the method as its
paper has it) is chosen on the validation split from a grid of the same size for all. In the scale-matched comparison what it
changes of the advantages has the same RMS beside the base advantage in every batch, so that no method wins by being louder.
Controls, and GRPO without any shaper, are always there. Test problems are looked at once, by the settings that were chosen.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .bench_methods import CONTROL_METHODS, GRPO, METHODS, Method, file_methods
from .jobs import Arm, Job, Plan, run_jobs, run_warm_starts, save_plan
from .jsonl import resumable_lines
from .leaderboard import chosen_strengths, parse_arm
from .tiny_tasks import TINY_TASKS
from .warm_start import WarmStartConfig

STRENGTHS = (0.3, 1.0, 3.0)
"""Factors on what a method changes, chosen among on validation; the regularisers' coefficients take the same factors."""
MATCHED_RATIO = 0.2
"""RMS of shaping / RMS of base advantage of every method in the scale-matched comparison."""
WARM_STARTS = (0, 1)


ENVS = TINY_TASKS


def bench(
    out: Path,
    *,
    envs: Sequence[str] | None = None,
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
        envs: Names of ``ENVS``; None is all.
        methods: Names of ``METHODS`` to run; None is all. GRPO and the controls are always run.
        shapers: Files that register shapers of your own; each is one more method.
        sizes: Further fields of :class:`Plan`.

    Raises:
        ValueError: Unknown names, a shaper file that cannot be used, or a folder that holds another plan.
    """
    chosen = [*pick("a method", {method.name: method for method in METHODS}, methods), *file_methods(shapers)]
    train = {"prompts_per_step": prompts, "group_size": group_size, "learning_rate": learning_rate}
    plans = []
    for name in pick("an environment", {name: name for name in ENVS}, envs):
        task = ENVS[name]
        warm_start = changed(task.warm_start)
        own = {"warm_start_steps": warm_start.pop("steps", WarmStartConfig.steps), "snapshots": 1, "snapshot_problems": 0, **sizes}
        of_task: dict[str, Any] = {"env": task.env, "env_kwargs": task.env_kwargs, "policy": changed(task.policy), "warm_start": warm_start}
        plans.append(Plan(out / name, steps=steps, train=train, **of_task, **own))
    for plan in plans:  # all before the first begins: a folder of another plan is refused at once
        save_plan(plan)
        for method in chosen:
            keep_source(plan, method)
    for plan in plans:
        run_env(plan, chosen, seeds, workers)


def run_env(plan: Plan, methods: Sequence[Method], seeds: int, workers: int) -> list[dict[str, Any]]:
    """Choose each method's strength on validation with seed 0, then run methods, controls and GRPO over all seeds; test lines."""

    def jobs(arms: Iterable[tuple[Method, Arm]], n_seeds: int, split: str) -> list[Job]:
        start = len(WARM_STARTS)
        return [Job(plan, arm, seed, seed % start, (split,), plugins=method.plugins) for seed in range(n_seeds) for method, arm in arms]

    grid = [(method, method.arm(strength)) for method in methods for strength in STRENGTHS]
    everyone = [*methods, *CONTROL_METHODS]
    matched = [(method, method.arm(ratio=MATCHED_RATIO)) for method in everyone if method.shaper]
    run_warm_starts(plan, WARM_STARTS, workers=workers)
    if grid:
        run_jobs(jobs(grid, 1, "validation"), workers=workers)
    chosen = chosen_strengths(resumable_lines(plan.out / "results.jsonl", "arm"))
    (plan.out / "chosen.json").write_text(json.dumps(chosen, indent=1) + "\n", encoding="utf-8")
    raw = [(GRPO, GRPO.arm()), *((method, method.arm(chosen[method.name])) for method in everyone)]
    base = [Job(plan, None, seed, seed, ("test",)) for seed in WARM_STARTS]
    return run_jobs(base + jobs([*raw, *matched], seeds, "test"), workers=workers)


def changed(config: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults."""
    defaults = asdict(type(config)())
    return {name: value for name, value in asdict(config).items() if value != defaults[name]}


def keep_source(plan: Plan, method: Method) -> None:
    """Keep the file of a method beside its results; one that has changed since is told of, for finished runs are not run again."""
    lines = resumable_lines(plan.out / "results.jsonl", "arm") if method.plugins else []
    for path in map(Path, method.plugins):
        kept, source = plan.out / "shapers" / f"{method.name}.py", path.read_bytes()
        if not any(parse_arm(line["arm"]).method == method.name for line in lines):
            kept.parent.mkdir(exist_ok=True)
            kept.write_bytes(source)
        elif kept.read_bytes() != source:
            text = f"{path} has changed since {method.name!r} was run ({kept})"
            text += ": what is finished stays; register the changed shaper by another name"
            print(f"setpo: {text}", file=sys.stderr)


def pick(what: str, table: Mapping[str, Any], names: Sequence[str] | None) -> list[Any]:
    """The entries of ``table`` by name, all for None; ValueError for a name that is not in it."""
    for name in names or ():
        if name not in table:
            raise ValueError(f"expected {what} out of {', '.join(table)}, got {name!r}")
    return [table[name] for name in (table if names is None else dict.fromkeys(names))]


def overview() -> list[str]:
    """The methods and environments that a benchmark can be made of, one a line, for the terminal."""
    width = max(len(name) for name in (*ENVS, *(method.name for method in METHODS)))
    rows = [("methods (--methods)", [(method.name, method.label) for method in METHODS])]
    rows += [("always run", [(method.name, method.label) for method in (GRPO, *CONTROL_METHODS)])]
    rows += [("environments (--envs)", [(name, env.env) for name, env in ENVS.items()])]
    return [line for title, entries in rows for line in (f"{title}:", *(f"  {name:{width}}  {text}" for name, text in entries))]
