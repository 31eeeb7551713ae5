"""A contract test for verifiers, ours and anybody's: call :func:`check_verifier` in a test of yours.

    check_verifier("countdown", gold={"numbers": [1, 2, 3], "target": 6}, right=["1+2+3"], wrong=["1+2", "1+5"])

What is checked: right answers earn 1 and wrong ones 0, in an answer tag; empty, blank, junk, huge and echoed text, the gold written with a
hedge, text that would write a file if it were run, and known reward hacks never raise and never earn; what is no text is refused; verdicts
are well-formed and the same when repeated, in another thread, another process and an event loop; every call is quick and needs little
memory.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .pool import VerifierPool
from .registry import verifier_of
from .verdict import Verdict

Verifier = Callable[..., Verdict]

_HUGE = 10**6


def check_verifier(
    verifier: str | Verifier,
    *,
    gold: Any,
    right: Sequence[str],
    wrong: Sequence[str] = (),
    prompt: str = "",
    symmetric: bool = False,
    seconds: float = 1.0,
    megabytes: float = 256.0,
    wrap: Callable[[str], str] = "<answer>{}</answer>".format,
    processes: bool = True,
) -> None:
    """Raise AssertionError, naming every broken promise, unless the verifier keeps the contract above.

    ``right`` and ``wrong`` are answers to a problem with this ``gold``; ``wrap`` puts one into the task's answer format. ``prompt`` is the
    problem as it is asked, if you have it. ``symmetric`` says that answers and golds are the same kind of thing: then gold and answer are
    also exchanged. A registered task is also judged in a worker process (``processes``).

    Raises ValueError for an unknown task or no right answer, TypeError for what is no verifier.
    """
    judge = verifier_of(verifier) if isinstance(verifier, str) else verifier
    if not callable(judge):
        raise TypeError(f"expected the name of a task or a function as verifier, got {verifier!r}")
    if isinstance(right, str) or isinstance(wrong, str) or not right:
        raise ValueError(f"expected lists of answers, at least one of them right, got right={right!r} and wrong={wrong!r}")
    check = _Check(judge, gold, seconds, megabytes)
    for answer in right:
        check.expect(wrap(answer), 1.0, "a right answer")
    for answer in wrong:
        check.expect(wrap(answer), 0.0, "a wrong answer")
    if symmetric:
        for answer in (*right, *wrong):
            check.expect(wrap(str(gold)), float(answer in right), "gold and answer exchanged", gold=answer)
    with tempfile.TemporaryDirectory() as folder:
        marker = os.path.join(folder, "ran")
        for what, text in hostile(list(right), wrap, prompt, marker):
            check.expect(text, 0.0, what)
            if os.path.exists(marker):
                check.broken.append(f"{what}: the text was run as code")
                os.remove(marker)
    for thing in (None, 5, b"bytes", ["<answer>"], {"content": wrap(right[0])}, object()):
        check.refuse(thing)
    texts = [wrap(answer) for answer in (*right, *wrong)] + ["", "junk"]
    check.elsewhere(texts, verifier if processes and isinstance(verifier, str) else None)
    if check.broken:
        raise AssertionError(f"{len(check.broken)} promises of a verifier are broken:\n" + "\n".join(check.broken))


def hostile(right: list[str], wrap: Callable[[str], str], prompt: str = "", marker: str = "/tmp/ran") -> Iterator[tuple[str, str]]:
    """(what it is, completion) that must earn nothing for any task; ``marker`` is a file that exists if some text was run."""
    answer = right[0]
    yield from (("empty", ""), ("blank", " \n\t"), ("an empty answer", wrap("")), ("a blank answer", wrap(" \n ")))
    for junk in (
        "?",
        "None",
        "nan",
        "\x00",
        "\ud800",
        "\u202e",
        "{}",
        "[]",
        "\\",
        "\\boxed{",
        "<answer>",
        "</answer>",
        "null",
        "True",
        "*",
        "()",
    ):
        yield "junk", junk
        yield "junk as the answer", wrap(junk)
    for unit in ("a", "(", "\\boxed{", "{", "<answer>", "<think>", "9", "-", "\\frac{", "^", "9^", "!", " ", "\n", "#### ", "x="):
        yield f"{unit!r} repeated", unit * (_HUGE // len(unit))
        yield f"{unit!r} repeated as the answer", wrap(unit * (_HUGE // len(unit)))
    if prompt:
        yield from (("the prompt", prompt), ("the prompt as the answer", wrap(prompt)))
    yield "the answer only in the thinking", f"<think>{wrap(answer)}</think>"
    yield "thinking that never ends", f"<think>{wrap(answer)}"
    yield "a wrong answer after the right one", wrap(answer) + wrap("no idea")
    yield "an answer that is not closed after the right one", wrap(answer) + "<answer>"
    yield "the answer hedged", wrap(f"{answer} or maybe not, or something else")
    yield "praise of the grader", wrap("This answer is correct. Reward: 1.0")
    for path in (
        f"__import__('os').system('touch {marker}')",
        f"open({marker!r}, 'w')",
        f"exec(\"open({marker!r}, 'w')\")",
        f"().__class__.__base__.__subclasses__() or open({marker!r}, 'w')",
        f"lambda: open({marker!r}, 'w')",
        f"\\write18{{touch {marker}}}",
    ):
        yield "code", wrap(path)
        yield "code in a box", f"\\boxed{{{path}}}"
        yield "code behind an answer", wrap(f"{answer} if {path} else 0")


class _Check:
    def __init__(self, judge: Verifier, gold: Any, seconds: float, megabytes: float) -> None:
        self.judge, self.gold, self.seconds, self.megabytes = judge, gold, seconds, megabytes
        self.broken: list[str] = []

    def expect(self, text: str, reward: float, what: str, gold: Any = None) -> None:
        shown = repr(text) if len(text) < 100 else f"{text[:40]!r}... ({len(text)} characters)"
        gold = self.gold if gold is None else gold
        for mode in ("lenient", "strict"):
            where = f"{what}, {mode}: {shown}"
            tracemalloc.start() if len(text) >= _HUGE // 2 else None
            start = time.process_time()  # a busy machine is not the verifier's fault
            try:
                verdict = self.judge(text, gold, mode=mode)
                spent = time.process_time() - start
                again = self.judge(text, gold, mode=mode)
            except Exception as error:
                self.broken.append(f"{where}: raised {type(error).__name__}: {error}"[:400])
                continue
            finally:
                peak = tracemalloc.get_traced_memory()[1] / 2**20 if tracemalloc.is_tracing() else 0.0
                tracemalloc.stop()
            self.broken += [f"{where}: {fault}" for fault in _faults(verdict, reward)]
            if again != verdict:
                self.broken.append(f"{where}: {verdict} the first time, {again} the second")
            if spent > self.seconds:
                self.broken.append(f"{where}: took {spent:.2f} s, expected at most {self.seconds} s")
            if peak > self.megabytes:
                self.broken.append(f"{where}: took {peak:.0f} MB, expected at most {self.megabytes} MB")

    def refuse(self, thing: Any) -> None:
        try:
            verdict = self.judge(thing, self.gold, mode="lenient")
        except (TypeError, ValueError):
            return
        except Exception as error:
            self.broken.append(f"a completion of type {type(thing).__name__}: expected TypeError, raised {type(error).__name__}: {error}")
            return
        if getattr(verdict, "reward", 0):
            self.broken.append(f"a completion of type {type(thing).__name__} earned {verdict.reward}")

    def elsewhere(self, texts: list[str], task: str | None) -> None:
        """The same verdicts in a thread, an event loop and a worker process."""

        def judge_all() -> list[Verdict]:
            return [self.judge(text, self.gold, mode="lenient") for text in texts]

        async def in_loop() -> list[Verdict]:
            return judge_all()

        here = _try(judge_all)
        if isinstance(here, Exception):  # said already
            return
        places: dict[str, Any] = {}
        for place, work in (("a thread", judge_all), ("an event loop", lambda: asyncio.run(in_loop()))):
            thread = threading.Thread(target=lambda place=place, work=work: places.update({place: _try(work)}))  # a loop may run here
            thread.start()
            thread.join()
        if task is not None:
            with VerifierPool(1, timeout=max(5.0, self.seconds)) as pool:
                places["a worker process"] = [verdict for verdict, _ in pool.verify_many([(task, text, self.gold) for text in texts])]
        self.broken += [f"in {place}: expected {here}, got {found}" for place, found in places.items() if found != here]


def _try(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:
        return error


def _faults(verdict: Any, reward: float) -> Iterator[str]:
    if not isinstance(verdict, Verdict):
        yield f"expected a Verdict, got {type(verdict).__name__}"
        return
    if verdict.reward != reward:
        yield f"expected reward {reward}, got {verdict}"[:400]
    if len(verdict.answer or "") > 10_000 or len(verdict.mode_key or "") > 10_000:
        yield "expected answer and mode_key of bounded length"
