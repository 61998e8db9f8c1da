"""Pushing: what changed in the cache becomes visible to others.

Owns: the order look, plan, upload, commit, delete, acknowledge; and the report.
Must not know: the form of the index.
Keeps: a mark goes only when its change was really committed; objects are stored before the index names them, and leave
the index before they leave the store; a copy that did not change here is never sent; a failed push leaves every mark.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from mire.edge.remote import Stat
from mire.edge.tree import hash_file
from mire.errors import MireError, NotFoundError, shown
from mire.flow.change import Local, Look, open_look, path_in_cache, resolved
from mire.flow.commit import commit
from mire.flow.conflict import Conflict, keep_theirs, why_of
from mire.flow.datastore import Datastore
from mire.flow.local import agreed_row, entry_of, tier_path
from mire.flow.mark import acknowledge, mark_all, pending_marks
from mire.flow.place import Place, open_push_place
from mire.flow.reading import Reading, missed_move, read_for
from mire.flow.send import delete, forget_intents, intend, intended, look_at, send
from mire.flow.startover import forget_remote
from mire.flow.transfer import Sent
from mire.flow.unsettled import keep_unsettled
from mire.model.base import BaseRow
from mire.model.index import Entry
from mire.model.mark import Pending
from mire.model.names import RelPath
from mire.plan.commit import Changes
from mire.plan.mark import tops_of
from mire.plan.threeway import Here, Value, plan_push_of
from mire.wire.partition import partition_of

_ROUNDS: Final = 3
"""Times a push is planned anew because somebody changed the same paths meanwhile."""


@dataclass(slots=True, kw_only=True)
class Pushed:
    """What a push did, or would do."""

    uploaded: list[RelPath] = field(default_factory=list)
    removed: list[RelPath] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    resolved: list[Conflict] = field(default_factory=list)
    """Conflicts that we won, with the place where the remote's version is kept."""
    findings: list[str] = field(default_factory=list)
    is_dry_run: bool = False

    @property
    def count(self) -> int:
        """Files that were sent, and files whose removal was published."""
        return len(self.uploaded) + len(self.removed)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left to push."""
        return not self.conflicts and not self.findings


@dataclass(slots=True, kw_only=True)
class Prepared:
    """What the first half of a push leaves to the second: objects that are stored, and what to say about them."""

    pending: Pending
    settled: set[str] = field(default_factory=set)
    """Marks of which everything was dealt with."""
    is_bulk: bool = False
    """Whether everything was looked at and dealt with."""
    is_full: bool = False
    ours: bool = False
    looked_ns: int = 0
    same: list[Local] = field(default_factory=list)
    reading: Reading | None = None
    expected: dict[RelPath, Entry | None] = field(default_factory=dict)
    """What the index said of each path when it was decided about."""
    sent: dict[RelPath, Sent] = field(default_factory=dict)
    removals: set[RelPath] = field(default_factory=set)
    objects: dict[RelPath, Stat] = field(default_factory=dict)
    """What is to be deleted after the commit, as it was when that was decided."""
    agreed: list[BaseRow] = field(default_factory=list)

    def unsettle(self, ds: Datastore, rel: RelPath) -> None:
        """Keep the marks of a path that was not dealt with."""
        self.settled.difference_update(tops_of(path_in_cache(ds, rel)))
        self.is_bulk = False


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
        prepared = _prepare(place, done, full=full, ours=ours)
        if prepared is not None and not dry_run:
            _finish(place, prepared, done, guard)
    return done


def prepare_push(ds: Datastore, *, full: bool = False, ours: bool = False) -> tuple[Prepared | None, Pushed]:
    """The first half: look, plan and upload. Nothing is visible to others yet, and no mark is gone."""
    done = Pushed()
    with open_push_place(ds) as place:
        return _prepare(place, done, full=full, ours=ours), done


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
        told = len(done.findings)
        lost = _commit(place, prepared, done)
        if not lost:
            return
        done.conflicts, done.findings = [], done.findings[told:]
        again = _prepare(place, done, full=prepared.is_full, ours=prepared.ours)
        if again is None:
            return
        prepared = again
    done.conflicts += [Conflict(rel=rel, why="changed there again and again while it was pushed") for rel in lost]


def _prepare(place: Place, done: Pushed, *, full: bool, ours: bool) -> Prepared | None:
    prepared = _planned(place, done, full=full, ours=ours)
    if prepared is None or done.is_whole or not missed_move(place, prepared.reading):
        return prepared
    # What stands against us was decided on an index that no longer counts.
    done.conflicts, done.findings = [], []
    return _planned(place, done, full=full, ours=ours)


def _planned(place: Place, done: Pushed, *, full: bool, ours: bool) -> Prepared | None:
    pending = pending_marks(place.ds)
    if pending.is_clean and not full:
        return None
    is_full = full or pending.is_bulk or not pending.is_known
    with open_look(place.ds, pending, is_full=is_full) as look:
        prepared = Prepared(pending=pending, is_full=full, ours=ours, looked_ns=look.looked_ns)
        failed: list[tuple[RelPath, str]] = []
        found = list(_candidates(place, look, done, failed))
        prepared.settled, prepared.is_bulk = set(look.settled()), look.is_complete
        done.findings += [trouble.message for trouble in look.troubles]
    for rel, why in failed:
        _leave(place, prepared, done, rel, why)
    prepared.same = [local for local in found if local.here == "same"]
    changed = [local for local in found if local.here != "same"]
    if not changed:
        return prepared
    rels = [RelPath(local.rel) for local in changed]
    prepared.reading = read_for(place, rels, is_fresh_sharded=place.ds.sync.is_sharded)
    if prepared.reading.is_new and next(place.state.all_base(), None) is not None and not done.is_dry_run:
        # Nothing was agreed with a store that knows nothing: everything here is offered again.
        mark_all(place.ds)
        forget_remote(place.state)
        return _planned(place, done, full=full, ours=ours)
    uploads = [local for local in changed if _decide(place, local, prepared, done)]
    if done.conflicts and not done.is_dry_run:
        keep_unsettled(place.state, [conflict.rel for conflict in done.conflicts])
    if done.is_dry_run:
        done.uploaded += [RelPath(local.rel) for local in uploads]
        done.removed += sorted(prepared.removals)
        return prepared
    for rel, result in send(place, {RelPath(each.rel): prepared.expected[RelPath(each.rel)] for each in uploads}):
        if isinstance(result, Sent):
            prepared.sent[rel] = result
        else:
            _leave(place, prepared, done, rel, result.message)
    going = {rel: entry for rel in prepared.removals if (entry := prepared.expected[rel]) is not None}
    prepared.objects |= look_at(place, going)
    return prepared


def _candidates(place: Place, look: Look, done: Pushed, failed: list[tuple[RelPath, str]]) -> Iterator[Local]:
    """What may differ from the base; what cannot be read, or listed in any index, is told."""
    for local in look:
        if local.here == "missing":
            continue
        if local.here == "same":
            # A file that was looked at in vain is remembered as it is now, so that it is not read again.
            if local.is_marked:
                yield local
        elif partition_of(local.rel) is None:
            done.findings.append(f"{shown(local.rel)} is in no place that an index can list: move it; it is not pushed")
        else:
            try:
                yield resolved(place.ds, local)
            except MireError as error:
                failed.append((RelPath(local.rel), error.message))


def _decide(place: Place, local: Local, prepared: Prepared, done: Pushed) -> bool:
    """Decide about one path; whether its file is to be sent."""
    rel = RelPath(local.rel)
    here: Here = "removed" if local.here == "removed" else "changed"
    base = None if local.base is None else entry_of(local.base)
    try:
        remote = prepared.reading.entry(rel) if prepared.reading is not None else None
        value = _value_of(place, local) if here == "changed" and remote is not None else None
        action = plan_push_of(here, base, remote, value)
        if action == "conflict" and prepared.ours:
            done.resolved.append(Conflict(rel=rel, why=why_of(here, remote), theirs=_kept(place, rel, remote)))
            action = "upload" if here == "changed" else "remove"
    except MireError as error:
        _leave(place, prepared, done, rel, error.message)
        return False
    prepared.expected[rel] = remote
    match action:
        case "remove":
            prepared.removals.add(rel)
        case "forget":
            prepared.removals.add(rel)
            if not done.is_dry_run and intended(place, rel):
                prepared.objects[rel] = place.remote.head(rel)
        case "agree":
            assert remote is not None  # noqa: S101 - by the plan
            prepared.agreed.append(agreed_row(rel, remote, local.file, looked_ns=prepared.looked_ns))
        case "conflict":
            done.conflicts.append(Conflict(rel=rel, why=why_of(here, remote)))
            prepared.unsettle(place.ds, rel)
        case "upload" | "nothing":
            pass
    return action == "upload"


def _kept(place: Place, rel: RelPath, remote: Entry | None) -> str | None:
    try:
        return None if remote is None else keep_theirs(place, rel, remote).path
    except NotFoundError:
        return None  # the index names it, but there is nothing to keep


def _value_of(place: Place, local: Local) -> Value:
    if local.sha256 is not None and local.file is not None:
        return Value(size_bytes=local.file.size_bytes, sha256=local.sha256)
    found = hash_file(tier_path(place.ds, RelPath(local.rel)))
    return Value(size_bytes=found.file.size_bytes, sha256=found.sha256)


def _leave(place: Place, prepared: Prepared, done: Pushed, rel: RelPath, why: str) -> None:
    done.findings.append(f"{shown(rel)} is not pushed: {why}")
    prepared.unsettle(place.ds, rel)


def _commit(place: Place, prepared: Prepared, done: Pushed) -> set[RelPath]:
    """Publish what was prepared; the paths that have another value in the index by now."""
    changes = Changes(
        upserts={rel: sent.entry for rel, sent in prepared.sent.items()},
        removals=frozenset(rel for rel in prepared.removals if prepared.expected[rel] is not None),
        expected=prepared.expected,
    )
    lost: set[RelPath] = set()
    intend(place, prepared.objects)
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


def _agree(place: Place, prepared: Prepared, lost: Iterable[RelPath]) -> None:
    published = prepared.sent.keys() - set(lost)
    rows = (
        agreed_row(rel, sent.entry, sent.identity, looked_ns=sent.looked_ns)
        for rel, sent in prepared.sent.items()
        if rel in published
    )
    place.state.agree([*rows, *prepared.agreed])
    place.state.forget(prepared.removals - set(lost))
    forget_intents(place, prepared.objects)
    place.state.identify((local.rel, local.file, prepared.looked_ns) for local in prepared.same)
    acknowledge(place.ds, prepared.pending, prepared.settled, is_bulk=prepared.is_bulk)
