"""An index as rows: one task for each group of shards, or one for a monolith.

Owns: how the objects of an index become rows.
Must not know: what is done with the entries.
Keeps: a shard that is missing or not understood is a row that says so, never a failed job, and never no row.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from mire.edge import pool
from mire.edge.remote import Remote
from mire.errors import FormatError, InputError
from mire.flow.place import MONOLITH, Same, fetch, shard_key
from mire.flow.reading import AT_ONCE
from mire.model.index import Damaged, Entry
from mire.pipeline.frames import ENTRIES, batches_of, frame_of, mapped, rows_of
from mire.pipeline.store import StoreSpec, open_spec
from mire.pipeline.view import IndexView
from mire.wire.indextext import IndexText
from mire.wire.monolith import decode_monolith
from mire.wire.partition import partition_of
from mire.wire.relpath import is_internal
from mire.wire.shard import decode_shard

ABSENT: Final = "absent"
UNLISTED: Final = "unlisted"
"""What `damage` says in a row without a path: the shard is not there; it has entries, but nothing lists it."""

_NAMES: Final = pa.schema([("partition", pa.string()), ("is_listed", pa.bool_())])
_SHARDS_A_TASK: Final = 64
EntryRow = tuple[str | None, str | None, int | None, str | None, str | None, str | None, str | None, str | None]
"""The values of a row of `ENTRIES`."""


def read_index(spark: SparkSession, spec: StoreSpec, view: IndexView, *, cores: int) -> DataFrame:
    """What counts as the index: its shards, or its monolith."""
    if view.form == "sharded":
        return read_shards(spark, spec, view, cores=cores)
    return read_monolith(spark, spec, view)


def read_monolith(spark: SparkSession, spec: StoreSpec, view: IndexView) -> DataFrame:
    """The monolith, if there is one, whether it is the index or left behind; one that is not understood is a row."""
    frame = frame_of(spark, [] if view.monolith_tag is None else [(MONOLITH, True)], _NAMES).coalesce(1)
    return mapped(frame, lambda batches: _monolith(spec, batches), ENTRIES)


def read_shards(spark: SparkSession, spec: StoreSpec, view: IndexView, *, cores: int) -> DataFrame:
    """Every shard that is listed or there, whether it is the index or beside a monolith."""
    listed = set(view.listed)
    rows = [(name, name in listed) for name in view.partitions]
    groups = max(1, min(len(rows), max(4 * cores, len(rows) // _SHARDS_A_TASK)))
    frame = frame_of(spark, rows, _NAMES).repartition(groups)
    return mapped(frame, lambda batches: _shards(spec, batches), ENTRIES)


def entry_in(row: dict[str, object]) -> Entry | Damaged | None:
    """The entry that a row holds; None where a join found none."""
    if row["damage"] is not None:
        return Damaged(reason=str(row["damage"]))
    if row["last_modified"] is None:
        return None
    size, mtime, sha256, extra = row["size_bytes"], row["local_mtime"], row["sha256"], row["extra"]
    return Entry(
        size_bytes=size if isinstance(size, int) else 0,
        last_modified=str(row["last_modified"]),
        local_mtime=None if mtime is None else str(mtime),
        sha256=None if sha256 is None else str(sha256),
        extra={} if extra is None else json.loads(str(extra)),
    )


def entry_row(rel: str, partition: str | None, entry: Entry | Damaged) -> EntryRow:
    """The row that holds an entry."""
    if isinstance(entry, Damaged):
        return rel, partition, None, None, None, None, None, entry.reason
    extra = json.dumps(dict(entry.extra)) if entry.extra else None
    return rel, partition, entry.size_bytes, entry.last_modified, entry.local_mtime, entry.sha256, extra, None


def entry_rows(spec: StoreSpec, view: IndexView) -> Iterator[EntryRow]:
    """The rows of `read_index`, read by this process, which does nothing else."""
    remote, listed = open_spec(spec), set(view.listed)
    if view.form == "sharded":
        return _rows_of_shards(remote, [(name, name in listed) for name in view.partitions], is_alone=True)
    return iter(()) if view.monolith_tag is None else iter(_rows_of_monolith(remote))


def _monolith(spec: StoreSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in rows_of(batches):
        yield from batches_of(_rows_of_monolith(open_spec(spec)), ENTRIES)


def _rows_of_monolith(remote: Remote) -> Iterable[EntryRow]:
    body = fetch(remote, MONOLITH)
    if body is None or isinstance(body, Same):
        return ()
    try:
        return _rows(decode_monolith(body.data), None, is_listed=True)
    except FormatError as error:
        return [_about(MONOLITH, error.message)]


def _shards(spec: StoreSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    names = ((row["partition"], row["is_listed"]) for row in rows_of(batches))
    yield from batches_of(_rows_of_shards(open_spec(spec), names, is_alone=False), ENTRIES)


def _rows_of_shards(remote: Remote, names: Iterable[tuple[str, bool]], *, is_alone: bool) -> Iterator[EntryRow]:
    found = pool.run(
        lambda item: _fetched(remote, item[0]), names, at_once=AT_ONCE, gathered=is_alone, is_alone=is_alone
    )
    return (row for (name, is_listed), seen in found for row in _shard_rows(name, seen, is_listed=is_listed))


def _fetched(remote: Remote, name: str) -> IndexText | Damaged:
    body = fetch(remote, shard_key(name))
    if body is None or isinstance(body, Same):
        return Damaged(reason=ABSENT)
    try:
        return decode_shard(body.data, shard_key(name))
    except (FormatError, InputError) as error:
        return Damaged(reason=error.message)


def _shard_rows(name: str, seen: IndexText | Damaged, *, is_listed: bool) -> Iterable[EntryRow]:
    if isinstance(seen, Damaged):
        return [_about(name, seen.reason)]
    told = [] if is_listed or not seen else [_about(name, UNLISTED)]
    return [*told, *_rows(seen, name, is_listed=is_listed)]


def _about(name: str, what: str) -> EntryRow:
    return None, name, None, None, None, None, None, what


def _rows(text: IndexText, name: str | None, *, is_listed: bool) -> Iterator[EntryRow]:
    for rel, entry in text.entries():
        # A shard that nobody lists still counts; what else is in it may be left from another rule.
        if not is_internal(rel) and (is_listed or partition_of(rel) == name):
            yield entry_row(rel, name if name is not None else partition_of(rel), entry)
