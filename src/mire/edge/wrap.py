"""What every remote around a remote does: pass calls on.

Owns: the way of each call to the remote inside.
Must not know: why somebody wraps; a subclass says what happens around a call.
Keeps: a wrapper that says nothing about a call does not change it. Wrappers are stacked, none has switches:
`Counted(Retrying(Traced(remote)))`.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

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

T = TypeVar("T")


class Wrapper:
    """A `Remote` around a `Remote`; `_around` is called with every call that ends with its answer."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    @property
    def properties(self) -> Properties:
        """What the remote inside can do."""
        return self._remote.properties

    def _around(self, operation: str, key: str, call: Callable[[], T]) -> T:  # noqa: ARG002 - for subclasses
        """Make one call; `operation` is the name of the method."""
        return call()

    def get(self, key: str) -> Body:
        """The object, all at once."""
        return self._around("get", key, lambda: self._remote.get(key))

    def get_if_changed(self, key: str, fingerprint: str) -> Body | None:
        """The object, or None when it still has this fingerprint."""
        return self._around("get_if_changed", key, lambda: self._remote.get_if_changed(key, fingerprint))

    def get_stream(self, key: str) -> Stream:
        """The object in pieces."""
        return self._around("get_stream", key, lambda: self._remote.get_stream(key))

    def head(self, key: str) -> Stat:
        """What is known of the object."""
        return self._around("head", key, lambda: self._remote.head(key))

    def put(self, key: str, data: bytes) -> Stored:
        """Store an object, replacing what is there."""
        return self._around("put", key, lambda: self._remote.put(key, data))

    def put_if(
        self, key: str, data: bytes, condition: Condition, *, token: str | None = None
    ) -> Stored | Refused | Unknown:
        """Store an object if the condition holds."""
        return self._around("put_if", key, lambda: self._remote.put_if(key, data, condition, token=token))

    def put_stream(self, key: str, open_chunks: Callable[[], Iterable[bytes]]) -> Stored:
        """Store an object from pieces."""
        return self._around("put_stream", key, lambda: self._remote.put_stream(key, open_chunks))

    def put_stream_if(
        self, key: str, open_chunks: Callable[[], Iterable[bytes]], condition: Condition
    ) -> Stored | Refused | Unknown:
        """Store an object from pieces if the condition holds when the last one is there."""
        return self._around("put_stream_if", key, lambda: self._remote.put_stream_if(key, open_chunks, condition))

    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is fine."""
        self._around("delete", key, lambda: self._remote.delete(key))

    def delete_if(self, key: str, fingerprint: str) -> Removed | Refused | Unknown:
        """Remove the object only if it has this fingerprint."""
        return self._around("delete_if", key, lambda: self._remote.delete_if(key, fingerprint))

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Stat]:
        """The objects below a prefix, by ascending key."""
        return self._remote.list(prefix, after=after)

    def list_level(self, prefix: str = "") -> Level:
        """One level of the listing."""
        return self._around("list_level", prefix, lambda: self._remote.list_level(prefix))

    def copy(self, source: str, target: str) -> None:
        """Copy an object inside the store."""
        self._around("copy", source, lambda: self._remote.copy(source, target))

    def server_time_ms(self) -> float:
        """The store's clock."""
        return self._around("server_time_ms", "", self._remote.server_time_ms)
