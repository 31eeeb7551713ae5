"""Verdicts in worker processes: a deadline and a memory limit for every item, whatever it does.

    with VerifierPool(workers=4, timeout=2.0) as pool:
        for verdict, seconds in pool.verify_many([("math", completion, gold, "lenient", {})]): ...

An item's clock starts when a worker starts on it. An item that overruns is TIMEOUT; one that ends its worker again and again, or raises, is
ERROR with the reason; in both cases ``valid`` is False and no other item is affected: the worker is replaced and the rest of its chunk is
done again. Verdicts come in the order of the items. Any thread, event loop, notebook or unguarded script may use a pool, several at once,
and a process forked from the pool's gets its own workers. POSIX only.

Items travel in chunks of about 20 ms of work. The pool is our own because dispatch through pebble, the best library with a deadline for
every item, costs more than most verdicts take: 110 us an item against 10 us here (7 us of it in this process), measured on two busy cores;
and because a pool on top of multiprocessing runs the user's main module again in every worker.
"""

from __future__ import annotations

import math
import os
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from .pool_crew import Crew, Job, Result
from .pool_worker import Item


class VerifierPool:
    """``workers`` processes that judge items, at most ``timeout`` seconds and ``memory_mb`` megabytes each.

    The memory limit is what a worker may take on top of its imports (where the system enforces RLIMIT_AS); None switches it off. Processes
    start with the first item. Close the pool, or use it as a context manager; otherwise it closes with the interpreter.
    """

    def __init__(self, workers: int = 2, *, timeout: float = 5.0, memory_mb: int | None = 1024) -> None:
        if not isinstance(workers, int) or workers < 1:
            raise ValueError(f"expected at least one worker, got {workers!r}")
        if not isinstance(timeout, (int, float)) or not 0 < timeout < math.inf:
            raise ValueError(f"expected a timeout of some seconds, got {timeout!r}")
        self.workers, self.timeout, self.memory_mb = workers, timeout, memory_mb
        self._closed = False
        self._crew = self._make_crew()

    def verify_many(self, items: Iterable[Item | tuple[Any, ...]]) -> list[Result]:
        """(verdict, seconds) of every item ``(task, completion, gold, mode, options)``, in order; the last two may be left out."""
        return self.submit(items).wait()

    def submit(self, items: Iterable[Item | tuple[Any, ...]]) -> Job:
        """Have these items judged while the caller does something else; ``wait()`` of what it returns gives what verify_many does."""
        if self._closed:
            raise ValueError("expected an open pool, but it has been closed; make a new one")
        if self._crew.pid != os.getpid():  # a fork has neither the threads nor the workers of the pool that it copied
            self._finalizer.detach()
            self._crew.abandon()
            self._crew = self._make_crew()
        job = Job(self._crew, [Item(*item) for item in items])
        self._crew.add(job)
        return job

    async def verify_many_async(self, items: Iterable[Item | tuple[Any, ...]]) -> list[Result]:
        """As :meth:`verify_many`, for an event loop, which stays free; cancelled, it gives the workers no more of these items."""
        import asyncio  # only programs that have an event loop need it

        loop, job = asyncio.get_running_loop(), self.submit(items)
        done = loop.create_future()

        def finish() -> None:
            if not done.done():
                done.set_result(None)

        def tell() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(finish)

        job.when_done(tell)
        try:
            await done
        except BaseException:
            job.cancel()
            raise
        return job.wait()

    def stream(self, items: Iterable[Item | tuple[Any, ...]], *, block: int = 64) -> Iterator[Result]:
        """As :meth:`verify_many`, but lazily: takes items as they are needed and yields results, in order, as they are ready."""
        source = iter(items)
        jobs: deque[Job] = deque()
        try:
            while True:
                while len(jobs) <= 2 * self.workers and (taken := list(islice(source, block))):
                    jobs.append(self.submit(taken))
                if not jobs:
                    return
                yield from jobs[0].wait()
                jobs.popleft()
        finally:
            for job in jobs:
                job.cancel()

    def close(self) -> None:
        """End the workers. Items that other threads are still waiting for become ERROR."""
        self._closed = True
        self._finalizer()

    def __enter__(self) -> VerifierPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _make_crew(self) -> Crew:
        crew = Crew(self.workers, self.timeout, None if self.memory_mb is None else self.memory_mb * 2**20)
        self._finalizer = weakref.finalize(self, crew.close)  # with the pool, or with the interpreter
        return crew
