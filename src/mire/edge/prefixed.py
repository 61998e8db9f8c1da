"""A part of a remote, seen as a whole one.

Owns: the difference between a key here and a key there.
Must not know: what the remote is, what the keys mean.
Keeps: no call reaches a key outside the prefix. The prefix is used as it is given: nothing is trimmed.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from mire.edge.key import check_key, check_prefix
from mire.edge.remote import (
    Body,
    Condition,
    Level,
    Properties,
    Refused,
    Remote,
    Removed,
    Stat,
    Stored,
    Stream,
    Unknown,
)
from mire.errors import ConfigError, InputError, shown


class Prefixed:
    """A `Remote` for the keys below a prefix, which is given without its final '/'."""

    def __init__(self, remote: Remote, prefix: str) -> None:
        try:
            check_key(prefix)
        except InputError as error:
            raise ConfigError(
                f"prefix {shown(prefix)} cannot be used: {error}; choose another", kind="bad_prefix", prefix=prefix
            ) from None
        self._remote = remote
        self._prefix = f"{prefix}/"

    @property
    def properties(self) -> Properties:
        """What the remote can do, under the name of its part."""
        properties = self._remote.properties
        return replace(properties, name=f"{properties.name}/{self._prefix[:-1]}")

    def get(self, key: str) -> Body:
        """The object, all at once."""
        body = self._remote.get(self._full(key))
        return replace(body, stat=replace(body.stat, key=key))

    def get_if_changed(self, key: str, fingerprint: str) -> Body | None:
        """The object, or None when it still has this fingerprint."""
        body = self._remote.get_if_changed(self._full(key), fingerprint)
        return None if body is None else replace(body, stat=replace(body.stat, key=key))

    def get_stream(self, key: str) -> Stream:
        """The object in pieces."""
        stream = self._remote.get_stream(self._full(key))
        return replace(stream, stat=replace(stream.stat, key=key))

    def head(self, key: str) -> Stat:
        """What is known of the object."""
        return replace(self._remote.head(self._full(key)), key=key)

    def put(self, key: str, data: bytes) -> Stored:
        """Store an object, replacing what is there."""
        return self._remote.put(self._full(key), data)

    def put_if(
        self, key: str, data: bytes, condition: Condition, *, token: str | None = None
    ) -> Stored | Refused | Unknown:
        """Store an object if the condition holds."""
        return self._remote.put_if(self._full(key), data, condition, token=token)

    def put_stream(self, key: str, open_chunks: Callable[[], Iterable[bytes]]) -> Stored:
        """Store an object from pieces."""
        return self._remote.put_stream(self._full(key), open_chunks)

    def put_stream_if(
        self, key: str, open_chunks: Callable[[], Iterable[bytes]], condition: Condition
    ) -> Stored | Refused | Unknown:
        """Store an object from pieces if the condition holds."""
        return self._remote.put_stream_if(self._full(key), open_chunks, condition)

    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is fine."""
        self._remote.delete(self._full(key))

    def delete_if(self, key: str, fingerprint: str) -> Removed | Refused | Unknown:
        """Remove the object only if it has this fingerprint."""
        return self._remote.delete_if(self._full(key), fingerprint)

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Stat]:
        """The objects below a prefix, by ascending key."""
        check_prefix(prefix)
        found = self._remote.list(self._prefix + prefix, after=None if after is None else self._prefix + after)
        return map(self._own, found)

    def list_level(self, prefix: str = "") -> Level:
        """One level of the listing."""
        check_prefix(prefix)
        level = self._remote.list_level(self._prefix + prefix)
        return Level(
            prefixes=tuple(each[len(self._prefix) :] for each in level.prefixes),
            objects=tuple(map(self._own, level.objects)),
        )

    def copy(self, source: str, target: str) -> None:
        """Copy an object inside the part."""
        self._remote.copy(self._full(source), self._full(target))

    def server_time_ms(self) -> float:
        """The store's clock."""
        return self._remote.server_time_ms()

    def _full(self, key: str) -> str:
        return self._prefix + check_key(key)

    def _own(self, stat: Stat) -> Stat:
        return replace(stat, key=stat.key[len(self._prefix) :])
