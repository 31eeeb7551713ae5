"""A method of credit as rescoring compares it: a shaper with the base advantage and the lambda that turn its shaping into a signal."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from setpo_envs.group import Groups
from setpo_envs.shapers.base import Shaper, apply_shaper, make_shaper, registry

from .advantages import BASE_ADVANTAGES, Array, among_valid, combine

PLAIN = "none"
"""Name of the method without a shaper: its base advantage alone."""

DEFAULT_COEFFICIENT = 0.05
"""Lambda of a shaper that declares none: what SetPO's paper adds to GRPO (arXiv 2602.01062)."""

SHAPING_FIELDS = ("shaped_rewards", "weights", "credits", "defined", "diversity")


@dataclass(frozen=True)
class Method:
    """The signal A = w * base(r') + lambda * c of a shaper; without one r' = r, w = 1 and c = 0.

    Args:
        label: What it is called in results.
        shaper: What gives r', w and c, or None.
        base_advantage: A name among ``BASE_ADVANTAGES``.
        credit_coefficient: lambda.
    """

    label: str
    shaper: Shaper | None
    base_advantage: str = "grpo"
    credit_coefficient: float = DEFAULT_COEFFICIENT

    def spec(self) -> dict[str, Any]:
        """What its results depend on, as JSON values."""
        shaper = None if self.shaper is None else repr(self.shaper)
        return {"shaper": shaper, "base_advantage": self.base_advantage, "credit_coefficient": self.credit_coefficient}

    def shape(self, groups: Groups, rng: np.random.Generator) -> Groups:
        """``groups`` with this method's shaping; the argument, whose verdicts the result shares, stays as it is."""
        shaped = copy(groups)
        if self.shaper is not None:
            apply_shaper(shaped, self.shaper, rng)
        return shaped

    def advantages(self, shaped: Groups) -> Array:
        """A (N, G) of groups with this method's shaping, as the trainer computes it; 0 where there is no verdict.

        A lone completion has nothing to be compared with: its base advantage is 0.
        """
        single = shaped.group_size == 1
        base: Callable[[Any], Array] = np.zeros_like if single else BASE_ADVANTAGES[self.base_advantage]
        base_NG = among_valid(base, shaped.shaped_rewards, shaped.valid)
        return combine(base_NG, shaped.credits, self.credit_coefficient, shaped.weights) * shaped.valid

    def record(self, shaped: Groups) -> dict[str, Any]:
        """What the method says of the one group of ``shaped``, as JSON values: SHAPING_FIELDS and ``advantages``."""
        fields = {name: getattr(shaped, name)[0].tolist() for name in SHAPING_FIELDS}
        return {**fields, "advantages": self.advantages(shaped)[0].tolist()}


def make_method(name: str, options: Mapping[str, Any] | None = None) -> Method:
    """The method of a registered shaper, or of ``PLAIN``.

    Args:
        options: Of the shaper; and, where the shaper has no option of that name, ``base_advantage`` and ``credit_coefficient``,
            which otherwise are those that the shaper declares, "grpo" and ``DEFAULT_COEFFICIENT`` where it declares none.

    Raises:
        ValueError: unknown name, option or base advantage, or a coefficient that is no finite number.
    """
    own = dict(options or {})
    parameters = inspect.signature(registry()[name]).parameters if name in registry() else {}
    given = {field: own.pop(field) for field in ("base_advantage", "credit_coefficient") if field in own and field not in parameters}
    if name == PLAIN and own:
        raise ValueError(f"expected base_advantage as the one option of {PLAIN!r}, which has no shaper, got {', '.join(own)}")
    shaper = None if name == PLAIN else make_shaper(name, **own)
    # a method that replaces the base advantage declares None: its weights are 0 wherever it is defined
    base = given.get("base_advantage") or getattr(shaper, "base_advantage", None) or "grpo"
    coefficient = given.get("credit_coefficient", getattr(shaper, "credit_coefficient", DEFAULT_COEFFICIENT))
    if base not in BASE_ADVANTAGES:
        raise ValueError(f"expected base_advantage out of {', '.join(BASE_ADVANTAGES)} for {name!r}, got {base!r}")
    if isinstance(coefficient, bool) or not isinstance(coefficient, (int, float)) or not math.isfinite(coefficient):
        raise ValueError(f"expected credit_coefficient as a finite number for {name!r}, got {coefficient!r}")
    words = [name, *(f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in (options or {}).items())]
    return Method(" ".join(words), shaper, base, float(coefficient))


def read_methods(specs: Iterable[str]) -> list[Method]:
    """Methods from texts ``NAME`` or ``NAME:JSON``; "all" stands for ``PLAIN`` and every registered shaper with its defaults.

    Raises:
        ValueError: what :func:`make_method` raises, options that are no JSON object, or the same method twice.
    """
    methods: dict[str, Method] = {}
    for spec in specs:
        if spec == "all":
            made = [make_method(name) for name in (PLAIN, *sorted(registry()))]
            methods.update((method.label, method) for method in made if method.label not in methods)
            continue
        name, colon, text = spec.partition(":")
        try:
            options = json.loads(text) if colon else {}
        except json.JSONDecodeError as error:
            raise ValueError(f"expected NAME or NAME:JSON for a shaper, got {spec!r} ({error})") from None
        if not isinstance(options, dict):
            raise ValueError(f"expected the options of a shaper as a JSON object, got {spec!r}")
        method = make_method(name, options)
        if method.label in methods:
            raise ValueError(f"expected every method once, got {method.label!r} twice")
        methods[method.label] = method
    return list(methods.values())
