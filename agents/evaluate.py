"""Sample n completions of every problem into an append-only ``groups.jsonl``, which is all that metrics need."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpo_envs.datasets.problem import Dataset
from setpo_envs.metrics import bootstrap_interval, pass_at_k, summarize_groups
from setpo_envs.shapers.base import Shaper
from setpo_verifiers import VerifierPool

from .checkpoint import fingerprint
from .jsonl import append_lines, keep_lines, resumable_lines
from .policies.base import Policy, Samples, Sampling
from .progress import progress
from .rollout import rollout

DEFAULT = Sampling()
CHUNK = 32
"""Problems sampled together, and the unit of resumption: each chunk has its own random stream."""


def evaluate(
    policy: Policy,
    dataset: Dataset,
    path: Path,
    *,
    n: int,
    seed: int,
    indices: Sequence[int] | None = None,
    shaper: Shaper | None = None,
    sampling: Sampling = DEFAULT,
    entropies: Callable[[Samples], Tensor] | None = None,
    mode: str = "lenient",
    label: str = "evaluate",
    pool: VerifierPool | None = None,
) -> list[dict[str, Any]]:
    """Write one line a problem to ``path`` and return all lines; a killed evaluation goes on where it stopped.

    Args:
        indices: Which problems of ``dataset``; all by default.
        n: Completions a problem.
        shaper: Only observes: its credits and diversity are stored with each group.
        sampling: How completions are sampled.
        entropies: Entropies (N, G, T) of sampled tokens at temperature 1; by default the policy's own, of all samples at once.
        pool: Worker processes that verify, with a deadline for each completion.

    Raises:
        ValueError: ``path`` holds something else: groups of other problems, another policy, other settings, or no groups.
            It is then left as it is.
    """
    if n < 1:
        raise ValueError(f"expected n of at least 1, got {n}")
    settings = {"policy": fingerprint(policy.state_dict()), "n": n, "seed": seed, "temperature": sampling.temperature, "mode": mode}
    settings |= {name: value for name, value in asdict(sampling).items() if name != "temperature" and value != getattr(DEFAULT, name)}
    settings = json.loads(json.dumps(settings))  # as a file gives it back
    indices = range(len(dataset)) if indices is None else indices
    done = resumable_lines(path, "task")
    for line, index in zip(done, indices):
        found, expected = (line.get("problem_id"), line.get("sampling")), (dataset[index].problem_id, settings)
        if found != expected:
            raise ValueError(f"{path} holds another evaluation: expected (problem, sampling) {expected}, got {found}. Use another file.")
    if len(done) < len(indices):
        done = done[: len(done) - len(done) % CHUNK]  # a chunk that was cut short is sampled again, from its own random stream
    keep_lines(path, len(done))
    lines = list(done)
    starts = range(len(done), len(indices), CHUNK)
    with append_lines(path) as write:
        for start in progress(starts, label, initial=len(done) // CHUNK, total=-(-len(indices) // CHUNK)) if starts else ():
            fresh = _sample_chunk(policy, dataset, indices[start : start + CHUNK], settings, sampling, shaper, entropies, pool)
            write(*fresh)
            lines += fresh
    return lines


def _sample_chunk(
    policy: Policy,
    dataset: Dataset,
    indices: Sequence[int],
    settings: dict[str, Any],
    sampling: Sampling,
    shaper: Shaper | None,
    entropies: Callable[[Samples], Tensor] | None,
    pool: VerifierPool | None,
) -> list[dict[str, Any]]:
    stream = np.random.SeedSequence([settings["seed"], int(indices[0])])
    generator = torch.Generator().manual_seed(int(stream.generate_state(1)[0]))
    problems = [dataset[int(i)] for i in indices]
    batch = rollout(
        policy,
        problems,
        settings["n"],
        shaper=shaper,
        generator=generator,
        rng=np.random.default_rng(stream),
        sampling=sampling,
        mode=settings["mode"],
        pool=pool,
    )
    with torch.no_grad():
        entropy_NGT = policy.log_probs(batch.samples, temperature=1.0)[1] if entropies is None else entropies(batch.samples)
    entropy_N = entropy_NGT.sum((1, 2)) / batch.samples.mask_NGT.sum((1, 2))
    return [
        batch.groups.to_json(i, index=int(index), sampling=settings, entropy=round(entropy_N[i].item(), 6))
        for i, index in enumerate(indices)
    ]


def metrics_table(lines: Sequence[dict[str, Any]]) -> str:
    """The metrics of evaluated groups for the terminal, with 95 % bootstrap intervals over problems where one applies."""
    summary = summarize_groups(lines)
    n, per_problem = summary["n_samples"], summary["per_problem"]
    rng = np.random.default_rng(0)
    rows = []
    for key, value in summary.items():
        if key == "per_problem" or key.startswith("distinct_strings@") or (key.startswith("distinct@") and key != f"distinct@{n}"):
            continue
        values = pass_at_k(n, per_problem["correct"], int(key[5:])) if key.startswith("pass@") and not summary["undecided"] else None
        values = np.array(per_problem["distinct"]) if key == f"distinct@{n}" else values
        interval = "" if values is None else "  [{1:.3f}, {2:.3f}]".format(*bootstrap_interval(values, rng))
        rows.append(f"{key:22s} {'-' if value is None else f'{value:.3f}' if isinstance(value, float) else value}{interval}")
    return "\n".join(rows)
