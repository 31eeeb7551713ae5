"""What runs inside a worker process of the pool: judge chunks of items, say which item is being judged, report the verdicts.

The worker notes the start of every item in a few bytes of shared memory, which costs far less than a message, and sends verdicts in
bundles. So the pool knows at any time which item runs and since when, even where the worker hangs in C code or has died.

Workers are forked from a *nursery*: a process with one thread that has imported the verifiers and what they need, and does nothing else.
So a new worker takes milliseconds where sympy alone takes a second to import, and neither the user's main module nor a process with
threads is ever run again or forked.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import mmap
import os
import pickle
import select
import signal
import socket
import struct
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from .registry import TASKS, Verifier, verify
from .verdict import Status, Verdict

MARK = struct.Struct("dd")  # time.monotonic() at the start of the item that runs, and its place in the chunk; IDLE where none runs
IDLE = -1.0
_BUNDLE_SECONDS = 0.05  # verdicts are reported at least this often
_PARENT_CHECK_SECONDS = 5.0

_CHILDREN: set[int] = set()  # in the nursery: workers that are not buried yet
_ENDED: dict[int, int] = {}  # in the nursery: exit status of workers that have ended and are not buried yet

Report = tuple[int, float, int, str | None, str | None, str, float]  # place in the chunk, fields of the verdict, seconds


class Item(NamedTuple):
    """One completion to judge; the fields are the arguments of ``setpo_verifiers.verify``."""

    task: str
    completion: str
    gold: Any
    mode: str = "lenient"
    options: dict[str, Any] | None = None


def judge(pickled: bytes) -> tuple[Verdict, float]:
    """(verdict, seconds) of one item; whatever the verifier raises becomes an ERROR verdict that quotes it."""
    start = time.perf_counter()
    try:
        task, completion, gold, mode, options = pickle.loads(pickled)  # from the pool's own process
        verdict = verify(task, completion, gold, mode=mode, **(options or {}))
        if not isinstance(verdict, Verdict):
            raise TypeError(f"expected the verifier of {task!r} to return a Verdict, got {type(verdict).__name__}")
    except MemoryError:
        verdict = Verdict.failure("memory: the verifier needed more than the pool's memory limit")
    except BaseException as error:  # SystemExit too: a verifier must not end the worker
        verdict = Verdict.failure(f"{type(error).__name__}: {error}")
    return verdict, time.perf_counter() - start


# --- the nursery -------------------------------------------------------------------------------------------------


def nursery(socket_fd: int, parent: int) -> None:
    """Serve requests, one JSON line each: import modules, fork a worker onto the pipes that come along, kill and bury one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    with socket.socket(fileno=socket_fd) as requests:
        while True:
            while not select.select([requests], [], [], _PARENT_CHECK_SECONDS)[0]:
                if os.getppid() != parent:  # a fork of the parent may hold the other end open
                    return
            text, fds, _, _ = socket.recv_fds(requests, 65536, 3)
            while text and not text.endswith(b"\n"):
                text += requests.recv(65536)
            if not text:
                return
            request = json.loads(text)
            reply: int | None = None
            if "import" in request:
                _import(request["import"])
            elif "kill" in request:
                reply = _bury(request["kill"])
            elif "ended" in request:
                reply = _ended(request["ended"])
            else:
                reply = os.fork()
                if not reply:
                    requests.close()
                    _live(fds[0], fds[1], fds[2], request["memory"], os.getppid())
                _CHILDREN.add(reply)
                for fd in fds:
                    os.close(fd)
            requests.sendall(json.dumps(reply).encode() + b"\n")


def _import(modules: list[str] | tuple[str, ...]) -> None:
    for module in modules:
        with contextlib.suppress(Exception):  # a verifier that needs it says so in its own words
            importlib.import_module(module)


def _ended(pid: int, flags: int = os.WNOHANG) -> int | None:
    """Exit status of a worker that has ended (negative for the signal that ended it), None for one that runs or is nobody's."""
    if pid not in _ENDED:
        try:
            found, status = os.waitpid(pid, flags)
        except ChildProcessError:
            return None
        if not found:
            return None
        _ENDED[pid] = os.waitstatus_to_exitcode(status)
    return _ENDED[pid]


def _bury(pid: int) -> int | None:
    """Make sure that a worker is dead; its exit status, None where it was no worker of ours."""
    try:
        if _ended(pid) is None and pid in _CHILDREN:
            os.kill(pid, signal.SIGKILL)  # nobody has waited for it, so the number is still its own
        return _ended(pid, 0)
    finally:
        _ENDED.pop(pid, None)
        _CHILDREN.discard(pid)


# --- the worker --------------------------------------------------------------------------------------------------


def _live(receive_fd: int, send_fd: int, mark_fd: int, memory_bytes: int | None, parent: int) -> None:
    """ "ready" out, then chunk in, reports out, until the pool closes the pipe or is gone. Never returns."""
    status = 1
    try:
        _die_with_parent()
        receiver, sender, mark = Connection(receive_fd, writable=False), Connection(send_fd, readable=False), mmap.mmap(mark_fd, MARK.size)
        _limit_memory(memory_bytes)
        sender.send("ready")
        while True:
            while not receiver.poll(_PARENT_CHECK_SECONDS):
                if os.getppid() != parent:
                    os._exit(0)
            modules, verifiers, chunk = receiver.recv()
            _import(modules)  # before the first item's time begins
            _register(verifiers)
            if not _judge_chunk(chunk, lambda start, place: MARK.pack_into(mark, 0, start, place), sender.send):
                break
        status = 0
    except (EOFError, BrokenPipeError, ConnectionResetError):
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _register(verifiers: dict[str, bytes]) -> None:
    """Add verifiers that the pool's process sent as references to functions, under their tasks."""
    for task, pickled in verifiers.items():
        if task not in TASKS:
            try:
                TASKS[task] = pickle.loads(pickled)
            except Exception as error:
                TASKS[task] = _unavailable(
                    f"the verifier of {task!r} cannot be imported by a worker process ({type(error).__name__}: {error})"
                )


def _unavailable(reason: str) -> Verifier:
    def verifier(*_: object, **__: object) -> Verdict:
        raise ValueError(reason)

    return verifier


def _judge_chunk(chunk: list[bytes], note: Callable[[float, float], None], send: Callable[[list[Report]], None]) -> bool:
    """Judge and report every item; False where the process should end because memory ran out."""
    reports: list[Report] = []
    sent = time.monotonic()
    for place, item in enumerate(chunk):
        now = time.monotonic()
        if now - sent > _BUNDLE_SECONDS:
            note(now, IDLE)  # a parent that is too busy to read must not make an item late
            send(reports)
            reports, sent = [], now
            now = time.monotonic()
        note(now, place)
        verdict, seconds = judge(item)
        reward, status = verdict.reward, int(verdict.status)
        reports.append((place, reward, status, verdict.answer, verdict.mode_key, verdict.reason, seconds))
        if verdict.status is Status.ERROR and verdict.reason.startswith("memory:"):
            note(now, IDLE)
            send(reports)
            return False
    note(time.monotonic(), IDLE)
    send(reports)
    return True


def _die_with_parent() -> None:
    """Where the system can (Linux), end this process when the nursery ends, even in the middle of an item."""
    with contextlib.suppress(Exception):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _limit_memory(memory_bytes: int | None) -> None:
    """Allow ``memory_bytes`` of address space on top of what the interpreter and its imports have; no limit where the system has none."""
    if memory_bytes is None:
        return
    try:
        import resource

        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = used + memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
    except (ImportError, OSError, ValueError):
        pass
