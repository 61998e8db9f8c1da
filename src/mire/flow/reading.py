"""Reading the index of a remote, in either generation, as little of it as some paths need.

Owns: which objects of the index are asked for, and what a reading says about one path.
Must not know: files of the cache, what is done with an entry.
Keeps: an index object that is there but cannot be understood is an error, never an absent one; a monolith that was left
behind when the store was sharded is not taken for the index.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from mire.edge import pool
from mire.edge.remote import Body, Remote
from mire.errors import FormatError, InputError, NotFoundError, RemoteError, shown
from mire.flow.monolith import fetch_copy
from mire.flow.place import META, MONOLITH, SHARDS, Place, Same, fetch, partition_at, shard_key
from mire.model.index import Damaged, Entry, Meta
from mire.model.names import RelPath
from mire.wire.indextext import IndexText
from mire.wire.meta import decode_meta, encode_meta
from mire.wire.monolith import decode_monolith
from mire.wire.partition import partition_of
from mire.wire.shard import SUFFIX, decode_shard

AT_ONCE = 25
_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaSeen:
    """The list of partitions as it is now, with its fingerprint; both None when there is none."""

    meta: Meta | None
    tag: str | None
    is_same: bool
    """Whether it is the one we remember."""

    @property
    def is_sharded(self) -> bool:
        """Whether the shards it lists are the index."""
        return self.meta is not None and self.meta.version == 2  # noqa: PLR2004 - the generation

    @property
    def partitions(self) -> tuple[str, ...]:
        """What it lists."""
        return () if self.meta is None else self.meta.partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class MonolithSeen:
    """The monolith as it is now, with its fingerprint; both None when there is none."""

    monolith: IndexText | None
    tag: str | None
    is_same: bool
    modified_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardSeen:
    """A shard as it is now, with its fingerprint; both None when there is none. `error`: it is not understood."""

    shard: IndexText | None
    tag: str | None
    error: str | None = None
    is_cleaned: bool = False
    """Whether entries are left out of it that are there: nobody lists it, and their objects are gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was read of an index: either the list and some shards, or the monolith."""

    meta: MetaSeen | None
    monolith: MonolithSeen | None = None
    shards: dict[str, ShardSeen] = field(default_factory=dict)

    @property
    def is_new(self) -> bool:
        """Whether there is no index yet."""
        if self.monolith is not None:
            return self.monolith.monolith is None
        return self.meta is not None and self.meta.meta is None

    def entry(self, rel: RelPath) -> Entry | None:
        """What the index says of a path; an entry or shard that says nothing usable is an error about that path."""
        if self.monolith is not None:
            found = None if self.monolith.monolith is None else self.monolith.monolith.get(rel)
        else:
            found = self._in_shard(rel)
        if isinstance(found, Damaged):
            raise FormatError(f"{shown(rel)} in the index {found.reason}: 'mire verify' shows what can be done")
        return found

    def _in_shard(self, rel: RelPath) -> Entry | Damaged | None:
        name = partition_of(rel) or ""
        seen = self.shards.get(name)
        if seen is not None and seen.error is not None:
            raise FormatError(seen.error)
        if seen is None or seen.shard is None:
            if self.meta is not None and name in self.meta.partitions:
                raise damaged_index(f"it lists the partition {shown(name)}, which is not there")
            return None
        return seen.shard.get(rel)


def read_for(place: Place, rels: Iterable[RelPath], *, is_fresh_sharded: bool = False) -> Reading:
    """What the index says now about some paths: the monolith, or the list and the shards of these paths.

    `is_fresh_sharded` says which form an index gets where there is none.
    """
    names = {name for rel in rels if (name := partition_of(rel)) is not None}
    for _ in range(_TRIES):
        meta = fetch_meta(place) if place.state.fact("generation") != "1" else None
        if meta is not None and meta.is_sharded:
            return Reading(meta=meta, shards=fetch_shards(place, names, meta.partitions))
        monolith = fetch_monolith(place)
        if monolith.monolith is None:
            meta = meta or fetch_meta(place)
            if meta.is_sharded or (is_fresh_sharded and is_empty(place, meta)):
                return Reading(meta=meta, shards=fetch_shards(place, names, meta.partitions))
            is_settled = is_fresh_sharded is False and is_empty(place, meta)
        else:
            is_settled = meta is None or meta.meta is not None or is_derived(place, monolith)
        if is_settled:
            return Reading(meta=meta, monolith=monolith)
    raise torn()


def missed_move(place: Place, reading: Reading | None) -> bool:
    """Whether a monolith was read although the store was moved to shards since we last looked; from now on we know."""
    if reading is None or reading.monolith is None or reading.meta is not None or not fetch_meta(place).is_sharded:
        return False
    note_move(place)
    return True


def note_move(place: Place) -> None:
    """Know from now on that shards are the index."""
    place.state.set_facts({"generation": "2", "monolith": None})


def torn() -> RemoteError:
    """The error of an index that is another whenever it is looked at."""
    return RemoteError("the index changed while it was read, again and again: try later", transient=True, kind="torn")


def check_empty(place: Place, meta: MetaSeen) -> None:
    """Refuse to begin an index beside the remains of another, or beside one that came meanwhile."""
    if not meta.is_sharded and not is_empty(place, meta):
        raise torn()


def check_derived(place: Place, seen: MonolithSeen) -> None:
    """Refuse a monolith that is not the index, or that somebody is replacing."""
    if not is_derived(place, seen):
        raise torn()


def is_empty(place: Place, meta: MetaSeen) -> bool:
    """Whether a store without a monolith has no index; False when one came meanwhile. Remains of one are an error."""
    stray = next(iter(list_shards(place)), None)
    if stray is None and not meta.partitions:
        return True
    if tag_of_monolith(place) is not None or fetch_meta(place).tag != meta.tag:
        return False
    if meta.partitions:
        raise damaged_index(f"it lists partitions beside a monolith, but there is no {MONOLITH}")
    raise damaged_index(f"it has the shard {shown(stray)}, but nothing that lists it")


def is_derived(place: Place, seen: MonolithSeen) -> bool:
    """Refuse a monolith beside newer shards that say more and that nothing lists: a sharded store that lost its list.

    Beside a monolith that counts, shards are copies of it. Whoever died before listing them left newer ones, too, but
    they say nothing that it does not say. False when somebody is at work: read again.
    """
    name = newer_shard(place.remote, seen)
    if name is None:
        return True
    if fetch_meta(place).meta is not None or tag_of_monolith(place) != seen.tag:
        return False
    raise damaged_index(f"its list of partitions is gone, and {shown(name)} is newer than {MONOLITH}")


def newer_shard(remote: Remote, seen: MonolithSeen) -> str | None:
    """A shard that is newer than a monolith and says something that it does not, if there is one."""
    monolith = seen.monolith if seen.monolith is not None else {}

    def says_more(name: str) -> bool:
        shard = _fetched(remote, name)
        return shard is not None and any(monolith.get(rel) != entry for rel, entry in shard.entries())

    stats = remote.list(SHARDS)
    newer = [partition_at(stat.key) for stat in stats if _is_shard(stat.key) and stat.modified_ms >= seen.modified_ms]
    return min((name for name, is_more in pool.run(says_more, newer, at_once=AT_ONCE) if is_more), default=None)


def _fetched(remote: Remote, name: str) -> IndexText | None:
    """A shard that is there and understood."""
    body = fetch(remote, shard_key(name))
    try:
        return decode_shard(body.data, shard_key(name)) if isinstance(body, Body) else None
    except (FormatError, InputError):
        return None


def damaged_index(what: str) -> FormatError:
    """The error of an index that contradicts itself."""
    return FormatError(
        f"the index of the remote is damaged: {what}; nothing was changed; 'mire verify' shows what can be done",
        kind="damaged_index",
    )


def fetch_meta(place: Place) -> MetaSeen:
    """The list of partitions; one request, which brings nothing when it is the one we remember."""
    known, text = place.state.fact("meta"), place.state.fact("meta_text")
    found = fetch(place.remote, META, known if text is not None else None)
    if isinstance(found, Same):
        return MetaSeen(meta=decode_meta((text or "").encode(), META), tag=known, is_same=True)
    if found is None:
        return MetaSeen(meta=None, tag=None, is_same=False)
    return MetaSeen(meta=decode_meta(found.data, META), tag=found.stat.fingerprint, is_same=False)


def meta_facts(seen: MetaSeen) -> dict[str, str | None]:
    """What to remember of the list of partitions."""
    return {"meta": seen.tag, "meta_text": None if seen.meta is None else encode_meta(seen.meta).decode()}


def fetch_monolith(place: Place) -> MonolithSeen:
    """The monolith; one request, which brings nothing when our copy is current."""
    known = place.state.fact("monolith")
    found = fetch(place.remote, MONOLITH, known)
    if isinstance(found, Same):
        copy = fetch_copy(place)
        if copy is not None:
            return MonolithSeen(monolith=copy, tag=known, is_same=True)
        found = fetch(place.remote, MONOLITH)
    if found is None or isinstance(found, Same):
        return MonolithSeen(monolith=None, tag=None, is_same=False)
    return monolith_seen(found)


def monolith_seen(body: Body) -> MonolithSeen:
    """A monolith that came, and is not the one we remember."""
    return MonolithSeen(
        monolith=decode_monolith(body.data),
        tag=body.stat.fingerprint,
        is_same=False,
        modified_ms=body.stat.modified_ms,
    )


def tag_of_monolith(place: Place) -> str | None:
    """The fingerprint of the monolith; None when there is none."""
    try:
        return place.remote.head(MONOLITH).fingerprint
    except NotFoundError:
        return None


def list_shards(place: Place) -> dict[str, str]:
    """The fingerprint of every shard there is, listed or not, by partition."""
    return {partition_at(stat.key): stat.fingerprint for stat in place.remote.list(SHARDS) if _is_shard(stat.key)}


def _is_shard(key: str) -> bool:
    return key != META and key.endswith(SUFFIX) and "/" not in key.removeprefix(SHARDS)


def fetch_shards(place: Place, names: Iterable[str], listed: Collection[str] | None = None) -> dict[str, ShardSeen]:
    """Shards, a few at once; those that are not there or not understood are among them, as such."""
    among = None if listed is None else frozenset(listed)
    return dict(pool.run(lambda name: fetch_shard(place, name, among), sorted(names), at_once=AT_ONCE, gathered=True))


def fetch_shard(place: Place, name: str, listed: Collection[str] | None) -> ShardSeen:
    """One shard. If it is not among those that are listed, only what has an object counts: it may be old."""
    try:
        found = fetch(place.remote, shard_key(name))
        if found is None or isinstance(found, Same):
            return ShardSeen(shard=None, tag=None)
        shard = decode_shard(found.data, shard_key(name))
    except (FormatError, InputError) as error:
        return ShardSeen(shard=None, tag=None, error=error.message)
    is_doubtful = listed is not None and name not in listed
    stale = [rel for rel, entry in shard.entries() if is_doubtful and not _is_stored(place, rel, entry)]
    if stale:
        shard = decode_shard(shard.with_changes({}, stale), shard_key(name))
    return ShardSeen(shard=shard, tag=found.stat.fingerprint, is_cleaned=bool(stale))


def _is_stored(place: Place, rel: str, entry: Entry | Damaged) -> bool:
    try:
        return isinstance(entry, Entry) and place.remote.head(rel).size_bytes == entry.size_bytes
    except (NotFoundError, InputError):
        return False
