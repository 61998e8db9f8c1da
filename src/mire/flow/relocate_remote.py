"""Moving the objects of a tenant from one part of a remote to another.

Owns: what of an index moves, the order of copies, commits and deletions, and going on where somebody died.
Must not know: locks, settings, who asked; which of the two parts is the namespace.
Keeps: an object is copied before the index of its new part names it, named there before it leaves the old index, and
out of the old index before it is deleted; entries move as they are, hashes and unknown members too. Only what the old
index lists is touched: everything else at the root may be somebody else's.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from mire.edge import clock, files, pool
from mire.edge.remote import Remote, Stat
from mire.edge.state import close_states
from mire.errors import ConflictError, NotFoundError, shown
from mire.flow.commit import commit
from mire.flow.datastore import Datastore
from mire.flow.index import IndexParts, fetch_index, is_ours
from mire.flow.place import Place, open_place
from mire.flow.reading import read_for
from mire.flow.send import delete
from mire.model.index import Entry
from mire.model.names import Namespace, RelPath
from mire.plan.commit import Changes
from mire.plan.relocation import Relocation, plan_relocation
from mire.wire.export import EXPORT
from mire.wire.partition import partition_of
from mire.wire.relpath import INDEX_DIR, check_rel, is_temporary

_ROOM = f"{INDEX_DIR}/mire-move"
_AT_ONCE = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Two parts of a remote: where objects are, and where they go."""

    source: Place
    target: Place

    @property
    def store(self) -> Remote:
        """The whole remote."""
        assert self.source.ds.remote is not None  # noqa: S101 - it has a place there
        return self.source.ds.remote

    def key_of(self, place: Place, rel: str) -> str:
        """A key of the whole remote."""
        namespace = place.ds.config.namespace
        return f"{namespace}/{rel}" if namespace else rel


@dataclass(slots=True, kw_only=True)
class Looked:
    """What an index lists that can move, and what is at its target."""

    relocation: Relocation
    entries: dict[RelPath, Entry]
    stats: dict[str, Stat]
    """The objects at their old place."""
    is_sharded: bool
    are_foreign: int
    """Entries of the target that do not come from the source."""
    findings: list[str] = field(default_factory=list)


@contextmanager
def open_sides(ds: Datastore, source: Namespace, target: Namespace) -> Iterator[Sides]:
    """Both parts, each with a private state that knows nothing and is removed in the end."""
    with open_side(ds, source) as one, open_side(ds, target) as other:
        yield Sides(source=one, target=other)


@contextmanager
def open_side(ds: Datastore, namespace: Namespace) -> Iterator[Place]:
    """One part of a remote, whichever the cache is of."""
    base = os.path.join(ds.base, _ROOM, clock.new_uuid())
    try:
        config = replace(ds.config, namespace=namespace)
        with open_place(replace(ds, base=base, config=config, remote=ds.whole or ds.remote, lifecycle=None)) as place:
            yield place
    finally:
        close_states(base)
        files.remove_tree(base)


def look(sides: Sides) -> Looked:
    """Compare what the source lists with what the target has; nothing is changed."""
    there = fetch_index(sides.source)
    entries, findings = _movable(there)
    here = {rel: entry for rel, entry in fetch_index(sides.target).entries() if isinstance(entry, Entry)}
    stats: dict[str, Stat] = {}
    at_target: dict[str, bool] = {}
    compare = partial(_compared, sides, here=here)
    for (rel, _), (stat, same) in pool.run(lambda item: compare(*item), entries.items(), at_once=_AT_ONCE):
        if stat is None:
            findings.append(f"{shown(rel)} is listed but not there: it stays where it is; 'mire verify' tells more")
            continue
        stats[rel] = stat
        if same is not None:
            at_target[rel] = same
    found: dict[str, int] = {rel: entry.size_bytes for rel, entry in entries.items() if rel in stats}
    return Looked(
        relocation=plan_relocation(found, at_target),
        entries={rel: entry for rel, entry in entries.items() if rel in stats},
        stats=stats,
        is_sharded=there.form == "sharded",
        are_foreign=len([rel for rel in here if is_ours(rel) and rel not in entries]),
        findings=findings,
    )


def _movable(parts: IndexParts) -> tuple[dict[RelPath, Entry], list[str]]:
    entries: dict[RelPath, Entry] = {}
    findings = []
    for rel, entry in parts.entries():
        if not is_ours(rel) or rel == EXPORT or is_temporary(rel):
            continue
        if not isinstance(entry, Entry) or check_rel(rel) is not None:
            findings.append(f"{shown(rel)} in the index is not understood: it stays where it is")
        elif parts.form == "sharded" and partition_of(rel) is None:
            findings.append(f"{shown(rel)} cannot be listed by any shard: it stays where it is")
        else:
            entries[RelPath(rel)] = entry
    return entries, findings


def _compared(sides: Sides, rel: RelPath, entry: Entry, *, here: dict[str, Entry]) -> tuple[Stat | None, bool | None]:
    """The object at its old place, and whether that at the new one is the same; None where there is none."""
    stat = stat_at(sides.source.remote, rel)
    if stat is None:
        return None, None
    listed, other = here.get(rel), stat_at(sides.target.remote, rel)
    if other is None:
        return stat, None if listed is None else False
    if listed is not None and None not in (listed.sha256, entry.sha256) and listed.sha256 != entry.sha256:
        return stat, False
    # The original goes when this says that they are the same: an index that says so is not enough.
    return stat, is_same_object(sides.source.remote, stat, sides.target.remote, other)


def stat_at(remote: Remote, key: str) -> Stat | None:
    """What is known of an object; None when there is none."""
    try:
        return remote.head(key)
    except NotFoundError:
        return None


def is_same_object(one: Remote, stat: Stat, two: Remote, other: Stat) -> bool:
    """Whether two objects have the same bytes: told by their fingerprints where those tell, else by reading both."""
    if stat.size_bytes != other.size_bytes:
        return False
    if one.properties.content_fingerprint and stat.fingerprint == other.fingerprint:
        return True
    return hash_object(one, stat.key) == hash_object(two, other.key)


def hash_object(remote: Remote, key: str) -> str:
    """The SHA-256 of an object."""
    digest = hashlib.sha256()
    for chunk in remote.get_stream(key).chunks:
        digest.update(chunk)
    return digest.hexdigest()


def copy_over(sides: Sides, looked: Looked) -> None:
    """Copy what is not there yet, inside the store, and make sure that it arrived."""

    def copy(rel: str) -> None:
        sides.store.copy(sides.key_of(sides.source, rel), sides.key_of(sides.target, rel))
        arrived = sides.target.remote.head(rel).size_bytes
        if arrived != looked.stats[rel].size_bytes:
            raise ConflictError(
                f"{shown(rel)} changed while it was copied: nothing was moved; try again", kind="changed"
            )

    for _ in pool.run(copy, looked.relocation.moves, at_once=_AT_ONCE):
        pass


def list_here(sides: Sides, looked: Looked) -> None:
    """Name everything in the index of the target, in the form the source has."""
    place = sides.target
    upserts = dict(looked.entries)
    reading = read_for(place, upserts, is_fresh_sharded=looked.is_sharded)
    expected = {rel: reading.entry(rel) for rel in upserts}
    changes = Changes(upserts=upserts, expected=expected)
    done = commit(place, changes, reading, is_fresh_sharded=looked.is_sharded)
    if done.lost:
        raise ConflictError(
            f"{shown(done.lost[0])} was changed by others while it was moved: nothing was removed; try again",
            kind="busy_index",
        )


def unlist_there(sides: Sides, looked: Looked) -> frozenset[str]:
    """Take everything out of the index of the source; what somebody changed meanwhile stays, and is not deleted."""
    place = sides.source
    rels = frozenset(looked.entries)
    changes = Changes(removals=rels, expected=dict(looked.entries))
    done = commit(place, changes, read_for(place, rels))
    return frozenset(rels) - frozenset(done.lost)


def drop_export(place: Place) -> bool:
    """Take back the published catalog of a namespace, which is derived: others would read on. Whether there was one."""
    rel = RelPath(EXPORT)
    reading = read_for(place, [rel])
    listed = reading.entry(rel)
    if listed is not None:
        commit(place, Changes(removals=frozenset([rel]), expected={rel: listed}), reading)
    is_there = stat_at(place.remote, rel) is not None
    if is_there:
        place.remote.delete(rel)
    return is_there or listed is not None


def delete_there(sides: Sides, objects: Mapping[str, Stat]) -> list[RelPath]:
    """Delete objects at their old place, each only as it was seen; those that are another by now stay."""
    return delete(sides.source, {RelPath(rel): stat for rel, stat in objects.items()})
