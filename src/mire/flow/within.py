"""A datastore whose remote has only so much time for one sync.

Owns: the error that says what to do when the time is up.
Must not know: what is synced.
Keeps: locks are not bound by it: they are given back however late it is.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from mire.edge.remote import Remote
from mire.edge.retrying import Retrying
from mire.edge.timed import Timed
from mire.edge.watched import Watched
from mire.errors import RemoteError
from mire.flow.datastore import Datastore
from mire.model.config import SYNC_ENDLESS_MS

Watch = Callable[[int], None]
"""Told the number of objects moved so far."""


def within_timeout(ds: Datastore, watch: Watch | None = None) -> Datastore:
    """The datastore, its remote refusing requests once the sync timeout has passed from now on."""
    remote = ds.remote
    if remote is None:
        return ds
    name, given_ms = remote.properties.name, ds.config.sync_timeout_ms
    budget_ms = math.inf if given_ms >= SYNC_ENDLESS_MS else given_ms

    def late() -> RemoteError:
        return RemoteError(
            f"syncing with {name} took longer than {budget_ms / 1000:g} s and was stopped: nothing is lost, and what is"
            " not published stays marked; allow more with --timeout SECONDS, sync less with --model TYPE/ID, or see"
            " with 'mire doctor' whether the store is well",
            kind="sync_timeout",
        )

    def timed(inside: Remote) -> Remote:
        return Timed(inside, budget_ms, late)

    def bound(each: Remote) -> Remote:
        # Inside of the patience every single try is bound; a store that hangs would else have five times its time.
        inside = each.with_inside(timed) if isinstance(each, Retrying) else timed(each)
        return inside if watch is None else Watched(inside, watch)

    if ds.carrier is not None:
        ds.carrier.limit(budget_ms, late)
    return replace(ds, remote=bound(remote), whole=None if ds.whole is None else bound(ds.whole))
