"""The clock of a remote, told by ours: how old an object is, whatever this machine's clock says.

Owns: measuring the store's clock and keeping the measure; the age of an object within what is known.
Must not know: what an age decides.
Keeps: an age is never told as greater than it can be. Stores show whole seconds, answers take time, clocks are set:
every such doubt makes an object younger, never older.
"""

import math
import threading

from mire.edge import clock
from mire.edge.remote import Remote

_KEEPS_MS = 10_000
"""How long a measure is used: clocks drift by milliseconds in this time, but they may also be set."""

_SECOND = 1_000


class StoreClock:
    """The clock of one remote; asked once, and again when the answer is old or much depends on it."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self._mutex = threading.Lock()
        self._asked_ms = -math.inf
        self._offsets = (0.0, 0.0)

    def age_ms(self, modified_ms: int, *, is_fresh: bool = False) -> int:
        """How long ago the store stamped something, in doubt the age nearest to none; below zero: in its future."""
        now = clock.boot_ms()
        self._measure(not_before_ms=now if is_fresh else now - _KEEPS_MS)
        earliest, latest = (clock.boot_ms() + offset for offset in self._offsets)
        youngest, oldest = earliest - (modified_ms + _step(modified_ms)), latest - modified_ms
        return max(0, math.floor(youngest)) if oldest >= 0 else math.ceil(oldest)

    def _measure(self, *, not_before_ms: float) -> None:
        if self._asked_ms >= not_before_ms:
            return
        with self._mutex:
            # Somebody else may have asked while we waited for our turn.
            if self._asked_ms < not_before_ms:
                before = clock.boot_ms()
                told = self._remote.server_time_ms()
                # It was told at some moment between question and answer.
                self._offsets = (told - clock.boot_ms(), told + _step(told) - before)
                self._asked_ms = before


def _step(told_ms: float) -> int:
    """How far the truth may be above what was told: HTTP dates drop the milliseconds."""
    return _SECOND if told_ms % _SECOND == 0 else 1
