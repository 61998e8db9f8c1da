"""Push, pull and hydrate as somebody asks for them: with the gate, a deadline, and the lock around a commit.

Owns: what stands around the core of a sync when no other work does.
Must not know: what is changed, how it is shown.
Keeps: nothing is published past a format marker that forbids it; a push that has nothing to publish asks nothing; other
programs that take the global lock to commit do not meet ours.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from mire.errors import DeniedError, InputError, RemoteError, shown
from mire.flow.acquire import Deadline, acquire
from mire.flow.backend import reach
from mire.flow.datastore import Datastore
from mire.flow.locked import Hold, Lock
from mire.flow.mark import pending_marks
from mire.flow.place import open_place, view_of
from mire.flow.publish import has_due
from mire.flow.pull import Pulled, bring_content, pull
from mire.flow.push import Pushed, push
from mire.flow.sync import is_offline
from mire.flow.within import Watch, within_timeout
from mire.model.artifact import ModelRef
from mire.model.lease import TTL_MS
from mire.model.names import RelPath, parse_model_id, parse_model_type
from mire.plan.lock import GLOBAL_BACKOFF_MS
from mire.wire.control import control_prefix
from mire.wire.layout import global_locks, model_dir


def push_now(
    ds: Datastore, *, full: bool = False, ours: bool = False, dry_run: bool = False, watch: Watch | None = None
) -> Pushed:
    """Publish what is marked; the global lock is held around the commit only."""
    view_of(ds)
    if not full and pending_marks(ds).is_clean and not has_due(ds):
        return Pushed(is_dry_run=dry_run)
    bound = within_timeout(ds, watch)
    with ExitStack() as stack:
        try:
            if not dry_run:
                check_gate(ds)
            return push(bound, full=full, ours=ours, dry_run=dry_run, guard=lambda: _lock(ds, stack))
        except RemoteError as error:
            raise _waiting(error) from error


def pull_now(
    ds: Datastore,
    *,
    models: Sequence[ModelRef] = (),
    full: bool = False,
    theirs: bool = False,
    dry_run: bool = False,
    watch: Watch | None = None,
) -> Pulled:
    """Bring the cache in step, wholly or for some models; nothing is written at the remote."""
    view_of(ds)
    check_format(ds)
    return pull(within_timeout(ds, watch), models=models, full=full, theirs=theirs, dry_run=dry_run)


def bring(ds: Datastore, rels: Sequence[RelPath], *, dry_run: bool = False, watch: Watch | None = None) -> Pulled:
    """Bring the content of some paths that is not here."""
    done = Pulled(is_dry_run=dry_run)
    with open_place(within_timeout(ds, watch)) as place:
        bring_content(place, rels, done)
    return done


def not_here(ds: Datastore, models: Sequence[ModelRef] = ()) -> list[tuple[RelPath, int]]:
    """What both sides agreed on and is not here, never brought or lost since, with its size; all, or of some models."""
    with open_place(ds) as place:
        below = [row for model in models for row in place.state.base_below(model_dir(model))]
        rows = below if models else place.state.all_base()
        return [(RelPath(row.rel), row.size_bytes) for row in rows if not os.path.lexists(_path(ds, row.rel))]


def model_named(text: str) -> ModelRef:
    """A model from `TYPE/ID`."""
    kind, slash, model_id = text.rpartition("/")
    if not slash:
        raise InputError(f"model {shown(text)} is not TYPE/ID: the last '/' separates type and id", kind="bad_name")
    return ModelRef(model_type=parse_model_type(kind), model_id=parse_model_id(model_id))


def check_format(ds: Datastore) -> None:
    """Refuse a store of a newer format even to who only reads; what must not be written may still be read."""
    if ds.lifecycle is not None:
        ds.lifecycle.gate()


def check_gate(ds: Datastore, *, is_settling: bool = False) -> None:
    """Refuse to write where the format marker says so, or cannot be read, and in the middle of a migration.

    `is_settling`: by who finishes that migration.
    """
    if ds.lifecycle is None or ds.remote is None:
        return
    reason = ds.lifecycle.gate()
    if reason is None:
        if not is_settling:
            ds.lifecycle.check_settled()
        return
    reach(ds.remote, control_prefix(ds.config.namespace))  # who cannot be reached, or lets nobody in, says so better
    raise DeniedError(reason, kind="read_only")


def _path(ds: Datastore, rel: str) -> str:
    return os.path.join(ds.tier, rel)


def _lock(ds: Datastore, stack: ExitStack) -> None:
    """Take the global lock until the stack ends; writers of models are not waited for: their commits and ours merge."""
    deadline = Deadline(ds.config.lock_timeout_ms)
    Hold(list(_locks(ds, deadline, stack))).check()


def _locks(ds: Datastore, deadline: Deadline, stack: ExitStack) -> Iterator[Lock]:
    for key in global_locks(ds.config.namespace):
        yield from acquire(ds, key, deadline, GLOBAL_BACKOFF_MS, TTL_MS, stack)


def _waiting(error: RemoteError) -> RemoteError:
    """The error with what becomes of the changes, when the way to the remote is what failed."""
    if not is_offline(error):
        return error
    return RemoteError(
        f"{error.message}; nothing is lost: what changed stays marked, push again later",
        transient=True,
        kind=error.kind,
    )
