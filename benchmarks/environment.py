"""What one group of 16 costs besides its verifier: reset and step, ours and our peers', as multiples of a bare Gymnasium environment.

    OMP_NUM_THREADS=1 python benchmarks/environment.py             # the bare environment and ours
    OMP_NUM_THREADS=1 python benchmarks/environment.py --peers     # and peers, each in a virtual environment of its own

Every verifier is a constant, and no shaper is on. The floor is a group environment of 20 lines made with ``gym.make`` that draws a prompt,
looks at 16 texts and returns their rewards as an array and their mean. Each system runs in one process with the floor, turn about, and
its ratio is that of the two medians in that process: processor time, not wall clock.

What a peer does for a group: gem-llm resets a QaEnv and takes 16 steps from there; skyrl-gym makes, initialises, steps and closes an
environment for each completion, as its trainer does; verifiers scores 16 traces of one task with one reward function; reasoning-gym scores
16 answers to an item that exists already, which is the scorer alone, without an environment. Peers are installed from PyPI into
build/peers on first use (a few hundred megabytes each); one that cannot be is skipped with a line that says so.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when numpy loads

import argparse  # noqa: E402
import json  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import gymnasium as gym  # noqa: E402
import numpy as np  # noqa: E402

G, PROMPTS, SECONDS = 16, 64, 4.0
GROUPS = [[f"<answer>text {n} {g}</answer>" for g in range(G)] for n in range(PROMPTS)]
PEERS = {  # distribution -> what to install for it
    "gem-llm": ("gem-llm==0.1.0", "datasets", "pylatexenc"),  # needs both and does not say so
    "skyrl-gym": ("skyrl-gym==0.4.0",),
    "verifiers": ("verifiers==0.4.0",),
    "reasoning-gym": ("reasoning-gym==0.1.25",),
}
FOLDER = Path(__file__).parent.parent / "build" / "peers"

OneGroup = Callable[[list[str]], Any]


class AnyText(gym.spaces.Space[str]):
    def contains(self, x: Any) -> bool:
        return isinstance(x, str)


class Floor(gym.Env[str, tuple[str, ...]]):
    """A group environment with nothing to it."""

    metadata = {"render_modes": []}

    def __init__(self) -> None:
        self.observation_space = AnyText()
        self.action_space = gym.spaces.Sequence(AnyText())
        self.prompts = [f"prompt {n}" for n in range(PROMPTS)]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.prompt = self.prompts[int(self.np_random.integers(PROMPTS))]
        return self.prompt, {}

    def step(self, action: tuple[str, ...]) -> tuple[str, float, bool, bool, dict[str, Any]]:
        rewards = np.array([float(text.endswith(">")) for text in action])
        return self.prompt, float(rewards.mean()), True, False, {"group": {"rewards": rewards}}


def gymnasium_group(env: gym.Env[Any, Any]) -> OneGroup:
    def one(texts: list[str]) -> None:
        env.reset()
        env.step(tuple(texts))

    return one


def floor() -> OneGroup:
    if "bench/Floor-v0" not in gym.registry:
        gym.register(id="bench/Floor-v0", entry_point=Floor)
    return gymnasium_group(gym.make("bench/Floor-v0"))


def ours(**kwargs: Any) -> OneGroup:
    import setpo_envs
    from setpo_envs.datasets import Problem
    from setpo_verifiers import TASKS, Status, Verdict, register

    verdict = Verdict(1.0, Status.CORRECT, "text", "text", "correct")
    if "constant" not in TASKS:
        register("constant", lambda completion, gold, *, mode: verdict)
    problems = [Problem(f"p{n}", "constant", f"prompt {n}", "text") for n in range(PROMPTS)]
    gym.register_envs(setpo_envs)
    return gymnasium_group(gym.make("setpo/Countdown-v0", source=problems, group_size=G, **{"shaper": None, **kwargs}))


def gem_llm() -> OneGroup:
    from datasets import Dataset
    from gem.envs.qa_env import QaEnv

    class Constant(QaEnv):
        check_correct = staticmethod(lambda model_answer, gt_answer: True)

    rows = [{"question": f"prompt {n}", "answer": "text"} for n in range(PROMPTS)]
    env = Constant(dataset=Dataset.from_list(rows))

    def one(texts: list[str]) -> None:
        env.reset()
        for text in texts:
            env.step(text)

    return one


def skyrl_gym() -> OneGroup:
    import skyrl_gym
    from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

    class Constant(BaseTextEnv):
        def __init__(self, env_config: Any = None, extras: dict[str, Any] | None = None) -> None:
            super().__init__()

        def step(self, action: str) -> BaseTextEnvStepOutput:
            return BaseTextEnvStepOutput(observations=[], reward=1.0, done=True, metadata={})

    skyrl_gym.register(id="constant", entry_point=Constant)
    prompt = [{"role": "user", "content": "prompt"}]

    def one(texts: list[str]) -> None:
        for text in texts:
            env = skyrl_gym.make("constant", env_config=None, extras={})
            env.init(prompt)
            env.step(text)
            env.close()

    return one


def reasoning_gym() -> OneGroup:
    import reasoning_gym

    data = reasoning_gym.create_dataset("basic_arithmetic", size=PROMPTS, seed=0)
    entry = data[0]

    def one(texts: list[str]) -> None:
        for text in texts:
            data.score_answer(text, entry)

    return one


def verifiers() -> OneGroup:
    import asyncio

    import verifiers.v1 as vf

    class Data(vf.TaskData):
        answer: str = "text"

    class Constant(vf.Task[Data]):
        @vf.reward(weight=1.0)
        async def correct(self, trace: vf.Trace) -> float:
            return 1.0

    data = Data(idx=0, prompt="prompt")
    task, loop = Constant(data), asyncio.new_event_loop()
    traces = [vf.Trace(task={"type": "Constant", "data": data}, agent={"config": vf.AgentConfig()}) for _ in range(G)]

    async def group() -> None:
        await asyncio.gather(*(task.score(trace) for trace in traces))

    return lambda texts: loop.run_until_complete(group())


def microseconds(one: OneGroup, groups: int) -> float:
    """Processor time a group, over ``groups`` groups."""
    start = time.process_time()
    for n in range(groups):
        one(GROUPS[n % PROMPTS])
    return (time.process_time() - start) / groups * 1e6


def against_the_floor(one: OneGroup) -> tuple[float, float]:
    """(microseconds of the floor, of ``one``): medians over turns about."""
    bare = floor()
    estimate = max(microseconds(one, 50), 1.0)
    rounds, groups = 9, max(20, int(SECONDS / 9 / 2 / estimate * 1e6))
    microseconds(bare, 2000)
    times = [(microseconds(bare, 3000), microseconds(one, groups)) for _ in range(rounds)]
    bare_us, one_us = np.median(times, axis=0)
    return float(bare_us), float(one_us)


def show(name: str, bare_us: float, one_us: float) -> None:
    print(
        f"{name:34} {one_us:9.1f} us a group {one_us / G:8.2f} us a completion {one_us / bare_us:8.1f} x floor ({bare_us:.1f} us)",
        flush=True,
    )


def peer(name: str) -> None:
    """Measure a peer in its own virtual environment, made if need be."""
    folder = FOLDER / name
    python = folder / "bin" / "python"
    try:
        if not (folder / "installed").exists():
            print(f"{name}: installing into {folder}", file=sys.stderr)
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PEERS[name], "gymnasium", "numpy"], check=True)
            (folder / "installed").touch()
        # elsewhere than in the repository, whose folder verifiers/ would be taken for the package of that name
        command = [str(python), str(Path(__file__).resolve()), "--one", name]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        show(name, *json.loads(done.stdout.splitlines()[-1]))
    except (subprocess.CalledProcessError, OSError) as error:
        reason = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1]
        print(f"{name:34} skipped: {reason[:120]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", action="store_true", help="measure peers too, installing them if need be")
    parser.add_argument("--one", choices=PEERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(against_the_floor(globals()[arguments.one.replace("-", "_")]())))
        return
    show("floor: bare Gymnasium", *against_the_floor(floor()))
    for name, kwargs in (
        ("setpo-envs", {}),
        ("setpo-envs, order=shuffle", {"order": "shuffle"}),
        ("setpo-envs, SetPO on 16 short texts", {"shaper": "setpo"}),
    ):
        show(name, *against_the_floor(ours(**kwargs)))
    for name in PEERS if arguments.peers else ():
        peer(name)


if __name__ == "__main__":
    main()
