"""A remote in memory: for tests, dry runs and trying things out.

Owns: a dictionary of objects behind one mutex.
Must not know: anything outside this process.
Keeps: every call is one step that nobody sees half of.
"""

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from mire.edge import clock
from mire.edge.key import check_key, check_prefix
from mire.edge.remote import (
    Absent,
    Body,
    Condition,
    Level,
    Properties,
    Refused,
    Removed,
    Stat,
    Stored,
    Stream,
    Unknown,
)
from mire.errors import NotFoundError, shown

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class _Object:
    stat: Stat
    data: bytes
    token: str | None


class MemoryRemote:
    """A `Remote` that lives as long as this object does."""

    def __init__(self, *, content_fingerprint: bool = True) -> None:
        self._content_fingerprint = content_fingerprint
        self._mutex = threading.Lock()
        self._objects: dict[str, _Object] = {}
        self._generation = 0

    @property
    def properties(self) -> Properties:
        """What this remote can do."""
        return Properties(
            name="memory:",
            conditional_put=True,
            conditional_delete=True,
            content_fingerprint=self._content_fingerprint,
            is_shared=False,
        )

    def get(self, key: str) -> Body:
        """The object, all at once."""
        found = self._find(key)
        return Body(stat=found.stat, data=found.data, token=found.token)

    def get_if_changed(self, key: str, fingerprint: str) -> Body | None:
        """The object, or None when it still has this fingerprint."""
        body = self.get(key)
        return None if body.stat.fingerprint == fingerprint else body

    def get_stream(self, key: str) -> Stream:
        """The object in pieces."""
        found = self._find(key)
        return Stream(stat=found.stat, chunks=_pieces(found.data))

    def head(self, key: str) -> Stat:
        """What is known of the object."""
        return self._find(key).stat

    def put(self, key: str, data: bytes) -> Stored:
        """Store an object, replacing what is there."""
        with self._mutex:
            return self._store(key, data, None)

    def put_if(
        self, key: str, data: bytes, condition: Condition, *, token: str | None = None
    ) -> Stored | Refused | Unknown:
        """Store an object if the condition holds."""
        check_key(key)
        with self._mutex:
            found = self._objects.get(key)
            has = None if found is None else found.stat.fingerprint
            wanted = None if isinstance(condition, Absent) else condition.fingerprint
            return self._store(key, data, token) if has == wanted else Refused()

    def put_stream(self, key: str, open_chunks: Callable[[], Iterable[bytes]]) -> Stored:
        """Store an object from pieces."""
        return self.put(key, b"".join(open_chunks()))

    def put_stream_if(
        self, key: str, open_chunks: Callable[[], Iterable[bytes]], condition: Condition
    ) -> Stored | Refused | Unknown:
        """Store an object from pieces if the condition holds when the last one is there."""
        return self.put_if(key, b"".join(open_chunks()), condition)

    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is fine."""
        check_key(key)
        with self._mutex:
            self._objects.pop(key, None)

    def delete_if(self, key: str, fingerprint: str) -> Removed | Refused | Unknown:
        """Remove the object only if it has this fingerprint."""
        check_key(key)
        with self._mutex:
            found = self._objects.get(key)
            if found is not None and found.stat.fingerprint != fingerprint:
                return Refused()
            self._objects.pop(key, None)
            return Removed()

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Stat]:
        """The objects below a prefix, by ascending key, as they were when the listing began."""
        check_prefix(prefix)
        with self._mutex:
            found = [
                each.stat
                for key, each in self._objects.items()
                if key.startswith(prefix) and (after is None or key > after)
            ]
        return iter(sorted(found, key=lambda stat: stat.key))

    def list_level(self, prefix: str = "") -> Level:
        """One level of the listing."""
        return level_of(self.list(prefix), prefix)

    def copy(self, source: str, target: str) -> None:
        """Copy an object, replacing what is there."""
        check_key(target)
        found = self._find(source)
        with self._mutex:
            self._store(target, found.data, found.token)

    def server_time_ms(self) -> float:
        """The clock of this machine."""
        return clock.now_ns() / 1e6

    def _find(self, key: str) -> _Object:
        check_key(key)
        with self._mutex:
            found = self._objects.get(key)
        if found is None:
            raise NotFoundError(f"there is no object {shown(key)} in memory:", key=key)
        return found

    def _store(self, key: str, data: bytes, token: str | None) -> Stored:
        check_key(key)
        data = bytes(data)
        self._generation += 1
        fingerprint = content_fingerprint_of(data) if self._content_fingerprint else str(self._generation)
        stat = Stat(
            key=key, size_bytes=len(data), fingerprint=fingerprint, modified_ms=int(clock.now_ns() // 1_000_000)
        )
        self._objects[key] = _Object(stat, data, token)
        return Stored(fingerprint)


def content_fingerprint_of(data: bytes) -> str:
    """The fingerprint of bytes as S3 gives it to an object stored in one part."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def level_of(stats: Iterable[Stat], prefix: str) -> Level:
    """One level of a full listing below a prefix."""
    prefixes: dict[str, None] = {}
    objects: list[Stat] = []
    for stat in stats:
        head, slash, _ = stat.key[len(prefix) :].partition("/")
        if slash:
            prefixes[f"{prefix}{head}/"] = None
        else:
            objects.append(stat)
    return Level(prefixes=tuple(prefixes), objects=tuple(objects))


def _pieces(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), _CHUNK_BYTES):
        yield data[start : start + _CHUNK_BYTES]
