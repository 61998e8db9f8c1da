"""Pushing: what changed in the cache becomes visible to others.

Owns: the order look, plan, upload, commit, delete, acknowledge; and the report.
Must not know: the form of the index.
Keeps: a mark goes only when its change was really committed; objects are stored before the index names them, and
leave the index before they leave the store; a copy that did not change here is never sent; a failed
push leaves every mark.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mire.edge import clock, pool
from mire.edge.remote import Refused, Removed, Stat, Unknown
from mire.edge.tree import hash_file
from mire.errors import MireError, NotFoundError, RemoteError, shown
from mire.flow.change import Local, Look, open_look, path_in_cache, resolved
from mire.flow.commit import commit
from mire.flow.datastore import Datastore
from mire.flow.local import agreed_row, entry_of, tier_path
from mire.flow.mark import acknowledge, pending_marks
from mire.flow.place import Place, open_place
from mire.flow.pull import Conflict
from mire.flow.reading import Reading, read_for
from mire.flow.transfer import Sent, upload
from mire.model.base import BaseRow
from mire.model.index import Entry
from mire.model.mark import Pending
from mire.model.names import RelPath
from mire.plan import threeway
from mire.plan.commit import Changes
from mire.plan.mark import tops_of
from mire.plan.threeway import Value, plan_push_of
from mire.wire.partition import partition_of


@dataclass(slots=True, kw_only=True)
class Pushed:
    """What a push did, or would do."""

    uploaded: list[RelPath] = field(default_factory=list)
    removed: list[RelPath] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
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
    settled: set[str]
    """Marks of which everything was dealt with."""
    is_bulk: bool
    """Whether everything was looked at and dealt with."""
    same: list[Local]
    reading: Reading | None = None
    sent: dict[RelPath, Sent] = field(default_factory=dict)
    removals: dict[RelPath, Stat | None] = field(default_factory=dict)
    """What is to go, with the object as it was when that was decided."""
    expected: dict[RelPath, Entry | None] = field(default_factory=dict)
    agreed: list[BaseRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One path that may have to be pushed."""

    rel: RelPath
    local: Local


def push(
    ds: Datastore,
    *,
    full: bool = False,
    ours: bool = False,
    dry_run: bool = False,
    guard: Callable[[], None] = lambda: None,
) -> Pushed:
    """Publish what is marked (`full`: whatever differs); `ours` lets us win where both sides changed.

    `guard` is asked right before the commit, and raises when we may no longer write.
    """
    done = Pushed(is_dry_run=dry_run)
    with open_place(ds) as place:
        prepared = _prepare(place, done, full=full, ours=ours)
        if prepared is not None and not dry_run:
            guard()
            _commit(place, prepared, done)
    return done


def prepare_push(ds: Datastore, *, full: bool = False, ours: bool = False) -> tuple[Prepared | None, Pushed]:
    """The first half: look, plan and upload. Nothing is visible to others yet, and no mark is gone."""
    done = Pushed()
    with open_place(ds) as place:
        return _prepare(place, done, full=full, ours=ours), done


def commit_push(ds: Datastore, prepared: Prepared | None, done: Pushed) -> Pushed:
    """The second half: publish what was prepared, however long ago; what changed meanwhile is not touched."""
    if prepared is not None:
        with open_place(ds) as place:
            _commit(place, prepared, done)
    return done


def _prepare(place: Place, done: Pushed, *, full: bool, ours: bool) -> Prepared | None:
    pending = pending_marks(place.ds)
    if pending.is_clean and not full:
        return None
    with open_look(place.ds, pending, is_full=full or pending.is_bulk or not pending.is_known) as look:
        steps = list(_candidates(place, look, done))
        prepared = Prepared(
            pending=pending,
            settled=set(look.settled()),
            is_bulk=look.is_complete,
            same=[step.local for step in steps if step.local.here == "same"],
        )
        done.findings += [trouble.message for trouble in look.troubles]
    changed = [step for step in steps if step.local.here != "same"]
    if not changed:
        return prepared
    prepared.reading = read_for(place, [step.rel for step in changed], is_fresh_sharded=place.ds.sync.is_sharded)
    uploads: list[_Step] = []
    removals: list[_Step] = []
    for step in changed:
        _decide(place, step, prepared, done, uploads, removals, ours=ours)
    if done.is_dry_run:
        done.uploaded += [step.rel for step in uploads]
        done.removed += [step.rel for step in removals]
        return prepared
    _upload(place, uploads, prepared, done)
    _look_at_removals(place, removals, prepared)
    return prepared


def _candidates(place: Place, look: Look, done: Pushed) -> Iterator[_Step]:
    """What may differ from the base; what cannot be read, or listed in any index, is told and keeps its mark."""
    for local in look:
        if local.here in ("missing", "same"):
            # A file that was looked at in vain is remembered as it is now, so that it is not read again.
            if local.here == "same" and local.is_marked:
                yield _Step(rel=RelPath(local.rel), local=local)
            continue
        if partition_of(local.rel) is None:
            done.findings.append(f"{shown(local.rel)} is in no place that an index can list: move it; it is not pushed")
            continue
        try:
            found = resolved(place.ds, local)
        except MireError as error:
            done.findings.append(f"{shown(local.rel)} is not pushed: {error.message}")
            continue
        yield _Step(rel=RelPath(found.rel), local=found)


def _decide(
    place: Place,
    step: _Step,
    prepared: Prepared,
    done: Pushed,
    uploads: list[_Step],
    removals: list[_Step],
    *,
    ours: bool,
) -> None:
    local, rel = step.local, step.rel
    base = None if local.base is None else entry_of(local.base)
    try:
        remote = prepared.reading.entry(rel) if prepared.reading is not None else None
    except MireError as error:
        _leave(place, prepared, done, rel, error.message)
        return
    value = _value_of(place, local) if local.here == "changed" and remote is not None else None
    here: threeway.Here = "removed" if local.here == "removed" else "changed" if local.here == "changed" else "same"
    action = plan_push_of(here, base, remote, value)
    if action == "conflict" and ours:
        action = "upload" if here == "changed" else "remove"
    prepared.expected[rel] = remote
    match action:
        case "upload":
            uploads.append(step)
        case "remove" | "forget":
            removals.append(step)  # what is gone from the index may still be in the store: our own work, half done
        case "agree":
            assert remote is not None  # noqa: S101 - by the plan
            prepared.agreed.append(agreed_row(rel, remote, local.file))
        case "conflict":
            done.conflicts.append(Conflict(rel=rel, why=_why(here, remote)))
            _unsettle(place, prepared, rel)
        case "nothing":
            pass


def _why(here: threeway.Here, remote: Entry | None) -> str:
    if remote is None:
        return "changed here, removed there"
    return "removed here, changed there" if here == "removed" else "changed here and there"


def _value_of(place: Place, local: Local) -> Value | None:
    if local.sha256 is not None and local.file is not None:
        return Value(size_bytes=local.file.size_bytes, sha256=local.sha256)
    found = hash_file(tier_path(place.ds, RelPath(local.rel)))
    return Value(size_bytes=found.file.size_bytes, sha256=found.sha256)


def _leave(place: Place, prepared: Prepared, done: Pushed, rel: RelPath, why: str) -> None:
    done.findings.append(f"{shown(rel)} is not pushed: {why}")
    _unsettle(place, prepared, rel)


def _unsettle(place: Place, prepared: Prepared, rel: RelPath) -> None:
    """Keep the marks of a path that was not dealt with."""
    prepared.settled.difference_update(tops_of(path_in_cache(place.ds, rel)))
    prepared.is_bulk = False


def _upload(place: Place, steps: Sequence[_Step], prepared: Prepared, done: Pushed) -> None:
    def send(step: _Step) -> Sent | MireError:
        try:
            return upload(place.remote, step.rel, tier_path(place.ds, step.rel))
        except RemoteError as error:
            if error.kind != "in_use":
                raise
            return error
        except MireError as error:
            return error

    # What replaces an object goes last, right before the commit: until then the index describes other bytes.
    ordered = sorted(steps, key=lambda step: (prepared.expected.get(step.rel) is not None, step.rel))
    for step, result in pool.run(send, ordered, at_once=place.ds.sync.push_concurrency):
        if isinstance(result, Sent):
            prepared.sent[step.rel] = result
        else:
            _leave(place, prepared, done, step.rel, result.message)


def _look_at_removals(place: Place, steps: Sequence[_Step], prepared: Prepared) -> None:
    """What is in the store under the paths that are to go, so that nothing newer is deleted later."""

    def look(step: _Step) -> Stat | None:
        try:
            return place.remote.head(step.rel)
        except NotFoundError:
            return None

    for step, stat in pool.run(look, steps, at_once=place.ds.sync.push_concurrency):
        prepared.removals[step.rel] = stat


def _commit(place: Place, prepared: Prepared, done: Pushed) -> None:
    changes = Changes(
        upserts={rel: sent.entry for rel, sent in prepared.sent.items()},
        removals=frozenset(rel for rel in prepared.removals if prepared.expected.get(rel) is not None),
        expected=prepared.expected,
    )
    lost: set[RelPath] = set()
    if changes.paths and prepared.reading is not None:
        done_with = commit(place, changes, prepared.reading, is_fresh_sharded=place.ds.sync.is_sharded)
        lost = set(done_with.lost)
    for rel in sorted(lost):
        done.conflicts.append(Conflict(rel=rel, why="changed there while it was pushed"))
        _unsettle(place, prepared, rel)
    done.uploaded += sorted(prepared.sent.keys() - lost)
    kept = _delete(place, {rel: stat for rel, stat in prepared.removals.items() if rel not in lost}, done)
    done.removed += sorted(changes.removals - lost)
    rows = [agreed_row(rel, sent.entry, sent.identity) for rel, sent in prepared.sent.items() if rel not in lost]
    place.state.agree([*rows, *prepared.agreed])
    place.state.forget(prepared.removals.keys() - lost - kept)
    place.state.identify((local.rel, local.file, clock.now_ns()) for local in prepared.same)
    for rel in kept:
        _unsettle(place, prepared, rel)
    acknowledge(place.ds, prepared.pending, prepared.settled, is_bulk=prepared.is_bulk)


def _delete(place: Place, removals: Mapping[RelPath, Stat | None], done: Pushed) -> set[RelPath]:
    """Delete the objects of published removals; those that changed since are somebody's new ones, and stay."""

    def delete(item: tuple[RelPath, Stat]) -> str | None:
        rel, seen = item
        try:
            now = place.remote.head(rel)
        except NotFoundError:
            return None
        if (now.fingerprint, now.modified_ms) != (seen.fingerprint, seen.modified_ms):
            return "somebody stored it anew"
        if not place.remote.properties.conditional_delete:
            place.remote.delete(rel)
            return None
        match place.remote.delete_if(rel, seen.fingerprint):
            case Removed():
                return None
            case Refused():
                return "somebody stored it anew"
            case Unknown(error):
                raise error

    kept: set[RelPath] = set()
    items = [(rel, stat) for rel, stat in removals.items() if stat is not None]
    for (rel, _), why in pool.run(delete, items, at_once=place.ds.sync.push_concurrency):
        if why is not None:
            done.findings.append(f"the object of {shown(rel)} was left in the store: {why}")
    return kept
