"""Publishing the catalog of a namespace in a directory that several repositories share.

Owns: when a write is followed by a publication, and what that may cost.
Must not know: what is written, what others do with the rows.
Keeps: what is published is what the files say, whoever wrote them; one at a time publishes, so that the last one has
seen all that is there. A write never fails because of it.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from mire.edge import clock, files, staging, walk
from mire.edge.catalog import Broken
from mire.edge.tree import hash_file
from mire.edge.turn import open_turn
from mire.errors import MireError
from mire.flow.catalog import catalog_path, is_complete, meta_of, opened, set_meta
from mire.flow.datastore import Datastore
from mire.flow.rowtexts import all_texts
from mire.model.names import PRIVATE_PREFIX
from mire.plan.publish import is_due
from mire.wire.export import EXPORT
from mire.wire.exporttext import listed
from mire.wire.layout import DATA

_TURN: Final = f"{PRIVATE_PREFIX}-mire-publish.lock"
_PUT_OFF: Final = "publish_put_off"
_WAIT_MS: Final = 60_000.0
_WAIT_AFTER_WRITE_MS: Final = 2_000.0
_SMALL_ENTRIES: Final = 2_000
"""Directories of a store that is read whole after a write, if nobody ever read it: about half a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A publication: how many rows others can see now, and whether that is news."""

    rows: int
    is_changed: bool


def is_shown(ds: Datastore) -> bool:
    """Whether this datastore is a namespace in a directory, and shows its catalog there."""
    return ds.remote is None and bool(ds.config.namespace) and ds.config.publishes_catalog


@contextmanager
def publishing(ds: Datastore) -> Iterator[None]:
    """A block that changes data; what others see of it follows, at once or, where that is costly, soon."""
    yield
    # The change itself is done: the next write, or `mire catalog publish`, makes up for what fails here.
    is_done = False
    with suppress(MireError, OSError, Broken):
        if _is_due(ds):
            publish_directory(ds, wait_ms=_WAIT_AFTER_WRITE_MS)
            is_done = True
    with suppress(MireError, OSError, Broken):
        if not is_done:
            _put_off(ds)


def publish_directory(ds: Datastore, *, wait_ms: float = _WAIT_MS) -> Shown:
    """Let others see what is there now; a catalog that would be the same is not written."""
    path, began_ms = os.path.join(ds.tier, EXPORT), clock.monotonic_ms()
    count = 0

    def texts() -> Iterator[bytes]:
        nonlocal count
        for _, rows in all_texts(ds):
            count += len(rows)
            yield from rows

    files.make_dirs(ds.tier)
    with open_turn(os.path.join(ds.tier, _TURN), wait_ms=wait_ms, what="another publication is at work"):
        temporary, written = staging.stage(ds.tier, listed(texts()))
        try:
            is_same = files.size_of(path) == written.size_bytes and hash_file(path).sha256 == written.sha256
            if not is_same:
                files.move_file(temporary, path)
        finally:
            staging.discard(temporary)
    with opened(ds) as catalog, catalog.transaction():
        set_meta(catalog, "published_ms", str(clock.now_ns() / 1e6))
        set_meta(catalog, "publish_cost_ms", str(clock.monotonic_ms() - began_ms))
        set_meta(catalog, _PUT_OFF, "")
    return Shown(rows=count, is_changed=not is_same)


def is_put_off(ds: Datastore) -> bool:
    """Whether a write of this repository is not shown yet; nothing is made for the answer."""
    if not os.path.isfile(catalog_path(ds)):
        return False
    with opened(ds) as catalog:
        return bool(meta_of(catalog, _PUT_OFF))


def withdraw(ds: Datastore) -> bool:
    """Show nothing any more, because the namespace is left, or nothing is published any more; whether something was."""
    was_there = os.path.lexists(os.path.join(ds.tier, EXPORT))
    for name in (EXPORT, _TURN):
        files.remove_file(os.path.join(ds.tier, name))
    return was_there


def _put_off(ds: Datastore) -> None:
    with opened(ds) as catalog:
        if not meta_of(catalog, _PUT_OFF):
            with catalog.transaction():
                set_meta(catalog, _PUT_OFF, "yes")


def _is_due(ds: Datastore) -> bool:
    with opened(ds) as catalog:
        if is_complete(ds, catalog):
            cost_ms = float(meta_of(catalog, "publish_cost_ms") or 0)
            return is_due(cost_ms, clock.now_ns() / 1e6 - float(meta_of(catalog, "published_ms") or 0))
    return walk.is_small(os.path.join(ds.tier, DATA), _SMALL_ENTRIES)
