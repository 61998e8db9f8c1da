"""The state of a cache: what waits to be pushed, what is not here, how old everything is.

Owns: the numbers of `mire status` about a cache, and those that only the remote can tell.
Must not know: how they are shown.
Keeps: without being told to, the remote is not asked; nothing is changed.
"""

import os
from dataclasses import dataclass

from mire.edge.tree import Tree
from mire.flow.age import pulled_ms
from mire.flow.datastore import Datastore
from mire.flow.exchange import pull_now, push_now
from mire.flow.kept import list_kept
from mire.flow.lock import inspect_locks
from mire.flow.mark import open_cache_state, pending_marks
from mire.flow.place import view_of
from mire.wire.relpath import is_internal


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStatus:
    """What a cache knows by itself."""

    remote: str
    path: str
    files: int
    size_bytes: int
    dirty: tuple[str, ...]
    """Marked paths, relative to the cache."""
    is_bulk: bool
    """Whether everything has to be looked at, because nobody recorded what changed."""
    unhydrated: int
    unhydrated_bytes: int
    kept: tuple[str, ...]
    """Versions that lost, or wait for, a decision between two, as files beside the cache."""
    generation: int | None
    commit_seq: int | None
    pulled_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteStatus:
    """What only the remote can tell."""

    ahead: int
    """Files that a push would send or remove."""
    behind: int
    """Files that a pull would bring or remove."""
    conflicts: int
    locks: int


def look_at_cache(ds: Datastore) -> CacheStatus:
    """The numbers of a cache, without asking its remote."""
    pending = pending_marks(ds)
    with open_cache_state(ds) as state:
        missing = [row.size_bytes for row in state.unhydrated()]
        generation, seq = state.fact("generation"), state.fact("commit_seq")
    # What no client syncs, our own state among it, is none of the data.
    sizes = [size for _, (_, _, size, _) in Tree(ds.tier, is_internal).files()] if os.path.isdir(ds.tier) else []
    return CacheStatus(
        remote=view_of(ds).properties.name,
        path=ds.base,
        files=len(sizes),
        size_bytes=sum(sizes),
        dirty=tuple(mark.path for mark in pending.records),
        is_bulk=pending.is_bulk or not pending.is_known,
        unhydrated=len(missing),
        unhydrated_bytes=sum(missing),
        kept=tuple(each.path for each in list_kept(ds)),
        generation=None if generation is None else int(generation),
        commit_seq=int(seq) if seq is not None and generation == "2" else None,
        pulled_ms=pulled_ms(ds),
    )


def look_at_remote(ds: Datastore) -> RemoteStatus:
    """What a push and a pull would do now, and which locks there are."""
    pushed, pulled = push_now(ds, dry_run=True), pull_now(ds, dry_run=True)
    both = {conflict.rel for conflict in (*pushed.conflicts, *pulled.conflicts)}
    return RemoteStatus(
        ahead=pushed.count, behind=pulled.count + pulled.left_out, conflicts=len(both), locks=len(inspect_locks(ds))
    )
