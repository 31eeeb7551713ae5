"""The training loop: policy gradients with set-level credit, in one file.

Each step draws prompts, samples a group of completions for each, takes the verified rewards and the set-level credits of
``info["group"]``, forms A = w * base(r') + lambda * c, and makes passes of policy-gradient minibatches.
A killed run resumes from its last checkpoint to bit-identical weights on the same machine and thread count.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch

import setpo_envs
from setpo_envs.shapers.base import apply_shaper
from setpo_verifiers import VerifierPool

from . import checkpoint
from .advantages import BASE_ADVANTAGES, among_valid, combine, scale_shaping, shaping_ratio
from .batches import join_samples, to_device, without_truncated
from .config import TrainConfig
from .distributed import World
from .failures import naming_the_step
from .interrupts import STOP_SIGNALS, stop_requested
from .jsonl import append_lines, keep_lines
from .loggers import Logger
from .losses import make_loss
from .memory import peak_memory_mib
from .microbatches import Scoring
from .objective import Objective, experience
from .policies.base import Policy, Sampler, Samples, Sampling
from .policies.load import make_policy
from .progress import progress
from .reference import with_reference
from .regularizers import Minibatch, Replay
from .rollout import Rollout, describe, join, rollout, until_mixed
from .run_folder import claim, identity, read_checkpoint
from .schedules import learning_rate_factor
from .sharding import parted, whole
from .validation import Sampled, Watch, in_step, metric_names, validate

gym.register_envs(setpo_envs)

IMPORTANCE_CAP = 2.0
"""``importance_cap`` beside a sampler, where the configuration names none."""


class Trainer:
    """Trains a policy in a run folder; constructing it on a folder that holds a run resumes that run.

    Files: ``config.json``, ``metrics.jsonl`` (one line a step), ``checkpoint.safetensors`` (weights, optimiser, random states, step), and
    with ``eval_every`` ``eval/`` and ``best.safetensors`` (weights).

    Args:
        config: What decides the result.
        folder: Of the run.
        pool: Verifies in processes of its own, with a deadline for each completion. It pays where verifiers are slow or may hang.
        policy: Trained in place of the one that the configuration names.
        sampler: Generates in the policy's place and is given its weights every ``sync_every`` steps; the trainer then scores the tokens
            itself and weighs them by importance. In several processes each needs one of its own.
        loggers: Are given every step's metrics besides ``metrics.jsonl``; the caller closes them.
        world: The processes that train together, by default those that a launcher has started.

    Raises:
        ValueError: an unknown name in the configuration, a run folder or warm start that does not fit it.
        OSError: the folder cannot be written; raised before any work is done.
    """

    def __init__(
        self,
        config: TrainConfig,
        folder: Path,
        pool: VerifierPool | None = None,
        *,
        policy: Policy | None = None,
        sampler: Sampler | None = None,
        loggers: Sequence[Logger] = (),
        world: World | None = None,
    ) -> None:
        self.config, self.folder, self.pool, self.sampler, self.loggers = config, folder, pool, sampler, loggers
        self.world = World.from_environment() if world is None else world
        if config.base_advantage not in BASE_ADVANTAGES:
            raise ValueError(f"expected base_advantage to be one of {sorted(BASE_ADVANTAGES)}, got {config.base_advantage!r}")
        if config.prompts_per_step < self.world.size * (config.minibatches if self.world.sharded else 1):
            raise ValueError(f"expected a prompt for each of {self.world.size} processes in every minibatch, got {config.prompts_per_step}")
        env = self._env()
        self.dataset, self.shaper, self.mode, self.order = (getattr(env, name) for name in ("dataset", "shaper", "mode", "order"))
        if getattr(self.shaper, "base_advantage", "") is None and not config.credit_coefficient:
            raise ValueError(
                f"expected a credit_coefficient above 0 (1.0 in its paper) with shaper={config.shaper!r}: its credits are the whole "
                "advantage, and without them nothing is learned"
            )
        self.validation = self._validation_set() if config.eval_every else None
        seeds = np.random.SeedSequence(config.seed).spawn(4)
        self.problem_rng, self.shaper_rng = np.random.default_rng(seeds[0]), np.random.default_rng(seeds[2])
        own_seed = seeds[1] if self.world.size == 1 else seeds[1].spawn(self.world.size)[self.world.rank]
        self.generator, self.loss_generator = (torch.Generator().manual_seed(int(s.generate_state(1)[0])) for s in (own_seed, seeds[3]))
        self.order.restart(self.problem_rng)
        loss = make_loss(
            config.algorithm, clip=config.clip, aggregation=config.aggregation, dual_clip=config.dual_clip, length=config.loss_length
        )
        self.objective = Objective.make(loss, config.named_regularizers, self.loss_generator)
        policy = make_policy(config.policy, config.warm_start) if policy is None else policy
        self.identity = identity(config, checkpoint.fingerprint(policy.state_dict()))
        needs_base = self.objective.needs("reference") or self.objective.needs("replay")
        self.policy, reference = with_reference(policy, self.world, needs_base)
        self.scoring = Scoring(self.policy, reference, config.temperature, config.micro_batch_tokens, config.precision, self.world)
        self.parameters = list(self.policy.parameters())
        self.device = self.parameters[0].device
        self.optimizer = torch.optim.AdamW(
            self.parameters, lr=config.learning_rate, betas=config.betas, weight_decay=config.weight_decay, fused=True
        )
        self.step, self.stopped, self.watch = 0, False, Watch()
        self._problem_ids: list[str] = []
        if self.world.main:
            claim(folder, self.identity, config)  # last: a configuration that cannot run claims no folder
        self._resume()
        self._sync()

    def run(self, until: int | None = None, *, signals: Sequence[int] = STOP_SIGNALS) -> Any:
        """Train up to step ``until`` (default: the configured number of steps) and return the policy.

        One of ``signals`` (SIGTERM, Ctrl-C) ends the run after the step in progress, with a checkpoint; ``stopped`` is then True.

        Raises:
            FloatingPointError: a loss or gradient is not finite. MemoryError or torch.OutOfMemoryError: memory ran out. Both name
                the step and its problems, and leave the last checkpoint.
        """
        config, until = self.config, self.config.steps if until is None else until
        self.stopped = False
        log = append_lines(self.folder / "metrics.jsonl") if self.world.main else nullcontext(lambda *lines: None)
        with log as write, stop_requested(signals) as stop:
            bar = progress((), self.folder.name, initial=self.step, total=until) if self.world.main else None
            while self.step < until and not self.ended_early and not self.stopped:
                with naming_the_step(self.step + 1, self.folder, self._problem_ids):
                    metrics = self.train_step()
                    if self.validation is not None and self.step % config.eval_every == 0:
                        metrics["evaluation"] = self.validate()
                write(metrics)
                for logger in self.loggers if self.world.main else ():
                    logger.log(self.step, metrics)
                self.stopped = self.world.any(stop())
                if self.step % config.checkpoint_every == 0 or self.step == until or self.stopped or self.ended_early:
                    self.save()
                if bar is not None:
                    bar.set_postfix(reward=f"{metrics['reward']:.3f}", distinct=f"{metrics['distinct_correct']:.2f}", refresh=False)
                    bar.update()
        if self.world.main and (self.stopped or self.ended_early):
            why = "on request" if self.stopped else f"early, {config.eval_metric} having been best at step {self.watch.step}"
            print(f"stopped {why} after step {self.step} of {config.steps}; {self.folder} resumes from there", file=sys.stderr)
        return self.policy

    @property
    def ended_early(self) -> bool:
        """Whether the last ``patience`` evaluations brought nothing better."""
        return 0 < self.config.patience <= self.watch.since

    def train_step(self) -> dict[str, Any]:
        """One batch of rollouts and the updates on it; returns what is logged."""
        config = self.config
        factor = learning_rate_factor(self.step, steps=config.steps, schedule=config.schedule, warmup_steps=config.warmup_steps)
        for group in self.optimizer.param_groups:
            group["lr"] = config.learning_rate * factor
        batch, n_batches = self.collect()
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
        if self.sampler is not None:
            start = time.perf_counter()
            if self.step % config.sync_every == 0:
                self._sync()
            batch.seconds["sync"] = time.perf_counter() - start
        return {
            "step": self.step,
            **describe(batch),
            "shaping_ratio": shaping_ratio(unshaped_NG, advantages_NG),
            **update,
            "learning_rate": config.learning_rate * factor,
            **({"generation_batches": n_batches} if config.dynamic_sampling else {}),
            "peak_memory_mib": peak_memory_mib(self.device),
            "seconds": {name: round(seconds, 5) for name, seconds in batch.seconds.items()},
        }

    def collect(self) -> tuple[Rollout, int]:
        """A batch of N groups with verdicts and credits, the same in every process, and how many batches were generated for it."""
        config = self.config
        at_once = self.world.size == 1 and not config.dynamic_sampling  # credits need the groups that are trained on, all of them

        def draw() -> Rollout:
            problems = [self.dataset[self.order.next(self.problem_rng)] for _ in range(config.prompts_per_step)]
            self._problem_ids += [problem.problem_id for problem in problems]
            with self.scoring.autocast(self.device):
                own = rollout(
                    self.policy if self.sampler is None else self.sampler,
                    problems[self.world.share(len(problems))],
                    config.group_size,
                    shaper=self.shaper if at_once else None,
                    generator=self.generator,
                    rng=self.shaper_rng,
                    sampling=config.sampling,
                    mode=self.mode,
                    pool=self.pool,
                )
            return join(self.world.objects(own))

        self._problem_ids.clear()
        batch, n_batches = until_mixed(draw, config.prompts_per_step, config.dynamic_sampling) if config.dynamic_sampling else (draw(), 1)
        if self.shaper is not None and not at_once:
            start = time.perf_counter()
            if self.world.main:
                apply_shaper(batch.groups, self.shaper, self.shaper_rng)
            batch.groups = self.world.from_main(batch.groups)
            batch.seconds["credit"] += time.perf_counter() - start
        batch.samples = to_device(batch.samples, self.device)
        return batch, n_batches

    def update(self, batch: Rollout, advantages_NG: torch.Tensor) -> dict[str, Any]:
        """Passes of policy-gradient minibatches over the batch; returns means over the minibatches.

        ``regularizers``, where there are any, says by how much each changed the advantages (mean absolute change) or the objective.
        """
        config, objective, scoring = self.config, self.objective, self.scoring
        samples = without_truncated(batch.samples) if config.mask_truncated else batch.samples
        chunks = torch.arange(len(advantages_NG)).chunk(config.minibatches)  # fewer where there are fewer prompts
        cap = IMPORTANCE_CAP if config.importance_cap is None and self.sampler is not None else config.importance_cap
        # a sampler's log-probabilities, or those of a cut distribution, are not those that the ratio is about
        scores_anew = cap is not None or objective.needs("old_pass") or config.top_p < 1 or config.top_k > 0
        known = [scoring.current(samples[rows]) for rows in chunks] if scores_anew else []
        scored = (torch.cat([log_probs for log_probs, _ in known]), torch.cat([entropies for _, entropies in known])) if known else None
        old, importance = experience(Rollout(batch.groups, samples), scored, cap)
        advantages_BX, changes = objective.advantages(advantages_NG.flatten().to(self.device), old)
        advantages_NGX = advantages_BX.view(*advantages_NG.shape, -1)
        replay = self._replay(batch) if objective.needs("replay") else None
        totals: dict[str, float] = defaultdict(float)
        effects: dict[str, float] = defaultdict(float, changes)
        for i in range(config.epochs * len(chunks)):
            rows = chunks[i % len(chunks)]
            now = scoring.differentiable(samples[rows], known[0] if known and i == 0 else None)
            replayed_samples = None if replay is None else replay[rows]
            replayed = None if replayed_samples is None else scoring.differentiable(replayed_samples)
            minibatch = Minibatch(
                old.groups(rows),
                now.log_probs_NGT.flatten(0, 1),
                now.entropies_NGT.flatten(0, 1),
                advantages_NGX[rows].flatten(0, 1),
                objective.loss.aggregate,
                scoring.base(samples[rows]).flatten(0, 1) if objective.needs("reference") else None,
                None if replayed is None or replayed_samples is None else _as_replay(replayed.log_probs_NGT, replayed_samples),
            )
            value, logged, added = objective(minibatch)
            self.optimizer.zero_grad(set_to_none=True)
            value.backward()
            for scores in (now, replayed):
                if scores is not None:
                    scores.backward()
            self.world.sum_gradients(self.parameters)
            norm = whole(torch.nn.utils.clip_grad_norm_(self.parameters, config.max_grad_norm))
            if not (torch.isfinite(value) and torch.isfinite(norm)):
                what = "gradient" if torch.isfinite(value) else "loss"
                raise FloatingPointError(f"the {what} is not finite. Lower the learning rate or the coefficients")
            self.optimizer.step()
            for sums, values in ((totals, {**logged, "grad_norm": norm}), (effects, added)):
                for name, x in values.items():
                    sums[name] += x.item() / (config.epochs * len(chunks))
        return {**totals, **importance, **({"regularizers": dict(effects)} if effects else {})}

    def validate(self) -> dict[str, Any]:
        """Evaluate the current weights; keep them as the best if they are."""
        self._sync()  # a sampler evaluates the current weights, not stale ones
        config, summary, dataset = self.config, None, self.validation
        assert dataset is not None
        policy = self.policy if self.sampler is None else Sampled(self.policy, self.sampler)
        if self.world.main or self.world.sharded:  # where weights are sharded every process has to take part
            evaluate = partial(validate, policy, dataset, config, step=self.step, mode=self.mode, pool=self.pool)
            summary = evaluate(self.folder) if not self.world.sharded else in_step(evaluate, self.folder, self.world.main)
        summary = self.world.from_main(summary)
        if self.watch.see(summary.get(config.eval_metric), self.step):
            best = {**self._weights(), "step": self.step, "evaluation": summary}
            if self.world.main:
                checkpoint.save(self.folder / "best.safetensors", best)
        return summary

    def save(self) -> None:
        """Write the checkpoint atomically: weights, optimiser, every random state, the step."""
        generators, weights = self.world.objects(self.generator.get_state()), self._weights()
        optimizer = whole(self.optimizer.state_dict())
        if not self.world.main:
            return
        state = {
            **weights,
            "identity": self.identity,
            "step": self.step,
            "optimizer": optimizer,
            "generators": generators,
            "loss_generator": self.loss_generator.get_state(),
            "shaper": getattr(self.shaper, "state", None),
            "rngs": [rng.bit_generator.state for rng in (self.problem_rng, self.shaper_rng)],
            "order": self.order.state,
            "watch": asdict(self.watch),
        }
        checkpoint.save(self.folder / "checkpoint.safetensors", state)

    def _weights(self) -> dict[str, Any]:
        """The policy, as :func:`setpo_agents.policies.load.load_policy` reads it."""
        spec: dict[str, Any] = {"spec": self.config.to_json()["policy"], "policy": self.policy.state_dict()}
        return {**spec, "policy_config": asdict(self.policy.config)} if spec["spec"]["kind"] == "tiny" else spec

    def _resume(self) -> None:
        state = read_checkpoint(self.folder, self.identity)
        if state is not None:
            if len(state["generators"]) != self.world.size:
                raise ValueError(f"expected {len(state['generators'])} processes as before in {self.folder}, got {self.world.size}")
            self.step = state["step"]
            self.policy.load_state_dict(state["policy"])
            self.optimizer.load_state_dict(parted(state["optimizer"], self.parameters))
            self.generator.set_state(state["generators"][self.world.rank])
            if "loss_generator" in state:
                self.loss_generator.set_state(state["loss_generator"])
            if state["shaper"] is not None:
                self.shaper.state = state["shaper"]
            for rng, rng_state in zip((self.problem_rng, self.shaper_rng), state["rngs"]):
                rng.bit_generator.state = rng_state
            self.order.state = state["order"] or self.order.state  # none was saved by earlier versions
            self.watch = Watch(**(state["watch"] or {}))
        if self.world.main:
            keep_lines(self.folder / "metrics.jsonl", self.step)  # steps after the checkpoint are done again

    def _sync(self) -> None:
        """Give the sampler the current weights."""
        if self.sampler is not None:
            self.sampler.update_weights(getattr(self.policy, "merged_state_dict", self.policy.state_dict)())

    def _replay(self, batch: Rollout) -> Samples:
        """As many completions of the batch's prompts by the policy before training."""
        config = self.config
        prompts = [problem.prompt for problem in batch.groups.problems][self.world.share(batch.groups.n_groups)]
        # from the whole distribution: the regularisers' expectations are under it
        sampling = Sampling(config.temperature, max_new_tokens=config.max_new_tokens, stop=tuple(config.stop))
        with self.scoring.autocast(self.device):
            own = self.scoring.reference.generate(prompts, config.group_size, sampling, self.generator)
        return to_device(join_samples(self.world.objects(own)), self.device)

    def _env(self, **changes: Any) -> Any:
        config = self.config
        kwargs = {"shaper": config.shaper, "shaper_kwargs": config.shaper_kwargs or None, **config.env_kwargs, **changes}
        return gym.make(config.env, group_size=config.group_size, **kwargs).unwrapped

    def _validation_set(self) -> Any:
        names = metric_names(self.config.eval_samples)
        if self.config.eval_metric not in names:
            raise ValueError(f"expected eval_metric to be one of {', '.join(names)}, got {self.config.eval_metric!r}")
        return self._env(split=self.config.eval_split, shaper=None, shaper_kwargs=None).dataset


def _as_replay(log_probs_NGT: torch.Tensor, replay: Samples) -> Replay:
    return Replay(*(x.flatten(0, 1) for x in (log_probs_NGT, replay.log_probs_NGT, replay.mask_NGT)))
