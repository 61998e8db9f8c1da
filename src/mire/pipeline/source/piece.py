"""Tasks of a read, planned from the index without a listing.

Owns: what one task is to read, and how many tasks there are.
Must not know: tables, what is done with entries.
Keeps: every path that the index lists is in exactly one piece; planning a store with an index takes two requests at
most, however large it is, and a third one beside a monolith that has no list; a store whose index is lost, or that is
not there, is none without rows.
"""

import itertools
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from pyspark.sql.datasource import InputPartition

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

_SHARDS_A_PIECE: Final = 256
"""Of a store that is asked over a network: it mostly waits, and every task waits for itself."""
_SHARDS_OF_FILES: Final = 1024
"""Of a directory. A task costs some ten milliseconds, with what Spark's worker cleans up behind it; a shard of a model
with all its files well below one: fewer, larger pieces pay."""
_TASKS_A_CORE: Final = 4
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
    """Of a stream: directory, latest version and those to read; or None, a partition and what is wrong with it."""

    def parts(self) -> "Iterator[Piece]":
        """The piece in parts that are read one after the other, none with more than fits into memory easily."""
        if len(self.shards) <= _SHARDS_A_PIECE:
            yield self
            return
        for start in range(0, len(self.shards), _SHARDS_A_PIECE):
            yield replace(self, shards=self.shards[start : start + _SHARDS_A_PIECE])


def plan_tasks(
    specs: Sequence[StoreSpec], *, table: str, wishes: Collection[Wish], tasks_max: int | None
) -> list[Piece]:
    """The pieces of all namespaces."""
    pieces: list[Piece] = []
    for spec in specs:
        pieces += _of_store(spec, open_checked(spec), table, wishes, tasks_max)
    return pieces


def _of_store(
    spec: StoreSpec, remote: Remote, table: str, wishes: Collection[Wish], tasks_max: int | None
) -> list[Piece]:
    meta = fetch_list(remote)
    if meta is not None and meta.version == 2:  # noqa: PLR2004 - the generation
        return _of_shards(spec, plan_shards(meta.partitions, table=table, wishes=wishes), {}, tasks_max)
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
        return _of_shards(spec, plan_shards(proof.shards, table=table, wishes=wishes), proof.shards, tasks_max)
    count = min(_MONOLITH_PIECES, tasks_max or _MONOLITH_PIECES, 1 + monolith.size_bytes // _MONOLITH_A_PIECE)
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


def _tasks() -> int:
    return _TASKS_A_CORE * (os.cpu_count() or 1)


def _of_shards(spec: StoreSpec, shards: Collection[str], tags: Mapping[str, str], tasks_max: int | None) -> list[Piece]:
    # In order, neighbours are of one type: they share the shards that list its markers.
    names = sorted(shards)
    most = _SHARDS_OF_FILES if spec.is_directory else _SHARDS_A_PIECE
    wanted = min(tasks_max or max(_tasks(), -(-len(names) // most)), len(names)) or 1
    return [
        Piece(spec=spec, form="shards", shards=tuple(group), tags=_near(group, tags))
        for group in _groups(names, wanted)
    ]


def _near(group: Sequence[str], tags: Mapping[str, str]) -> dict[str, str]:
    """The fingerprints of some shards, and of those that may list their markers: one level above, or below."""
    if not tags:
        return {}
    above = {name.rpartition(JOINT)[0] for name in group}
    below = f"{group[-1]}{JOINT}"
    wanted = {*group, *above, *(name for name in tags if name.startswith(below))}
    return {name: tags[name] for name in wanted if name in tags}


def _of_directory(spec: StoreSpec, remote: Remote, tasks_max: int | None) -> list[Piece]:
    wanted = tasks_max or _tasks()
    pieces = plan_pieces(remote, wanted=wanted, is_solo=not spec.namespace)
    return [Piece(spec=spec, form="directory", prefixes=tuple(group)) for group in _groups(pieces, wanted)]


def _groups(items: Sequence[Any], count: int) -> list[Sequence[Any]]:
    """The items in so many groups of neighbours, of about the same length; none is empty."""
    ends = [len(items) * number // count for number in range(count + 1)]
    return [items[start:end] for start, end in itertools.pairwise(ends) if end > start]


def plan_names(spec: StoreSpec, names: Sequence[tuple[Any, ...]], *, tasks_max: int | None) -> list[Piece]:
    """The pieces of names that are known already."""
    wanted = tasks_max or _tasks()
    return [Piece(spec=spec, form="names", names=tuple(group)) for group in _groups(names, wanted)]
