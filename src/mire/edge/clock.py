"""Time, randomness and the one background thread: nothing else in mire asks for them.

Owns: now, pauses, jitter, random ids, a repeated call.
Must not know: what any of it is for.
"""

import os
import random
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from mire.model.instant import Instant, datetime_of, instant_of
from mire.model.names import Uuid


def now() -> datetime:
    """The wall clock, in UTC."""
    return datetime.now(UTC)


def now_instant() -> Instant:
    """The wall clock as the store writes it."""
    return instant_of(now())


def instant_after(last: Instant) -> Instant:
    """Now, but in any case later than `last`: a clock that was set back repeats itself."""
    return max(now_instant(), instant_of(datetime_of(last) + timedelta(milliseconds=1)))


def now_ns() -> int:
    """The wall clock in nanoseconds, as file systems stamp."""
    return time.time_ns()


def monotonic_ms() -> float:
    """A clock that never goes back, in milliseconds."""
    return time.monotonic() * 1000


_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment, by the clock that counts suspension and by the wall clock."""

    boot_ms: float
    wall_ms: float


def mark() -> Mark:
    """The moment now."""
    return Mark(boot_ms(), time.time() * 1000)


def since_ms(moment: Mark) -> float:
    """How long ago a moment was at most: the longer of what two clocks say.

    The monotonic clock stands still while a machine sleeps, the other one also while a virtual machine is
    frozen and only the wall clock is set right afterwards.
    """
    now = mark()
    return max(now.boot_ms - moment.boot_ms, now.wall_ms - moment.wall_ms)


def boot_ms() -> float:
    """A clock that never goes back and counts the time a machine sleeps, in milliseconds."""
    return time.clock_gettime(_BOOT_CLOCK) * 1000


def pause(milliseconds: float) -> None:
    """Wait."""
    time.sleep(milliseconds / 1000)


def jitter() -> float:
    """A random number in [0, 1), to keep waiters apart."""
    return random.random()  # noqa: S311 - spreading load, not keeping secrets


def new_uuid() -> Uuid:
    """A random (version 4) UUID."""
    return Uuid(str(uuid.uuid4()))


def new_token() -> str:
    """A text that nobody has made before, for what needs no more than that: an id takes five times as long."""
    return os.urandom(16).hex()


def new_nonce(space: str) -> str:
    """A random UUID for a lock; one of version 8 says that its last digits tell where the holder's pid counts."""
    if not space:
        return new_uuid()
    text = uuid.uuid4().hex
    return str(uuid.UUID(f"{text[:12]}8{text[13:24]}{space}"))


class Repeating:
    """A call repeated in the background until stopped or until it returns False.

    One that `may_block`, on a network, gets a thread for each call, so that it does not hold up the others.
    """

    def __init__(self, interval_ms: float, call: Callable[[], bool], *, may_block: bool = False) -> None:
        self.interval_s = interval_ms / 1000
        self.call = call
        self.may_block = may_block
        _heart.add(self)

    def stop(self) -> None:
        """End the repetition; a call under way is waited for."""
        _heart.remove(self)


class _Heart:
    """One daemon thread for all repeated calls: starting a thread for every short lock would cost more."""

    def __init__(self) -> None:
        self._start_over()

    def _start_over(self) -> None:
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._due: dict[Repeating, float] = {}
        self._running: dict[Repeating, threading.Thread] = {}
        self._wakes_at = 0.0
        self._thread: threading.Thread | None = None

    def add(self, beat: Repeating) -> None:
        """Begin repeating."""
        if self._pid != os.getpid():  # a fork copies the records, but not the thread
            self._start_over()
        due = time.monotonic() + beat.interval_s
        with self._changed:
            self._due[beat] = due
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="mire-heartbeat", daemon=True)
                self._thread.start()  # the caller holds back signals, so the thread never takes one
            elif due < self._wakes_at:
                self._changed.notify_all()

    def remove(self, beat: Repeating) -> None:
        """End repeating, after a call under way."""
        if self._pid != os.getpid():
            return
        with self._changed:
            self._due.pop(beat, None)
            while beat in self._running and self._running[beat] is not threading.current_thread():
                self._changed.wait()

    def _run(self) -> None:
        with self._changed:
            while True:
                # A call under way is due again when it ends: beats never overlap.
                waiting = self._due.keys() - self._running.keys()
                beat = min(waiting, key=self._due.__getitem__, default=None)
                now = time.monotonic()
                due = now + _IDLE_S if beat is None else self._due[beat]
                if beat is None or due > now:
                    self._wakes_at = due
                    self._changed.wait(due - now)
                elif beat.may_block:
                    thread = threading.Thread(target=self._call_alone, args=(beat,), name="mire-renewal", daemon=True)
                    self._running[beat] = thread
                    thread.start()
                else:
                    self._running[beat] = threading.current_thread()
                    self._call(beat)

    def _call_alone(self, beat: Repeating) -> None:
        with self._changed:
            self._call(beat)

    def _call(self, beat: Repeating) -> None:
        """Call once, without the mutex that the caller has, and say when the next time is."""
        self._changed.release()
        try:
            goes_on = beat.call()
        except Exception:  # noqa: BLE001 - one broken call must not stop the others
            goes_on = False
        finally:
            self._changed.acquire()
            self._running.pop(beat, None)
            self._changed.notify_all()
        if beat in self._due:
            if goes_on:
                self._due[beat] = time.monotonic() + beat.interval_s
            else:
                del self._due[beat]


_IDLE_S = 60.0
_heart = _Heart()
