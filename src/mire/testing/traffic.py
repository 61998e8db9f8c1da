"""Exact counts of what a test server was asked and what it sent.

Owns: requests and body bytes per operation, and the log of (operation, bucket, key, status).
Must not know: HTTP, what an operation does.
Keeps: a request is counted before its answer leaves, so a client that has the answer sees itself counted.
"""

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

_LOG_MAX: Final = 200_000
"""The log is for tests; a benchmark of an hour must not fill the memory. Counts have no such end."""


class Entry(NamedTuple):
    """One request of the log; `status` is None when the answer was dropped."""

    operation: str
    bucket: str
    key: str
    status: int | None


@dataclass(slots=True)
class Tally:
    """Requests and body bytes of one operation."""

    requests: int = 0
    in_bytes: int = 0
    out_bytes: int = 0


class Traffic:
    """The counter of a server; every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tallies: dict[str, Tally] = {}
        self._log: deque[Entry] = deque(maxlen=_LOG_MAX)

    def record(self, entry: Entry, in_bytes: int, out_bytes: int) -> None:
        """Count one request."""
        with self._lock:
            tally = self._tallies.get(entry.operation)
            if tally is None:
                tally = self._tallies[entry.operation] = Tally()
            tally.requests += 1
            tally.in_bytes += in_bytes
            tally.out_bytes += out_bytes
            self._log.append(entry)

    def counts(self) -> dict[str, int]:
        """Requests per operation."""
        with self._lock:
            return {name: tally.requests for name, tally in self._tallies.items()}

    def tallies(self) -> Mapping[str, Tally]:
        """Requests and bytes per operation."""
        with self._lock:
            return {name: Tally(t.requests, t.in_bytes, t.out_bytes) for name, t in self._tallies.items()}

    def log(self) -> list[Entry]:
        """The requests in the order in which they were answered."""
        with self._lock:
            return list(self._log)

    def reset(self) -> None:
        """Begin again at zero."""
        with self._lock:
            self._tallies.clear()
            self._log.clear()
