"""A remote that is asked no faster, and no more at once, than we allow.

Owns: waiting.
Must not know: what is asked.
Keeps: over any stretch of time no more requests begin than its length allows plus one burst; nobody waits longer than
that takes. Each page of a listing is a request, and a stream is one that ends when its first piece can be asked for.
"""

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from mire.edge import clock
from mire.edge.limits import PAGE_KEYS
from mire.edge.remote import Remote, Stat
from mire.edge.wrap import Wrapper
from mire.errors import InputError, shown

T = TypeVar("T")


class Pace:
    """So many requests per second, the first few of them at once; shared by as many remotes as should share it."""

    def __init__(
        self,
        per_second: float,
        *,
        burst: int = 1,
        now_ms: Callable[[], float] = clock.monotonic_ms,
        pause: Callable[[float], None] = clock.pause,
    ) -> None:
        if per_second <= 0 or burst < 1:
            raise InputError(f"a pace of {shown(per_second)} per second with a burst of {shown(burst)} never begins")
        self._interval_ms = 1000 / per_second
        self._slack_ms = self._interval_ms * burst
        self._now_ms = now_ms
        self._pause = pause
        self._mutex = threading.Lock()
        self._free_ms = now_ms() - self._slack_ms

    def wait(self) -> None:
        """Wait for our turn."""
        with self._mutex:
            now_ms = self._now_ms()
            self._free_ms = max(self._free_ms, now_ms - self._slack_ms) + self._interval_ms
            wait_ms = self._free_ms - now_ms
        if wait_ms > 0:
            self._pause(wait_ms)


class Throttled(Wrapper):
    """A `Remote` that keeps a pace, or a limit of requests at once, or both."""

    def __init__(self, remote: Remote, *, pace: Pace | None = None, at_once: int | None = None) -> None:
        super().__init__(remote)
        self._pace = pace
        self._slots: contextlib.AbstractContextManager[object] = (
            contextlib.nullcontext() if at_once is None else threading.BoundedSemaphore(at_once)
        )

    def _around(self, operation: str, key: str, call: Callable[[], T]) -> T:
        del operation, key
        with self._slots:
            if self._pace is not None:
                self._pace.wait()
            return call()

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Stat]:
        """The objects below a prefix; each page waits for its turn."""
        found = self._remote.list(prefix, after=after)
        for number in itertools.count():
            if number % PAGE_KEYS == 0:
                stat = self._around("list", prefix, lambda: next(found, None))
            else:
                stat = next(found, None)
            if stat is None:
                return
            yield stat
