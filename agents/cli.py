"""The ``setpo`` command. Commands that need no model import no torch."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

import gymnasium as gym

from .commands import bench, demo, envs, evaluate, report, rescore, robustness, show, study, train, verify, warm_start

_EXTRAS = {
    **dict.fromkeys(("torch", "safetensors", "tomli"), "train"),
    **dict.fromkeys(("transformers", "peft"), "hf"),
    **dict.fromkeys(("datasets", "pyarrow"), "hub"),
    "matplotlib": "report",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; errors that a user can act on are one line on standard error and exit status 2."""
    arguments = vars(_parser().parse_args(argv))
    command, modules = arguments.pop("command"), arguments.pop("modules")
    try:
        sys.path.insert(0, os.getcwd())
        for module in modules:  # what it registers, such as verifiers, shapers and environments, is known by name from here on
            if importlib.util.find_spec(module.partition(".")[0]) is None:
                raise ValueError(f"expected --import with a module that is here or installed, got {module!r}")
            importlib.import_module(module)
        return int(command(**arguments) or 0)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        print(f'setpo: this command needs {error.name}: pip install "setpo-envs[{extra}]"', file=sys.stderr)
        return 2
    except (ValueError, OSError, TypeError, ImportError, FloatingPointError, BrokenExecutor, gym.error.Error) as error:
        if os.environ.get("SETPO_DEBUG"):
            raise
        print(f"setpo: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nsetpo: stopped; the same command goes on where this one was", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="setpo", description="Group environments, set-level credit, and training that keeps answers diverse."
    )
    parser.add_argument(
        "--import",
        action="append",
        default=[],
        dest="modules",
        metavar="MODULE",
        help="module to import first: it may register what is yours",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, function: Any, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        sub.set_defaults(command=function)
        return sub

    p = add("demo", demo, "GRPO and GSPO with and without SetPO on Countdown, one seed: a table, figures and a page of real groups.")
    p.add_argument("--out", type=Path, default=Path("runs/demo"), help="folder for everything that is made; started again, it goes on")
    p.add_argument("--from-scratch", action="store_true", help="train the warm start instead of using the one that comes with the package")
    _add_sizes(p)

    p = add(
        "study",
        study,
        "The same with paired seeds, controls and tuned baselines; settings chosen on validation, figures from test.",
    )
    p.add_argument("--out", type=Path, default=Path("runs/study"), help="folder for everything that is made; started again, it goes on")
    p.add_argument("--seeds", type=int, default=5, help="paired seeds; warm starts alternate between two")
    _add_sizes(p)

    absent: dict[str, Any] = {"default": argparse.SUPPRESS}  # the default is that of the function, and no "None" in the help
    p = add("bench", bench, "Shapers x environments x seeds on the tiny policy: leaderboards, raw and with scales matched.")
    p.add_argument("--out", type=Path, default=Path("runs/bench"), help="folder for everything that is made; started again, it goes on")
    p.add_argument(
        "--list", **absent, action="store_true", dest="listing", help="print the methods and environments there are; run nothing"
    )
    p.add_argument("--methods", **absent, type=_names, metavar="A,B", help="methods to run (default: all); GRPO and controls always run")
    p.add_argument(
        "--shaper", **absent, action="append", metavar="FILE", help=".py file that registers shapers of yours: each is one more row"
    )
    p.add_argument("--envs", **absent, type=_names, metavar="A,B", help="environments to run on (default: all)")
    p.add_argument("--seeds", type=int, default=5, help="paired seeds; warm starts alternate between two")
    p.add_argument("--steps", type=int, default=60, help="training steps a run")
    p.add_argument("--prompts", type=int, default=32, help="prompts a step")
    p.add_argument("--group-size", type=int, default=8, help="completions a prompt")
    p.add_argument("--learning-rate", type=float, default=2e-4, help="high, so that diversity is lost within few steps")
    p.add_argument("--eval-samples", type=int, default=64, help="completions a problem in evaluations")
    p.add_argument("--eval-problems", type=int, default=100, help="problems of each split")
    p.add_argument("--warm-start-steps", **absent, type=int, help="gradient steps of the warm start (default: the environment's)")
    p.add_argument("--workers", type=int, default=2, help="single-thread processes side by side")

    p = add(
        "robustness",
        robustness,
        "SetPO+GRPO against GRPO, one factor at a time: decoding temperature, group size, KL coefficient.",
    )
    p.add_argument(
        "--out", type=Path, default=Path("runs/robustness"), help="folder for everything that is made; started again, it goes on"
    )
    p.add_argument("--seeds", type=int, default=3, help="paired seeds; warm starts alternate between two")
    p.add_argument("--steps", type=int, default=60, help="training steps a run")
    p.add_argument("--prompts", type=int, default=16, help="prompts a step")
    p.add_argument("--eval-samples", type=int, default=64, help="completions a problem in evaluations")
    p.add_argument("--eval-problems", type=int, default=None, help="problems of the test split (default: all)")
    p.add_argument("--warm-start-steps", type=int, default=3000, help="gradient steps of the warm start")
    p.add_argument("--workers", type=int, default=2, help="single-thread processes side by side")

    p = add("envs", envs, "List the environments, or print the specification of one.")
    p.add_argument("env_id", nargs="?", metavar="ID", help="environment id; MODULE:ID imports the module that registers it")

    p = add("show", show, "Show one problem: prompt, gold, metadata, and a right answer as the verifier judges it.")
    p.add_argument("env_id", metavar="ID", help="environment id; MODULE:ID imports the module that registers it")
    p.add_argument("--index", type=int, default=0, help="place of the problem in the data set")
    p.add_argument("--source", help='short for --set source=..., such as "embedded", with which the questions work offline')
    p.add_argument("--set", action="append", default=[], metavar="NAME=JSON", help="an argument of gym.make, such as split=test")

    p = add("report", report, "Draw the figures and the page of a demo or study folder again.")
    p.add_argument("out", type=Path, help="the folder")

    p = add("warm-start", warm_start, "Train the tiny policy on enumerated Countdown solutions.")
    p.add_argument("--out", type=Path, required=True, help="checkpoint to write")
    p.add_argument("--seed", type=int, default=0, help="seed of weights and batches")
    p.add_argument("--steps", type=int, default=3000, help="gradient steps")

    p = add("train", train, "Train a policy: a recipe (recipes/*.toml), or the tiny policy from a warm start.")
    p.add_argument("recipe", type=Path, nargs="?", metavar="CONFIG.toml", help="configuration; without one the tiny policy is trained")
    p.add_argument("--warm-start", help="checkpoint that the tiny policy starts from")
    p.add_argument("--out", type=Path, help="run folder; started again, it goes on (default: runs/ and the recipe's name)")
    p.add_argument(
        "--set", action="append", default=[], metavar="FIELD=JSON", help="a field of TrainConfig, such as steps=100 or policy.model=DIR"
    )
    p.add_argument("--dry-run", action="store_true", help="train nothing: print the plan, and check what can be checked")
    p.add_argument("--model", help="another model in place of the recipe's, such as a small local one")
    p.add_argument("--data", help="another source of the problems, such as a local file in the schema of the recipe's")
    p.add_argument("--rollout", metavar="URL", help="vLLM server that samples (http://host:8000/v1), while this process trains")
    p.add_argument("--rollout-weights", metavar="FOLDER", help="folder that server and trainer see under one path, for new weights")
    _add_verifiers(p)

    p = add("eval", evaluate, "Sample n completions a problem into an append-only groups.jsonl and print the metrics.")
    p.add_argument("--checkpoint", type=Path, required=True, help="a run's checkpoint.safetensors or a warm start")
    p.add_argument("--out", type=Path, required=True, help="groups.jsonl to write; started again, it goes on")
    p.add_argument("--env", default="setpo/Countdown-v0", help="environment id")
    p.add_argument("--env-kwargs", type=_json_object, default=None, help="arguments of gym.make as JSON; default: those of the demo")
    p.add_argument("--split", default="test", help="split of the data set")
    p.add_argument("--n", type=int, default=64, help="completions a problem")
    p.add_argument("--temperature", type=float, default=1.0, help="sampling temperature")
    p.add_argument("--max-new-tokens", type=int, default=None, help="most tokens of a completion (default: the policy's limit)")
    p.add_argument("--seed", type=int, default=0, help="seed of the samples")
    _add_verifiers(p)

    p = add("rescore", rescore, "Verify stored groups of completions again and add set-level credits.")
    p.add_argument("source", type=Path, help="groups.jsonl, or pooled completions (task, problem_id, gold_raw, completions)")
    p.add_argument("--out", type=Path, required=True, help="groups.jsonl to write; started again, it goes on")
    p.add_argument(
        "--shaper",
        action="append",
        dest="shapers",
        metavar="NAME[:JSON]",
        help="registered shaper with its options, setpo unless given; several are compared, the first is the baseline (none: no shaper; "
        "all: none and every registered one). Options may hold base_advantage and credit_coefficient",
    )
    p.add_argument("--shaper-kwargs", type=_json_object, default={}, help="options of a single shaper as JSON")
    p.add_argument("--html", type=Path, metavar="PAGE.html", help="page to write on which to read the groups, sorted by what a method pays")
    p.add_argument(
        "--task", action="append", default=[], dest="tasks", metavar="[TASK=]VERIFIER", help="verifier of the groups of one task, or of all"
    )
    p.add_argument("--gold", metavar="FIELD", help="field with the gold answer; default: gold, else gold_raw")
    p.add_argument("--strict", action="store_true", help="answers count only in a tag or a box")

    p = add("verify", verify, "Judge completions: a verdict for every line of a file, or one explained step by step.")
    p.add_argument("source", type=Path, nargs="?", metavar="IN.jsonl", help="lines {id, task, gold, completion, mode?, options?}")
    p.add_argument("--out", type=Path, help="verdicts to write, one a line; started again, it goes on")
    p.add_argument("--workers", type=int, default=2, help="processes that judge")
    p.add_argument("--timeout", type=float, default=5.0, metavar="S", help="seconds for each completion")
    p.add_argument("--strict", action="store_true", help="answers count only in a tag or a box, where a line has no mode of its own")
    p.add_argument("--explain", action="store_true", help="judge one completion and show each step")
    p.add_argument("--task", help="task to explain")
    p.add_argument("--gold", help="its gold answer, as text or JSON")
    p.add_argument("--completion", help="the completion; - reads it from standard input")
    p.add_argument("--options", type=_json_object, default={}, help="options of the task's verifier as JSON")
    return parser


def _add_sizes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workers", type=int, default=2, help="single-thread processes side by side")
    parser.add_argument("--steps", type=int, default=400, help="training steps a run (tuning: half as many)")
    parser.add_argument("--warm-start-steps", type=int, default=3000, help="gradient steps of the warm start")
    parser.add_argument("--eval-samples", type=int, default=64, help="completions a problem in evaluations")
    parser.add_argument("--eval-problems", type=int, default=None, help="problems of each split (default: all)")


def _add_verifiers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--verifiers", type=int, default=0, metavar="N", help="processes that verify; 0: the one that samples")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"expected a JSON object, got {text!r} ({error})") from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"expected a JSON object, got {text!r}")
    return value


if __name__ == "__main__":
    sys.exit(main())
