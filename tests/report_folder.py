"""A small study folder, made by the functions that make real ones, for the tests of the report."""

import json

from setpo_envs.datasets.problem import Problem
from setpo_envs.group import verify_groups
from setpo_envs.metrics import summarize_groups
from setpo_envs.shapers.base import make_shaper

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u2028\u202e&amp;"
SETPO = {"embedder": "expression", "members": "well_formed"}
STEPS = (2, 4)

# 1 2 3 4 -> 10 and 2 3 4 5 -> 14: (right, right and distinct, wrong) answers
ANSWERS = {
    "1234=10": ((1, 2, 3, 4), 10, ["1+2+3+4", "4+3+2+1", "3*4-2*1", "2*3+4*1", "1+2+3-4", HOSTILE]),
    "2345=14": ((2, 3, 4, 5), 14, ["2+3+4+5", "5+4+3+2", "4*5-3*2", "2*3*4-5", "2*", ""]),
}


def groups_file(path, n, wide, first=""):
    """Groups of 8: a narrow arm repeats its first answer, a wide one uses all; ``first`` marks completion 1 of problem 1."""
    problems, completions = [], []
    for name, (numbers, target, answers) in ANSWERS.items():
        problems.append(Problem(name, "countdown", name + ">", {"numbers": numbers, "target": target}, {"n_modes": 9}))
        used = answers if wide else [answers[0], answers[0], answers[1], answers[-2], answers[-1]]
        completions.append([used[i % len(used)] for i in range(n)])
    completions[0][0] = first or completions[0][0]
    groups = verify_groups(problems, completions, shaper=make_shaper("setpo", **SETPO))
    rows = [groups.to_json(i, index=i, seed=0, entropy=0.5) for i in range(len(problems))]
    write(path, rows)
    return rows


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def make_folder(out, *, seeds=2, base=True, arms=(("grpo", "GRPO"), ("setpo_grpo-0.1", "SetPO+GRPO"))):
    results = []

    def result(arm, label, seed, run, step, rows, split):
        line = {"arm": arm, "label": label, "seed": seed, "split": split, "step": step, "run": run}
        results.append({**line, **summarize_groups(rows)})

    if base:
        for split in ("validation", "test"):
            rows = groups_file(out / f"base/seed0/eval/{split}-000000.groups.jsonl", 8, wide=True)
            result("base", "base model", 0, "base/seed0", 0, rows, split)
    for name, label in arms:
        wide = name.startswith("setpo")
        for seed in range(seeds):
            run = out / f"runs/{name}-seed{seed}"
            run.mkdir(parents=True)
            config = {"shaper": "setpo" if wide else None, "shaper_kwargs": SETPO if wide else {}}
            (run / "config.json").write_text(json.dumps(config))
            curves = {"all_wrong": 0.1, "distinct_correct": 1.0 + wide, "shaping_ratio": 0.1 * wide}
            log = [{"step": step, "entropy": 0.5 - 0.05 * step, **curves} for step in range(1, 5)]
            write(run / "metrics.jsonl", log)
            for step in STEPS:
                groups_file(
                    run / f"eval/validation-{step:06d}.groups.jsonl", 8, wide, first=f"1+2+3+{4 * (step == 4)} seed {seed} of {label}"
                )
            rows = groups_file(run / f"eval/test-{STEPS[-1]:06d}.groups.jsonl", 8, wide)
            result(name, label, seed, f"runs/{name}-seed{seed}", STEPS[-1], rows, "test")
    write(out / "results.jsonl", results)
    return out
