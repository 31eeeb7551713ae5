"""The methods of the benchmark: what each changes in the training settings, at a strength or at a matched scale."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from setpo_envs.shapers import load_shaper_file, make_shaper

from .jobs import Arm
from .leaderboard import BASELINE, CONTROLLED, CONTROLS, UNRANKED
from .study import VARIANT


@dataclass(frozen=True)
class Method:
    """A method at strength 1.

    name: what its arms and rows are called; label: what tables call it.
    shaper: registered shaper, or None for a method on the policy's side.
    settings: what it changes in :class:`TrainConfig` besides shaper and options.
    scaled: where in ``settings`` a strength multiplies, keys joined by dots, where there is no shaper.
    plugins: files that register the shaper.
    """

    name: str
    label: str
    shaper: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    scaled: str = ""
    plugins: tuple[str, ...] = ()

    def arm(self, strength: float = 1.0, ratio: float | None = None) -> Arm:
        """The arm of one strength, or of one matched ratio."""
        name = f"{self.name}-x{strength:g}" if ratio is None else f"{self.name}-matched"
        settings = dict(self.settings)
        if self.shaper is None:
            return Arm(name, self.label, _scaled(settings, self.scaled.split("."), strength)) if self.scaled else Arm(self.name, self.label)
        shaper = make_shaper(self.shaper, **self.options)
        credit = settings.pop("credit_coefficient", getattr(shaper, "credit_coefficient", 1.0))
        base = getattr(shaper, "base_advantage", None) or "grpo"
        scale = {"shaping_strength": strength} if ratio is None else {"match_shaping_ratio": ratio}
        base = base if ratio is None else "grpo"  # one base for all where scales are compared
        shaping = {"shaper": self.shaper, "shaper_kwargs": dict(self.options), "credit_coefficient": credit, "base_advantage": base}
        return Arm(name, self.label, {**settings, **shaping, **scale})


def _scaled(settings: Mapping[str, Any], path: Sequence[str], strength: float) -> dict[str, Any]:
    """``settings`` with the number at the end of ``path`` multiplied."""
    first, *rest = path
    value = _scaled(settings[first], rest, strength) if rest else settings[first] * strength
    return {**settings, first: value}


GRPO = Method(BASELINE, "GRPO")
SETPO_Z = {"kernel": "equality_key", **VARIANT}


def _regularizer(name: str, label: str, scaled: str, value: float, **options: Any) -> Method:
    """A method on the policy's side; a strength multiplies the option ``scaled``."""
    settings = {"regularizers": {name: {scaled: value, **options}}}
    return Method(name, label, settings=settings, scaled=f"regularizers.{name}.{scaled}")


def _set(name: str, label: str, **options: Any) -> Method:
    return Method(name, label, name, options)


METHODS = (
    Method("setpo", "SetPO, raw", "setpo", settings={"credit_coefficient": 0.5}),
    Method(CONTROLLED, "SetPO, z-scored by mode", "setpo", SETPO_Z, {"credit_coefficient": 0.1}),
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
    _regularizer("r1_zero_div", "R1-zero-Div", "coefficient", 0.01),
    _regularizer("clip_cov", "Clip-Cov", "share", 2e-3),
    _regularizer("kl_cov", "KL-Cov", "coefficient", 1.0, share=2e-3),
    _regularizer("entropy_advantage", "entropy advantage", "alpha", 0.4),
    _regularizer("ucpo", "UCPO", "t", 0.2),
)
CONTROL_METHODS = tuple(
    Method(name, label, name, {"of": "setpo", "of_kwargs": SETPO_Z}, {"credit_coefficient": 0.1})
    for name, label in zip(CONTROLS, ("control: SetPO's credit shuffled", "control: random partition", "control: class means"))
)
"""Controls of ``CONTROLLED``."""


def file_methods(paths: Iterable[str]) -> list[Method]:
    """A method for each shaper that the files register, with the base advantage and coefficient that its class declares.

    Raises:
        FileNotFoundError, ValueError: A file that cannot be used; the name of a method that is there already, or one that cannot name a
            folder.
    """
    taken, found = {method.name for method in METHODS} | set(UNRANKED), []
    for path in paths:
        for name in load_shaper_file(path):
            if name in taken or not re.fullmatch(r"\w[\w.+-]*", name):
                wrong = "which the benchmark has already" if name in taken else "which cannot name a folder"
                raise ValueError(
                    f"expected a name of its own, of letters, digits and _.+-, for each shaper of {path}, got {name!r}, {wrong}"
                )
            taken.add(name)
            found.append(Method(name, name, name, plugins=(str(path),)))
    return found
