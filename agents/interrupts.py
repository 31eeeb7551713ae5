"""SIGTERM and Ctrl-C as requests that are answered between two steps."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_requested(signals: Sequence[int] = STOP_SIGNALS) -> Iterator[Callable[[], bool]]:
    """Yield a function that says whether one of ``signals`` has come since.

    The first is only noted; a second one does what it did before (Ctrl-C raises KeyboardInterrupt). Signals can be caught in the
    main thread alone: in another one nothing is caught.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        signals = ()
    before = {number: signal.getsignal(number) for number in signals}

    def note(number: int, frame: Any) -> None:
        received.append(number)
        for each, handler in before.items():
            signal.signal(each, handler)
        print(f"\n{signal.Signals(number).name}: finishing the step; once more stops at once", file=sys.stderr, flush=True)

    for number in signals:
        signal.signal(number, note)
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
