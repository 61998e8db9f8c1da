"""Open files of SQLite kept for the next use: opening one costs more than a lookup in it.

Owns: which connections are idle, of one kind of file.
Must not know: what is in a file, when it can still be believed: the caller says.
Keeps: a connection is used by one caller at a time and never by a forked child; when there are too many, the ones that
were idle longest are closed, and all are when the process ends.
"""

import atexit
import os
import threading
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

_MOST: Final = 8


class Closable(Protocol):
    """An open file."""

    def close(self) -> None:
        """Close it."""


Kept = TypeVar("Kept", bound=Closable)


class Idle(Generic[Kept]):
    """The idle connections to files of one kind; may be used from many threads."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._idle: list[Kept] = []
        self._inherited: list[Kept] = []
        self._owner_pid = os.getpid()
        atexit.register(self.close)

    def take(self, is_meant: Callable[[Kept], bool], is_good: Callable[[Kept], bool]) -> Kept | None:
        """The connection that was used last of those that are meant, if it is still good; those that are not go."""
        while True:
            with self._guard:
                self._forget_inherited()
                found = next((each for each in reversed(self._idle) if is_meant(each)), None)
                if found is None:
                    return None
                self._idle.remove(found)
            if is_good(found):
                return found
            found.close()

    def keep(self, connection: Kept) -> None:
        """Keep one for the next use."""
        with self._guard:
            self._forget_inherited()
            self._idle.append(connection)
            surplus = self._idle[:-_MOST]
            del self._idle[:-_MOST]
        for each in surplus:
            each.close()

    def close(self, is_meant: Callable[[Kept], bool] = lambda _: True) -> None:
        """Close those that are meant."""
        with self._guard:
            self._forget_inherited()
            chosen = [each for each in self._idle if is_meant(each)]
            self._idle[:] = [each for each in self._idle if each not in chosen]
        for each in chosen:
            each.close()

    def _forget_inherited(self) -> None:
        if self._owner_pid != os.getpid():
            # A child must not even close its parent's connections: that would drop the parent's locks on the file.
            self._inherited.extend(self._idle)
            self._idle.clear()
            self._owner_pid = os.getpid()
