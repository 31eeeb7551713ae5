"""The pool's side of its processes: the nursery that forks workers, and one worker with its pipes and its mark."""

from __future__ import annotations

import json
import mmap
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from multiprocessing import Pipe
from typing import Any

from .pool_worker import IDLE, MARK, Report

START_SECONDS = 60.0  # for a worker to come up, imports included, on a busy machine
_LIVENESS_SECONDS = 0.5  # a fork of this process may hold a dead worker's pipe open, so its end alone proves nothing

_NURSERY = "import sys; sys.path[:] = {path!r}; from setpo_verifiers.pool_worker import nursery; nursery({fd}, {parent})"


class Nursery:
    """The process that workers are forked from; started when the first is wanted, and again should it die. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None
        self._modules: list[str] = []

    def fork(self, fds: list[int], memory_bytes: int | None) -> int:
        """A new worker on these pipes; its process id."""
        return int(self._ask({"memory": memory_bytes}, fds))

    def kill(self, pid: int) -> int | None:
        """Make sure that a worker is dead; its exit status, or None where the nursery it came from is gone (its workers end with it)."""
        return self._about("kill", pid)

    def ended(self, pid: int) -> int | None:
        """The exit status of a worker that has ended, None for one that runs or whose nursery is gone."""
        return self._about("ended", pid)

    def _about(self, verb: str, pid: int) -> int | None:
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                return None
            try:
                status: int | None = self._exchange({verb: pid}, [])
                return status
            except (OSError, EOFError):
                self._stop()
                return None

    def load(self, modules: Iterable[str]) -> None:
        """Import modules that workers will need, so that those still to come have them."""
        new = [module for module in modules if module not in self._modules]
        if new:
            self._modules += new
            self._ask({"import": new}, [])

    def close(self) -> None:
        """End the nursery; its workers end with it."""
        with self._lock:
            self._stop()

    def abandon(self) -> None:
        """Let go of a nursery that belongs to the process this one was forked from."""
        if self._requests is not None:
            self._requests.close()
        if self._process is not None:
            self._process.returncode = 0  # not ours to wait for

    def _ask(self, request: dict[str, Any], fds: list[int]) -> Any:
        with self._lock:
            for attempt in (1, 2):
                try:
                    if self._process is None or self._process.poll() is not None:
                        self._stop()
                        self._start()
                    return self._exchange(request, fds)
                except (OSError, EOFError) as error:
                    status = self._stop()  # an answer that comes late would be taken for the next one's
                    if attempt == 2:
                        raise RuntimeError(
                            f"expected the pool's processes to start, got exit status {status} ({type(error).__name__}); standard error "
                            f"says more. Does `{sys.executable} -c 'import setpo_verifiers'` work?"
                        ) from error

    def _stop(self) -> int | None:
        """End the process; the exit status it had before, if it had ended."""
        status = None
        if self._requests is not None:
            self._requests.close()
        if self._process is not None:
            status = self._process.poll()
            self._process.kill()
            self._process.wait()
        self._process = self._requests = None
        return status

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            program = _NURSERY.format(path=sys.path, fd=theirs.fileno(), parent=os.getpid())
            self._process = subprocess.Popen(
                [sys.executable, "-c", program], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
            )
        self._requests = ours
        ours.settimeout(START_SECONDS)
        if self._modules:
            self._exchange({"import": self._modules}, [])

    def _exchange(self, request: dict[str, Any], fds: list[int]) -> Any:
        assert self._requests is not None
        text = json.dumps(request).encode() + b"\n"
        if fds:
            socket.send_fds(self._requests, [text], fds)
        else:
            self._requests.sendall(text)
        reply = b""
        while not reply.endswith(b"\n"):
            part = self._requests.recv(4096)
            if not part:
                raise EOFError("the process ended")
            reply += part
        return json.loads(reply)


class Worker:
    """One worker process; used by one thread."""

    def __init__(self, nursery: Nursery, memory_bytes: int | None) -> None:
        self._nursery = nursery
        with tempfile.TemporaryFile() as file:
            file.truncate(MARK.size)
            self._mark = mmap.mmap(file.fileno(), MARK.size)
            MARK.pack_into(self._mark, 0, 0.0, IDLE)
            their_receiver, self._sender = Pipe(duplex=False)
            self._receiver, their_sender = Pipe(duplex=False)
            with their_receiver, their_sender:
                self.pid = nursery.fork([their_receiver.fileno(), their_sender.fileno(), file.fileno()], memory_bytes)
        try:
            if not self._receiver.poll(START_SECONDS):
                raise EOFError
            self._receiver.recv()
        except (OSError, EOFError) as error:
            status = self.kill()
            raise RuntimeError(f"expected a worker process to start, got exit status {status}; standard error says more") from error

    def send(self, modules: list[str], verifiers: dict[str, bytes], chunk: list[bytes]) -> None:
        """Hand over a chunk with what its tasks need. Raises OSError where the worker is dead."""
        self._sender.send((modules, verifiers, chunk))

    def receive(self, seconds: float) -> list[Report]:
        """Reports that are there within ``seconds``, possibly none. Raises EOFError or OSError where the worker is dead."""
        wait = min(max(seconds, 0.0), _LIVENESS_SECONDS)
        if self._receiver.poll(wait):
            reports: list[Report] = self._receiver.recv()
            return reports
        if wait == _LIVENESS_SECONDS and self._nursery.ended(self.pid) is not None and not self._receiver.poll(0):
            raise EOFError
        return []

    def running(self) -> tuple[int | None, float]:
        """(place in its chunk of the item that runs, if any; seconds since its start)."""
        start, place = MARK.unpack_from(self._mark)
        return (None, 0.0) if place == IDLE else (int(place), time.monotonic() - start)

    def kill(self) -> int | None:
        """End the worker at once; its exit status where known. What it had not reported is lost, its mark stays readable."""
        status = self._nursery.kill(self.pid)
        self.close()
        return status

    def close(self) -> None:
        """Let the worker end by itself: it does when its pipe ends."""
        self._sender.close()
        self._receiver.close()
