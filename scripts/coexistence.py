"""Use PyPI's `verifiers` and `agents` (openai-agents) and the three packages of setpo-envs in one process; run by check-coexistence.sh."""

from importlib.metadata import files, version

import gymnasium

import agents
import setpo_agents
import setpo_envs
import setpo_verifiers
import verifiers

for module, distribution in (
    (verifiers, "verifiers"),
    (agents, "openai-agents"),
    (setpo_agents, "setpo-envs"),
    (setpo_verifiers, "setpo-envs"),
):
    if not any(path.locate().samefile(module.__file__) for path in files(distribution) or () if path.name == "__init__.py"):
        raise SystemExit(f"{module.__name__} was imported from {module.__file__}, which {distribution} did not install")

gymnasium.register_envs(setpo_envs)
env = gymnasium.make("setpo/Countdown-v0", group_size=4)
env.reset(seed=0)
_, reward, terminated, _, info = env.step(("<answer>1+1</answer>",) * 4)
if not terminated or info["group"]["rewards"].shape != (4,):
    raise SystemExit(f"one step of a group of 4 must end the episode with 4 rewards, got {info['group']['rewards']!r}")

verdict = setpo_verifiers.verify("countdown", "<answer>(7 - 5) * 2 + 1</answer>", {"numbers": [1, 2, 5, 7], "target": 5})
if verdict.reward != 1.0:
    raise SystemExit(f"a right answer was not accepted: {verdict}")

print(", ".join(f"{name} {version(name)}" for name in ("verifiers", "openai-agents", "setpo-envs", "gymnasium", "numpy")))
print(f"group reward {reward}; verdict {verdict}")
