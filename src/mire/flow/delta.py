"""What the index says about every path that may differ from the base, read with as few requests as that takes.

Owns: the fast path, the comparison of a whole index with what we remember of it, and what is remembered.
Must not know: files of the cache, downloads.
Keeps: what is remembered was read before anything that might be newer, so a later change is always noticed later; a
reading mixed from two commits is read again; a path is missing from the index only if the shard that would list it
was read and is valid.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from mire.edge import clock
from mire.errors import RemoteError, shown
from mire.flow.monolith import fetch_copy, remember_copy
from mire.flow.place import META, Place, Same, fetch
from mire.flow.reading import (
    MetaSeen,
    MonolithSeen,
    ShardSeen,
    check_derived,
    check_empty,
    damaged_index,
    fetch_meta,
    fetch_monolith,
    fetch_shards,
    list_shards,
    meta_facts,
    tag_of_monolith,
)
from mire.flow.unsettled import keep_unsettled, load_unsettled, settle
from mire.model.index import Damaged, Entry
from mire.model.names import RelPath
from mire.wire.indextext import IndexText
from mire.wire.meta import decode_meta
from mire.wire.partition import partition_of
from mire.wire.relpath import check_rel, is_internal

_TORN_MAX: Final = 5
_META_EVERY_MS: Final = 30_000.0
"""How long a store beside a monolith may have been moved to shards by another program before we notice."""


@dataclass(slots=True, kw_only=True)
class Delta:
    """Paths that may differ from the base, each with its entry now (None: the index names it no more)."""

    entries: dict[RelPath, Entry | None] = field(default_factory=dict)
    origins: dict[RelPath, str] = field(default_factory=dict)
    """The partition of entries that are listed in another one than the rule says."""
    findings: list[str] = field(default_factory=list)
    facts: dict[str, str | None] = field(default_factory=dict)
    tags: dict[str, str | None] = field(default_factory=dict)
    monolith: bytes | None = None
    monolith_tag: str | None = None
    is_gone: bool = False
    """Whether there is no index at all, and there was one."""
    is_partial: bool = False
    """Whether only some models were read: what was dealt with is then ahead of what is remembered."""

    def add(self, rel: RelPath, entry: Entry | Damaged | None, name: str | None = None) -> None:
        """Take one entry of the index, from a shard or the monolith; one that cannot be used is told and left out."""
        if is_internal(rel):
            self.entries.pop(rel, None)
            return
        reason = entry.reason if isinstance(entry, Damaged) else None if entry is None else check_rel(rel)
        if reason is not None or isinstance(entry, Damaged):
            self.findings.append(f"{shown(rel)} in the index is skipped: {reason}")
            self.entries.pop(rel, None)
        else:
            self.entries[rel] = entry
            if name is not None and name != partition_of(rel):
                self.origins[rel] = name

    def remember(self, place: Place, unsettled: Collection[RelPath]) -> None:
        """Keep what was read, once every path but the unsettled ones was dealt with: the next reading builds on it."""
        # First what must be looked at again: dying in between costs a second look, not a missing one.
        ahead = self.entries.keys() if self.is_partial and self.monolith_tag is not None else ()
        if not keep_unsettled(place.state, {*unsettled, *ahead}) or self.is_gone:
            return
        if self.monolith is not None and self.monolith_tag is not None:
            remember_copy(place, self.monolith, self.monolith_tag, self.facts)
        else:
            place.state.set_facts(self.facts)
        place.state.set_shard_tags(self.tags)
        if not self.is_partial:
            settle(place.state, self.entries.keys() - set(unsettled))


def read_changes(place: Place) -> Delta | None:
    """What changed anywhere in the index since it was last dealt with; None when nothing did, for one request."""
    generation, known = place.state.fact("generation"), place.state.fact("monolith")
    is_known = generation == "1" and known is not None and tag_of_monolith(place) == known
    if is_known and not _is_meta_due(place):
        return _again_in_copy(place)
    seen = fetch_meta(place)
    if seen.is_sharded:
        return _again_in_shards(place) if generation == "2" and seen.is_same else _read_sharded(place, seen)
    if is_known:
        place.state.set_facts({"meta_looked_ms": now_ms(), **meta_facts(seen)})
        return _again_in_copy(place)
    return _read_dual(place, seen)


def now_ms() -> str:
    """The time, as it is remembered."""
    return str(clock.now_ns() / 1e6)


def _is_meta_due(place: Place) -> bool:
    looked_ms = float(place.state.fact("meta_looked_ms") or 0)
    return not 0 <= clock.now_ns() / 1e6 - looked_ms < _META_EVERY_MS


def _again_in_copy(place: Place) -> Delta | None:
    """What our copy of the monolith says about paths that are not settled."""
    unsettled = load_unsettled(place.state)
    if not unsettled:
        return None
    copy = fetch_copy(place)
    if copy is None:
        return _read_dual(place, MetaSeen(meta=None, tag=None, is_same=False), is_meta_read=False)
    delta = Delta()
    _look_up(delta, copy, unsettled)
    return delta


def _look_up(delta: Delta, monolith: IndexText, rels: Iterable[RelPath]) -> None:
    for rel in rels:
        if rel not in delta.entries:
            delta.entries[rel] = None
            delta.add(rel, monolith.get(rel))


def _read_dual(place: Place, meta: MetaSeen, *, is_meta_read: bool = True) -> Delta | None:
    seen = fetch_monolith(place)
    if seen.monolith is None or seen.tag is None:
        check_empty(place, meta)
        return _gone(place)
    facts: dict[str, str | None] = {"generation": "1"}
    if is_meta_read:
        facts |= {"meta_looked_ms": now_ms(), **meta_facts(meta)}
        if meta.meta is None and not seen.is_same:
            check_derived(place, seen)
    # Fingerprints of shards say nothing beside a monolith, and might match by chance when it is gone.
    delta = Delta(facts=facts, tags=dict.fromkeys(place.state.shard_tags()))
    if not seen.is_same:
        delta.monolith, delta.monolith_tag = seen.monolith.data, seen.tag
        _compare(place, delta, seen)
    _look_up(delta, seen.monolith, load_unsettled(place.state))
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
    return Delta(
        is_gone=True,
        findings=["the remote has no index any more: nothing was changed here, and a push offers what is here again"],
    )


def _again_in_shards(place: Place) -> Delta | None:
    """What the shards say about paths that are not settled, when the list of them has not moved."""
    unsettled = load_unsettled(place.state)
    if not unsettled:
        return None
    shards = fetch_shards(place, {name for rel in unsettled if (name := partition_of(rel)) is not None})
    delta = Delta()
    for rel in unsettled:
        seen = shards.get(partition_of(rel) or "")
        if seen is None or seen.error is None:
            delta.entries[rel] = None
            delta.add(rel, None if seen is None or seen.shard is None else seen.shard.get(rel))
    return delta


def _read_sharded(place: Place, seen: MetaSeen) -> Delta:
    for _ in range(_TORN_MAX):
        if seen.meta is None:
            raise damaged_index("its list of partitions is gone")
        present, known = list_shards(place), place.state.shard_tags()
        # A partition that another client unlisted is still there; what it says counts.
        names = dict.fromkeys((*seen.partitions, *present))
        moved = [name for name in names if name not in present or present[name] != known.get(name)]
        unsettled = load_unsettled(place.state)
        shards = fetch_shards(place, {*moved, *filter(None, map(partition_of, unsettled))})
        delta = of_shards(place, shards, seen.partitions)
        # Neither listed nor there: whatever it listed may be gone, if its objects are.
        for name in known.keys() - names.keys():
            delta.tags[name] = None
            _take_rows(place, delta, name)
        if not delta.findings:
            seq = str(seen.meta.commit_seq or 0)
            delta.facts = {"generation": "2", "commit_seq": seq, "monolith": None, **meta_facts(seen)}
        # One shard is whole in itself; several may be of two commits, which a list that moved gives away.
        again = meta_again(place, seen) if len(shards) > 1 or delta.findings else None
        if again is None:
            return delta
        seen = again
    raise RemoteError("the index changed while it was read, again and again: try later", transient=True, kind="torn")


def meta_again(place: Place, seen: MetaSeen) -> MetaSeen | None:
    """The list of partitions if it is another than a moment ago."""
    found = fetch(place.remote, META, seen.tag)
    if isinstance(found, Same):
        return None
    if found is None:
        return MetaSeen(meta=None, tag=None, is_same=False)
    return MetaSeen(meta=decode_meta(found.data, META), tag=found.stat.fingerprint, is_same=False)


def of_shards(place: Place, shards: dict[str, ShardSeen], listed: Collection[str]) -> Delta:
    """What some shards say, and what they no longer say."""
    delta = Delta()
    for name, seen in shards.items():
        if seen.error is not None:
            delta.findings.append(f"the partition {shown(name)} is skipped: {seen.error}")
        elif seen.shard is None and name in listed:
            delta.findings.append(
                f"the partition {shown(name)} is skipped: the index lists it, but it is not there;"
                " 'mire index rebuild' makes it anew"
            )
        else:
            _take_rows(place, delta, name)
            delta.tags[name] = seen.tag
    for name, seen in shards.items():
        if seen.shard is not None:
            _take_entries(delta, name, seen.shard, is_listed=name in listed)
    return delta


def _take_rows(place: Place, delta: Delta, name: str) -> None:
    for row in place.state.base_in(name):
        delta.entries.setdefault(RelPath(row.rel), None)


def _take_entries(delta: Delta, name: str, shard: IndexText, *, is_listed: bool) -> None:
    for rel, entry in shard.entries():
        is_own = partition_of(rel) == name
        # Where two shards name a path, the one that the rule says counts; unlisted ones may be left from another rule.
        if is_own or (is_listed and delta.entries.get(RelPath(rel)) is None):
            delta.add(RelPath(rel), entry, name)
            if is_own:
                delta.origins.pop(RelPath(rel), None)


__all__ = ["Delta", "meta_again", "of_shards", "read_changes", "replace"]
