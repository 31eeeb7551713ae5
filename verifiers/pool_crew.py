"""How a pool works through its items: one queue, one thread for each worker, chunks, deadlines and what happens after a loss."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable
from functools import lru_cache

from .pool_process import Nursery, Worker
from .pool_worker import Item, Report
from .registry import NEEDS, TASKS, Verifier
from .verdict import Status, Verdict

Result = tuple[Verdict, float]  # verdict, seconds that it took

_CHUNK_SECONDS = 0.02  # at most
_LEAST_SECONDS = 0.002  # a chunk costs both sides about 0.1 ms whatever is in it
_MAX_CHUNK = 256
_MAX_DEATHS = 3  # of a worker with the same item: once may be anybody's fault
_MAX_KILLS = 10  # the same for SIGKILL, which comes from outside more often than not
_CLOSED = Verdict.failure("the pool was closed")


class Job:
    """The items of one call and their results as they come in."""

    def __init__(self, crew: Crew, items: list[Item]) -> None:
        self.crew = crew
        self.results: list[Result | None] = [None] * len(items)
        self.missing = len(items)
        self.cancelled = False
        self._done = threading.Event()
        self._callback: Callable[[], None] | None = None
        self._lock = threading.Lock()
        self.pending: list[_Piece] = []
        for place, item in enumerate(items):
            try:
                if item.task in TASKS:
                    _reference(TASKS[item.task])
                self.pending.append(_Piece(self, place, item.task, pickle.dumps(tuple(item), protocol=pickle.HIGHEST_PROTOCOL)))
            except Exception as error:
                trouble = f"expected an item that can be sent to a worker process, got {type(error).__name__}: {error}"
                self.put(place, (Verdict.failure(trouble), 0.0))
        if not items:
            self._done.set()

    def put(self, place: int, result: Result) -> None:
        with self._lock:
            if self.results[place] is not None:
                return
            self.results[place] = result
            self.missing -= 1
            callback = self._callback if not self.missing else None
            if not self.missing:
                self._done.set()
        if callback:
            callback()

    def when_done(self, callback: Callable[[], None]) -> None:
        with self._lock:
            self._callback = callback
            done = self._done.is_set()
        if done:
            callback()

    def wait(self) -> list[Result]:
        try:
            self._done.wait()
        except BaseException:  # Ctrl-C
            self.cancel()
            raise
        return [result for result in self.results if result is not None]

    def cancel(self) -> None:
        self.cancelled = True


class _Piece:
    """One item under way."""

    __slots__ = ("job", "place", "task", "pickled", "deaths", "alone")

    def __init__(self, job: Job, place: int, task: str, pickled: bytes) -> None:
        self.job, self.place, self.task, self.pickled, self.deaths = job, place, task, pickled, 0
        self.alone = False  # in its chunk, because one of its last chunk ended the worker before any item began

    def settle(self, verdict: Verdict, seconds: float = 0.0) -> None:
        self.job.put(self.place, (verdict, seconds))


class Crew:
    """What the threads of a pool share: the queue, the nursery, and how long an item takes. It does not know the pool."""

    def __init__(self, workers: int, timeout: float, memory_bytes: int | None) -> None:
        self.pid = os.getpid()
        self.workers, self.timeout, self.memory_bytes = workers, timeout, memory_bytes
        self.nursery = Nursery()
        self.closing = False
        self.item_seconds = 1e-3  # running mean; decides the size of chunks
        self._queue: deque[_Piece] = deque()
        self._wake = threading.Condition()
        self.foremen = [_Foreman(self) for _ in range(workers)]
        self._threads: list[threading.Thread] = []

    def add(self, job: Job) -> None:
        with self._wake:
            if not self._threads:
                self._threads = [threading.Thread(target=foreman.run, name="verifier", daemon=True) for foreman in self.foremen]
                for thread in self._threads:
                    thread.start()
            self._queue.extend(job.pending)
            self._wake.notify(self.workers)
        job.pending = []

    def take(self) -> list[_Piece]:
        """The next chunk, waiting for one; empty when the pool closes."""
        with self._wake:
            while True:
                while not self._queue and not self.closing:
                    self._wake.wait()
                if self.closing:
                    return []
                least = min(-(-len(self._queue) // self.workers), int(_LEAST_SECONDS / self.item_seconds))
                share = max(-(-len(self._queue) // (2 * self.workers)), least)
                size = max(1, min(share, _MAX_CHUNK, int(_CHUNK_SECONDS / self.item_seconds)))
                if self._queue[0].alone:
                    size = 1
                taken = [self._queue.popleft() for _ in range(min(size, len(self._queue)))]
                if chunk := [piece for piece in taken if not piece.job.cancelled]:
                    return chunk

    def give_back(self, pieces: Iterable[_Piece]) -> None:
        """Put unfinished items at the head of the queue."""
        left = list(pieces)
        with self._wake:
            if not self.closing:
                self._queue.extendleft(reversed(left))
                self._wake.notify(self.workers)
                return
        for piece in left:
            piece.settle(_CLOSED)

    def timed(self, seconds: float, items: int) -> None:
        self.item_seconds += 0.3 * (max(seconds / items, 1e-6) - self.item_seconds)

    def close(self) -> None:
        if self.pid != os.getpid():
            return
        with self._wake:
            self.closing = True
            left = list(self._queue)
            self._queue.clear()
            self._wake.notify_all()
        self.nursery.close()  # ends the workers, and so the threads' waiting
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(5.0)
        for piece in left:
            piece.settle(_CLOSED)

    def abandon(self) -> None:
        """In a fork: let go of what belongs to the parent."""
        self.nursery.abandon()


class _Foreman:
    """One thread and its worker: takes chunks, keeps the deadline, replaces the worker."""

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        self.worker: Worker | None = None

    def run(self) -> None:
        while chunk := self.crew.take():
            left = dict(enumerate(chunk))
            try:
                self._work(chunk, left)
            except BaseException as error:  # whoever waits for these items must hear of it
                verdict = _CLOSED if self.crew.closing else Verdict.failure(f"{type(error).__name__}: {error}")
                for piece in left.values():
                    piece.settle(verdict)
                self._dismiss()
        self._dismiss()

    def _dismiss(self) -> int | None:
        worker, self.worker = self.worker, None
        return worker.kill() if worker else None

    def _work(self, chunk: list[_Piece], left: dict[int, _Piece]) -> None:
        """Judge a chunk; settled items leave ``left``, and those that a lost worker had not reported go back to the queue."""
        modules, verifiers = _requirements({piece.task for piece in chunk if isinstance(piece.task, str)})
        self.crew.nursery.load(modules)
        if self.worker is None:
            self.worker = Worker(self.crew.nursery, self.crew.memory_bytes)
        worker, seconds, late = self.worker, 0.0, False
        try:
            worker.send(modules, verifiers, [piece.pickled for piece in chunk])
            while left:
                _, running = worker.running()
                reports = worker.receive(max(self.crew.timeout - running, 1e-3))
                seconds += sum(_settle(report, left) for report in reports)
                if late := not reports and worker.running()[1] >= self.crew.timeout:
                    break
            else:
                self.crew.timed(seconds, len(chunk))
                return
        except (OSError, EOFError):
            pass
        status = self._dismiss()
        self._after_loss(worker, late, status, left)

    def _after_loss(self, worker: Worker, late: bool, status: int | None, left: dict[int, _Piece]) -> None:
        place, running = worker.running()  # the mark outlives its writer: this is what it was doing when it ended
        if place is not None and place in left:
            piece = left[place]
            if late and running >= self.crew.timeout:  # not one that it had gone on to before it was stopped
                piece.settle(Verdict(0.0, Status.TIMEOUT, None, None, "timeout"), running)
                del left[place]
            else:
                self._count_death(place, left, status, running)
        elif status not in (None, -signal.SIGKILL):  # on the way to an item, say one that is too large to receive
            for each, piece in list(left.items()):
                if len(left) == 1 or piece.alone:
                    self._count_death(each, left, status, 0.0)
                piece.alone = True
        self.crew.give_back(left.values())
        left.clear()

    def _count_death(self, place: int, left: dict[int, _Piece], status: int | None, running: float) -> None:
        piece = left[place]
        piece.deaths += 1
        if piece.deaths >= (_MAX_KILLS if status == -signal.SIGKILL else _MAX_DEATHS):
            piece.settle(Verdict.failure(f"the worker process ended {piece.deaths} times on this item (exit status {status})"), running)
            del left[place]


@lru_cache(maxsize=256)
def _reference(verifier: Verifier) -> tuple[str, bytes]:
    """(module, pickled reference) of a verifier that does not come with this package; blank for one that does."""
    module = getattr(verifier, "__module__", None) or "__main__"
    if module.startswith("setpo_verifiers."):
        return "", b""
    if module == "__main__":  # another module in every worker
        raise TypeError("its verifier is defined in __main__: put it in a module")
    return module, pickle.dumps(verifier)


def _requirements(tasks: set[str]) -> tuple[list[str], dict[str, bytes]]:
    """(modules to import, verifiers as pickled references) that a worker needs for some tasks."""
    modules: list[str] = []
    verifiers: dict[str, bytes] = {}
    for task in sorted(tasks & TASKS.keys()):
        modules += NEEDS.get(task, ())
        module, reference = _reference(TASKS[task])
        if module:
            modules.append(module)
            verifiers[task] = reference
    return modules, verifiers


def _settle(report: Report, left: dict[int, _Piece]) -> float:
    place, reward, status, answer, mode_key, reason, seconds = report
    left.pop(place).settle(Verdict(reward, Status(status), answer, mode_key, reason), seconds)
    return seconds
