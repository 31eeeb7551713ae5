"""The training loop: GRPO or GSPO with set-level credit, in one file.

Each step draws prompts, samples a group of completions for each, takes the verified rewards and the set-level credits of
``info["group"]``, forms A = w * base(r') + lambda * c, and makes one pass of clipped policy-gradient minibatches.
A killed run resumes from its last checkpoint to bit-identical weights on the same machine and thread count.
"""

from __future__ import annotations

import copy
import json
import os
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch

import setpo_envs
from setpo_verifiers import VerifierPool

from . import checkpoint
from .advantages import BASE_ADVANTAGES, among_valid, combine, scale_shaping, shaping_ratio
from .jsonl import append_lines, keep_lines
from .losses import LOSSES, make_loss
from .objective import Objective, Scoring, experience
from .policies.base import Sampling
from .policies.tiny import TinyConfig, TinyPolicy
from .progress import progress
from .regularizers import Minibatch
from .rollout import Rollout, rollout

gym.register_envs(setpo_envs)


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides the result of a run; saved as ``config.json`` beside it."""

    warm_start: str
    """Checkpoint of the policy to start from."""
    env: str = "setpo/Countdown-v0"
    env_kwargs: dict[str, Any] = field(default_factory=dict)
    """Arguments of ``gym.make``; ``group_size``, ``shaper`` and ``shaper_kwargs`` are the fields below."""
    seed: int = 0
    steps: int = 400
    prompts_per_step: int = 32
    """N"""
    group_size: int = 16
    """G"""
    temperature: float = 1.0
    algorithm: str = "grpo"
    """A key of ``losses.LOSSES``."""
    base_advantage: str = "grpo"
    """A key of ``advantages.BASE_ADVANTAGES``."""
    clip: tuple[float, float] | None = None
    """Ratio clip (low, high); None takes the algorithm's default."""
    dual_clip: float | None = None
    """Bound on the ratio where the advantage is negative, as ``losses.dual_clip``; None: no bound."""
    aggregation: str | None = None
    """One of ``losses.AGGREGATIONS``; None takes the algorithm's."""
    loss_length: int | None = None
    """Most tokens of a completion: the constant that ``dr_grpo`` divides by, and no other algorithm."""
    importance_cap: float | None = None
    """Most that a token may count for where the trainer finds it likelier than the sampler did; None: no correction."""
    regularizers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Registered regularisers with their options, such as {"kl_cov": {"coefficient": 1.0}}; they act in this order."""
    shaper: str | list[Any] | None = None
    """A registered set shaper, a list of them (names, or pairs of a name and its options), or None."""
    shaper_kwargs: dict[str, Any] = field(default_factory=dict)
    credit_coefficient: float = 0.0
    """lambda, the factor on the shaper's credits."""
    shaping_strength: float = 1.0
    """Factor on all that the shaper changes of the advantages: 1 is the method as it is."""
    match_shaping_ratio: float | None = None
    """Scale what the shaper changes in every batch to this RMS beside the base advantage's, whatever the method's own scale."""
    entropy_coefficient: float = 0.0
    """Factor on the mean token entropy (nats), added to the objective."""
    kl_coefficient: float = 0.0
    """Factor on the k3 estimate of KL(policy || warm start), subtracted from the objective."""
    learning_rate: float = 1e-4
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    minibatches: int = 2
    """Optimiser steps per batch of rollouts; groups are never split."""
    checkpoint_every: int = 10
    """Steps between checkpoints; a killed run loses at most these."""

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("prompts_per_step", 1), ("group_size", 2), ("minibatches", 1), ("checkpoint_every", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ValueError(f"expected {name} to be an integer of at least {least}, got {value!r}")
        for name in ("temperature", "learning_rate", "max_grad_norm"):
            if not isinstance(value := getattr(self, name), (int, float)) or not value > 0:
                raise ValueError(f"expected {name} to be a number above 0, got {value!r}")
        for name in ("credit_coefficient", "shaping_strength", "entropy_coefficient", "kl_coefficient"):
            if not isinstance(value := getattr(self, name), (int, float)) or not value >= 0:
                raise ValueError(f"expected {name} to be a number of at least 0, got {value!r}")
        if self.clip is not None and (not isinstance(self.clip, (list, tuple)) or len(self.clip) != 2):
            raise ValueError(f"expected clip to be None or a pair (low, high), got {self.clip!r}")
        if (ratio := self.match_shaping_ratio) is not None and not (isinstance(ratio, (int, float)) and ratio >= 0 and self.shaper):
            raise ValueError(f"expected match_shaping_ratio to be None, or a number of at least 0 beside a shaper, got {ratio!r}")
        if self.importance_cap is not None and not (isinstance(self.importance_cap, (int, float)) and self.importance_cap > 0):
            raise ValueError(f"expected importance_cap to be None or a number above 0, got {self.importance_cap!r}")
        if not isinstance(self.regularizers, dict) or not all(isinstance(options, dict) for options in self.regularizers.values()):
            raise ValueError(f"expected regularizers to be a dict of options by name, got {self.regularizers!r}")
        if self.credit_coefficient and self.shaper is None:
            raise ValueError("expected a shaper beside credit_coefficient: without one there is no credit to weigh")


class Trainer:
    """Trains a policy in a run folder; constructing it on a folder that holds a run resumes that run.

    A ``pool`` verifies in processes of its own, with a deadline for each completion. It pays where verifiers are slow or
    may hang, and decides nothing else.

    Files: ``config.json``, ``metrics.jsonl`` (one line a step), ``checkpoint.pt`` (weights, optimiser, random states, step).

    Raises:
        ValueError: an unknown name in the configuration, a run folder or warm start that does not fit it.
        OSError: the folder cannot be written; raised before any work is done.
    """

    def __init__(self, config: TrainConfig, folder: Path, pool: VerifierPool | None = None) -> None:
        self.config, self.folder, self.pool = config, folder, pool
        for name, table in (("algorithm", LOSSES), ("base_advantage", BASE_ADVANTAGES)):
            if getattr(config, name) not in table:
                raise ValueError(f"expected {name} to be one of {sorted(table)}, got {getattr(config, name)!r}")
        env = gym.make(
            config.env, group_size=config.group_size, shaper=config.shaper, shaper_kwargs=config.shaper_kwargs or None, **config.env_kwargs
        )
        names = "dataset", "shaper", "mode", "order"
        self.dataset, self.shaper, self.mode, self.order = (getattr(env.unwrapped, name) for name in names)
        if getattr(self.shaper, "base_advantage", "") is None and not config.credit_coefficient:
            raise ValueError(
                f"expected a credit_coefficient above 0 (1.0 in its paper) with shaper={config.shaper!r}: its credits are the whole "
                "advantage, and without them nothing is learned"
            )
        self.policy = load_policy(Path(config.warm_start))
        # a warm start is the weights it holds, wherever the file is
        self.identity = {**_as_json(config), "warm_start": checkpoint.fingerprint(self.policy.state_dict())}
        self.optimizer = torch.optim.AdamW(
            self.policy.parameters(), lr=config.learning_rate, betas=config.betas, weight_decay=config.weight_decay, fused=True
        )
        problem_seed, sample_seed, shaper_seed = np.random.SeedSequence(config.seed).spawn(3)
        self.problem_rng, self.shaper_rng = np.random.default_rng(problem_seed), np.random.default_rng(shaper_seed)
        self.generator = torch.Generator().manual_seed(int(sample_seed.generate_state(1)[0]))
        self.order.restart(self.problem_rng)
        loss = make_loss(
            config.algorithm, clip=config.clip, aggregation=config.aggregation, dual_clip=config.dual_clip, length=config.loss_length
        )
        self.objective = Objective.make(loss, named_regularizers(config), self.generator)
        needs_base = self.objective.needs("reference") or self.objective.needs("replay")
        self.reference = copy.deepcopy(self.policy).requires_grad_(False) if needs_base else None
        self.step = 0
        claim(folder, self.identity, config)  # last: a configuration that cannot run claims no folder
        self._resume()

    def run(self, until: int | None = None) -> TinyPolicy:
        """Train up to step ``until`` (default: the configured number of steps) and return the policy."""
        until = self.config.steps if until is None else until
        with append_lines(self.folder / "metrics.jsonl") as write:
            bar = progress(range(self.step, until), self.folder.name, initial=self.step, total=until)
            for _ in bar:
                metrics = self.train_step()
                write(metrics)
                if self.step % self.config.checkpoint_every == 0 or self.step == until:
                    self.save()
                bar.set_postfix(reward=f"{metrics['reward']:.3f}", distinct=f"{metrics['distinct_correct']:.2f}", refresh=False)
        return self.policy

    def train_step(self) -> dict[str, Any]:
        """One batch of rollouts, one pass of minibatch updates; returns what is logged."""
        config = self.config
        indices = [self.order.next(self.problem_rng) for _ in range(config.prompts_per_step)]
        batch = rollout(
            self.policy,
            [self.dataset[i] for i in indices],
            config.group_size,
            shaper=self.shaper,
            generator=self.generator,
            rng=self.shaper_rng,
            sampling=Sampling(temperature=config.temperature),
            mode=self.mode,
            pool=self.pool,
        )
        start = time.perf_counter()
        valid_NG = batch.groups.valid
        groups, base = batch.groups, BASE_ADVANTAGES[config.base_advantage]
        unshaped_NG = among_valid(base, groups.rewards, valid_NG)
        shaped_NG = among_valid(base, groups.shaped_rewards, valid_NG)
        shaped_NG = combine(shaped_NG, groups.credits, config.credit_coefficient, groups.weights) * valid_NG
        advantages_NG = scale_shaping(unshaped_NG, shaped_NG, config.shaping_strength, config.match_shaping_ratio)
        update = self.update(batch, torch.as_tensor(advantages_NG, dtype=torch.float32))
        self.step += 1
        batch.seconds["update"] = time.perf_counter() - start
        return {
            "step": self.step,
            **describe(batch),
            "shaping_ratio": shaping_ratio(unshaped_NG, advantages_NG),
            **update,
            "seconds": {name: round(seconds, 5) for name, seconds in batch.seconds.items()},
        }

    def update(self, batch: Rollout, advantages_NG: torch.Tensor) -> dict[str, Any]:
        """One pass of policy-gradient minibatches over the batch; returns means over the minibatches.

        ``regularizers``, where there are any, says by how much each changed the advantages (mean absolute change) or the objective.
        """
        config, objective = self.config, self.objective
        chunks = torch.arange(len(advantages_NG)).chunk(config.minibatches)  # fewer where there are fewer prompts
        scoring = Scoring(self.policy, self.reference, config.temperature)
        scored = scoring.old_pass(batch.samples, chunks) if objective.needs("old_pass") or config.importance_cap else None
        old, importance = experience(batch, scored, config.importance_cap)
        advantages_BX, changes = objective.advantages(advantages_NG.flatten(), old)
        advantages_NGX = advantages_BX.view(*advantages_NG.shape, -1)
        replay = scoring.replay(batch, self.generator) if objective.needs("replay") else None
        totals: dict[str, float] = defaultdict(float)
        effects: dict[str, float] = defaultdict(float, changes)
        for rows in chunks:
            minibatch = Minibatch(
                old.groups(rows),
                *scoring.current(batch.samples[rows]),
                advantages_NGX[rows].flatten(0, 1),
                objective.loss.aggregate,
                scoring.base(batch.samples[rows]) if objective.needs("reference") else None,
                scoring.replayed(replay[rows]) if replay is not None else None,
            )
            value, logged, added = objective(minibatch)
            self.optimizer.zero_grad(set_to_none=True)
            value.backward()
            norm = torch.nn.utils.clip_grad_norm_(self.policy.parameters(), config.max_grad_norm)
            if not torch.isfinite(norm):
                raise FloatingPointError(
                    f"the gradient of step {self.step + 1} is not finite; {self.folder} holds the last checkpoint before it. "
                    "Lower the learning rate or the coefficients."
                )
            self.optimizer.step()
            for sums, values in ((totals, {**logged, "grad_norm": norm}), (effects, added)):
                for name, x in values.items():
                    sums[name] += x.item() / len(chunks)
        return {**totals, **importance, **({"regularizers": dict(effects)} if effects else {})}

    def save(self) -> None:
        """Write the checkpoint atomically: weights, optimiser, every random state, the step."""
        state = {
            "config": json.dumps(self.identity),
            "step": self.step,
            "policy_config": asdict(self.policy.config),
            "policy": self.policy.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "shaper": json.dumps(getattr(self.shaper, "state", None)),
            "rngs": json.dumps([rng.bit_generator.state for rng in (self.problem_rng, self.shaper_rng)]),
            "order": json.dumps(self.order.state),
        }
        checkpoint.save(self.folder / "checkpoint.pt", state)

    def _resume(self) -> None:
        path = self.folder / "checkpoint.pt"
        if path.exists():
            state = checkpoint.load(path)
            check_same_config(json.loads(state["config"]), self.identity, path)
            self.step = state["step"]
            self.policy.load_state_dict(state["policy"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.generator.set_state(state["generator"])
            if (remembered := json.loads(state["shaper"])) is not None:
                self.shaper.state = remembered
            for rng, rng_state in zip((self.problem_rng, self.shaper_rng), json.loads(state["rngs"])):
                rng.bit_generator.state = rng_state
            self.order.state = json.loads(state.get("order", "null")) or self.order.state  # none was saved by earlier versions
        keep_lines(self.folder / "metrics.jsonl", self.step)  # steps after the checkpoint are done again


def describe(batch: Rollout) -> dict[str, Any]:
    """What a batch of rollouts looks like, before the update."""
    groups, correct_NG = batch.groups, batch.groups.correct
    solved_N = correct_NG.sum(axis=1)
    lengths = batch.samples.mask_NGT.sum(-1)
    distinct = [len(set(keys[right])) for keys, right in zip(groups.mode_keys, correct_NG)]
    return {
        "reward": float(groups.rewards.mean()),
        "well_formed": float(groups.well_formed.mean()),
        "all_wrong": float((solved_N == 0).mean()),
        "mixed": float(((solved_N > 0) & (solved_N < groups.group_size)).mean()),
        "all_right": float((solved_N == groups.group_size).mean()),
        "distinct_correct": float(np.mean(distinct)),
        "diversity": float(groups.diversity.mean()),
        "mean_abs_credit": float(np.abs(groups.credits).mean()),
        "mean_credit": float(groups.credits.mean()),
        "length": float(lengths.mean()),
        "tokens_per_second": float(lengths.sum()) / max(batch.seconds["generate"], 1e-9),
    }


def named_regularizers(config: TrainConfig) -> dict[str, dict[str, Any]]:
    """``config.regularizers``, and those that have a field of their own."""
    fields = {"entropy": config.entropy_coefficient, "kl": config.kl_coefficient}
    given = {name: {"coefficient": coefficient} for name, coefficient in fields.items() if coefficient}
    if twice := sorted(given.keys() & config.regularizers.keys()):
        raise ValueError(f"expected {twice[0]}_coefficient or regularizers[{twice[0]!r}], got both")
    return {**given, **config.regularizers}


def load_policy(path: Path) -> TinyPolicy:
    """The policy of a warm start or of a run's checkpoint."""
    if not path.exists():
        raise ValueError(f"no checkpoint at {path}: make a warm start first (setpo warm-start)")
    state = checkpoint.load(path)
    try:
        config = state.get("policy_config") or {k: v for k, v in state["identity"]["policy"].items() if k != "parameters"}
        policy = TinyPolicy(TinyConfig(**config))
        policy.load_state_dict(state["policy"])
    except (KeyError, TypeError, RuntimeError) as error:
        raise ValueError(f"expected a warm start or a run's checkpoint at {path}, got something else ({error!r})") from error
    return policy


def _as_json(config: TrainConfig) -> dict[str, Any]:
    return json.loads(json.dumps(asdict(config)))  # what a file gives back: lists for tuples


def claim(folder: Path, identity: dict[str, Any], config: TrainConfig) -> None:
    """Create the run folder and its config.json, or check that the run in it has the same configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.json"
    if path.exists():
        try:
            saved = json.loads(path.read_text(encoding="utf-8"))["identity"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"expected the configuration of a run in {path}, which cannot be read: {error!r}. Use another folder."
            ) from error
        check_same_config(saved, identity, path)
        return
    partial = path.with_suffix(f".{os.getpid()}.partial")
    partial.write_text(json.dumps({**asdict(config), "identity": identity}, indent=2) + "\n", encoding="utf-8")
    os.replace(partial, path)


def check_same_config(saved: dict[str, Any], identity: dict[str, Any], path: Path) -> None:
    """Raise ValueError naming every field in which a saved run differs."""
    differing = [
        f"{k}: saved {saved.get(k)!r}, asked {identity.get(k)!r}" for k in sorted(saved | identity) if saved.get(k) != identity.get(k)
    ]
    if differing:
        raise ValueError(f"{path} belongs to a run with another configuration ({'; '.join(differing)}). Use another folder or delete it.")
