"""What each command of ``setpo`` does. They import what they need: commands without a model bring no torch."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym

from .jsonl import read_value


def _pool(verifiers: int) -> Any:
    """A context: a pool of so many processes, or None for none."""
    if not verifiers:
        return contextlib.nullcontext()
    from setpo_verifiers import VerifierPool

    return VerifierPool(verifiers)


def _assignment(text: str) -> tuple[str, Any]:
    """NAME=JSON as (name, value); a bare word is a string."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"expected --set NAME=JSON, got {text!r}")
    return name, read_value(value)


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


def bench(*, out: Path, listing: bool = False, shaper: Sequence[str] = (), **sizes: Any) -> None:
    from .bench import bench as run
    from .bench import overview
    from .leaderboard_page import write_leaderboard

    if listing:
        _print("\n".join(overview()))
        return
    _check_writable(out)
    run(out, shapers=shaper, **sizes)
    paths = write_leaderboard(out)
    print()
    print(paths[0].read_text(encoding="utf-8"))
    print("\n".join(f"wrote {path}" for path in paths))


def robustness(*, out: Path, **sizes: Any) -> None:
    _check_writable(out)
    from .robustness import robustness as run
    from .robustness import write_robustness

    paths = write_robustness(out, run(out, **sizes))
    print("\n" + paths[0].read_text(encoding="utf-8"))
    print("\n".join(f"wrote {path}" for path in paths))


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


def train(
    *,
    recipe: Path | None,
    warm_start: str | None,
    out: Path | None,
    verifiers: int,
    dry_run: bool,
    model: str | None,
    data: str | None,
    rollout: str | None,
    rollout_weights: str | None,
    **fields: Any,
) -> int:
    from .dry_run import dry_run as findings
    from .jobs import single_thread
    from .recipes import Recipe, read_recipe, with_assignments, with_stand_ins
    from .study import ENV_KWARGS
    from .trainer import Trainer

    settings = {"env_kwargs": {**ENV_KWARGS, "split": "train"}} if recipe is None else read_recipe(recipe).settings
    settings = with_assignments(with_stand_ins(settings, warm_start, model, data), fields["set"])
    config = Recipe(settings).config
    if dry_run:
        wrong = False
        for finding in findings(config, served=rollout is not None):
            _print(str(finding))
            wrong |= finding.state == "wrong"
        return int(wrong)
    if out is None and recipe is None:
        raise ValueError("expected --out with a folder for the run, or a recipe, whose name it takes")
    out = out or Path("runs") / (recipe or Path()).stem
    _check_writable(out)
    if config.policy["kind"] == "tiny":
        single_thread()
    with _pool(verifiers) as pool:
        trainer = Trainer(config, out, pool, sampler=_server(config, rollout, rollout_weights))
        trainer.run()
    _print(f"wrote {out / 'checkpoint.safetensors'}")
    return 0


def _server(config: Any, url: str | None, folder: str | None) -> Any:
    """The vLLM server that samples, or None for the policy itself."""
    if url is None:
        return None
    if folder is None or config.policy["kind"] != "transformers":
        raise ValueError("expected --rollout-weights and a policy of kind 'transformers' beside --rollout")
    from .policies.vllm_server import VLLMServerPolicy

    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError("expected one process beside --rollout: a server takes weights from one")
    from transformers import AutoTokenizer

    chat = config.policy.get("chat")
    if chat is None:  # as the policy decides it
        chat = bool(AutoTokenizer.from_pretrained(config.policy["model"]).chat_template)
    return VLLMServerPolicy(
        config.policy["model"],
        url,
        api="chat" if chat else "completions",
        log_probs="processed",
        system_prompt=config.policy.get("system_prompt"),
        max_new_tokens=config.policy.get("max_new_tokens", 256),
        weights_folder=folder,
    )


def evaluate(
    *,
    checkpoint: Path,
    out: Path,
    env: str,
    env_kwargs: dict[str, Any] | None,
    split: str,
    n: int,
    temperature: float,
    max_new_tokens: int | None,
    seed: int,
    verifiers: int,
) -> None:
    _check_writable(out.parent)
    from setpo_envs.shapers.base import make_shaper

    from .evaluate import evaluate as run
    from .evaluate import metrics_table
    from .jobs import OBSERVER, single_thread
    from .policies.base import Sampling
    from .policies.load import load_policy
    from .study import ENV_KWARGS

    single_thread()
    sampling = Sampling(temperature, max_new_tokens=max_new_tokens)
    made: Any = gym.make(env, split=split, shaper=None, **(ENV_KWARGS if env_kwargs is None else env_kwargs)).unwrapped
    shaper = make_shaper("setpo", **OBSERVER) if n > 2 else None
    policy = load_policy(checkpoint)
    with _pool(verifiers) as pool:
        lines = run(policy, made.dataset, out, n=n, seed=seed, shaper=shaper, sampling=sampling, mode=made.mode, pool=pool)
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
