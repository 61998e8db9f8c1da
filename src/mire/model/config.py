"""Settings as values: where the datastore is, what belongs to it, how long to wait.

Owns: the resolved configuration.
Must not know: where a setting came from, beyond the word that says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mire.model.backend import PULL_CONCURRENCY, PUSH_CONCURRENCY, SHORT_CONCURRENCY
from mire.model.names import DATASTORE_SUBDIRS, SOLO, Namespace

LOCK_TIMEOUT_MS: Final = 60_000
SYNC_TIMEOUT_MS: Final = 300_000
SYNC_TIMEOUT_S_MAX: Final = 21_600
SYNC_ENDLESS_MS: Final = SYNC_TIMEOUT_S_MAX * 1000 + 1
"""More than anybody can ask for: a sync that takes as long as it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filesystem:
    """A directory: the default inside the repository, or a mounted share."""

    path: str
    is_default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """A datastore of another kind, by its type and configuration."""

    type: str
    config: Mapping[str, Any] = field(default_factory=dict)


Target = Filesystem | Extension


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncSettings:
    """How a cache and its remote are kept in step."""

    pull_concurrency: int | None = None
    push_concurrency: int | None = None
    """What is moved at the same time; None: nobody said."""
    is_lazy: bool = True
    """Whether content stays at the remote until it is asked for."""
    is_sharded: bool = False
    """Whether a store without an index gets the sharded form; the other one every client ever released can read."""
    is_monolith_kept: bool = False
    """Whether a sharded store also has a monolith, as a copy for programs that know nothing else."""
    is_publishing: bool = False
    """Whether a push in a namespace publishes the namespace's catalog."""
    is_patient: bool = False
    """Whether a large catalog may be published later: after a write, but not when somebody asks for a push."""
    is_atomic: bool = False
    """Whether a push publishes everything that is marked, or nothing."""
    writer: str | None = None
    """Who stores objects: the same one may replace at once what it did not live to publish; None: this cache."""

    def pulls_at_once(self, *, are_short: bool) -> int:
        """How many objects are brought or asked about at the same time; `are_short`: they are small."""
        return self.pull_concurrency or (SHORT_CONCURRENCY if are_short else PULL_CONCURRENCY)

    def pushes_at_once(self, *, are_short: bool) -> int:
        """How many objects are stored or removed at the same time."""
        return self.push_concurrency or (SHORT_CONCURRENCY if are_short else PUSH_CONCURRENCY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything an open datastore needs to know."""

    target: Target
    origin: str
    directories: tuple[str, ...] = DATASTORE_SUBDIRS
    exclude: tuple[str, ...] = ()
    namespace: Namespace = SOLO
    lock_timeout_ms: int = LOCK_TIMEOUT_MS
    sync_timeout_ms: int = SYNC_TIMEOUT_MS
    repo_id: str | None = None
    publishes_catalog: bool = True
    """Whether a namespace shows its catalog to others; without a namespace there is nobody to show it to."""
