"""A remote that only pretends to write.

Owns: what would have been written or removed, and the view of the store as if it had been.
Must not know: why.
Keeps: nothing reaches the remote inside but reads. What was "written" is read back as written, conditions are judged
by it, and listings show it: code that reads its own writes behaves as in earnest. It is gone with this object.
"""

import heapq
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from mire.edge.memory import MemoryRemote, level_of
from mire.edge.remote import (
    Absent,
    Body,
    Condition,
    Level,
    Refused,
    Remote,
    Removed,
    Stat,
    Stored,
    Stream,
    Unknown,
)
from mire.edge.wrap import Wrapper
from mire.errors import NotFoundError


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A change that was not made; a copy names its source."""

    operation: str
    key: str
    size_bytes: int = 0
    source: str | None = None


class DryRun(Wrapper):
    """A `Remote` whose changes stay here; `planned()` lists them."""

    def __init__(self, remote: Remote) -> None:
        super().__init__(remote)
        self._mutex = threading.RLock()
        self._written = MemoryRemote(content_fingerprint=remote.properties.content_fingerprint)
        self._hidden: set[str] = set()
        self._planned: list[Planned] = []

    def planned(self) -> tuple[Planned, ...]:
        """The changes that would have been made, in their order."""
        with self._mutex:
            return tuple(self._planned)

    def _side(self, key: str) -> Remote:
        """Where a key is to be read."""
        with self._mutex:
            return self._written if key in self._hidden else self._remote

    def get(self, key: str) -> Body:
        """The object, all at once."""
        return self._side(key).get(key)

    def get_if_changed(self, key: str, fingerprint: str) -> Body | None:
        """The object, or None when it still has this fingerprint."""
        return self._side(key).get_if_changed(key, fingerprint)

    def get_stream(self, key: str) -> Stream:
        """The object in pieces."""
        return self._side(key).get_stream(key)

    def head(self, key: str) -> Stat:
        """What is known of the object."""
        return self._side(key).head(key)

    def put(self, key: str, data: bytes) -> Stored:
        """Pretend to store an object."""
        return self._pretend("put", key, data)

    def put_if(
        self, key: str, data: bytes, condition: Condition, *, token: str | None = None
    ) -> Stored | Refused | Unknown:
        """Pretend to store an object if the condition holds."""
        del token
        return self._pretend_if("put_if", key, data, condition)

    def _pretend_if(self, operation: str, key: str, data: bytes, condition: Condition) -> Stored | Refused:
        with self._mutex:
            wanted = None if isinstance(condition, Absent) else condition.fingerprint
            return self._pretend(operation, key, data) if self._fingerprint(key) == wanted else Refused()

    def put_stream(self, key: str, open_chunks: Callable[[], Iterable[bytes]]) -> Stored:
        """Pretend to store an object from pieces, which are kept in memory."""
        return self._pretend("put_stream", key, b"".join(open_chunks()))

    def put_stream_if(
        self, key: str, open_chunks: Callable[[], Iterable[bytes]], condition: Condition
    ) -> Stored | Refused | Unknown:
        """Pretend to store an object from pieces if the condition holds."""
        return self._pretend_if("put_stream_if", key, b"".join(open_chunks()), condition)

    def _pretend(self, operation: str, key: str, data: bytes, source: str | None = None) -> Stored:
        with self._mutex:
            stored = self._written.put(key, data)
            self._hidden.add(key)
            self._planned.append(Planned(operation=operation, key=key, size_bytes=len(data), source=source))
            return stored

    def delete(self, key: str) -> None:
        """Pretend to remove an object."""
        with self._mutex:
            self._written.delete(key)
            self._hidden.add(key)
            self._planned.append(Planned(operation="delete", key=key))

    def delete_if(self, key: str, fingerprint: str) -> Removed | Refused | Unknown:
        """Pretend to remove the object if it has this fingerprint."""
        with self._mutex:
            found = self._fingerprint(key)
            if found is not None and found != fingerprint:
                return Refused()
            if found is not None:
                self._written.delete(key)
                self._hidden.add(key)
                self._planned.append(Planned(operation="delete_if", key=key))
            return Removed()

    def _fingerprint(self, key: str) -> str | None:
        try:
            return self._side(key).head(key).fingerprint
        except NotFoundError:
            return None

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Stat]:
        """The objects below a prefix, as if what is pretended were true."""
        with self._mutex:
            hidden = frozenset(self._hidden)
        there = (stat for stat in self._remote.list(prefix, after=after) if stat.key not in hidden)
        return heapq.merge(there, self._written.list(prefix, after=after), key=lambda stat: stat.key)

    def list_level(self, prefix: str = "") -> Level:
        """One level of the listing; everything below is looked at when something was written or removed there."""
        with self._mutex:
            is_touched = any(key.startswith(prefix) for key in self._hidden)
        return level_of(self.list(prefix), prefix) if is_touched else self._remote.list_level(prefix)

    def copy(self, source: str, target: str) -> None:
        """Pretend to copy an object."""
        self._pretend("copy", target, self.get(source).data, source)
