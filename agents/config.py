"""Everything that decides the result of a training run, in one dataclass."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any

from .policies.base import Sampling
from .schedules import SCHEDULES

_LEAST = {
    "steps": 1,
    "prompts_per_step": 1,
    "group_size": 2,
    "minibatches": 1,
    "epochs": 1,
    "warmup_steps": 0,
    "dynamic_sampling": 0,
    "sync_every": 1,
    "eval_every": 0,
    "eval_problems": 1,
    "eval_samples": 1,
    "patience": 0,
    "checkpoint_every": 1,
}
_POSITIVE = "learning_rate", "max_grad_norm"
_NOT_NEGATIVE = "credit_coefficient", "shaping_strength", "entropy_coefficient", "kl_coefficient"
PRECISIONS = "float32", "bfloat16"


@dataclass(frozen=True)
class TrainConfig:
    """Saved as ``config.json`` beside the run. A field that is a list in JSON may be a list here."""

    warm_start: str | None = None
    """Checkpoint of the tiny policy to start from."""
    policy: dict[str, Any] = field(default_factory=lambda: {"kind": "tiny"})
    """Which policy is trained, as :func:`setpo_agents.policies.load.make_policy`: {"kind": "tiny"}, or {"kind": "transformers",
    "model": name or folder, "lora": {"r": 16}, "dtype": "bfloat16", ...}."""
    env: str = "setpo/Countdown-v0"
    env_kwargs: dict[str, Any] = field(default_factory=dict)
    """Arguments of ``gym.make``; ``group_size``, ``shaper`` and ``shaper_kwargs`` are the fields below."""
    seed: int = 0
    steps: int = 400
    prompts_per_step: int = 32
    """N"""
    group_size: int = 16
    """G"""

    # sampling: as policies.base.Sampling
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    max_new_tokens: int | None = None
    stop: tuple[str, ...] = ()
    dynamic_sampling: int = 0
    """Most batches that are generated for one step until N of their groups are mixed, 0 < #correct < G by verified accuracy (DAPO, arXiv
    2503.14476): no other group is trained on, unless fewer than N are found. 0 trains on every group of one batch, as it comes."""
    sync_every: int = 1
    """Steps between updates of a sampler's weights: how stale they may be. Without a sampler the policy itself generates."""

    # objective
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
    """Most that a token may count for where the trainer finds it likelier than the sampler did; None: 2 with a sampler, else no
    correction."""
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
    """Factor on the k3 estimate of KL(policy || policy before training), subtracted from the objective."""
    mask_truncated: bool = False
    """Leave completions that were cut off out of the loss (DAPO's overlong filtering); their group's baseline still counts them."""

    # optimisation
    learning_rate: float = 1e-4
    schedule: str = "constant"
    """A key of ``schedules.SCHEDULES``: how the learning rate goes on after ``warmup_steps``."""
    warmup_steps: int = 0
    """Steps over which the learning rate rises linearly from 0."""
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    epochs: int = 1
    """Passes over each batch of rollouts."""
    minibatches: int = 2
    """Optimiser steps per pass; groups are never split."""
    micro_batch_tokens: int | None = None
    """Most tokens, prompts included, that a forward and backward pass holds at once (a single completion may exceed it); None: a minibatch.
    It changes memory and time, not the gradient."""
    precision: str = "float32"
    """"bfloat16": forward passes under autocast; weights stay in their own dtype."""

    # evaluation and checkpoints
    eval_every: int = 0
    """Steps between evaluations; 0: none."""
    eval_split: str = "validation"
    eval_problems: int = 64
    eval_samples: int = 8
    eval_metric: str = "pass@8"
    """Key of ``metrics.summarize_groups``, larger is better: decides which weights are kept as the best, and when to stop early."""
    patience: int = 0
    """Evaluations without a better metric after which the run ends; 0: it never ends early."""
    checkpoint_every: int = 10
    """Steps between checkpoints; a killed run loses at most these."""

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ValueError(f"expected {name} to be an integer of at least {least}, got {value!r}")
        for name in _POSITIVE:
            if not isinstance(value := getattr(self, name), (int, float)) or not value > 0:
                raise ValueError(f"expected {name} to be a number above 0, got {value!r}")
        for name in _NOT_NEGATIVE:
            if not isinstance(value := getattr(self, name), (int, float)) or not value >= 0:
                raise ValueError(f"expected {name} to be a number of at least 0, got {value!r}")
        for name, choices in (("schedule", SCHEDULES), ("precision", PRECISIONS)):
            if (value := getattr(self, name)) not in choices:
                raise ValueError(f"expected {name} to be one of {', '.join(choices)}, got {value!r}")
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
        if (budget := self.micro_batch_tokens) is not None and (not isinstance(budget, int) or isinstance(budget, bool) or budget < 1):
            raise ValueError(f"expected micro_batch_tokens to be None or an integer of at least 1, got {budget!r}")
        if self.patience and not self.eval_every:
            raise ValueError("expected eval_every beside patience: without evaluations nothing can stop the run early")
        if self.checkpoint_every % self.sync_every:
            raise ValueError(
                f"expected checkpoint_every to be a multiple of sync_every, so that a resumed run samples with the weights it would "
                f"have had, got {self.checkpoint_every} and {self.sync_every}"
            )
        if not isinstance(self.policy, Mapping) or "kind" not in self.policy:
            raise ValueError(f'expected policy to be a dict with a "kind", such as {{"kind": "tiny"}}, got {self.policy!r}')
        if isinstance(self.stop, str):
            raise ValueError(f"expected stop to be a tuple of texts, got the text {self.stop!r}")
        _ = self.sampling  # checks its fields

    @property
    def sampling(self) -> Sampling:
        """How training completions are sampled."""
        return Sampling(self.temperature, self.top_p, self.top_k, self.max_new_tokens, tuple(self.stop))

    @property
    def named_regularizers(self) -> dict[str, dict[str, Any]]:
        """``regularizers``, and those that have a field of their own. Raises ValueError for one that is named by both."""
        own = {"entropy": self.entropy_coefficient, "kl": self.kl_coefficient}
        given = {name: {"coefficient": coefficient} for name, coefficient in own.items() if coefficient}
        if twice := sorted(given.keys() & self.regularizers.keys()):
            raise ValueError(f"expected {twice[0]}_coefficient or regularizers[{twice[0]!r}], got both")
        return {**given, **self.regularizers}

    def to_json(self) -> dict[str, Any]:
        """What a JSON file gives back: lists for tuples."""
        return json.loads(json.dumps(asdict(self)))


def with_defaults(saved: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration as an earlier version saved it, with the defaults of the fields that it did not have."""
    made = {f.name: f.default_factory() for f in fields(TrainConfig) if f.default_factory is not MISSING}
    plain = {f.name: f.default for f in fields(TrainConfig) if f.default is not MISSING}
    return {**json.loads(json.dumps({**made, **plain})), **saved}
