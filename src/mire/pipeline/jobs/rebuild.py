"""A correct index from what is stored: a listing, and whatever of the old index can still be read.

Owns: which entry counts for an object, and which objects are read because none does.
Must not know: how an index is written (`flow/reindex`), when an entry outlives its object (`plan/repair`).
Keeps: every object that an index can list is in it, with its hash. Caches delete what an index no longer lists, and
replace what it describes otherwise: so an entry whose object is gone stays, and so does one whose object is something
else than it says, unless that is known to be right. The count of commits is above all there ever were.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from mire.edge import clock
from mire.errors import InputError, RemoteError
from mire.flow.datastore import Datastore
from mire.flow.exchange import check_format, check_gate
from mire.flow.lock import hold_global
from mire.flow.place import Place, open_place
from mire.flow.reindex import Seen, replace_monolith, replace_shards
from mire.model.index import Entry
from mire.model.names import RelPath
from mire.pipeline.foreign import spark_errors
from mire.pipeline.frames import ENTRIES, batches_of, kept, mapped, rows_of, spark_schema
from mire.pipeline.jobs.cores import cores_of
from mire.pipeline.jobs.survivors import AGREED, Form, survivors_of
from mire.pipeline.stages.inspect import inspect
from mire.pipeline.stages.scan import scan
from mire.pipeline.stages.shards import entry_in, entry_row
from mire.pipeline.store import StoreSpec, open_spec, spec_of
from mire.pipeline.view import IndexView, look_at_index
from mire.plan.repair import plan_entry
from mire.plan.threeway import Value
from mire.wire.layout import LATEST, METADATA, RAW
from mire.wire.monolith import encode_monolith
from mire.wire.partition import partition_of
from mire.wire.relpath import check_rel
from mire.wire.shard import encode_shard

SHARDS: Final = pa.schema([("partition", pa.string()), ("entries", pa.int64()), ("data", pa.binary())])
_DECIDED: Final = pa.schema([*ENTRIES, pa.field("outcome", pa.string())])
_OUTCOMES: Final = ("kept", "hashed", "gone", "differing")
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
    """Entries without an object; they stay: whoever has a copy can store it again."""
    differing: int
    """Entries that stay although their object is something else: which of the two is right is not known."""
    shards: int
    left_out: tuple[str, ...] = ()
    """Objects that no index can list, and entries that say nothing usable of an object that is gone; the first."""
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
        with (
            open_place(ds) as place,
            spark_errors("the rebuild"),
            _worked_out(spark, place, form, deep=deep) as work,
        ):
            return replace(work.numbers, is_dry_run=True)
    check_gate(ds)
    # The lock alone, without what a cached datastore does around its own work: the cache may not be able to pull.
    with (
        hold_global(replace(ds, lifecycle=None)) as hold,
        open_place(ds) as place,
        spark_errors("the rebuild"),
        _worked_out(spark, place, form, deep=deep) as work,
    ):

        def check() -> None:
            hold.check(is_strict=True)

        if work.numbers.form == "sharded":
            seq = replace_shards(place, work.seen, _texts(work.entries), check)
            return replace(work.numbers, commit_seq=seq)
        replace_monolith(place, work.seen, _monolith(work.entries), check)
        return work.numbers


@contextmanager
def _worked_out(spark: SparkSession, place: Place, form: Form | None, *, deep: bool) -> Iterator[_Work]:
    check_format(place.ds)
    spec, cores = spec_of(place.ds), cores_of(spark)
    view = look_at_index(open_spec(spec))
    chosen = form_of(view, form, is_sharded=place.ds.sync.is_sharded)
    with ExitStack() as stack:
        survivors = survivors_of(stack, spark, place, view, chosen)
        matched = kept(stack, _matched(scan(spark, spec, cores=cores), survivors, deep=deep))
        usable = matched.where(
            "is_listable and (object_size is not null or (is_lasting and last_modified is not null))"
        )
        read = kept(stack, inspect(usable.where("is_read"), spec))
        _check_read(read)
        entries = kept(stack, _entries(usable, read, spec, deep=deep))
        numbers = entries.agg(
            *(F.count(F.when(F.col("outcome") == each, 1)).alias(each) for each in _OUTCOMES),
            F.count("*").alias("entries"),
            F.count_distinct("partition").alias("shards"),
        ).collect()[0]
        has_nothing = "object_size is null and last_modified is null"
        odd = matched.where(f"(not is_listable and object_size is not null) or ({has_nothing})").select("rel")
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
                **numbers.asDict(),
                left_out=tuple(row["rel"] for row in odd.orderBy("rel").limit(_PATHS_SHOWN).collect()),
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


def _matched(listed: DataFrame, survivors: DataFrame, *, deep: bool) -> DataFrame:
    """Objects beside the entry that describes them, if one does; what has only one of the two is there, too."""
    objects = listed.select("rel", F.col("size_bytes").alias("object_size"), "modified_ms")
    listable = F.udf(is_listable, "boolean", useArrow=True)
    # A push that died after it replaced an object leaves it younger than its entry.
    entry_ms = F.unix_millis(F.try_to_timestamp("last_modified"))
    is_described = (
        (F.col("rank") < AGREED)
        & (F.col("size_bytes") == F.col("object_size"))
        & F.col("sha256").isNotNull()
        & (F.col("modified_ms") <= entry_ms)
    )
    believed = F.lit(False) if deep else F.coalesce(is_described, F.lit(False))  # noqa: FBT003 - columns
    return (
        objects.join(survivors, "rel", "full_outer")
        .withColumn("is_read", F.col("object_size").isNotNull() & ~believed)
        .withColumn("is_listable", listable("rel"))
    )


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


def _entries(usable: DataFrame, read: DataFrame, spec: StoreSpec, *, deep: bool) -> DataFrame:
    """The entries of the new index: those that are believed, and new ones for the other objects."""
    now = clock.now_instant()
    read_as = read.select("rel", F.col("size_bytes").alias("read_size"), F.col("sha256").alias("read_sha256"), "marker")
    joined = usable.join(read_as, "rel", "left")
    is_other = (F.col("read_size") != F.col("size_bytes")) | (F.col("read_sha256") != F.col("sha256"))
    other = joined.where(is_other & F.col("is_counting"))
    if deep or other.isEmpty():
        vouched = joined.withColumn("is_vouched", F.lit(deep))
    else:
        vouched = joined.join(_vouched(other, usable, spec), "rel", "left")

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = ((row["rel"], *_decided(row, now)) for row in rows_of(batches))
        yield from batches_of(
            ((*entry_row(rel, partition_of(rel), entry), what) for rel, entry, what in rows), _DECIDED
        )

    return mapped(vouched.withColumn("damage", F.lit(None).cast("string")), work, _DECIDED)


def _vouched(other: DataFrame, usable: DataFrame, spec: StoreSpec) -> DataFrame:
    """Those of some objects that are right, whatever their entries say: named by sound metadata, or leading to some."""
    beside = F.regexp_replace("rel", f"/{RAW}$", f"/{METADATA}")
    raws = other.where(F.col("rel").endswith(f"/{RAW}")).select(
        F.col("rel").alias("raw"), "read_sha256", beside.alias("rel")
    )
    there = usable.where("object_size is not null")
    metadata = inspect(raws.join(there, "rel", "left_semi").select("rel"), spec).select(
        "rel", F.col("sha256").alias("meta_sha256"), "meta_checksum"
    )
    is_sound = F.col("sha256").isNull() | (F.col("sha256") == F.col("meta_sha256"))
    named = raws.join(metadata, "rel").join(there.select("rel", "sha256"), "rel")
    whole = named.where(is_sound & (F.col("meta_checksum") == F.col("read_sha256"))).select(F.col("raw").alias("rel"))
    leads_to = F.concat(
        F.regexp_replace("rel", f"{LATEST}$", ""), F.col("marker").cast("string"), F.lit(f"/{METADATA}")
    )
    markers = other.where("marker is not null").select(F.col("rel").alias("raw"), leads_to.alias("rel"))
    leading = markers.join(there, "rel", "left_semi").select(F.col("raw").alias("rel"))
    return whole.unionByName(leading).withColumn("is_vouched", F.lit(True))  # noqa: FBT003 - a column


def _decided(row: dict[str, Any], now: str) -> tuple[Entry, str]:
    """The entry of a path, and how it came to it."""
    found = entry_in(row)
    before = found if isinstance(found, Entry) else None
    if before is not None and not row["is_read"]:
        return before, "gone" if row["object_size"] is None else "kept"
    stored = Value(size_bytes=row["read_size"], sha256=row["read_sha256"])
    match plan_entry(before, stored, is_counting=bool(row["is_counting"]), is_vouched=bool(row["is_vouched"])):
        case "keep":
            assert before is not None  # noqa: S101 - by the plan
            return before, "differing"
        case "complete":
            assert before is not None  # noqa: S101 - by the plan
            return replace(before, sha256=stored.sha256), "hashed"
        case "describe":
            extra = {} if before is None else before.extra
            entry = Entry(size_bytes=stored.size_bytes, last_modified=now, sha256=stored.sha256, extra=extra)
            return entry, "hashed"


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
