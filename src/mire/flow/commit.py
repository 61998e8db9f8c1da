"""Publishing changes in the index of a remote, in either generation.

Owns: the order of writes, and starting over when somebody was faster.
Must not know: files of the cache, uploads.
Keeps: every index object is replaced only as it was read, and only the named paths change in it. v1: the monolith,
then the touched partitions, then the list with its proof. v2: the touched shards, then the list. Dying in between
leaves an old proof or an old list, never one that vouches for what was not written.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from mire.edge import clock, pool
from mire.edge.remote import Absent, Condition, Matches, Refused, Stored, Unknown
from mire.errors import ConflictError, RemoteError
from mire.flow.heal import heal_partitions
from mire.flow.place import META, MONOLITH, Place, shard_key
from mire.flow.reading import (
    AT_ONCE,
    MetaSeen,
    MonolithSeen,
    Reading,
    ShardSeen,
    fetch_meta,
    fetch_shard,
    meta_facts,
    read_for,
    remember_monolith,
)
from mire.model.index import Entry, Meta, Proof
from mire.model.names import RelPath
from mire.plan.commit import Changes, plan_commit
from mire.wire.indextext import IndexText
from mire.wire.meta import decode_meta, encode_meta
from mire.wire.monolith import decode_monolith, encode_monolith
from mire.wire.partition import partition_of
from mire.wire.shard import decode_shard, encode_shard

_TRIES = 20
_PAUSE_MS = 25.0
_PAUSE_MAX_MS = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """How a commit ended: what did not become visible because its path had another value by then."""

    lost: tuple[RelPath, ...] = ()


def commit(place: Place, changes: Changes, reading: Reading, *, is_fresh_sharded: bool = False) -> Committed:
    """Publish changes that were decided on a reading; it is read again as often as somebody was faster."""
    for attempt in range(_TRIES):
        done = _dual(place, changes, reading) if reading.monolith is not None else _sharded(place, changes, reading)
        if done is not None:
            return done
        clock.pause(clock.jitter() * min(_PAUSE_MAX_MS, _PAUSE_MS * 2**attempt))
        reading = read_for(place, changes.paths, is_fresh_sharded=is_fresh_sharded)
    raise ConflictError(
        f"the index of {place.remote.properties.name} was changed by others {_TRIES} times while we wrote it:"
        " nothing is lost, push again",
        kind="busy_index",
    )


def _dual(place: Place, changes: Changes, reading: Reading) -> Committed | None:
    seen = reading.monolith
    assert seen is not None  # noqa: S101 - chosen by the caller
    before = seen.monolith
    if before is None:
        before = decode_monolith(encode_monolith({}, clock.now_instant()))
    merge = plan_commit(changes, reading.entry)
    after, tag = before, seen.tag
    if not merge.is_empty or tag is None:
        data = before.with_changes(merge.upserts, merge.removals, last_pulled=clock.now_instant())
        stored = _put(place, MONOLITH, data, tag)
        if stored is None:
            return None
        after, tag = decode_monolith(data), stored
    names = {partition_of(rel) for rel in changes.paths} - {None}
    moved = _prove(place, seen, after, tag, {name for name in names if name is not None})
    if moved is not None:  # the store was moved to the sharded form by somebody: what counts is said there
        return _sharded(place, changes, moved)
    if seen.is_same or seen.monolith is None:
        remember_monolith(place, after.data, tag)
    place.state.set_facts({"generation": "1"})
    return Committed(lost=merge.lost)


def _prove(place: Place, seen: MonolithSeen, after: IndexText, tag: str, touched: set[str]) -> Reading | None:
    """Bring the partitions in step with a monolith we wrote, and say so in the list; a reading if shards count."""
    meta = _remembered_meta(place, seen.tag) or fetch_meta(place)
    for _ in range(_TRIES):
        if meta.is_sharded:
            return read_for(place, ())
        names = touched if _proves(meta.meta, seen.tag) else None
        listed = heal_partitions(place, after, tag, names)
        if listed is None:
            return None  # somebody committed after us: they find no proof, and bring everything in step
        partitions = tuple(dict.fromkeys((*(meta.meta.partitions if meta.meta and names is not None else ()), *listed)))
        wanted = Meta(
            version=1,
            partitions=partitions,
            proof=Proof(monolith=tag, extra=meta.meta.proof.extra if meta.meta and meta.meta.proof else {}),
            extra=meta.meta.extra if meta.meta else {},
        )
        stored = _put(place, META, encode_meta(wanted), meta.tag)
        if stored is not None:
            place.state.set_facts(meta_facts(MetaSeen(meta=wanted, tag=stored, is_same=True)))
            return None
        meta = fetch_meta(place)
    return None


def _proves(meta: Meta | None, tag: str | None) -> bool:
    return meta is not None and meta.proof is not None and tag is not None and meta.proof.monolith == tag


def _remembered_meta(place: Place, tag: str | None) -> MetaSeen | None:
    """The list we remember, if it vouches for the monolith we changed: then it need not be read."""
    known, text = place.state.fact("meta"), place.state.fact("meta_text")
    if known is None or text is None:
        return None
    meta = decode_meta(text.encode(), META)
    return MetaSeen(meta=meta, tag=known, is_same=True) if _proves(meta, tag) else None


def _sharded(place: Place, changes: Changes, reading: Reading) -> Committed | None:
    groups: dict[str, set[RelPath]] = {}
    for rel in changes.paths:
        groups.setdefault(partition_of(rel) or "", set()).add(rel)
    lost: list[RelPath] = [*groups.pop("", ())]  # no index can list them
    meta = reading.meta or fetch_meta(place)
    known = place.state.shard_tags()
    tags: dict[str, str | None] = {}
    touched: list[str] = []

    def merged(name: str) -> tuple[ShardSeen, ShardSeen, tuple[RelPath, ...]]:
        return _merge_shard(place, name, changes.only(frozenset(groups[name])), reading.shards.get(name))

    for name, (before, after, missed) in pool.run(merged, sorted(groups), at_once=AT_ONCE):
        lost += missed
        if after.tag is not None:
            touched.append(name)
        # Only what we knew before, plus our own changes, is known now.
        tags[name] = after.tag if before.tag == known.get(name) else known.get(name)
    place.state.set_shard_tags(tags)
    _list_shards(place, meta, touched)
    return Committed(lost=tuple(lost))


def _merge_shard(
    place: Place, name: str, changes: Changes, seen: ShardSeen | None
) -> tuple[ShardSeen, ShardSeen, tuple[RelPath, ...]]:
    before = seen or fetch_shard(place, name)
    for attempt in range(_TRIES):
        shard = before.shard if before.shard is not None else decode_shard(encode_shard({}), shard_key(name))
        merge = plan_commit(changes, partial(_usable, shard))
        if merge.is_empty:
            return before, before, merge.lost
        data = shard.with_changes(merge.upserts, merge.removals)
        stored = _put(place, shard_key(name), data, before.tag)
        if stored is not None:
            return before, ShardSeen(shard=None, tag=stored), merge.lost
        clock.pause(clock.jitter() * min(_PAUSE_MAX_MS, _PAUSE_MS * 2**attempt))
        before = fetch_shard(place, name)
    raise ConflictError(f"the shard {name} was changed by others {_TRIES} times: push again", kind="busy_index")


def _usable(shard: IndexText, rel: RelPath) -> Entry | None:
    found = shard.get(rel)
    return found if isinstance(found, Entry) else None


def _list_shards(place: Place, meta: MetaSeen, touched: Iterable[str]) -> None:
    """Count the commit, and list what was touched."""
    for attempt in range(_TRIES):
        old = meta.meta if meta.meta is not None else Meta(version=2)
        seq = max(old.commit_seq or 0, int(place.state.fact("commit_seq") or 0)) + 1
        wanted = replace(old, version=2, partitions=(*old.partitions, *touched), commit_seq=seq, proof=None)
        stored = _put(place, META, encode_meta(wanted), meta.tag)
        if stored is not None:
            facts: dict[str, str | None] = {"commit_seq": str(seq)}
            if meta.is_same or meta.meta is None:
                facts |= {"generation": "2", **meta_facts(MetaSeen(meta=wanted, tag=stored, is_same=True))}
            place.state.set_facts(facts)
            return
        clock.pause(clock.jitter() * min(_PAUSE_MAX_MS, _PAUSE_MS * 2**attempt))
        meta = fetch_meta(place)
    raise ConflictError(f"the list of partitions was changed by others {_TRIES} times: push again", kind="busy_index")


def _put(place: Place, key: str, data: bytes, tag: str | None) -> str | None:
    """Write an index object over the one that was read; its new fingerprint, or None when that is no longer there."""
    condition: Condition = Absent() if tag is None else Matches(tag)
    match place.remote.put_if(key, data, condition, token=clock.new_uuid()):
        case Stored(fingerprint):
            return fingerprint
        case Refused():
            return None
        case Unknown(error):
            raise RemoteError(
                f"whether {key} was written could not be found out: {error.message}; nothing is lost, push again",
                transient=True,
                kind="unknown_outcome",
            )
