"""The pool: right verdicts in order whatever items and workers do, from any thread, event loop, fork or script."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
import time

import odd_verifiers
import pytest

from setpo_verifiers import Status, register, registry, verify
from setpo_verifiers.pool import VerifierPool

register("odd", odd_verifiers.verify_odd)

GOLD = {"numbers": [1, 2, 3], "target": 6}


def countdown(n, start=0):
    """Items of which every third is right."""
    return [("countdown", f"<answer>{'1+2+3' if i % 3 == 0 else f'1+2+{i}'}</answer>", GOLD) for i in range(start, start + n)]


def statuses(results):
    return [verdict.status for verdict, _ in results]


@pytest.fixture(scope="module")
def pool():
    with VerifierPool(2, timeout=1.0, memory_mb=200) as pool:
        yield pool


def test_verdicts_are_those_of_a_direct_call_and_in_order(pool):
    items = countdown(3000)
    results = pool.verify_many(items)
    assert [verdict for verdict, _ in results] == [verify(*item) for item in items]
    assert all(seconds > 0 for _, seconds in results)
    assert list(pool.stream(iter(items))) and [v for v, _ in pool.stream(items)] == [v for v, _ in results]
    assert pool.verify_many([]) == list(pool.stream([])) == []


def test_what_is_submitted_is_judged_while_the_caller_does_something_else(pool):
    items = countdown(200)
    jobs = [pool.submit(part) for part in (items[:100], [("odd", "sleep 0.2", "right")], items[100:], [])]
    meanwhile = [verify(*item) for item in items]
    results = [[verdict for verdict, _ in job.wait()] for job in reversed(jobs)][::-1]
    assert results[0] + results[2] == meanwhile and results[3] == []
    assert [verdict.status for verdict in results[1]] == [Status.WRONG]


@pytest.mark.parametrize("arguments", [{"workers": 0}, {"workers": "2"}, {"timeout": 0}, {"timeout": "1"}, {"timeout": float("inf")}])
def test_arguments_that_make_no_sense(arguments):
    with pytest.raises(ValueError, match="expected at least one worker, got|expected a timeout of some seconds, got"):
        VerifierPool(**arguments)


def test_mode_and_options_reach_the_verifier(pool):
    items = [
        ("countdown", "1+2+3", GOLD, "strict"),
        ("countdown", "1+5", {"numbers": [1, 5, 9], "target": 6}, "lenient", {"allow_subset": True}),
    ]
    assert [v.reason for v, _ in pool.verify_many(items)] == ["no_answer", "correct"]


@pytest.mark.parametrize(
    ("completion", "status", "reason"),
    [
        ("sleep 30", Status.TIMEOUT, "timeout"),
        ("hang", Status.TIMEOUT, "timeout"),
        ("memory 500", Status.ERROR, "memory: the verifier needed more than the pool's memory limit"),
        ("memory 10", Status.CORRECT, "correct"),
        ("kill", Status.ERROR, "the worker process ended 10 times on this item (exit status -9)"),
        ("crash", Status.ERROR, "the worker process ended 3 times on this item (exit status -11)"),
        ("exit", Status.ERROR, "SystemExit: 3"),
        ("raise hello", Status.ERROR, "RuntimeError: hello"),
        ("deep", Status.ERROR, "RecursionError: maximum recursion depth exceeded"),
        ("nothing", Status.ERROR, "TypeError: expected the verifier of 'odd' to return a Verdict, got NoneType"),
    ],
)
def test_no_item_harms_another(pool, completion, status, reason):
    results = pool.verify_many([("odd", "a", "a")] * 30 + [("odd", completion, "b")] + [("odd", "a", "a")] * 30)
    verdict, _ = results.pop(30)
    assert (verdict.status, verdict.reason) == (status, reason)
    assert verdict.valid == (status is Status.CORRECT) and verdict.reward == float(status is Status.CORRECT)
    assert statuses(results) == [Status.CORRECT] * 60


def test_the_clock_of_an_item_starts_with_its_work(pool):
    assert statuses(pool.verify_many([("odd", "sleep 0.1", "sleep 0.1")] * 30)) == [Status.CORRECT] * 30  # 1.5 s a worker, limit 1


def test_errors_of_items_are_verdicts(pool):
    items = [
        ("chess", "e4", "e4"),
        ("countdown", 5, GOLD),
        ("countdown", "1+2+3", {"numbers": []}),
        ("countdown", "1+2+3", GOLD, "loose"),
        ("countdown", "1+2+3", GOLD, "lenient", {"colour": 1}),
        ("countdown", "1+2+3", lambda: None),
        ("countdown", "<answer>1+2+3</answer>", GOLD),
    ]
    results = pool.verify_many(items)
    assert statuses(results) == [Status.ERROR] * 6 + [Status.CORRECT]
    for (verdict, _), words in zip(results, ("'chess'", "got int", "'numbers'", "'loose'", "colour", "sent to a worker process")):
        assert words in verdict.reason
    with pytest.raises(TypeError):
        pool.verify_many([("countdown",)])


def test_a_verifier_that_workers_cannot_import_is_named(pool, monkeypatch):
    monkeypatch.setitem(registry.TASKS, "local", lambda *_, **__: None)
    ((verdict, _),) = pool.verify_many([("local", "a", "a")])
    assert verdict.status is Status.ERROR and "sent to a worker process" in verdict.reason


def test_from_many_threads_and_event_loops_at_once(pool):
    results = {}

    def in_thread(name):
        results[name] = pool.verify_many(countdown(400, name))

    def in_loop(name):
        async def both():
            return await asyncio.gather(pool.verify_many_async(countdown(400, name)), pool.verify_many_async(countdown(400, name + 1)))

        results[name] = asyncio.run(both())

    threads = [threading.Thread(target=target, args=(i,)) for i, target in enumerate([in_thread, in_loop] * 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for name, found in results.items():
        for shift, part in enumerate([found] if name % 2 == 0 else found):
            assert statuses(part) == [Status((i + shift) % 3 == 0) for i in range(name, name + 400)]
    assert len(results) == 8


def test_the_event_loop_stays_free_and_can_cancel(pool):
    async def main():
        ticks = 0
        task = asyncio.ensure_future(pool.verify_many_async([("odd", "sleep 0.1", "a")] * 4))
        while not task.done():
            await asyncio.sleep(0.005)
            ticks += 1
        assert ticks > 10
        slow = asyncio.ensure_future(pool.verify_many_async([("odd", "sleep 0.4", "a")] * 1000))
        await asyncio.sleep(0.05)
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        return await asyncio.wait_for(pool.verify_many_async(countdown(10)), 5)

    assert len(asyncio.run(main())) == 10


def test_workers_killed_a_hundred_times_lose_nothing():
    items = [("odd", "sleep 0.002", "sleep 0.002" if i % 2 else "other") for i in range(4000)]
    with VerifierPool(2, timeout=5) as pool:
        stop, kills, rng = threading.Event(), [], random.Random(0)

        def kill():
            while not stop.wait(0.01 + 0.02 * rng.random()) and len(kills) < 100:
                pids = [foreman.worker.pid for foreman in pool._crew.foremen if foreman.worker]
                if pids:
                    kills.append(rng.choice(pids))
                    try:
                        os.kill(kills[-1], signal.SIGKILL)
                    except ProcessLookupError:
                        kills.pop()

        killer = threading.Thread(target=kill)
        killer.start()
        results = pool.verify_many(items)
        stop.set()
        killer.join()
    assert len(kills) == 100
    assert statuses(results) == [Status(i % 2) for i in range(4000)]


def test_the_nursery_may_die_too():
    with VerifierPool(1, timeout=5) as pool:
        ((before, _),) = pool.verify_many([("odd", "pid", "")])
        pool._crew.nursery._process.kill()
        deadline = time.monotonic() + 10
        while alive(int(before.answer)) and time.monotonic() < deadline:  # its workers end with it, but not in the same instant
            time.sleep(0.01)
        assert not alive(int(before.answer))
        results = pool.verify_many([("odd", "pid", "")] * 100)
        assert statuses(results) == [Status.CORRECT] * 100
        assert results[-1][0].answer != before.answer


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_bombs_cost_only_themselves():
    honest = [("odd", "sleep 0.001", "sleep 0.001")] * 950
    with VerifierPool(2, timeout=0.05) as pool:
        pool.verify_many(honest[:50])
        items = honest[:]
        for i in range(50):
            items.insert(i * 19, ("odd", "sleep 9", "a"))
        results = pool.verify_many(items)
    assert [v.status for (v, _), item in zip(results, items) if item[1] == "sleep 0.001"].count(
        Status.CORRECT
    ) >= 900  # on a busy machine an honest one may be late
    assert statuses(results).count(Status.TIMEOUT) >= 50


def test_closing_ends_every_process_and_wakes_whoever_waits():
    pool = VerifierPool(2, timeout=30)
    pids = [int(v.answer) for v, _ in pool.verify_many([("odd", "pid", "")] * 4)]
    pids.append(pool._crew.nursery._process.pid)
    found = []
    waiting = threading.Thread(target=lambda: found.extend(pool.verify_many([("odd", "sleep 20", "")] * 8)))
    waiting.start()
    time.sleep(0.2)
    pool.close()
    waiting.join(10)
    assert {(v.status, v.reason) for v, _ in found} == {(Status.ERROR, "the pool was closed")} and len(found) == 8
    deadline = time.monotonic() + 5
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(alive, pids))
    pool.close()
    with pytest.raises(ValueError, match="has been closed; make a new one"):
        pool.verify_many([])


@pytest.mark.parametrize("arguments", [{"workers": 0}, {"timeout": 0}, {"timeout": float("inf")}, {"timeout": float("nan")}])
def test_senseless_settings(arguments):
    with pytest.raises(ValueError, match="expected"):
        VerifierPool(**arguments)


def test_a_fork_gets_workers_of_its_own(pool):
    assert statuses(pool.verify_many(countdown(30))).count(Status.CORRECT) == 10
    pid = os.fork()
    if not pid:
        status = 1
        try:
            status = int(statuses(pool.verify_many(countdown(30))).count(Status.CORRECT) != 10)
            pool.close()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert statuses(pool.verify_many(countdown(30))).count(Status.CORRECT) == 10


SCRIPT = """
import os, sys
assert not os.environ.get("SEEN"), "a worker ran the main module"
os.environ["SEEN"] = "yes"
from setpo_verifiers.pool import VerifierPool
pool = VerifierPool(2)
print(sum(v.reward for v, _ in pool.verify_many([("countdown", "1+2+3", {"numbers": [1, 2, 3], "target": 6})] * 10)), flush=True)
END
"""


@pytest.mark.parametrize(
    ("end", "status"), [("", 0), ("raise SystemExit(3)", 3), ("os.kill(os.getpid(), 9)", -9), ("os._exit(4)", 4), ("del pool", 0)]
)
def test_a_script_without_main_guard_ends_and_leaves_no_process(tmp_path, end, status):
    (tmp_path / "script.py").write_text(SCRIPT.replace("END", "print(pool._crew.nursery._process.pid, flush=True)\n" + end))
    done = subprocess.run([sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (status, "")
    right, nursery = done.stdout.split()
    assert right == "10.0"
    deadline = time.monotonic() + 10
    while alive(int(nursery)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(int(nursery))


def test_importing_the_pool_starts_nothing_and_is_light():
    heavy = ("multiprocessing.pool", "concurrent.futures.process", "numpy", "sympy")
    code = f"import sys, setpo_verifiers.pool; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_modules_that_a_task_needs_are_imported_before_the_clock_starts(tmp_path, monkeypatch):
    (tmp_path / "slow_to_import.py").write_text("import time\ntime.sleep(0.4)\n")
    (tmp_path / "slow_task.py").write_text(
        "from setpo_verifiers import Status, Verdict\n"
        "def verify_slow(completion, gold, *, mode='lenient'):\n"
        "    import slow_to_import\n"
        "    return Verdict(1.0, Status.CORRECT, completion, None, 'correct')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import slow_task

    register("slow_task", slow_task.verify_slow, needs=["slow_to_import", "no_such_module"])
    try:
        with VerifierPool(1, timeout=0.2) as pool:
            assert statuses(pool.verify_many([("slow_task", "a", "a")] * 3)) == [Status.CORRECT] * 3
    finally:
        del registry.TASKS["slow_task"], registry.NEEDS["slow_task"]
