"""What changed anywhere in the index, read with as few requests as that takes.

Owns: the fast path, and the comparison of a whole index with what we remember of it.
Must not know: files of the cache, downloads.
Keeps: what is remembered was read before anything that might be newer, so a later change is always noticed later; a
reading mixed from two commits is read again.
"""

from typing import Final

from mire.edge import clock
from mire.flow.delta import Delta, now_ms
from mire.flow.monolith import fetch_copy
from mire.flow.place import META, MONOLITH, Place, Same, fetch
from mire.flow.reading import (
    MetaSeen,
    MonolithSeen,
    damaged_index,
    fetch_meta,
    fetch_monolith,
    fetch_shards,
    is_derived,
    is_empty,
    list_shards,
    meta_facts,
    monolith_seen,
    torn,
)
from mire.flow.unsettled import load_unsettled
from mire.model.names import RelPath
from mire.wire.meta import decode_meta
from mire.wire.partition import partition_of

_TORN_MAX: Final = 5
_META_EVERY_MS: Final = 30_000.0
"""How long a store beside a monolith may have been moved to shards by another program before we notice."""


def read_changes(place: Place) -> Delta | None:
    """What changed since everything was last dealt with; None when nothing did, for one request."""
    for _ in range(_TORN_MAX):
        found = _read(place)
        if not isinstance(found, Moved):
            return found
    raise torn()


class Moved:
    """Somebody was at work while the index was read: read it again."""


def _read(place: Place) -> Delta | Moved | None:
    generation, known = place.state.fact("generation"), place.state.fact("monolith")
    if generation == "1" and known is not None and not _is_meta_due(place):
        found = fetch(place.remote, MONOLITH, known)
        if isinstance(found, Same):
            return _again_in_copy(place)
        if found is not None:
            return _read_dual(place, monolith_seen(found), None)
    meta = fetch_meta(place)
    if not meta.is_sharded:
        return _read_dual(place, fetch_monolith(place), meta)
    return _again_in_shards(place, meta) if generation == "2" and meta.is_same else _read_sharded(place, meta)


def _is_meta_due(place: Place) -> bool:
    looked_ms = float(place.state.fact("meta_looked_ms") or 0)
    # A clock that was set back makes it due at once.
    return not 0 <= clock.now_ns() / 1e6 - looked_ms < _META_EVERY_MS


def _again_in_copy(place: Place) -> Delta | Moved | None:
    """What the monolith says about paths that are not settled; it is the one we remember."""
    unsettled = load_unsettled(place.state)
    if not unsettled:
        return None
    copy = fetch_copy(place)
    if copy is None:
        return _read_dual(place, fetch_monolith(place), None)
    delta = Delta()
    delta.look_up(copy, unsettled)
    return delta


def _read_dual(place: Place, seen: MonolithSeen, meta: MetaSeen | None) -> Delta | Moved | None:
    if seen.monolith is None:
        return _gone(place) if is_empty(place, meta or fetch_meta(place)) else Moved()
    # Fingerprints of shards say nothing beside a monolith, and could come true by chance when it is gone.
    delta = Delta(facts={"generation": "1"}, tags=dict.fromkeys(place.state.shard_tags()))
    if meta is not None:
        delta.facts |= {"meta_looked_ms": now_ms(), **meta_facts(meta)}
        if meta.meta is None and not seen.is_same and not is_derived(place, seen):
            return Moved()
    if not seen.is_same:
        delta.monolith, delta.monolith_tag = seen.monolith.data, seen.tag
        _compare(place, delta, seen)
    delta.look_up(seen.monolith, load_unsettled(place.state))
    return delta


def _compare(place: Place, delta: Delta, seen: MonolithSeen) -> None:
    assert seen.monolith is not None  # noqa: S101 - by the caller
    previous = fetch_copy(place) if place.state.fact("monolith") is not None else None
    if previous is None:
        delta.entries = {RelPath(row.rel): None for row in place.state.all_base()}
        for rel, entry in seen.monolith.entries():
            delta.add(RelPath(rel), entry)
        return
    difference = previous.diff(seen.monolith)
    delta.entries = dict.fromkeys(map(RelPath, difference.removed))
    for rel in (*difference.added, *difference.changed):
        delta.add(RelPath(rel), seen.monolith[rel])


def _gone(place: Place) -> Delta | None:
    """An index that is gone is no news of deletions."""
    if place.state.fact("generation") is None and next(place.state.all_base(), None) is None:
        return None
    why = "the remote has no index any more: nothing was changed here, and the next push offers what is here again"
    return Delta(is_gone=True, findings=[why])


def _again_in_shards(place: Place, meta: MetaSeen) -> Delta | None:
    """What the shards say about paths that are not settled; the list of them is the one we remember."""
    unsettled = load_unsettled(place.state)
    if not unsettled:
        return None
    names = {rel: partition_of(rel) or "" for rel in unsettled}
    wanted = set(names.values()) - {""}
    shards = fetch_shards(place, wanted, meta.partitions)
    delta = Delta()
    for rel, name in names.items():
        seen = shards.get(name)
        if seen is not None and seen.error is None:
            delta.look_up(seen.shard, [rel])
    return delta


def _read_sharded(place: Place, seen: MetaSeen) -> Delta | Moved:
    for _ in range(_TORN_MAX):
        if seen.meta is None:
            raise damaged_index("its list of partitions is gone")
        present, known = list_shards(place), place.state.shard_tags()
        # A partition that another client unlisted is still there, and what it says counts.
        names = dict.fromkeys((*seen.partitions, *present))
        moved = [name for name in names if name not in present or present[name] != known.get(name)]
        again = {name for rel in load_unsettled(place.state) if (name := partition_of(rel)) is not None}
        shards = fetch_shards(place, {*moved, *again}, seen.partitions)
        delta = Delta()
        delta.add_shards(place, shards, seen.partitions)
        for name in {*known, *place.state.partitions()} - names.keys():
            delta.tags[name] = None
            delta.add_rows(place, name)
        if not delta.skipped:
            seq = str(seen.meta.commit_seq or 0)
            delta.facts = {"generation": "2", "commit_seq": seq, "monolith": None, **meta_facts(seen)}
        # One shard is whole in itself; several may be of two commits, which a list that moved gives away.
        newer = meta_again(place, seen) if len(shards) > 1 or delta.skipped else None
        if newer is None:
            return delta
        seen = newer
    return Moved()


def meta_again(place: Place, seen: MetaSeen) -> MetaSeen | None:
    """The list of partitions if it is another than a moment ago."""
    found = fetch(place.remote, META, seen.tag)
    if isinstance(found, Same):
        return None
    if found is None:
        return MetaSeen(meta=None, tag=None, is_same=False)
    return MetaSeen(meta=decode_meta(found.data, META), tag=found.stat.fingerprint, is_same=False)
