"""A lease: the record that says who holds a lock, and what makes a lock stale.

Owns: `Lease`, `Host` (who we are), `LockKey` (which lock), `Sighting` (a lock file as found).
Must not know: JSON, files, the clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NewType

from mire.model.instant import Instant

LockKey = NewType("LockKey", str)
"""A lock's path relative to the datastore's base; the same text names it on every backend."""

TTL_MS: Final = 30_000
"""The reference's time to live; a holder renews every third of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Who is locking. A pid means something only together with its hostname."""

    hostname: str
    pid: int
    user: str
    space: str = ""
    """Eight hex digits for where the pid counts (this boot, this pid namespace); empty: not known."""

    @property
    def holder(self) -> str:
        """The text other programs show as the holder."""
        return f"{self.user}@{self.hostname}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The body of a lock. `acquired_at` is rewritten at every renewal, so it means "last renewed"."""

    holder: str
    hostname: str
    pid: int
    acquired_at: Instant
    ttl_ms: int
    nonce: str | None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A lock file as found: its lease (None when empty or garbled) and its age by the store's own clock."""

    lease: Lease | None
    age_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ancestry:
    """Locks held by the processes we descend from: waiting for them would be waiting for ourselves."""

    pids: frozenset[int] = frozenset()
    nonces: frozenset[str] = frozenset()
