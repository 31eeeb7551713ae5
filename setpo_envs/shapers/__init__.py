"""Set shapers: what turns the completions of a group into credits, shaped rewards or weights."""

from .base import Shaper, ShaperWrapper, Shaping, apply_shaper, make_shaper, register, registry, resolve_shaper
from .controls import MeanMatched, RandomPartition, Shuffled
from .length import Overlong
from .setpo import SetPO, set_diversity, setpo_credits
from .spectral import DRAGRPO, LogDet, Vendi, dra_rewards, logdet_credits, vendi_credits
from .textual import DIVER, equational_diversity, textual_diversity

__all__ = [
    "DIVER",
    "DRAGRPO",
    "LogDet",
    "MeanMatched",
    "Vendi",
    "dra_rewards",
    "equational_diversity",
    "logdet_credits",
    "textual_diversity",
    "vendi_credits",
    "Overlong",
    "RandomPartition",
    "SetPO",
    "Shaper",
    "ShaperWrapper",
    "Shaping",
    "Shuffled",
    "apply_shaper",
    "make_shaper",
    "register",
    "registry",
    "resolve_shaper",
    "set_diversity",
    "setpo_credits",
]
