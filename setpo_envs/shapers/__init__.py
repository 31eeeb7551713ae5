"""Set shapers: what turns the completions of a group into credits, shaped rewards or weights."""

from .base import Shaper, ShaperWrapper, Shaping, apply_shaper, make_shaper, register, registry, resolve_shaper
from .composition import Composed
from .controls import MeanMatched, RandomPartition, Shuffled
from .exploration import BatchExploration, UCBExploration
from .frequency import EDAS, GAPO, IPS, SEEDGRPO, MaDRL, PolyEPO, RarityAware
from .from_file import load_shaper_file
from .length import Overlong
from .passk import PKPO, PassKTraining
from .quality import Darling
from .setpo import SetPO, set_diversity, setpo_credits
from .spectral import DRAGRPO, LogDet, Vendi, dra_rewards, logdet_credits, vendi_credits
from .textual import DIVER, equational_diversity, textual_diversity

__all__ = [
    "BatchExploration",
    "Composed",
    "Darling",
    "DIVER",
    "DRAGRPO",
    "EDAS",
    "GAPO",
    "IPS",
    "LogDet",
    "MaDRL",
    "MeanMatched",
    "Overlong",
    "PassKTraining",
    "PKPO",
    "PolyEPO",
    "RandomPartition",
    "RarityAware",
    "SEEDGRPO",
    "SetPO",
    "Shaper",
    "ShaperWrapper",
    "Shaping",
    "Shuffled",
    "UCBExploration",
    "Vendi",
    "apply_shaper",
    "dra_rewards",
    "equational_diversity",
    "load_shaper_file",
    "logdet_credits",
    "make_shaper",
    "register",
    "registry",
    "resolve_shaper",
    "set_diversity",
    "setpo_credits",
    "textual_diversity",
    "vendi_credits",
]
