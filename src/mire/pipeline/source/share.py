"""What the index says about one piece of a store, read where the task runs.

Owns: entries of shards, of a share of a monolith and of a walked directory, as one kind of thing; looking others up.
Must not know: tables, Spark.
Keeps: an entry counts once, whichever shard it strayed into; a shard that cannot be read is told, never no entries.
"""

import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from mire.edge import pool
from mire.edge.remote import Body, Remote, Stat
from mire.errors import FormatError, InputError, NotFoundError, shown
from mire.flow.place import MONOLITH, fetch, shard_key
from mire.flow.reading import AT_ONCE
from mire.flow.transfer import mtime_text
from mire.model.index import Damaged, Entry
from mire.pipeline.source.piece import Piece, fetch_list
from mire.wire.indextext import IndexText
from mire.wire.monolith import decode_monolith
from mire.wire.partition import partition_of
from mire.wire.relpath import check_rel, is_internal, tenant_of
from mire.wire.shard import decode_shard, encode_shard, shard_of

Item = TypeVar("Item")
Result = TypeVar("Result")
Found = tuple[str, str | None, Entry | Damaged]
"""A path, the partition it is listed in, and what is said of it."""
_Texts = Iterator[tuple[str, str | None, IndexText | Stat]]
"""The same, with where it is said: the text of a shard or monolith, or the file itself."""


@dataclass(slots=True)
class Share:
    """A piece of a store."""

    remote: Remote
    piece: Piece
    damage: list[tuple[str, str]] = field(default_factory=list)
    """Shards that could not be read, and why; complete when all entries were."""
    _shards: dict[str, IndexText | Damaged] = field(default_factory=dict)
    _listed: frozenset[str] | None = None
    _monolith: IndexText | None = None
    _guard: threading.RLock = field(default_factory=threading.RLock)

    def entries(self) -> Iterator[Found]:
        """Everything in the piece that clients sync; what must not be followed is damaged."""
        for rel, partition, text in self._texts(""):
            why = check_rel(rel)
            if why is not None:
                yield rel, partition, Damaged(reason=why)
            else:
                yield rel, partition, text[rel] if isinstance(text, IndexText) else _entry(text)

    def paths(self, end: str) -> Iterator[str]:
        """The paths with an end that may be followed; what the index says of them is not looked at."""
        return (rel for rel, _, _ in self._texts(end) if check_rel(rel) is None)

    def _texts(self, end: str) -> _Texts:
        match self.piece.form:
            case "shards":
                found = self._of_shards(end)
            case "monolith":
                found = self._of_monolith(end)
            case _:
                found = self._of_directory(end)
        return (item for item in found if not is_internal(item[0]))

    def find(self, rel: str) -> Entry | Damaged | None:
        """What the index says of a path that may be in another piece."""
        if self.piece.form == "directory":
            try:
                return _entry(self.remote.head(rel))
            except NotFoundError:
                return None
        if self.piece.form == "monolith":
            return self._whole().get(rel)
        name = partition_of(rel) or ""
        shard = self._shard(name)
        if isinstance(shard, Damaged):
            return Damaged(reason=f"belongs to the shard {shown(name)}, which cannot be read: {shard.reason}")
        return shard.get(rel)

    def _of_shards(self, end: str) -> _Texts:
        self._shards |= dict(each(self.piece, self._fetched, self.piece.shards, at_once=AT_ONCE))
        for name in self.piece.shards:
            shard = self._shards[name]
            if isinstance(shard, Damaged):
                self.damage.append((name, shard.reason))
                continue
            for rel in shard.ending(end):
                if partition_of(rel) == name or not self._is_at_home(rel):
                    yield rel, name, shard

    def _is_at_home(self, rel: str) -> bool:
        """Whether a path that strayed into another shard is also in its own."""
        own = partition_of(rel)
        if own is None:
            return False
        shard = self._shard(own)
        return not isinstance(shard, Damaged) and rel in shard

    def _of_monolith(self, end: str) -> _Texts:
        number, count = self.piece.share
        whole = self._whole()
        for rel in whole.ending(end):
            partition = partition_of(rel)
            if zlib.crc32((partition or "").encode("utf-8", "surrogatepass")) % count == number:
                yield rel, partition, whole

    def _of_directory(self, end: str) -> _Texts:
        for prefix, is_level in self.piece.prefixes:
            found = iter(self.remote.list_level(prefix).objects) if is_level else self.remote.list(prefix)
            for stat in found:
                if stat.key.endswith(end) and tenant_of(stat.key) is None:
                    yield stat.key, None, stat

    def _whole(self) -> IndexText:
        with self._guard:
            if self._monolith is None:
                body = fetch(self.remote, MONOLITH)
                if not isinstance(body, Body):
                    raise FormatError("the index went away while it was read: read again")
                self._monolith = decode_monolith(body.data)
            return self._monolith

    def _shard(self, name: str) -> IndexText | Damaged:
        known = self._shards.get(name)
        if known is not None:
            return known
        with self._guard:
            # Names that are read at once have their markers in the same shard: it is asked for once.
            if name not in self._shards:
                self._shards[name] = self._fetched(name)
            return self._shards[name]

    def _fetched(self, name: str) -> IndexText | Damaged:
        body = fetch(self.remote, shard_key(name))
        if body is None and name not in self.piece.shards and not self.piece.tags:
            if name not in self._all_listed():
                return decode_shard(encode_shard({}), shard_key(name))
            body = fetch(self.remote, shard_key(name))  # a shard is stored before it is listed: it may have come since
        if self.piece.tags and (not isinstance(body, Body) or body.stat.fingerprint != self.piece.tags.get(name)):
            # Beside a monolith a shard says nothing that was not proved; what it would list is in there.
            whole = self._whole()
            return decode_shard(shard_of(whole, whole.of_partition(name)), shard_key(name))
        if not isinstance(body, Body):
            return Damaged(reason="it is listed, but not there")
        try:
            return decode_shard(body.data, shard_key(name))
        except (FormatError, InputError) as error:
            return Damaged(reason=error.message)

    def _all_listed(self) -> frozenset[str]:
        """Which shards there should be, those of other pieces included."""
        if self._listed is None:
            meta = fetch_list(self.remote)
            self._listed = frozenset() if meta is None else frozenset(meta.partitions)
        return self._listed


def each(
    piece: Piece, call: Callable[[Item], Result], items: Iterable[Item], *, at_once: int
) -> Iterable[tuple[Item, Result]]:
    """Call with every item: several at once where that means waiting, one by one where it only means files."""
    if piece.spec.is_directory:
        return ((item, call(item)) for item in items)
    return pool.run(call, items, at_once=at_once)


def _entry(stat: Stat) -> Entry:
    return Entry(size_bytes=stat.size_bytes, last_modified=mtime_text(stat.modified_ms * 1_000_000))
