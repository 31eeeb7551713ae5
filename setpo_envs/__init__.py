"""Gymnasium environments in which the action is a group of completions; importing this registers their ids."""

import gymnasium

from .card import Card
from .completion import Completion
from .env import GroupEnv
from .group import Groups, verify_groups

# id -> entry point; a new version whenever prompt, data or grader can change a reward
ENVIRONMENTS = {
    "setpo/Countdown-v0": "setpo_envs.tasks.countdown:CountdownEnv",
    "setpo/GraphColoring-v0": "setpo_envs.tasks.graph_coloring:GraphColoringEnv",
    "setpo/KnightsAndKnaves-v0": "setpo_envs.tasks.knights_and_knaves:KnightsAndKnavesEnv",
    "setpo/GSM8K-v0": "setpo_envs.tasks.gsm8k:GSM8KEnv",
    "setpo/MATH-v0": "setpo_envs.tasks.math:MATHEnv",
    "setpo/MATH500-v0": "setpo_envs.tasks.math:MATH500Env",
    "setpo/AIME-v0": "setpo_envs.tasks.aime:AIMEEnv",
    "setpo/AMC-v0": "setpo_envs.tasks.amc:AMCEnv",
    "setpo/Olympiad-v0": "setpo_envs.tasks.olympiad:OlympiadEnv",
    "setpo/Minerva-v0": "setpo_envs.tasks.minerva:MinervaEnv",
    "setpo/Dataset-v0": "setpo_envs.tasks.dataset:DatasetEnv",
    "setpo/Mixture-v0": "setpo_envs.tasks.mixture:MixtureEnv",
}

for _id, _entry_point in ENVIRONMENTS.items():
    if _id not in gymnasium.registry:
        gymnasium.register(id=_id, entry_point=_entry_point)

__all__ = ["ENVIRONMENTS", "Card", "Completion", "GroupEnv", "Groups", "verify_groups"]
