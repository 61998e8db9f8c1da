"""Moving an index from a monolith (v1) to shards (v2).

Owns: the order of writes, and going on where somebody died.
Must not know: files of the cache, objects of data.
Keeps: until the list of shards is written the monolith counts, from then on the shards, and each is complete at that
moment; nothing that the monolith lists is dropped unasked; a store that is sharded is never made from a monolith again.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from mire.edge import clock, pool
from mire.errors import ConflictError, FormatError, InternalError, shown
from mire.flow.commit import commit
from mire.flow.datastore import Datastore
from mire.flow.exchange import check_gate
from mire.flow.lock import hold_global
from mire.flow.place import META, MONOLITH, Place, open_place, shard_key
from mire.flow.reading import (
    AT_ONCE,
    MetaSeen,
    MonolithSeen,
    Reading,
    check_derived,
    check_empty,
    fetch_meta,
    fetch_monolith,
    list_shards,
    read_for,
    tag_of_monolith,
)
from mire.flow.swap import swap
from mire.flow.within import Watch, within_timeout
from mire.model.index import Entry, Meta
from mire.model.names import RelPath
from mire.plan.commit import Changes
from mire.wire.indextext import IndexText
from mire.wire.meta import encode_meta
from mire.wire.monolith import decode_monolith, encode_monolith
from mire.wire.relpath import is_internal
from mire.wire.shard import encode_shard, shard_of

_TRIES: Final = 8
_LEFT: Final = "migrated_monolith"
"""The fact that a monolith with this fingerprint is still to be rewritten, after the list of shards was."""

_PATHS_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """What a migration did, or would do."""

    is_done: bool
    """False: the store was sharded already."""
    shards: int = 0
    entries: int = 0
    left_out: tuple[str, ...] = ()
    """Paths that no shard can list; their objects stay, and nothing lists them any more."""
    commit_seq: int = 0
    """That of the new list; 0 in a dry run, which cannot know it."""
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shards:
    """What a monolith comes to."""

    texts: Mapping[str, bytes]
    entries: int
    left_out: tuple[str, ...]


def migrate_index(
    ds: Datastore, *, leave_out: bool = False, dry_run: bool = False, watch: Watch | None = None
) -> Migrated:
    """Make a dual-written store sharded, under the global lock; one that is sharded already is left as it is."""
    bound = within_timeout(ds, watch)
    if dry_run:
        with open_place(bound) as place:
            return replace(_planned(place, leave_out=leave_out), is_dry_run=True)
    check_gate(ds)
    # The lock alone, without what a cached datastore does around its own work: nothing of the cache is touched.
    with hold_global(replace(ds, lifecycle=None)) as hold, open_place(bound) as place:
        return _move(place, lambda: hold.check(is_strict=True), leave_out=leave_out)


def _planned(place: Place, *, leave_out: bool) -> Migrated:
    meta, monolith = fetch_meta(place), fetch_monolith(place)
    if meta.is_sharded:
        return _already(meta)
    shards = _shards_of(monolith.monolith, leave_out=leave_out)
    return _done(shards, 0)


def _move(place: Place, check: Callable[[], None], *, leave_out: bool) -> Migrated:
    for _ in range(_TRIES):
        meta = fetch_meta(place)
        if meta.is_sharded:
            _freshen(place, fetch_monolith(place))
            return _already(meta)
        monolith = fetch_monolith(place)
        if monolith.monolith is None:
            check_empty(place, meta)
        elif meta.meta is None:
            check_derived(place, monolith)
        shards = _shards_of(monolith.monolith, leave_out=leave_out)
        if not _write(place, shards) or tag_of_monolith(place) != monolith.tag:
            continue
        check()
        seq = next_seq(place, meta.meta)
        if _switch(place, meta, monolith, tuple(shards.texts), seq):
            _catch_up(place, monolith)
            _freshen(place, fetch_monolith(place))
            return _done(shards, seq)
    raise ConflictError(
        "the index was changed by others again and again while it was migrated: nothing was switched; try again",
        kind="busy_index",
    )


def _shards_of(monolith: IndexText | None, *, leave_out: bool) -> _Shards:
    if monolith is None:
        return _Shards(texts={}, entries=0, left_out=())
    groups = {name: _synced(rels) for name, rels in monolith.by_partition().items()}
    unlisted = tuple(sorted(groups.pop(None, ())))
    if unlisted and not leave_out:
        raise _unlistable(unlisted)
    texts = {name: shard_of(monolith, rels) for name, rels in groups.items() if name is not None and rels}
    return _Shards(texts=texts, entries=sum(map(len, groups.values())), left_out=unlisted)


def _synced(rels: list[str]) -> list[str]:
    return [rel for rel in rels if not is_internal(rel)]


def _unlistable(rels: tuple[str, ...]) -> FormatError:
    more = len(rels) - _PATHS_SHOWN
    return FormatError(
        f"no shard can list {', '.join(map(shown, rels[:_PATHS_SHOWN]))}{f' and {more} more' if more > 0 else ''}:"
        " nothing was changed; remove these files and push, or add --leave-out, which leaves their objects in the store"
        " and no longer lists them",
        kind="unpartitionable",
        paths=list(rels),
    )


def _write(place: Place, shards: _Shards) -> bool:
    """Write every shard over the one that is there; False when somebody else wrote one meanwhile."""
    present = list_shards(place)
    # A shard that the monolith has nothing for lists what is gone, and unlisted shards count.
    return write_shards(place, present, {**dict.fromkeys(present, encode_shard({})), **shards.texts})


def write_shards(place: Place, present: Mapping[str, str], texts: Mapping[str, bytes]) -> bool:
    """Write shards over those that were seen; False when one is another by now. What says the same is not written."""

    def write(name: str) -> bool:
        data, tag = texts[name], present.get(name)
        if tag is not None and place.remote.properties.content_fingerprint and tag == _etag_of(data):
            return True
        return swap(place, shard_key(name), data, tag) is not None

    return False not in [is_written for _, is_written in pool.run(write, texts, at_once=AT_ONCE)]


def _etag_of(data: bytes) -> str:
    # What S3 calls a small object whose upload was not encrypted with a customer's key; another form never matches.
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def next_seq(place: Place, meta: Meta | None) -> int:
    """Above every count of commits there ever was: those we know of, and any that grew by one from zero."""
    known = (0 if meta is None else meta.commit_seq or 0, int(place.state.fact("commit_seq") or 0))
    return max(max(known) + 1, clock.now_ns() // 10**9)


def _switch(place: Place, meta: MetaSeen, monolith: MonolithSeen, names: tuple[str, ...], seq: int) -> bool:
    """Write the list: from here on the shards count. False when another list is there by now."""
    extra = {} if meta.meta is None else meta.meta.extra
    place.state.set_facts({_LEFT: monolith.tag})
    data = encode_meta(Meta(version=2, partitions=names, commit_seq=seq, extra=extra))
    if swap(place, META, data, meta.tag) is None:
        place.state.set_facts({_LEFT: None})
        return False
    place.state.set_facts({"commit_seq": str(seq)})
    return True


def _catch_up(place: Place, seen: MonolithSeen) -> None:
    """Bring over what a program that knows no shards wrote into the monolith in the last moment."""
    now = fetch_monolith(place)
    if now.tag == seen.tag or now.monolith is None:
        return
    before = seen.monolith if seen.monolith is not None else decode_monolith(encode_monolith({}, clock.now_instant()))
    difference = before.diff(now.monolith)
    changed = [RelPath(rel) for rel in (*difference.added, *difference.changed)]
    upserts = {rel: entry for rel in changed if isinstance(entry := now.monolith[rel], Entry)}
    removals = frozenset(map(RelPath, difference.removed))
    expected = {rel: _entry_of(before, rel) for rel in (*upserts, *removals)}
    changes = Changes(upserts=upserts, removals=removals, expected=expected)
    if changes.paths:
        commit(place, changes, _sharded_reading(place, changes))


def _sharded_reading(place: Place, changes: Changes) -> Reading:
    place.state.set_facts({"generation": None})  # what is remembered of the other form would be read instead
    reading = read_for(place, changes.paths)
    if reading.monolith is not None:
        raise InternalError("the list of shards that was written a moment ago is not there")
    return reading


def _entry_of(text: IndexText, rel: RelPath) -> Entry | None:
    found = text.get(rel)
    return found if isinstance(found, Entry) else None


def _freshen(place: Place, seen: MonolithSeen) -> None:
    """Change the fingerprint of the monolith once, so that programs which compare it look at the list again."""
    if place.state.fact(_LEFT) is None:
        return
    if seen.monolith is not None and seen.tag == place.state.fact(_LEFT):
        # Somebody who was faster changed the fingerprint, too.
        swap(place, MONOLITH, seen.monolith.with_changes({}, last_pulled=clock.now_instant()), seen.tag)
    place.state.set_facts({_LEFT: None})


def _already(meta: MetaSeen) -> Migrated:
    seq = 0 if meta.meta is None else meta.meta.commit_seq or 0
    return Migrated(is_done=False, shards=len(meta.partitions), commit_seq=seq)


def _done(shards: _Shards, seq: int) -> Migrated:
    return Migrated(
        is_done=True, shards=len(shards.texts), entries=shards.entries, left_out=shards.left_out, commit_seq=seq
    )
