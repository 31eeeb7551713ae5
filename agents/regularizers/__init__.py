"""Policy-side regularisers: what changes advantages, token costs or the loss by log-probabilities and entropies."""

from .advantages import EDAS, OPO, UCPO, EntropyAdvantage, Whiten
from .base import Experience, Minibatch, Regularizer, Replay, make_regularizer, register, registry
from .costs import ClipCov, KLCov
from .terms import DPHRL, EntropyBonus, R1ZeroDiv, ReferenceKL

__all__ = [
    "ClipCov",
    "DPHRL",
    "EDAS",
    "EntropyAdvantage",
    "EntropyBonus",
    "Experience",
    "KLCov",
    "Minibatch",
    "OPO",
    "R1ZeroDiv",
    "ReferenceKL",
    "Regularizer",
    "Replay",
    "UCPO",
    "Whiten",
    "make_regularizer",
    "register",
    "registry",
]
