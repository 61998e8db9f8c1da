"""A remote: keys and bytes in somebody's store, with the conditions that make sharing it safe.

Owns: the `Remote` protocol, what a remote declares about itself, and the results of its calls.
Must not know: what the bytes mean, which keys exist, how often to try again.
Keeps: a conditional write has three outcomes, yes, no and unknown; unknown is a value, never a guess. A missing
object is `NotFoundError`; nothing else is.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from mire.errors import RemoteError


@dataclass(frozen=True, slots=True, kw_only=True)
class Properties:
    """What a remote can do; callers ask here, never for the kind of store."""

    name: str
    """The store as messages show it, for example `s3://bucket/prefix`; without secrets."""
    conditional_put: bool
    """Whether `put_if` with `Matches` is enforced by the store."""
    conditional_delete: bool
    """Whether `delete_if` is enforced by the store."""
    content_fingerprint: bool
    """Whether equal bytes have equal fingerprints (an ETag), or every write makes a new one (a generation)."""
    is_shared: bool = True
    """Whether other processes see it: false for memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat:
    """An object without its bytes; `modified_ms` is by the store's clock."""

    key: str
    size_bytes: int
    fingerprint: str
    modified_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """An object with its bytes; `token` is the one its writer gave to `put_if`, where the store keeps such."""

    stat: Stat
    data: bytes
    token: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """An object whose bytes arrive in pieces; they are what was stored under the stat's fingerprint."""

    stat: Stat
    chunks: Iterator[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One level of a listing: the objects at it, and the prefixes (with their final '/') below it."""

    prefixes: tuple[str, ...]
    objects: tuple[Stat, ...]


@dataclass(frozen=True, slots=True)
class Absent:
    """Write only where there is no object."""


@dataclass(frozen=True, slots=True)
class Matches:
    """Write only over the object with this fingerprint."""

    fingerprint: str


Condition = Absent | Matches


@dataclass(frozen=True, slots=True)
class Stored:
    """Yes: the bytes are there, under this fingerprint."""

    fingerprint: str


@dataclass(frozen=True, slots=True)
class Removed:
    """Yes: the object is gone."""


@dataclass(frozen=True, slots=True)
class Refused:
    """No: the condition did not hold; nothing was changed by us."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The answer was lost: it may or may not have happened."""

    error: RemoteError


class Remote(Protocol):
    """A store of objects. Calls are synchronous and may be made from many threads."""

    @property
    def properties(self) -> Properties:
        """What this remote can do."""

    def get(self, key: str) -> Body:
        """The object, all at once; `NotFoundError` when there is none."""

    def get_if_changed(self, key: str, fingerprint: str) -> Body | None:
        """The object, or None when it still has this fingerprint."""

    def get_stream(self, key: str) -> Stream:
        """The object in pieces, for what may be large."""

    def head(self, key: str) -> Stat:
        """What is known of the object; `NotFoundError` when there is none."""

    def put(self, key: str, data: bytes) -> Stored:
        """Store an object, replacing what is there."""

    def put_if(
        self, key: str, data: bytes, condition: Condition, *, token: str | None = None
    ) -> Stored | Refused | Unknown:
        """Store an object if the condition holds; `token` is kept with it so that a lost answer can be settled."""

    def put_stream(self, key: str, open_chunks: Callable[[], Iterable[bytes]]) -> Stored:
        """Store an object from pieces, in parts when it is large; `open_chunks` starts them anew for another try."""

    def put_stream_if(
        self, key: str, open_chunks: Callable[[], Iterable[bytes]], condition: Condition
    ) -> Stored | Refused | Unknown:
        """Store an object from pieces if the condition holds when the last one is there."""

    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is fine."""

    def delete_if(self, key: str, fingerprint: str) -> Removed | Refused | Unknown:
        """Remove the object only if it has this fingerprint; one that is not there is `Removed`."""

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Stat]:
        """The objects below a prefix (empty, or ending in '/'), by ascending key, those after `after` only."""

    def list_level(self, prefix: str = "") -> Level:
        """One level of the listing, without entering what is below."""

    def copy(self, source: str, target: str) -> None:
        """Copy an object inside the store, replacing what is there."""

    def server_time_ms(self) -> float:
        """The store's clock, in milliseconds since 1970."""
