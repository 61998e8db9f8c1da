"""Where locks live: what a store of locks must be able to do, be it a directory or a bucket.

Owns: the `LockPlace` protocol, and what goes in and out of it.
Must not know: what a body says, or when a lock is stale; it is given bytes and a judge.
Keeps: whatever is renewed, taken over, given back or removed is provably the lock that was created or found: no
call ever touches the lock of somebody who came in between.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from mire.model.lease import LockKey

Judge = Callable[[bytes, int], bool]
"""Told a lock's body and its age in milliseconds, says whether it may be taken or removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseText:
    """What a lock of ours says, as bytes: they are written without being understood."""

    body: bytes
    stamp_at: int
    stamp_end: int
    """Where the time of the last renewal stands: the only bytes a renewal changes."""
    token: str
    """Tells our write from everybody else's."""
    parting: bytes
    """What the lock says while it is given back where that takes two steps: a lease long enough for both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A lock as it was a moment ago; its age is by the store's own clock."""

    key: LockKey
    body: bytes
    age_ms: int
    fingerprint: str = ""
    """Tells this state of the lock from all others, on a remote."""
    modified_ms: int = 0
    """When it was stamped, by the clock of a remote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaves:
    """Directories without locks below: those that hold a mark, or a numbered directory with one of the parts."""

    marks: tuple[str, ...]
    parts: tuple[str, ...]


class Held(Protocol):
    """A lock that is ours, until it is lost or given back."""

    def is_current(self) -> bool:
        """Whether it is ours still, as far as can be told without writing."""

    def renew(self, stamp: bytes) -> bool:
        """Write the time into our body; False when the lock is no longer ours, an error when nobody can tell.

        `stamp` differs from every one before. True also means that nobody had the lock since the last time.
        """

    def release(self) -> bool:
        """Remove the lock if it is still ours; False when it is not. Releasing twice is fine."""


class LockPlace(Protocol):
    """A store of locks. Calls may be made from many threads; equal places are the same store."""

    @property
    def may_block(self) -> bool:
        """Whether a call waits for a network, so that one renewal may hold up another."""

    def create(self, key: LockKey, text: LeaseText) -> Held | None:
        """Create a lock with its whole body; None when there is one already."""

    def look(self, key: LockKey) -> Found | None:
        """The lock under a key, or None when there is none."""

    def refreshed(self, found: Found) -> Found:
        """The same lock with its age measured as well as can be, before something is decided by it."""

    def take_over(self, found: Found, text: LeaseText, judge: Judge) -> Held | None:
        """Replace a lock that `judge` condemns; None when it is gone, renewed, or someone else was first."""

    def remove(self, found: Found, judge: Judge, parting: bytes) -> bool:
        """Remove a lock that `judge` condemns; False when it is gone, changed or not condemned."""

    def find(self, root: str, name: str, leaves: Leaves) -> Iterator[LockKey]:
        """The locks called `name` at any depth below `root`; leaves need not be searched."""
