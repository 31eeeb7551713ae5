"""Fuzz the extractor, the maths verifiers, Countdown and Knights and Knaves: no exception, no malformed verdict, no call over a second.

    SETPO_TEST_DATA=... python benchmarks/fuzz.py --minutes 15                        # random bytes
    SETPO_TEST_DATA=... python benchmarks/fuzz.py --minutes 15 --engine atheris       # guided by coverage (pip install atheris)

The texts come from ``tests/odd_texts.py``; with SETPO_TEST_DATA its graded cases and model outputs are their seeds. Times are CPU seconds
of the thread, so a busy machine does not matter. Memory is limited to 2 GB, so a text that takes more shows as MemoryError. Every finding
is printed once for each place it comes from, with the bytes that draw its text (``--replay HEX`` judges them again); exit status 1 if
there is any.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import odd_texts  # noqa: E402

LIMIT = 1.0  # CPU seconds a call
GIVE_UP = 20  # seconds after which a call is interrupted, where it can be


class Fuzzer:
    def __init__(self, seeds: list[str]) -> None:
        self.seeds = seeds
        self.executions, self.calls, self.refused = 0, 0, 0
        self.tasks: Counter[str] = Counter()
        self.slowest: tuple[float, str, str] = (0.0, "", "")
        self.findings: dict[str, str] = {}  # what and where -> bytes in hex

    def once(self, data: bytes) -> None:
        """Judge what ``data`` stands for in every way."""
        odd = odd_texts.draw(data, self.seeds)
        self.executions += 1
        self.tasks[odd.task] += 1
        for name, call in _calls(odd):
            self.calls += 1
            signal.alarm(GIVE_UP)
            start = time.thread_time()
            try:
                fault = call()
            except _Refused:
                self.refused += 1
                fault = ""
            except RecursionError:
                fault = "RecursionError"  # where the stack ends says nothing
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                fault = f"{type(error).__name__} in {Path(where.filename).name}:{where.lineno}: {error}"[:200]
            spent = time.thread_time() - start
            signal.alarm(0)
            if spent > self.slowest[0]:
                self.slowest = spent, f"{name}, {len(odd.text)} characters", data.hex()
            if spent > LIMIT:
                fault = f"more than {LIMIT:g} s"
            if fault and fault not in self.findings:
                self.findings[fault] = data.hex()
                print(
                    f"FOUND {name}: {fault}, {spent:.3f} s\n  gold {odd.gold!r:.200}\n  text {odd.text!r:.300}\n  --replay {data.hex()}",
                    flush=True,
                )

    def report(self, seconds: float) -> None:
        spent, name, data = self.slowest
        print(f"{self.executions} texts, {self.calls} calls in {seconds:.0f} s; {self.refused} golds refused; by task {dict(self.tasks)}")
        print(f"slowest call {spent:.3f} CPU s ({name}), --replay {data}; {len(self.findings)} findings")
        line = {"texts": self.executions, "calls": self.calls, "seconds": round(seconds), "slowest": round(spent, 4)}
        print(json.dumps({**line, "findings": list(self.findings)}), flush=True)


class _Refused(Exception):
    """The gold is malformed."""


def _calls(odd: odd_texts.Odd) -> Iterator[tuple[str, Callable[[], str]]]:
    from setpo_verifiers.extract import extract

    def answers() -> str:
        lenient, strict = extract(odd.text), extract(odd.text, mode="strict")
        return "" if strict in (None, lenient) and (lenient is None or lenient == lenient.strip() != "") else "not a clean answer"

    yield "extract", answers
    for mode in ("lenient", "strict"):
        yield f"{odd.task} {mode}", lambda mode=mode: _judge(odd, mode)


def _judge(odd: odd_texts.Odd, mode: str) -> str:
    """What is wrong with the verdict; blank for nothing."""
    from setpo_verifiers import Status, registry

    try:
        verdict = registry.verify(odd.task, odd.text, odd.gold, mode=mode)
    except ValueError as error:
        if " gold" in str(error):
            raise _Refused from None
        raise
    if verdict.reward != float(verdict.status is Status.CORRECT) or not verdict.valid:
        return f"{verdict.status.name} with reward {verdict.reward}"
    if len(verdict.answer or "") > 10_000 or len(verdict.mode_key or "") > 10_000:
        return "an answer or a key without bound"
    return ""


def _seeds() -> list[str]:
    if "SETPO_TEST_DATA" not in os.environ:
        return []
    folder = Path(os.environ["SETPO_TEST_DATA"])
    with open(folder / "corpus" / "public.jsonl", encoding="utf-8") as file:
        cases = [json.loads(line) for line in file]
    found = [text for case in cases for text in (case["completion"], case["gold"]) if isinstance(text, str) and text]
    for path in sorted((folder / "data" / "completions").glob("*_g*.jsonl")):
        with open(path, encoding="utf-8") as file:
            found += [completion["text"] for line in file for completion in json.loads(line)["completions"][:3]]
    return found


def _interrupt(*_: Any) -> None:
    raise TimeoutError(f"more than {GIVE_UP} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--engine", choices=["random", "atheris"], default="random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--replay", metavar="HEX", help="judge one text again")
    arguments = parser.parse_args()
    start, seconds = time.monotonic(), 60 * arguments.minutes
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30,) * 2) if arguments.engine == "random" else None
    signal.signal(signal.SIGALRM, _interrupt)
    fuzzer = Fuzzer(_seeds())
    if arguments.replay:
        odd = odd_texts.draw(bytes.fromhex(arguments.replay), fuzzer.seeds)
        print(f"{odd.task}\ngold {odd.gold!r}\ntext {odd.text!r}")
        fuzzer.once(bytes.fromhex(arguments.replay))
    elif arguments.engine == "random":
        rng = random.Random(arguments.seed)
        while time.monotonic() - start < seconds:
            fuzzer.once(rng.randbytes(rng.choice([16, 64, 256])))
    else:
        try:
            import atheris
        except ImportError:
            sys.exit("expected the package atheris (pip install atheris; Linux and macOS), or --engine random")
        with atheris.instrument_imports(include=["setpo_verifiers"]):
            import setpo_verifiers  # noqa: F401

        def once(data: bytes) -> None:
            if time.monotonic() - start < seconds:
                fuzzer.once(data)
            else:  # the engine itself never returns
                fuzzer.report(time.monotonic() - start)
                os._exit(bool(fuzzer.findings))

        with contextlib.suppress(KeyboardInterrupt):
            atheris.Setup([sys.argv[0], f"-seed={arguments.seed + 1}", "-max_len=1024", "-len_control=0", "-rss_limit_mb=4096"], once)
            atheris.Fuzz()
    fuzzer.report(time.monotonic() - start)
    sys.exit(bool(fuzzer.findings))


if __name__ == "__main__":
    main()
