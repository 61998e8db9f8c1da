"""Pushing: what changed in the cache becomes visible to others.

Owns: the order prepare, commit, delete, acknowledge, and starting over when somebody was faster.
Must not know: the form of the index, how a path is decided about.
Keeps: a mark goes only when its change was really committed; objects are stored before the index names them, and leave
the index before they leave the store; a failed push leaves every mark.
"""

from collections.abc import Callable
from typing import Final

from mire.errors import RemoteError, shown
from mire.flow.commit import commit
from mire.flow.conflict import Conflict
from mire.flow.datastore import Datastore
from mire.flow.deleted import record_deleted
from mire.flow.local import agreed_row
from mire.flow.mark import acknowledge
from mire.flow.place import Place, open_push_place
from mire.flow.prepare import Prepared, Pushed, prepare
from mire.flow.publish import PUBLISHED, is_published, leave_for_later, record_due
from mire.flow.said import forget_said, record_said
from mire.flow.send import delete, forget_intents, intend
from mire.model.names import RelPath
from mire.plan.commit import Changes

__all__ = ["Prepared", "Pushed", "commit_push", "prepare_push", "push"]

_ROUNDS: Final = 3
"""Times a push is planned anew because somebody changed the same paths meanwhile."""


def push(
    ds: Datastore,
    *,
    full: bool = False,
    ours: bool = False,
    dry_run: bool = False,
    guard: Callable[[], None] = lambda: None,
) -> Pushed:
    """Publish what is marked (`full`: whatever differs); `ours` lets us win where both sides changed.

    `guard` is asked right before a commit, and raises when we may no longer write.
    """
    done = Pushed(is_dry_run=dry_run)
    with open_push_place(ds) as place:
        prepared = prepare(place, done, full=full, ours=ours)
        if prepared is not None and not dry_run:
            _finish(place, prepared, done, guard)
    return done


def prepare_push(ds: Datastore, *, full: bool = False, ours: bool = False) -> tuple[Prepared | None, Pushed]:
    """The first half: look, plan and upload. Nothing is visible to others yet, and no mark is gone."""
    done = Pushed()
    with open_push_place(ds) as place:
        return prepare(place, done, full=full, ours=ours), done


def commit_push(
    ds: Datastore, prepared: Prepared | None, done: Pushed, *, guard: Callable[[], None] = lambda: None
) -> Pushed:
    """The second half: publish what was prepared, however long ago; what changed meanwhile is not touched."""
    if prepared is not None:
        with open_push_place(ds) as place:
            _finish(place, prepared, done, guard)
    return done


def _finish(place: Place, prepared: Prepared, done: Pushed, guard: Callable[[], None]) -> None:
    """Commit; paths that somebody changed since they were decided about are looked at and decided about again."""
    lost: set[RelPath] = set()
    for _ in range(_ROUNDS):
        guard()
        _check_whole(place, prepared, done)
        told = len(done.findings)
        lost = _commit(place, prepared, done)
        if not lost:
            return
        done.conflicts, done.findings = [], done.findings[told:]
        again = prepare(place, done, full=prepared.is_full, ours=prepared.ours)
        if again is None:
            return
        prepared = again
    if PUBLISHED in lost and is_published(place.ds, PUBLISHED):
        leave_for_later(place)
        lost.remove(PUBLISHED)
    done.conflicts += [Conflict(rel=rel, why="changed there again and again while it was pushed") for rel in lost]


def _check_whole(place: Place, prepared: Prepared, done: Pushed) -> None:
    """Refuse to publish a part of what belongs together."""
    if place.ds.sync.is_atomic and prepared.left:
        first = next(iter([*done.findings, *(f"{shown(each.rel)} {each.why}" for each in done.conflicts)]), "")
        raise RemoteError(
            f"{len(prepared.left)} files could not be stored, so nothing is published: {first}",
            transient=True,
            kind="not_whole",
        )


def _commit(place: Place, prepared: Prepared, done: Pushed) -> set[RelPath]:
    """Publish what was prepared; the paths that have another value in the index by now."""
    changes = Changes(
        upserts={rel: sent.entry for rel, sent in prepared.sent.items()},
        removals=frozenset(rel for rel in prepared.removals if prepared.expected[rel] is not None),
        expected=prepared.expected,
    )
    lost: set[RelPath] = set()
    intend(place, prepared.objects)
    record_said(place, changes.removals)
    if prepared.reading is not None:
        gone = prepared.removals - changes.removals
        found = [*gone, *(RelPath(row.rel) for row in prepared.agreed)]
        is_sharded = place.ds.sync.is_sharded
        lost = set(commit(place, changes, prepared.reading, found=found, is_fresh_sharded=is_sharded).lost)
    for rel in lost:
        prepared.unsettle(place.ds, rel)
    done.uploaded += sorted(prepared.sent.keys() - lost)
    done.removed += sorted(changes.removals - lost)
    for rel in delete(place, {rel: stat for rel, stat in prepared.objects.items() if rel not in lost}):
        done.findings.append(f"the object of {shown(rel)} was left in the store: somebody stored it anew")
    _agree(place, prepared, lost)
    return lost


def _agree(place: Place, prepared: Prepared, lost: set[RelPath]) -> None:
    published = prepared.sent.keys() - lost
    # By path, as the state keeps them: in the order in which they were stored it takes twice as long.
    rows = (
        agreed_row(rel, sent.entry, sent.identity, looked_ns=sent.looked_ns)
        for rel, sent in sorted(prepared.sent.items(), key=lambda each: each[0])
        if rel in published
    )
    place.state.agree([*rows, *prepared.agreed])
    place.state.forget(prepared.removals - lost)
    record_deleted(place, {rel: prepared.expected[rel] for rel in prepared.removals if rel not in lost})
    forget_intents(place, prepared.objects)
    forget_said(place, sorted(prepared.sent), [*prepared.removals, *(RelPath(row.rel) for row in prepared.agreed)])
    place.state.identify((local.rel, local.file, prepared.looked_ns) for local in prepared.same)
    if PUBLISHED in published:
        record_due(place, frozenset())
    acknowledge(place.ds, prepared.pending, prepared.settled, is_bulk=prepared.is_bulk)
