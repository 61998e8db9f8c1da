"""A round of a migration on Spark: the stores are read, compared and copied in tasks.

Owns: the tables of a round, and what is asked of them.
Must not know: how many rounds there are, what makes the copies count.
Keeps: what `round_here` would do is done, to the same objects.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from mire.errors import FormatError
from mire.flow.transfer import are_short
from mire.model.config import SyncSettings
from mire.model.index import Entry
from mire.model.names import DATASTORE_SUBDIRS, RelPath
from mire.pipeline.foreign import spark_errors
from mire.pipeline.frames import ENTRIES, OBJECTS, TO_COPY, frame_of, kept, rows_of
from mire.pipeline.jobs.cores import cores_of
from mire.pipeline.rounds import Looked, damaged, occupied
from mire.pipeline.sides import Side
from mire.pipeline.stages.copy import Copying, copy
from mire.pipeline.stages.scan import scan
from mire.pipeline.stages.shards import UNLISTED, read_index
from mire.pipeline.stages.transfer import at_once_in, groups_for
from mire.pipeline.store import StoreSpec, open_spec
from mire.pipeline.view import IndexView, check_indexed, check_understood, look_at_index

_VALUES: Final = pa.schema([ENTRIES.field(name) for name in ("rel", "size_bytes", "sha256", "last_modified")])


@contextmanager
def round_on_spark(spark: SparkSession) -> "Iterator[SparkRound]":
    """A round in a session; its tables are let go at the end."""
    with spark_errors("the migration"), ExitStack() as stack:
        yield SparkRound(spark, stack)


class SparkRound:
    """One look at a source, and the copying of what was seen, in tasks."""

    def __init__(self, spark: SparkSession, stack: ExitStack) -> None:
        self._spark, self._stack = spark, stack
        self._cores = cores_of(spark)

    def look(self, source: StoreSpec) -> Looked:
        """Read what the source has: by its index, or (a directory) by what is in it."""
        self._source = source
        entries, view = self._read(source)
        entries = kept(self._stack, entries)
        # One job: another one for the damage would read the parts of an index one after the other.
        row = entries.agg(F.count("rel").alias("objects"), F.sum("size_bytes").alias("size"), _odd()).collect()[0]
        damage = None if view is None else _damage(row, "source")
        self._entries = entries.where(F.col("rel").isNotNull())
        self._looked = Looked(objects=row["objects"], size_bytes=row["size"] or 0, view=view, damage=damage)
        return self._looked

    def rels(self) -> set[str]:
        """The paths that were seen."""
        return set(self._entries.select("rel").toArrow()["rel"].to_pylist())

    def copies(
        self, done: dict[RelPath, Entry], target: Side, *, is_new: bool, dry_run: bool
    ) -> Iterator[dict[str, Any]]:
        """What became of every object that is not done."""
        objects = frame_of(self._spark, [], OBJECTS) if is_new else scan(self._spark, target.spec, cores=self._cores)
        there = objects.select(
            "rel", F.col("size_bytes").alias("there_size"), F.col("fingerprint").alias("there_fingerprint")
        )
        listed = self._listed(target).withColumn("is_listed", F.lit(True))  # noqa: FBT003 - a column
        fresh = _fresh(self._spark, self._entries, done)
        frame = fresh.join(there, "rel", "left").join(listed, "rel", "left").select(*TO_COPY.names)
        gathered = are_short(self._looked.size_bytes, self._looked.objects)
        how = Copying(
            source=self._source,
            target=None if is_new else target.spec,
            at_once=at_once_in(self._cores, SyncSettings().pushes_at_once(are_short=gathered), are_short=gathered),
            gathered=gathered,
            dry_run=dry_run,
        )
        moved = copy(frame.repartition(groups_for(self._looked.objects, self._cores)), how)
        return rows_of(moved.toArrow().to_batches())

    def _read(self, spec: StoreSpec) -> tuple[DataFrame, IndexView | None]:
        if spec.is_directory:
            listed = scan(self._spark, spec, cores=self._cores)
            listed = listed.where(F.split("rel", "/")[0].isin(*DATASTORE_SUBDIRS))
            blank = {name: F.lit(None).cast("string") for name in ENTRIES.names if name not in ("rel", "size_bytes")}
            return listed.select("rel", "size_bytes").withColumns(blank).select(*ENTRIES.names), None
        view = look_at_index(open_spec(spec))
        check_indexed(spec, view)
        return read_index(self._spark, spec, view, cores=self._cores), view

    def _listed(self, target: Side) -> DataFrame:
        """The paths that the index of the target lists; refuse one that has data of its own."""
        none = frame_of(self._spark, [], _VALUES).select("rel")
        if target.spec.is_directory:
            return none
        view = look_at_index(open_spec(target.spec))
        check_understood(view)
        if view.form == "none":
            return none
        listed = kept(self._stack, read_index(self._spark, target.spec, view, cores=self._cores))
        damage = _damage(listed.agg(_odd()).collect()[0], "target")
        if damage is not None:
            raise damage
        listed = listed.where("rel is not null")
        ours = self._entries.select("rel", F.col("size_bytes").alias("size"), F.col("sha256").alias("sha"))
        is_odd = F.col("size").isNull() | (F.col("size") != F.col("size_bytes")) | (F.col("sha") != F.col("sha256"))
        foreign = listed.join(ours, "rel", "left").where(is_odd).limit(1).collect()
        if foreign:
            raise occupied(target, foreign[0]["rel"])
        return listed.select("rel")


def _fresh(spark: SparkSession, entries: DataFrame, done: dict[RelPath, Entry]) -> DataFrame:
    """What is not done, as far as the index tells: without a hash, the time must be the same."""
    if not done:
        return entries
    values = ((rel, entry.size_bytes, entry.sha256, entry.last_modified) for rel, entry in done.items())
    same = frame_of(spark, values, _VALUES)
    return entries.join(
        same,
        (entries["rel"] == same["rel"])
        & (entries["size_bytes"] == same["size_bytes"])
        & (entries["last_modified"] == same["last_modified"])
        & (entries["sha256"].isNull() | (entries["sha256"] == same["sha256"])),
        "left_anti",
    )


def _odd() -> Column:
    """Where an index is damaged first, in an aggregation."""
    at = F.struct(F.coalesce("rel", "partition").alias("what"), "damage")
    return F.min(F.when(F.col("damage") != UNLISTED, at)).alias("odd")


def _damage(row: SparkRow, whose: str) -> FormatError | None:
    odd = row["odd"]
    return None if odd is None else damaged(whose, odd["what"], odd["damage"])
