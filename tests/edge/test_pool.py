"""Bounded concurrency: no more at once than allowed, no barriers, errors stop new work, nothing goes on behind."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import obstore
import pytest
from obstore.store import MemoryStore

from mire.edge import pool

THREADS = 4


def test_every_item_is_called_once() -> None:
    """All items come back with their results, in whatever order they finish."""
    assert sorted(pool.run(lambda item: item * 2, range(100), at_once=THREADS)) == [(n, n * 2) for n in range(100)]
    assert list(pool.run(lambda item: item, [], at_once=THREADS)) == []


def test_there_are_as_many_at_once_as_allowed_and_no_more() -> None:
    """All threads work at the same time, and never more than so many."""
    gate = threading.Barrier(THREADS)
    mutex = threading.Lock()
    running = peak = 0

    def call(_: int) -> None:
        nonlocal running, peak
        with mutex:
            running += 1
            peak = max(peak, running)
        gate.wait()  # passes only when THREADS of them are here at the same time
        with mutex:
            running -= 1

    assert len(list(pool.run(call, range(THREADS * 5), at_once=THREADS))) == THREADS * 5
    assert peak == THREADS


def test_a_slow_call_holds_up_nobody() -> None:
    """Results of other calls are handed out while one takes its time: there are no batches."""
    release = threading.Event()

    def call(item: int) -> int:
        if item == 0:
            release.wait()
        return item

    results = pool.run(call, range(50), at_once=2)
    first = [next(results)[0] for _ in range(49)]
    assert sorted(first) == list(range(1, 50))
    release.set()
    assert list(results) == [(0, 0)]


def test_items_are_taken_as_they_are_needed() -> None:
    """An endless iterable is fine, and it is read only a little ahead, in the thread of the caller."""
    taken: list[int] = []
    threads: set[int] = set()

    def items() -> Iterator[int]:
        while True:
            threads.add(threading.get_ident())
            taken.append(len(taken))
            yield taken[-1]

    results = pool.run(lambda item: item, items(), at_once=THREADS)
    seen = [next(results)[0] for _ in range(10)]
    results.close()  # type: ignore[attr-defined]
    assert len(set(seen)) == 10
    assert len(taken) <= 10 + 2 * THREADS
    assert threads == {threading.get_ident()}


def test_nothing_is_called_before_somebody_asks() -> None:
    """Making the iterator starts no call."""
    calls: list[int] = []
    results = pool.run(calls.append, [1], at_once=1)
    assert calls == []
    list(results)
    assert calls == [1]


def outcome_of(results: Iterator[tuple[int, int]]) -> tuple[list[int], Exception | None]:
    """The items that came, and the error that ended them."""
    done: list[int] = []
    try:
        for item, _ in results:
            done.append(item)
    except Exception as error:  # noqa: BLE001 - looked at by the test
        return done, error
    return done, None


def test_the_first_error_stops_new_calls() -> None:
    """After an error nothing new begins; what was under way ends and is handed out; then the error is raised."""
    begun, failed = threading.Event(), threading.Event()
    called: list[int] = []

    def call(item: int) -> int:
        called.append(item)
        if item == 0:
            begun.set()
            failed.wait()
            return item
        begun.wait()
        try:
            raise ValueError(str(item))
        finally:
            failed.set()

    done, error = outcome_of(pool.run(call, range(1000), at_once=2))
    assert done == [0]
    assert str(error) == "1"
    assert sorted(called)[:2] == [0, 1]
    assert len(called) <= 3  # the thread that was free may have begun one more
    assert not any(thread.name == "mire-pool" for thread in threading.enumerate())


def test_results_before_an_error_are_not_lost() -> None:
    """Everything that succeeded is handed out before the error is raised."""

    def call(item: int) -> int:
        if item == 3:
            raise ValueError(str(item))
        return item

    done, error = outcome_of(pool.run(call, range(10), at_once=1))
    assert done == [0, 1, 2]
    assert str(error) == "3"


def test_an_error_of_the_items_is_raised_after_the_calls() -> None:
    """An iterable that fails ends the run as a call that fails does."""

    def items() -> Iterator[int]:
        yield 1
        raise LookupError("items")

    done, error = outcome_of(pool.run(lambda item: item, items(), at_once=THREADS))
    assert set(done) <= {1}
    assert isinstance(error, LookupError)


def test_leaving_early_waits_for_what_is_under_way() -> None:
    """After the loop is left no call runs any more."""
    running = threading.Semaphore(0)

    def call(item: int) -> int:
        running.release()
        return item

    for _ in pool.run(call, range(1000), at_once=THREADS):
        break
    assert not any(thread.name == "mire-pool" for thread in threading.enumerate())


PROGRAM = """
import os, threading
from mire.edge import pool
stop = threading.Event()
def call(item):
    os.write(1, b"%d\\n" % item)  # at once: what two threads print mixes
    stop.wait()
try:
    for _ in pool.run(call, range(100), at_once=2):
        pass
except KeyboardInterrupt:
    print("interrupted", flush=True)
    stop.set()
    raise
finally:
    stop.set()
"""


def test_ctrl_c_ends_a_run() -> None:
    """The main thread notices Ctrl-C while calls are under way; a second one leaves without waiting for them."""
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            assert {process.stdout.readline(), process.stdout.readline()} == {"0\n", "1\n"}
            for _ in range(1_000):  # the first one waits for the calls, which wait for us: say it until it leaves
                os.kill(process.pid, signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=0.05)
                    break
            assert "interrupted" in process.stdout.read()
        except BaseException:
            process.kill()  # nobody else ends it, and leaving the block waits for it
            raise
    assert process.returncode == -signal.SIGINT


def test_a_thread_that_never_started_is_not_waited_for() -> None:
    """Ctrl-C between making a thread and starting it leaves one that cannot be joined."""
    crew = pool._Crew(str, 1)
    crew._threads.append(threading.Thread())
    crew.dismiss()


def test_threads_of_short_calls_share_a_processor() -> None:
    """Gathered, they stay on one processor each run; without, and outside of them, nothing is confined."""
    ours = os.sched_getaffinity(0)

    def where(_: int) -> frozenset[int]:
        return frozenset(os.sched_getaffinity(0))

    together = {result for _, result in pool.run(where, range(50), at_once=4, gathered=True)}
    assert [len(each) for each in together] == [1]
    assert {result for _, result in pool.run(where, range(50), at_once=4)} == {frozenset(ours)}
    assert os.sched_getaffinity(0) == ours


@pytest.fixture
def _two_processors() -> Iterator[None]:
    """This thread on two processors, as on a small machine, and a store's threads that may go everywhere."""
    ours = os.sched_getaffinity(0)
    if len(ours) < 2:
        pytest.skip("one processor: there is nothing to gather")
    obstore.put(MemoryStore(), "x", b"")
    for _ in range(1000):
        if _store_threads():  # a new thread gives itself its name
            break
        time.sleep(0.01)
    for thread in _store_threads():
        os.sched_setaffinity(thread, ours)
    os.sched_setaffinity(0, set(sorted(ours)[:2]))
    yield
    os.sched_setaffinity(0, ours)
    for thread in _store_threads():
        os.sched_setaffinity(thread, ours)


def _store_threads() -> list[int]:
    names = {int(each): Path(f"/proc/self/task/{each}/comm") for each in os.listdir("/proc/self/task")}
    return [thread for thread, name in names.items() if name.exists() and name.read_text() == "tokio-rt-worker\n"]


@pytest.mark.usefixtures("_two_processors")
def test_on_a_small_machine_all_is_gathered() -> None:
    """The caller and the threads that speak to a store come along, and may go everywhere afterwards."""
    ours = os.sched_getaffinity(0)
    threads = _store_threads()
    assert threads
    assert all(len(os.sched_getaffinity(thread)) > 1 for thread in threads)
    run = pool.run(lambda _: frozenset(os.sched_getaffinity(0)), range(50), at_once=4, gathered=True)
    _, there = next(run)
    assert len(there) == 1
    assert os.sched_getaffinity(0) == there
    assert [os.sched_getaffinity(thread) for thread in threads] == [there] * len(threads)
    # A generator that was left may be ended by another thread.
    other = threading.Thread(target=run.close)
    other.start()
    other.join()
    assert os.sched_getaffinity(0) == ours
    assert all(ours <= os.sched_getaffinity(thread) for thread in threads)


@pytest.mark.usefixtures("_two_processors")
def test_beside_other_tasks_only_the_threads_of_the_run_are_gathered() -> None:
    """Two tasks that chose the same processor would leave the other one idle."""
    ours = os.sched_getaffinity(0)
    threads = _store_threads()
    before = [os.sched_getaffinity(thread) for thread in threads]
    run = pool.run(abs, range(50), at_once=4, gathered=True, is_alone=False)
    next(run)
    assert os.sched_getaffinity(0) == ours
    assert [os.sched_getaffinity(thread) for thread in threads] == before
    run.close()


def test_few_short_calls_are_spread_and_many_are_grouped() -> None:
    """The first are handed out one by one, to whoever is free; then a thread has called four before one is told."""
    called: list[int] = []
    seen = {item: len(called) for item, _ in pool.run(called.append, range(16), at_once=1, gathered=True)}
    assert list(seen) == list(range(16))
    assert seen[0] <= 2
    assert seen[4] >= 8


def test_an_error_ends_its_group_and_keeps_what_came_before() -> None:
    """Of grouped calls, too: what was called is handed out, what comes behind is not called."""
    called: list[int] = []

    def call(item: int) -> int:
        called.append(item)
        if item == 10:
            raise ValueError(item)
        return item

    found: list[int] = []
    with pytest.raises(ValueError, match="10"):
        found.extend(item for item, _ in pool.run(call, range(100), at_once=1, gathered=True))
    assert (found, called) == (list(range(10)), list(range(11)))


def test_items_taken_before_an_error_of_theirs_are_waited_for() -> None:
    """Items that fail in the middle of a group: those before it are called, or not, but never forgotten."""

    def items() -> Iterator[int]:
        yield from range(10)
        msg = "no more"
        raise ValueError(msg)

    called: list[int] = []

    def call(item: int) -> int:
        called.append(item)
        return item

    found: list[int] = []
    with pytest.raises(ValueError, match="no more"):
        found.extend(item for item, _ in pool.run(call, items(), at_once=1, gathered=True))
    assert found == called


def test_where_processors_are_not_told_threads_go_where_they_will(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that has no such call, or forbids it, runs the calls all the same."""
    monkeypatch.delattr(os, "sched_setaffinity")
    assert sorted(result for _, result in pool.run(abs, range(5), at_once=2, gathered=True)) == [0, 1, 2, 3, 4]
