"""Set shapers: what turns the completions of a group into credits, shaped rewards or weights."""

from .base import Shaper, ShaperWrapper, Shaping, apply_shaper, make_shaper, register, registry, resolve_shaper
from .controls import Shuffled
from .exploration import BatchExploration, UCBExploration
from .frequency import EDAS, GAPO, IPS, MaDRL, PolyEPO, RarityAware
from .length import Overlong
from .passk import PKPO, PassKTraining
from .quality import Darling
from .setpo import SetPO, set_diversity, setpo_credits

__all__ = [
    "BatchExploration",
    "Darling",
    "EDAS",
    "GAPO",
    "IPS",
    "MaDRL",
    "Overlong",
    "PassKTraining",
    "PKPO",
    "PolyEPO",
    "RarityAware",
    "SetPO",
    "Shaper",
    "ShaperWrapper",
    "Shaping",
    "Shuffled",
    "UCBExploration",
    "apply_shaper",
    "make_shaper",
    "register",
    "registry",
    "resolve_shaper",
    "set_diversity",
    "setpo_credits",
]
