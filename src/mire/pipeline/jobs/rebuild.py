"""A correct index from what is stored: a listing, and whatever of the old index can still be read.

Owns: which entry counts for an object, and which objects are read because none does.
Must not know: how an index is written (`flow/reindex`).
Keeps: every object that an index can list is in it, with its hash; nothing that has no object is; the count of commits
is above all there ever were; until the last step the old index is what counts.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from mire.edge import clock
from mire.errors import InputError, RemoteError
from mire.flow.datastore import Datastore
from mire.flow.exchange import check_gate
from mire.flow.lock import hold_global
from mire.flow.place import open_place
from mire.flow.reindex import Seen, replace_monolith, replace_shards
from mire.model.index import Entry
from mire.model.names import RelPath
from mire.pipeline.foreign import spark_errors
from mire.pipeline.frames import ENTRIES, batches_of, kept, mapped, rows_of, spark_schema
from mire.pipeline.jobs.cores import cores_of
from mire.pipeline.stages.inspect import inspect
from mire.pipeline.stages.scan import scan
from mire.pipeline.stages.shards import entry_in, entry_row, read_monolith, read_shards
from mire.pipeline.store import StoreSpec, open_spec, spec_of
from mire.pipeline.view import IndexView, look_at_index
from mire.wire.monolith import encode_monolith
from mire.wire.partition import partition_of
from mire.wire.relpath import check_rel
from mire.wire.shard import encode_shard

Form = Literal["dual", "sharded"]
SHARDS: Final = pa.schema([("partition", pa.string()), ("entries", pa.int64()), ("data", pa.binary())])
_PATHS_SHOWN: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What was done, or would be."""

    form: Form
    entries: int
    kept: int
    """Entries of the old index that still describe their object."""
    hashed: int
    """Objects that were read, because nothing described them."""
    gone: int
    """Entries of the old index without an object."""
    shards: int
    left_out: tuple[str, ...] = ()
    """Objects that no index can list; the first of them."""
    commit_seq: int | None = None
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    entries: DataFrame
    numbers: Rebuilt
    seen: Seen


def rebuild_index(
    spark: SparkSession, ds: Datastore, *, form: Form | None = None, deep: bool = False, dry_run: bool = False
) -> Rebuilt:
    """Make the index anew, under the global lock; `deep` reads every object, whatever the old index says of it."""
    if dry_run:
        with spark_errors("the rebuild"), _worked_out(spark, ds, form, deep=deep) as work:
            return replace(work.numbers, is_dry_run=True)
    check_gate(ds)
    # The lock alone, without what a cached datastore does around its own work: the cache may not be able to pull.
    with (
        hold_global(replace(ds, lifecycle=None)) as hold,
        open_place(ds) as place,
        spark_errors("the rebuild"),
        _worked_out(spark, ds, form, deep=deep) as work,
    ):

        def check() -> None:
            hold.check(is_strict=True)

        if work.numbers.form == "sharded":
            seq = replace_shards(place, work.seen, _texts(work.entries), check)
            return replace(work.numbers, commit_seq=seq)
        replace_monolith(place, work.seen, _monolith(work.entries), check)
        return work.numbers


@contextmanager
def _worked_out(spark: SparkSession, ds: Datastore, form: Form | None, *, deep: bool) -> Iterator[_Work]:
    spec, cores = spec_of(ds), cores_of(spark)
    view = look_at_index(open_spec(spec))
    chosen = form_of(view, form, is_sharded=ds.sync.is_sharded)
    with ExitStack() as stack:
        matched = kept(stack, _matched(spark, spec, view, chosen, cores))
        usable = matched.where("is_listable and object_size is not null")
        described = F.lit(False) if deep else F.col("is_described")  # noqa: FBT003 - a column
        read = kept(stack, inspect(usable.where(~described), spec))
        _check_read(read)
        entries = kept(stack, _entries(usable.where(described), read, usable))
        numbers = matched.agg(
            F.count(F.when(F.col("object_size").isNull(), 1)).alias("gone"),
            F.count(F.when(F.col("is_listable") & F.col("object_size").isNotNull(), 1)).alias("entries"),
            F.count(F.when(F.col("is_listable") & F.col("object_size").isNotNull() & ~described, 1)).alias("hashed"),
        ).collect()[0]
        odd = matched.where("not is_listable and object_size is not null").select("rel").orderBy("rel")
        yield _Work(
            entries=entries,
            seen=Seen(
                meta=view.meta,
                meta_tag=view.meta_tag,
                monolith_tag=view.monolith_tag,
                shards=view.shards,
                is_meta_damaged=view.meta_damage is not None,
            ),
            numbers=Rebuilt(
                form=chosen,
                entries=numbers["entries"],
                kept=numbers["entries"] - numbers["hashed"],
                hashed=numbers["hashed"],
                gone=numbers["gone"],
                shards=entries.select("partition").distinct().count(),
                left_out=tuple(row["rel"] for row in odd.limit(_PATHS_SHOWN).collect()),
            ),
        )


def form_of(view: IndexView, wanted: Form | None, *, is_sharded: bool) -> Form:
    """Which form the new index has: that of the old one, as far as it can be told."""
    known: Form | None = None
    if view.meta is not None:
        known = "sharded" if view.form == "sharded" else "dual"
    elif view.monolith_tag is None and view.shards:
        known = "sharded"
    elif view.monolith_tag is not None and not view.shards:
        known = "dual"
    if known is not None:
        if wanted not in (None, known):
            advice = (
                "'mire index migrate' makes it sharded afterwards" if wanted == "sharded" else "there is no way back"
            )
            raise InputError(f"the index is {known}, and is made anew as that: do without --index {wanted}; {advice}")
        return known
    if view.monolith_tag is None and not view.shards and view.meta_damage is None:
        return wanted or ("sharded" if is_sharded else "dual")
    if wanted is None:
        raise InputError(
            "the list of partitions is gone or damaged, and both a monolith and shards are there: which of them counted"
            " nobody can tell; say --index sharded or --index dual",
            kind="which_form",
        )
    return wanted


def _matched(spark: SparkSession, spec: StoreSpec, view: IndexView, form: Form, cores: int) -> DataFrame:
    """Objects beside the entry that describes them, if one does; what has only one of the two is there, too."""
    shards = read_shards(spark, spec, view, cores=cores).withColumn("rank", F.lit(0 if form == "sharded" else 1))
    monolith = read_monolith(spark, spec, view).withColumn("rank", F.lit(1 if form == "sharded" else 0))
    order = Window.partitionBy("rel").orderBy("rank", "partition")
    survivors = (
        shards.unionByName(monolith)
        .where(F.col("rel").isNotNull() & F.col("damage").isNull())
        .withColumn("number", F.row_number().over(order))
        .where("number = 1")
        .drop("number", "rank", "partition")
    )
    objects = scan(spark, spec, cores=cores).select("rel", F.col("size_bytes").alias("object_size"))
    listable = F.udf(is_listable, "boolean", useArrow=True)
    joined = objects.join(survivors, "rel", "full_outer")
    is_described = F.coalesce(
        (F.col("size_bytes") == F.col("object_size")) & F.col("sha256").isNotNull(),
        F.lit(False),  # noqa: FBT003
    )
    return joined.withColumn("is_described", is_described).withColumn("is_listable", listable("rel"))


def is_listable(rel: str) -> bool:
    """Whether an index can list a path."""
    return partition_of(rel) is not None and check_rel(rel) is None


def _check_read(read: DataFrame) -> None:
    failed = read.where("error_kind = 'unreadable'").select("error").limit(1).collect()
    if failed:
        raise RemoteError(
            f"an object cannot be read, so no index is complete: {failed[0]['error']}; nothing was changed",
            kind="unreadable",
        )


def _entries(described: DataFrame, read: DataFrame, usable: DataFrame) -> DataFrame:
    """The entries of the new index: those that describe their object, and new ones for the others."""
    now = clock.now_instant()
    fresh = read.select(
        "rel", F.col("size_bytes"), F.lit(now).alias("last_modified"), F.col("sha256").alias("sha256")
    ).join(usable.select("rel", "local_mtime", "extra"), "rel")
    kept = described.select("rel", "size_bytes", "last_modified", "sha256", "local_mtime", "extra")
    whole = kept.unionByName(fresh).withColumn("damage", F.lit(None).cast("string"))

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (entry_row(row["rel"], partition_of(row["rel"]), _entry(row)) for row in rows_of(batches))
        yield from batches_of(rows, ENTRIES)

    return mapped(whole, work, ENTRIES)


def _entry(row: dict[str, Any]) -> Entry:
    found = entry_in(row)
    assert isinstance(found, Entry)  # noqa: S101 - by the query
    return found


def _texts(entries: DataFrame) -> Iterator[tuple[str, bytes]]:
    """The shards, made where their entries are; the driver has a few of them at a time."""

    def encode(table: pa.Table) -> pa.Table:
        rows = sorted(table.to_pylist(), key=lambda row: row["rel"])
        data = encode_shard({RelPath(row["rel"]): _entry(row) for row in rows})
        return pa.Table.from_pylist([{"partition": rows[0]["partition"], "entries": len(rows), "data": data}], SHARDS)

    shards = entries.groupBy("partition").applyInArrow(encode, spark_schema(SHARDS))
    for row in shards.toLocalIterator():
        yield row["partition"], bytes(row["data"])


def _monolith(entries: DataFrame) -> bytes:
    rows = entries.orderBy("rel").toLocalIterator()
    return encode_monolith({RelPath(row["rel"]): _entry(row.asDict()) for row in rows}, clock.now_instant())
