"""Where a push or pull works: the cache, our namespace of the remote, and the private state between them.

Owns: opening the three together, and the keys of the index.
Must not know: what is synced.
Keeps: a key outside our namespace cannot be expressed here.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from mire.edge import files
from mire.edge.prefixed import Prefixed
from mire.edge.remote import Body, Remote
from mire.edge.state import State
from mire.edge.turn import open_turn
from mire.errors import ConfigError, NotFoundError
from mire.flow.datastore import Datastore
from mire.flow.mark import open_cache_state
from mire.model.names import SOLO
from mire.wire import shard as wire_shard
from mire.wire.meta import meta_key
from mire.wire.monolith import MONOLITH
from mire.wire.relpath import INDEX_DIR

__all__ = [
    "META",
    "MONOLITH",
    "SHARDS",
    "Place",
    "Same",
    "fetch",
    "open_place",
    "open_push_place",
    "partition_at",
    "shard_key",
    "staging_dir",
    "view_of",
]

_STAGING: Final = "mire-staging"
_TURN: Final = "mire-push.lock"
_WAIT_MS: Final = 60_000.0
SHARDS: Final = wire_shard.shard_prefix(SOLO)
META: Final = meta_key(SOLO)
"""Keys in our view of the remote, which has no namespace left to say."""


def shard_key(partition: str) -> str:
    """The object of a partition."""
    return wire_shard.shard_key(SOLO, partition)


def partition_at(key: str) -> str:
    """The partition whose object this is."""
    return key.removeprefix(SHARDS).removesuffix(wire_shard.SUFFIX)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One cache and its remote, opened."""

    ds: Datastore
    remote: Remote
    state: State


@contextmanager
def open_place(ds: Datastore) -> Iterator[Place]:
    """The cache of a datastore with its remote; a directory has none."""
    remote = view_of(ds)
    with open_cache_state(ds) as state:
        yield Place(ds=ds, remote=remote, state=state)


def staging_dir(place: Place) -> str:
    """Where files are kept on their way into the cache: on its file system, and where no client syncs."""
    directory = os.path.join(place.ds.base, INDEX_DIR, _STAGING)
    files.make_dirs(directory)
    return directory


@contextmanager
def open_push_place(ds: Datastore) -> Iterator[Place]:
    """The same for whoever pushes: one at a time, so that what is stored last is what was read from the cache last."""
    view_of(ds)
    turn = os.path.join(ds.base, INDEX_DIR, _TURN)
    with open_turn(turn, wait_ms=_WAIT_MS, what="another push of this cache is at work"), open_place(ds) as place:
        yield place


def view_of(ds: Datastore) -> Remote:
    """Our namespace of the remote."""
    if ds.remote is None:
        raise ConfigError(
            f"the datastore {ds.base} is a directory: nothing to push or pull; 'mire setup URL' names a remote",
            kind="no_remote",
        )
    return Prefixed(ds.remote, ds.config.namespace) if ds.config.namespace else ds.remote


@dataclass(frozen=True, slots=True)
class Same:
    """The object is the one whose fingerprint we know."""


def fetch(remote: Remote, key: str, known: str | None = None) -> Body | Same | None:
    """An object, None when there is none, `Same` when it still has the fingerprint we know."""
    try:
        body = remote.get(key) if known is None else remote.get_if_changed(key, known)
    except NotFoundError:
        return None
    return Same() if body is None else body
