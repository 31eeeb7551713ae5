"""The ``setpo`` command. Commands that need no model import no torch."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

import gymnasium as gym

_EXTRAS = {"torch": "train", "matplotlib": "report", "datasets": "hub", "pyarrow": "hub"}


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

    p = add("study", study, "The same with paired seeds, controls and tuned baselines; settings chosen on validation, figures from test.")
    p.add_argument("--out", type=Path, default=Path("runs/study"), help="folder for everything that is made; started again, it goes on")
    p.add_argument("--seeds", type=int, default=5, help="paired seeds; warm starts alternate between two")
    _add_sizes(p)

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

    p = add("train", train, "Train the tiny policy with GRPO or GSPO and, if asked, a set shaper.")
    p.add_argument("--warm-start", required=True, help="checkpoint to start from")
    p.add_argument("--out", type=Path, required=True, help="run folder; started again, it goes on")
    p.add_argument(
        "--set", action="append", default=[], metavar="FIELD=JSON", help="a field of TrainConfig, such as shaper='\"setpo\"' or steps=100"
    )
    _add_verifiers(p)

    p = add("eval", evaluate, "Sample n completions a problem into an append-only groups.jsonl and print the metrics.")
    p.add_argument("--checkpoint", type=Path, required=True, help="a run's checkpoint.pt or a warm start")
    p.add_argument("--out", type=Path, required=True, help="groups.jsonl to write; started again, it goes on")
    p.add_argument("--env", default="setpo/Countdown-v0", help="environment id")
    p.add_argument("--env-kwargs", type=_json_object, default=None, help="arguments of gym.make as JSON; default: those of the demo")
    p.add_argument("--split", default="test", help="split of the data set")
    p.add_argument("--n", type=int, default=64, help="completions a problem")
    p.add_argument("--temperature", type=float, default=1.0, help="sampling temperature")
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


def _pool(verifiers: int) -> Any:
    """A context: a pool of so many processes, or None for none."""
    if not verifiers:
        return contextlib.nullcontext()
    from setpo_verifiers import VerifierPool

    return VerifierPool(verifiers)


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"expected a JSON object, got {text!r} ({error})") from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"expected a JSON object, got {text!r}")
    return value


def _assignment(text: str) -> tuple[str, Any]:
    """NAME=JSON as (name, value); a bare word is a string."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"expected --set NAME=JSON, got {text!r}")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _print(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:  # the reader has seen enough, as in setpo envs | head; the rest goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def envs(*, env_id: str | None) -> None:
    from . import catalogue

    _print("\n".join(catalogue.overview()) if env_id is None else catalogue.specification(env_id))


def show(*, env_id: str, index: int, source: str | None, **fields: Any) -> None:
    from .catalogue import example

    given = {} if source is None else {"source": source}
    _print(example(env_id, index, {**dict(map(_assignment, fields["set"])), **given}))


def demo(*, out: Path, from_scratch: bool, **sizes: Any) -> None:
    _check_writable(out)
    from . import study as studies
    from .report import write_report
    from .results import print_table

    default = sizes["warm_start_steps"] == studies.Plan.warm_start_steps
    packaged = studies.packaged_warm_start() if default and not from_scratch else None
    print("training the warm start" if packaged is None else f"starting from {packaged.name} (--from-scratch trains it again)", flush=True)
    lines = studies.demo(out, packaged=packaged, **sizes)
    paths = write_report(out)
    print()
    print_table(lines)
    print("\n" + "\n".join(f"wrote {path}" for path in paths))


def study(*, out: Path, **sizes: Any) -> None:
    _check_writable(out)
    from .compare import write_tables
    from .report import write_report
    from .results import print_table
    from .study import study as run

    lines = run(out, **sizes)
    paths = write_report(out)
    print()
    print_table(lines)
    print()
    print(write_tables(lines, out))
    print("\n" + "\n".join(f"wrote {path}" for path in paths))


def report(*, out: Path) -> None:
    from .report import write_report

    print("\n".join(f"wrote {path}" for path in write_report(out)))


def warm_start(*, out: Path, seed: int, steps: int) -> None:
    _check_writable(out.parent)
    from .jobs import Plan, single_thread
    from .study import ENV_KWARGS
    from .warm_start import WarmStartConfig
    from .warm_start import warm_start as train_warm_start

    single_thread()
    train_warm_start(Plan(out.parent, ENV_KWARGS).dataset("train"), WarmStartConfig(steps=steps, seed=seed), out)
    print(f"wrote {out}")


def train(*, warm_start: str, out: Path, verifiers: int, **fields: Any) -> None:
    _check_writable(out)
    from .jobs import single_thread
    from .study import ENV_KWARGS
    from .trainer import TrainConfig, Trainer

    known = TrainConfig.__dataclass_fields__
    settings: dict[str, Any] = {"env_kwargs": {**ENV_KWARGS, "split": "train"}}
    for assignment in fields["set"]:
        name, value = _assignment(assignment)
        if name not in known:
            raise ValueError(f"expected --set FIELD=JSON with a field of TrainConfig ({', '.join(known)}), got {assignment!r}")
        settings[name] = value
    single_thread()
    with _pool(verifiers) as pool:
        Trainer(TrainConfig(warm_start=warm_start, **settings), out, pool).run()
    print(f"wrote {out / 'checkpoint.pt'}")


def evaluate(
    *,
    checkpoint: Path,
    out: Path,
    env: str,
    env_kwargs: dict[str, Any] | None,
    split: str,
    n: int,
    temperature: float,
    seed: int,
    verifiers: int,
) -> None:
    _check_writable(out.parent)
    from setpo_envs.shapers.base import make_shaper

    from .evaluate import evaluate as run
    from .evaluate import metrics_table
    from .jobs import OBSERVER, single_thread
    from .study import ENV_KWARGS
    from .trainer import load_policy

    single_thread()
    made: Any = gym.make(env, split=split, shaper=None, **(ENV_KWARGS if env_kwargs is None else env_kwargs)).unwrapped
    shaper = make_shaper("setpo", **OBSERVER) if n > 2 else None
    policy = load_policy(checkpoint)
    with _pool(verifiers) as pool:
        lines = run(policy, made.dataset, out, n=n, seed=seed, shaper=shaper, temperature=temperature, mode=made.mode, pool=pool)
    print(metrics_table(lines))


def rescore(
    *,
    source: Path,
    out: Path,
    shapers: list[str] | None,
    shaper_kwargs: dict[str, Any],
    html: Path | None,
    tasks: list[str],
    gold: str | None,
    strict: bool,
) -> None:
    from . import rescore as run
    from .methods import make_method, read_methods

    specs = shapers or ["setpo"]
    if shaper_kwargs and (len(specs) > 1 or ":" in specs[0]):
        raise ValueError("expected --shaper-kwargs beside one --shaper NAME; give each of several its own options, as --shaper NAME:JSON")
    methods = [make_method(specs[0], shaper_kwargs)] if shaper_kwargs else read_methods(specs)
    for folder in {path.parent for path in (out, html) if path is not None}:
        _check_writable(folder)
    options: dict[str, Any] = {"mode": "strict" if strict else "lenient", "reading": run.Reading.from_texts(tasks, gold)}
    if "all" in specs:
        methods, left_out = run.usable(source, methods, **options)
        for reason in left_out:
            print(reason, file=sys.stderr)
    if len(methods) == 1 and methods[0].shaper is not None:
        lines = run.rescore(source, out, shaper=methods[0].shaper, **options)
        compared = [run.with_method(line, methods[0]) for line in lines] if html else []
    else:
        lines = compared = run.rescore_methods(source, out, methods=methods, **options)
    print("\n".join(run.summary(lines)))
    if compared:
        from .comparison import compare_methods, comparison_text, paid_list

        comparison = compare_methods(compared)
        print("\n".join(["", *paid_list(comparison, compared), "", *comparison_text(comparison)]))
        if html:
            from .rescore_page import write_page

            print(f"wrote {write_page(html, comparison, compared, methods, name=source.name)}")


def verify(*, source: Path | None, out: Path | None, workers: int, timeout: float, strict: bool, explain: bool, **one: Any) -> None:
    mode = "strict" if strict else "lenient"
    if explain:
        _explain(mode=mode, **one)
        return
    if source is None or out is None:
        raise ValueError("expected setpo verify IN.jsonl --out OUT.jsonl, or --explain with --task, --gold and --completion")
    _check_writable(out.parent)
    from .verify import verify as run

    print("\n".join(run(source, out, workers=workers, timeout=timeout, mode=mode)))


def _explain(*, task: str | None, gold: str | None, completion: str | None, mode: str, options: dict[str, Any]) -> None:
    if task is None or gold is None or completion is None:
        raise ValueError("expected --task, --gold and --completion with --explain")
    from setpo_verifiers.explain import explain

    for step, found in explain(task, sys.stdin.read() if completion == "-" else completion, gold, mode=mode, **options):
        print(f"{step + ':':13} {found}")


def _check_writable(folder: Path) -> None:
    """Fail before any work where results could not be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".writable-{os.getpid()}"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        raise OSError(f"cannot write to {folder} ({error.strerror or error}): choose another folder with --out") from error


if __name__ == "__main__":
    sys.exit(main())
