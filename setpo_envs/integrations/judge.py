"""What the adapters share: verdicts on completions, made where a hostile one can do no harm."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from setpo_verifiers import Verdict, verify

if TYPE_CHECKING:
    from setpo_verifiers import VerifierPool

_LOG = logging.getLogger(__name__)
_POOLS: dict[tuple[int, float], VerifierPool] = {}
_LOCK = threading.Lock()

Item = tuple[str, str, Any, str, dict[str, Any]]  # task, completion, gold, mode, options: the arguments of verify


def judge(items: Sequence[Item], *, workers: int, timeout: float) -> list[Verdict]:
    """Verdicts in order, from ``workers`` processes with ``timeout`` seconds an item; 0 workers: from this process, without limits.

    A completion that its verifier does not get done with is TIMEOUT or ERROR, and this module's logger warns of it. All calls of a process
    share one pool; any thread may call.

    Raises ValueError for an unknown task, an unknown mode or a malformed gold, TypeError for an option that the task does not have.
    """
    for task, _, gold, mode, options in items:
        verify(task, "", gold, mode=mode, **options)  # what raises on a blank completion is no policy's fault and must not become a reward
    if workers:
        verdicts = [verdict for verdict, _ in _pool(workers, timeout).verify_many(items)]
    else:
        verdicts = [_judge_here(*item) for item in items]
    lost = [verdict for verdict in verdicts if not verdict.valid]
    if lost:
        _LOG.warning("no verdict for %d of %d completions, first %s: %s", len(lost), len(verdicts), lost[0].status.name, lost[0].reason)
    return verdicts


def _judge_here(task: str, completion: str, gold: Any, mode: str, options: dict[str, Any]) -> Verdict:
    try:
        return verify(task, completion, gold, mode=mode, **options)
    except Exception as error:
        return Verdict.failure(f"{type(error).__name__}: {error}")


def _pool(workers: int, timeout: float) -> VerifierPool:
    with _LOCK:
        if (workers, timeout) not in _POOLS:
            from setpo_verifiers import VerifierPool  # POSIX only

            _POOLS[workers, timeout] = VerifierPool(workers, timeout=timeout)
        return _POOLS[workers, timeout]
