"""Time, randomness and the one background thread: nothing else in mire asks for them.

Owns: now, pauses, jitter, random ids, a repeated call.
Must not know: what any of it is for.
"""

import random
import threading
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime

from mire.model.instant import Instant, instant_of
from mire.model.names import Uuid


def now() -> datetime:
    """The wall clock, in UTC."""
    return datetime.now(UTC)


def now_instant() -> Instant:
    """The wall clock as the store writes it."""
    return instant_of(now())


def monotonic_ms() -> float:
    """A clock that never goes back, in milliseconds."""
    return time.monotonic() * 1000


def pause(milliseconds: float) -> None:
    """Wait."""
    time.sleep(milliseconds / 1000)


def jitter() -> float:
    """A random number in [0, 1), to keep waiters apart."""
    return random.random()  # noqa: S311 - spreading load, not keeping secrets


def new_uuid() -> Uuid:
    """A random (version 4) UUID."""
    return Uuid(str(uuid.uuid4()))


class Repeating:
    """A call repeated from a daemon thread until stopped or until it returns False."""

    def __init__(self, interval_ms: float, call: Callable[[], bool]) -> None:
        self._stopped = threading.Event()
        self._interval_s = interval_ms / 1000
        self._call = call
        self._thread = threading.Thread(target=self._run, name="mire-heartbeat", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.wait(self._interval_s):
            if not self._call():
                return

    def stop(self) -> None:
        """End the repetition; a call under way is waited for."""
        self._stopped.set()
        if self._thread is not threading.current_thread() and self._thread.is_alive():
            self._thread.join()
