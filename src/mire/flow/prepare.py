"""The first half of a push: look, plan, and store objects.

Owns: what is decided about each path, and what is kept for the second half.
Must not know: how the index is written.
Keeps: the index says nothing of it yet, and no mark is gone; a path that was not dealt with keeps its marks; a copy
that did not change here is never sent.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from mire.edge.remote import Stat
from mire.edge.tree import hash_file
from mire.errors import FormatError, MireError, NotFoundError, shown
from mire.flow.catalog import name_above
from mire.flow.change import Local, Look, open_look, path_in_cache, resolved
from mire.flow.conflict import Conflict, keep_theirs, why_of
from mire.flow.datastore import Datastore
from mire.flow.local import agreed_row, entry_of, tier_path
from mire.flow.mark import pending_marks
from mire.flow.place import Place
from mire.flow.publish import PUBLISHED, due_names, due_now, is_published, may_wait, publish, record_due
from mire.flow.reading import Reading, missed_move, read_for
from mire.flow.said import is_ours, said_paths
from mire.flow.send import intended, look_at, send
from mire.flow.startover import go_on, is_offered_again, start_over
from mire.flow.transfer import Sent, are_short
from mire.flow.unsettled import keep_unsettled
from mire.model.base import BaseRow
from mire.model.index import Entry
from mire.model.mark import Pending
from mire.model.names import RelPath
from mire.plan.mark import tops_of
from mire.plan.threeway import Here, Value, plan_push_of
from mire.wire.partition import partition_of


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

    left: set[RelPath] = field(default_factory=set)
    """Paths that were not dealt with."""

    @property
    def is_believed(self) -> bool:
        """Whether something is settled because the index says so already; perhaps we said it, and died then."""
        return bool(self.agreed) or any(self.expected[rel] is None for rel in self.removals)

    def unsettle(self, ds: Datastore, rel: RelPath) -> None:
        """Keep the marks of a path that was not dealt with."""
        self.left.add(rel)
        self.settled.difference_update(tops_of(path_in_cache(ds, rel)))
        self.is_bulk = False


def prepare(place: Place, done: Pushed, *, full: bool, ours: bool) -> Prepared | None:
    """Look, decide and store; None when nothing is marked."""
    kept = len(done.findings), len(done.resolved)
    prepared = _planned(place, done, full=full, ours=ours)
    if prepared is None or (done.is_whole and not prepared.is_believed) or not missed_move(place, prepared.reading):
        return prepared
    # What stands against us, or seems to be done already, was read in an index that no longer counts.
    done.conflicts = []
    del done.findings[kept[0] :], done.resolved[kept[1] :]
    if done.is_dry_run:
        done.uploaded, done.removed = [], []
    return _planned(place, done, full=full, ours=ours)


def _planned(place: Place, done: Pushed, *, full: bool, ours: bool) -> Prepared | None:
    pending = pending_marks(place.ds)
    if pending.is_clean and not full and not due_now(place):
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
    if not changed and not is_offered_again(place) and not due_now(place):
        return prepared
    rels = [RelPath(local.rel) for local in changed]
    if due_now(place, rels):
        rels.append(PUBLISHED)
    prepared.reading = read_for(place, rels, is_fresh_sharded=place.ds.sync.is_sharded)
    if prepared.reading.is_new and next(place.state.all_base(), None) is not None and not done.is_dry_run:
        # Nothing was agreed with a store that knows nothing: everything here is offered again.
        done.findings += [f"{shown(rel)} was never brought here, and is not at the remote" for rel in start_over(place)]
        return _planned(place, done, full=full, ours=ours)
    if is_offered_again(place) and not done.is_dry_run:
        go_on(place)
    uploads = [local for local in changed if _decide(place, local, prepared, done)]
    if done.conflicts and not done.is_dry_run:
        keep_unsettled(place.state, [conflict.rel for conflict in done.conflicts])
    if done.is_dry_run:
        done.uploaded += [RelPath(local.rel) for local in uploads]
        done.removed += sorted(prepared.removals)
        _publish(place, prepared, done, [RelPath(local.rel) for local in uploads])
    else:
        _store(place, prepared, done, uploads)
    return prepared


def _store(place: Place, prepared: Prepared, done: Pushed, uploads: Sequence[Local]) -> None:
    """Store what was decided to be sent, and look at what is to go."""
    replaced = {RelPath(each.rel): prepared.expected[RelPath(each.rel)] for each in uploads}
    sizes = [each.file.size_bytes for each in uploads if each.file is not None]
    gathered = are_short(sum(sizes), len(sizes))
    for rel, result in send(place, replaced, gathered=gathered):
        if isinstance(result, Sent):
            prepared.sent[rel] = result
        else:
            _leave(place, prepared, done, rel, result.message)
    going = {rel: entry for rel in prepared.removals if (entry := prepared.expected[rel]) is not None}
    prepared.objects |= look_at(place, going)
    _publish(place, prepared, done, prepared.sent)


def _publish(place: Place, prepared: Prepared, done: Pushed, sent: Iterable[RelPath]) -> None:
    """Store our catalog with the rows of what this push publishes; of what it leaves here others hear nothing."""
    names = due_names(place, [*sent, *prepared.removals])
    names -= {name for rel in prepared.left if (name := name_above(rel)) is not None}
    if not names or prepared.reading is None:
        return
    if may_wait(place):
        record_due(place, names)
        return
    try:
        listed_as = prepared.reading.entry(PUBLISHED)
        result = publish(place, listed_as, names, dry_run=done.is_dry_run)
    except FormatError as error:
        done.findings.append(f"the catalog is not published: {error.message}")
        return
    if result is not None and done.is_dry_run:
        done.uploaded.append(PUBLISHED)
    elif result is not None:
        prepared.expected[PUBLISHED], prepared.sent[PUBLISHED] = listed_as, result


def _candidates(place: Place, look: Look, done: Pushed, failed: list[tuple[RelPath, str]]) -> Iterator[Local]:
    """What may differ from the base; what cannot be read, or listed in any index, is told."""
    for local in look:
        if local.here == "missing" or is_published(place.ds, local.rel):
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
    yield from _half_said(place, look)


def _half_said(place: Place, look: Look) -> Iterator[Local]:
    """What a push that died may have published, and was removed since: without it no base tells that it was there."""
    rels = said_paths(place)
    agreed = place.state.base_of(rels)
    for rel in rels:
        if rel not in agreed and look.is_removed(rel):
            yield Local(rel=rel, here="removed", file=None, base=None, is_marked=True)


def _decide(place: Place, local: Local, prepared: Prepared, done: Pushed) -> bool:
    """Decide about one path; whether its file is to be sent."""
    rel = RelPath(local.rel)
    here: Here = "removed" if local.here == "removed" else "changed"
    base = None if local.base is None else entry_of(local.base)
    try:
        remote = prepared.reading.entry(rel) if prepared.reading is not None else None
        value = _value_of(place, local) if here == "changed" and remote is not None else None
        action = plan_push_of(here, base, remote, value)
        if action == "conflict" and is_ours(place, rel, remote):
            action = plan_push_of(here, remote, remote, value)
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
