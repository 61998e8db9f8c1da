"""Tasks of a read, planned from the index without a listing.

Owns: what one task is to read, and how many tasks there are.
Must not know: tables, what is done with entries.
Keeps: every path that the index lists is in exactly one piece; planning a store with an index takes two requests at
most, however large it is, and a third one beside a monolith that has no list; a store whose index is lost, or that is
not there, is none without rows.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from pyspark.sql.datasource import InputPartition

from mire.edge import pool
from mire.edge.remote import Remote
from mire.errors import FormatError, NotFoundError
from mire.flow.place import META, MONOLITH, SHARDS, Same, fetch
from mire.flow.reading import torn
from mire.model.index import Meta
from mire.pipeline.source.place import open_checked
from mire.pipeline.stages.scan import plan_pieces
from mire.pipeline.store import StoreSpec
from mire.pipeline.view import check_indexed, check_understood, look_at_index
from mire.plan.source import Wish, plan_shards
from mire.wire.meta import decode_meta
from mire.wire.partition import JOINT

_TASKS: Final = 16
"""Tasks of a read at least, if there is that much to read. How many cores will read is not known where it is planned,
and those of the planning machine tell nothing about them."""
_ITEMS_A_PIECE: Final = 32
"""Shards, or namespaces with one file each, of a store that is asked over a network: a task mostly waits, and each
waits for itself."""
_ITEMS_OF_FILES: Final = 1024
"""Of a directory. A task costs some ten milliseconds, with what Spark's worker cleans up behind it; a shard of a model
with all its files well below one: fewer, larger pieces pay."""
_SHARDS_A_PART: Final = 256
"""What fits into memory easily."""
_SPACES_AT_ONCE: Final = 16
_MONOLITH_A_PIECE: Final = 8 << 20
_MONOLITH_PIECES: Final = 16
"""Every piece of a monolith is read from all of it: no more of them than pay."""

Form = Literal["shards", "monolith", "directory", "names"]


@dataclass(frozen=True, kw_only=True)
class Piece(InputPartition):
    """What one task reads: some shards, a share of a monolith, some directories, or names that the driver found."""

    spec: StoreSpec
    form: Form
    shards: tuple[str, ...] = ()
    tags: dict[str, str] = field(default_factory=dict)
    """Beside a monolith: the fingerprints under which shards say what it says."""
    share: tuple[int, int] = (0, 1)
    prefixes: tuple[tuple[str, bool], ...] = ()
    names: tuple[tuple[Any, ...], ...] = ()
    """Of a stream: directory, latest version and those to read."""
    more: "tuple[Piece, ...]" = ()
    """What the same task reads of other namespaces."""

    def parts(self) -> "Iterator[Piece]":
        """The piece in parts that are read one after the other, none with more than fits into memory easily."""
        own = replace(self, more=())
        if len(self.shards) <= _SHARDS_A_PART:
            yield own
        else:
            for start in range(0, len(self.shards), _SHARDS_A_PART):
                yield replace(own, shards=self.shards[start : start + _SHARDS_A_PART])
        for other in self.more:
            yield from other.parts()

    @property
    def count(self) -> int:
        """How many items there are that can be read apart."""
        return len(self.shards or self.prefixes or self.names) or 1

    def between(self, start: int, end: int) -> "Piece":
        """Some of the items."""
        match self.form:
            case "shards":
                shards = self.shards[start:end]
                return replace(self, shards=shards, tags=_near(shards, self.tags))
            case "directory":
                return replace(self, prefixes=self.prefixes[start:end])
            case "names":
                return replace(self, names=self.names[start:end])
            case _:
                return self


def plan_tasks(
    specs: Sequence[StoreSpec], *, table: str, wishes: Collection[Wish], tasks_max: int | None
) -> list[Piece]:
    """The pieces of all namespaces, no more of them than so many."""
    each_max = -(-(tasks_max or _TASKS) // max(1, len(specs)))

    def one(place: int) -> list[Piece]:
        return _of_store(specs[place], open_checked(specs[place]), table, wishes, each_max)

    found = dict(pool.run(one, range(len(specs)), at_once=_SPACES_AT_ONCE))
    return _cut([piece for place in range(len(specs)) for piece in found[place]], tasks_max)


def _cut(pieces: Sequence[Piece], tasks_max: int | None) -> list[Piece]:
    """The same items in as many pieces as there shall be tasks; small ones of several namespaces are one task's."""
    total = sum(piece.count for piece in pieces)
    most = _ITEMS_OF_FILES if all(piece.spec.is_directory for piece in pieces) else _ITEMS_A_PIECE
    wanted = min(tasks_max or max(_TASKS, -(-total // most)), total) or 1
    cuts = [total * number // wanted for number in range(wanted + 1)]
    tasks: list[list[Piece]] = [[] for _ in range(wanted)]
    begin = task = 0
    for piece in pieces:
        end, start = begin + piece.count, begin
        while start < end:
            if cuts[task + 1] <= start:
                task += 1
                continue
            stop = min(end, cuts[task + 1])
            tasks[task].append(piece.between(start - begin, stop - begin))
            start = stop
        begin = end
    return [replace(several[0], more=tuple(several[1:])) for several in tasks if several]


def _of_store(spec: StoreSpec, remote: Remote, table: str, wishes: Collection[Wish], tasks_max: int) -> list[Piece]:
    """All of one namespace, to be cut: a share of a monolith, which cannot be, for each task it may have."""
    meta = fetch_list(remote)
    if meta is not None and meta.version == 2:  # noqa: PLR2004 - the generation
        return _of_shards(spec, plan_shards(meta.partitions, table=table, wishes=wishes), {})
    try:
        monolith = remote.head(MONOLITH)
    except NotFoundError:
        view = look_at_index(remote)
        check_indexed(spec, view)
        if view.form != "none":
            raise torn() from None
        return _of_directory(spec, remote, tasks_max) if spec.is_directory else []
    if meta is None and next(iter(remote.list(SHARDS)), None) is not None:
        check_understood(look_at_index(remote))
    proof = None if meta is None else meta.proof
    if proof is not None and proof.monolith == monolith.fingerprint:
        return _of_shards(spec, plan_shards(proof.shards, table=table, wishes=wishes), proof.shards)
    count = min(_MONOLITH_PIECES, tasks_max, 1 + monolith.size_bytes // _MONOLITH_A_PIECE)
    return [Piece(spec=spec, form="monolith", share=(number, count)) for number in range(count)]


def fetch_list(remote: Remote) -> Meta | None:
    """The list of partitions; one that is there but not understood is an error: what it lists would pass for gone."""
    body = fetch(remote, META)
    if body is None or isinstance(body, Same):
        return None
    try:
        return decode_meta(body.data, META)
    except FormatError as error:
        raise FormatError(f"{error.message}; 'mire index rebuild' makes a new one from what is stored") from None


def _of_shards(spec: StoreSpec, shards: Collection[str], tags: Mapping[str, str]) -> list[Piece]:
    # In order, neighbours are of one type: they share the shards that list its markers.
    return [Piece(spec=spec, form="shards", shards=tuple(sorted(shards)), tags=dict(tags))] if shards else []


def _near(group: Sequence[str], tags: Mapping[str, str]) -> dict[str, str]:
    """The fingerprints of some shards, and of those that may list their markers: one level above, or below."""
    if not tags:
        return {}
    above = {name.rpartition(JOINT)[0] for name in group}
    below = f"{group[-1]}{JOINT}"
    wanted = {*group, *above, *(name for name in tags if name.startswith(below))}
    return {name: tags[name] for name in wanted if name in tags}


def _of_directory(spec: StoreSpec, remote: Remote, tasks_max: int) -> list[Piece]:
    prefixes = plan_pieces(remote, wanted=tasks_max, is_solo=not spec.namespace)
    return [Piece(spec=spec, form="directory", prefixes=tuple(prefixes))]


def plan_names(spaces: Iterable[tuple[StoreSpec, Sequence[tuple[Any, ...]]]], *, tasks_max: int | None) -> list[Piece]:
    """The pieces of names that are known already, of all namespaces."""
    return _cut([Piece(spec=spec, form="names", names=tuple(names)) for spec, names in spaces], tasks_max)
