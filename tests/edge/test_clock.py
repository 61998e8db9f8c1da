"""Clocks and the background thread."""

import threading

from mire.edge import clock
from mire.model.instant import Instant


def test_the_longer_of_two_clocks_counts() -> None:
    """A moment is as long ago as either clock says: one may have stood still."""
    now = clock.mark()
    assert 0 <= clock.since_ms(now) < 60_000
    assert clock.since_ms(clock.Mark(now.boot_ms - 90_000, now.wall_ms)) >= 90_000
    assert clock.since_ms(clock.Mark(now.boot_ms, now.wall_ms - 90_000)) >= 90_000
    assert 0 <= clock.since_ms(clock.Mark(now.boot_ms, now.wall_ms + 90_000)) < 60_000


def test_an_instant_is_always_later_than_the_last() -> None:
    """Two in one millisecond, or after a clock was set back, still differ and still grow."""
    last = clock.now_instant()
    for _ in range(50):
        last, before = clock.instant_after(last), last
        assert last > before
    assert clock.instant_after(Instant("2999-01-01T00:00:00.000Z")) == "2999-01-01T00:00:00.001Z"


def test_a_call_that_blocks_does_not_hold_up_the_others() -> None:
    """Calls on a network have a thread each: one that waits for ever leaves the rest their rhythm."""
    stuck, free = threading.Event(), threading.Event()
    beats = threading.Semaphore(0)
    inside: list[int] = []

    def block() -> bool:
        inside.append(1)
        stuck.set()
        free.wait()
        return True

    def beat() -> bool:
        beats.release()
        return True

    blocked = clock.Repeating(1, block, may_block=True)
    lively = [clock.Repeating(1, beat, may_block=each) for each in (True, False)]
    stuck.wait()
    for _ in range(20):
        beats.acquire()
    assert inside == [1]  # a call under way is not made again
    free.set()
    blocked.stop()
    for each in lively:
        each.stop()


def test_stopping_waits_for_a_call_under_way() -> None:
    """After `stop` returns, no call is under way, in whichever thread."""
    for may_block in (True, False):
        began, done = threading.Event(), threading.Event()
        ended: list[bool] = []

        def call(began: threading.Event = began, done: threading.Event = done, ended: list[bool] = ended) -> bool:
            began.set()
            done.wait()
            ended.append(True)
            return True

        beat = clock.Repeating(1, call, may_block=may_block)
        began.wait()
        stopper = threading.Thread(target=beat.stop)
        stopper.start()
        assert ended == []
        done.set()
        stopper.join()
        assert ended == [True]


def test_a_call_that_says_no_or_fails_is_the_last() -> None:
    """Repeating ends with the first False, and with the first error; the thread goes on with the others."""
    counts = {"no": 0, "error": 0}
    others = threading.Semaphore(0)

    def no() -> bool:
        counts["no"] += 1
        return False

    def error() -> bool:
        counts["error"] += 1
        raise ValueError

    def other() -> bool:
        others.release()
        return True

    beats = [clock.Repeating(1, call, may_block=True) for call in (no, error, other)]
    for _ in range(30):
        others.acquire()
    for beat in beats:
        beat.stop()
    assert counts == {"no": 1, "error": 1}
