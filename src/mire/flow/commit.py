"""Publishing changes in the index of a remote, in either generation.

Owns: the order of writes, and starting over when somebody was faster.
Must not know: files of the cache, uploads.
Keeps: every index object is replaced only as it was read, and only the named paths change in it. v1: the monolith,
then the touched partitions, then the list with its proof. v2: the touched shards, then the list. Dying in between
leaves an old proof or an old list, never one that vouches for what was not written.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from mire.edge import clock, pool
from mire.errors import ConflictError, FormatError
from mire.flow.derived import refresh_monolith
from mire.flow.monolith import remember_copy
from mire.flow.place import META, MONOLITH, Place, shard_key
from mire.flow.prove import prove
from mire.flow.reading import (
    AT_ONCE,
    MetaSeen,
    Reading,
    ShardSeen,
    damaged_index,
    fetch_meta,
    fetch_shard,
    fetch_shards,
    meta_facts,
    note_move,
    read_for,
    tag_of_monolith,
)
from mire.flow.swap import swap
from mire.flow.unsettled import keep_unsettled
from mire.model.index import Entry, Meta
from mire.model.names import RelPath
from mire.plan.commit import Changes, plan_commit
from mire.wire.indextext import IndexText
from mire.wire.meta import COMMIT_SEQ_MAX, encode_meta
from mire.wire.monolith import decode_monolith, encode_monolith
from mire.wire.partition import partition_of
from mire.wire.shard import decode_shard, encode_shard

_TRIES: Final = 20
_PAUSE_MS: Final = 25.0
_PAUSE_MAX_MS: Final = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """How a commit ended: what did not become visible because its path had another value by then."""

    lost: tuple[RelPath, ...] = ()


def commit(
    place: Place,
    changes: Changes,
    reading: Reading,
    *,
    found: Collection[RelPath] = (),
    is_fresh_sharded: bool = False,
) -> Committed:
    """Publish changes that were decided on a reading; it is read again as often as somebody was faster.

    `found` are paths of which the index says what we want already: perhaps we died before we listed their shards.
    """
    if not changes.paths and (not found or reading.monolith is not None):
        return Committed()
    again = {name for rel in found if (name := partition_of(rel)) is not None}
    for attempt in range(_TRIES):
        if reading.monolith is not None:
            done = _dual(place, changes, reading)
        else:
            done = _sharded(place, changes, reading, again)
        if done is not None:
            return done
        _pause(attempt)
        reading = read_for(place, changes.paths, is_fresh_sharded=is_fresh_sharded)
    raise _busy(f"the index of {place.remote.properties.name}")


def _pause(attempt: int) -> None:
    clock.pause(clock.jitter() * min(_PAUSE_MAX_MS, _PAUSE_MS * 2**attempt))


def _busy(what: str) -> ConflictError:
    return ConflictError(
        f"{what} was changed by others {_TRIES} times while we wrote it: nothing is lost, push again", kind="busy_index"
    )


def _dual(place: Place, changes: Changes, reading: Reading) -> Committed | None:
    seen = reading.monolith
    assert seen is not None  # noqa: S101 - chosen by the caller
    before = seen.monolith
    if before is None:
        before = decode_monolith(encode_monolith({}, clock.now_instant()))
    # An entry that says nothing usable is as good as none: who decided to replace it knows that.
    merge = plan_commit(changes, partial(_usable, before))
    after, tag = before, seen.tag
    if not merge.is_empty or tag is None:
        data = before.with_changes(merge.upserts, merge.removals, last_pulled=clock.now_instant())
        # Until the list was seen nobody knows whether the monolith still counts. Should we die, nothing in it is
        # believed before that: it may be frozen, and say of our changes what nobody else reads.
        place.state.set_facts({"generation": None})
        stored = swap(place, MONOLITH, data, tag)
        if stored is None:
            return None
        after, tag = decode_monolith(data), stored
    touched = {name for rel in changes.paths if (name := partition_of(rel)) is not None}
    if not prove(place, seen.tag, after, tag, touched):
        # Somebody moved the store to shards: what counts is said there.
        note_move(place)
        return _sharded(place, changes, Reading(meta=fetch_meta(place)), ())
    if seen.is_same or seen.monolith is None:
        remember_copy(place, after.data, tag, {"generation": "1"})
    else:
        place.state.set_facts({"generation": "1"})
        if place.state.fact("monolith") is not None:
            # What we wrote is ahead of the copy that the next monolith is compared with.
            keep_unsettled(place.state, changes.paths)
    return Committed(lost=merge.lost)


def _sharded(place: Place, changes: Changes, reading: Reading, again: Iterable[str]) -> Committed | None:
    meta = reading.meta or fetch_meta(place)
    if meta.meta is None:
        begun = _begin(place)
        if begun is None:
            return None
        meta = begun
    groups: dict[str, set[RelPath]] = {}
    for rel in changes.paths:
        groups.setdefault(partition_of(rel) or "", set()).add(rel)
    lost: list[RelPath] = [*groups.pop("", ())]  # no index can list them
    for name in again:
        groups.setdefault(name, set())
    known = place.state.shard_tags()
    tags: dict[str, str | None] = {}
    touched: list[str] = []

    def merged(name: str) -> tuple[ShardSeen, ShardSeen, tuple[RelPath, ...]]:
        seen = reading.shards.get(name)
        return _merge_shard(place, name, changes.only(frozenset(groups[name])), seen, meta.partitions)

    for name, (before, after, missed) in pool.run(merged, sorted(groups), at_once=AT_ONCE, gathered=True):
        lost += missed
        if after.tag is not None:
            touched.append(name)
        # Only what we knew before, plus our own changes, is known now; else it is read again.
        is_new = before.tag is None and name not in known and not _has_rows(place, name)
        tags[name] = after.tag if is_new or (name in known and before.tag == known[name]) else None
    place.state.set_shard_tags(tags)
    counted, seq = _list_shards(place, meta, touched, known)
    if place.ds.sync.is_monolith_kept:
        upserts = {rel: entry for rel, entry in changes.upserts.items() if rel not in lost}
        refresh_monolith(place, upserts, changes.removals.difference(lost), before=counted, after=seq)
    return Committed(lost=tuple(lost))


def _has_rows(place: Place, partition: str) -> bool:
    return next(place.state.base_in(partition), None) is not None


def _begin(place: Place) -> MetaSeen | None:
    """An empty list, before the first shard: shards that nothing lists are never ours. None: somebody was faster."""
    meta = Meta(version=2, commit_seq=0)
    stored = swap(place, META, encode_meta(meta), None)
    if stored is None:
        return None
    if tag_of_monolith(place) is not None:
        # Somebody began the other form in this very moment. Nobody builds on our list yet, or it is not ours any more.
        place.remote.delete_if(META, stored)
        return None
    return MetaSeen(meta=meta, tag=stored, is_same=True)


def _merge_shard(
    place: Place, name: str, changes: Changes, seen: ShardSeen | None, listed: Collection[str]
) -> tuple[ShardSeen, ShardSeen, tuple[RelPath, ...]]:
    before = seen or fetch_shard(place, name, listed)
    for attempt in range(_TRIES):
        if before.error is not None:
            raise FormatError(before.error)
        shard = before.shard if before.shard is not None else decode_shard(encode_shard({}), shard_key(name))
        merge = plan_commit(changes, partial(_usable, shard))
        if merge.is_empty and not before.is_cleaned:
            return before, before, merge.lost
        stored = swap(place, shard_key(name), shard.with_changes(merge.upserts, merge.removals), before.tag)
        if stored is not None:
            return before, ShardSeen(shard=None, tag=stored), merge.lost
        _pause(attempt)
        before = fetch_shard(place, name, listed)
    raise _busy(f"the shard {name}")


def _usable(shard: IndexText, rel: RelPath) -> Entry | None:
    found = shard.get(rel)
    return found if isinstance(found, Entry) else None


def _clean(place: Place, shards: Mapping[str, ShardSeen]) -> list[str]:
    """Those of some unlisted shards that may be listed again: they name something, and nothing that is gone."""
    return [
        name
        for name, seen in shards.items()
        if seen.shard and (not seen.is_cleaned or swap(place, shard_key(name), seen.shard.data, seen.tag) is not None)
    ]


def _list_shards(place: Place, meta: MetaSeen, touched: Collection[str], known: Iterable[str]) -> tuple[int, int]:
    """Count the commit, and list what was touched; what another client dropped from the list comes back, too.

    The count before and after it.
    """
    for attempt in range(_TRIES):
        if not meta.is_sharded or meta.meta is None:
            raise damaged_index("its list of partitions went away")
        old = meta.meta
        dropped = set(known).difference(old.partitions, touched)
        dropped = {name for name in dropped if _has_rows(place, name)}
        back = _clean(place, fetch_shards(place, dropped, ()))
        seq = max(old.commit_seq or 0, int(place.state.fact("commit_seq") or 0)) + 1
        if seq > COMMIT_SEQ_MAX:
            raise damaged_index(f"its count of commits is {old.commit_seq}, and cannot go on")
        wanted = replace(old, partitions=(*old.partitions, *touched, *back), commit_seq=seq)
        stored = swap(place, META, encode_meta(wanted), meta.tag)
        if stored is not None:
            facts: dict[str, str | None] = {"commit_seq": str(seq)}
            if meta.is_same:
                facts |= {"generation": "2", **meta_facts(MetaSeen(meta=wanted, tag=stored, is_same=True))}
            place.state.set_facts(facts)
            return old.commit_seq or 0, seq
        _pause(attempt)
        meta = fetch_meta(place)
    raise _busy("the list of partitions")
