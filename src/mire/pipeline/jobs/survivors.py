"""What is left of an index: every entry that can still be read, and which of them say more than others.

Owns: where entries are looked for, and which one stands for a path.
Must not know: what is stored, how the new index is written.
Keeps: an entry that no sound part of the index has dropped is among them, be it that only our cache still knows it.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Final, Literal

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from mire.flow.local import entry_of
from mire.flow.place import Place
from mire.pipeline.frames import ENTRIES, frame_of, kept
from mire.pipeline.jobs.cores import cores_of
from mire.pipeline.stages.shards import UNLISTED, entry_row, read_monolith, read_shards
from mire.pipeline.store import spec_of
from mire.pipeline.view import IndexView
from mire.wire.partition import partition_of

Form = Literal["dual", "sharded"]
AGREED: Final = 2
"""The rank of what only a cache says: it may be old, so an object that is there is read."""


def survivors_of(stack: ExitStack, spark: SparkSession, place: Place, view: IndexView, form: Form) -> DataFrame:
    """The entries that can still be read, each path once; where all there is says nothing usable, a row without values.

    `is_counting` is an entry of the index that counts, or of the copies that stand for it; `is_lasting` one that stays
    without an object: nothing that is left of the index says that it was taken out.
    """
    spec, cores = spec_of(place.ds), cores_of(spark)
    shards = kept(stack, read_shards(spark, spec, view, cores=cores))
    monolith = kept(stack, read_monolith(spark, spec, view))
    counting, beside = (shards, monolith) if form == "sharded" else (monolith, shards)
    damaged = counting.where("damage is not null").select("rel", "partition", "damage").collect()
    unread = {row["partition"] for row in damaged if row["rel"] is None and row["damage"] != UNLISTED}
    unusable = frozenset(row["rel"] for row in damaged if row["rel"] is not None)
    lost = lost_parts(view, form, unread)

    def is_silent(rel: str | None) -> bool:
        return rel is not None and (rel in unusable or lost(partition_of(rel)))

    # Of a shard that the list does not name, readers believe only what has an object.
    unlisted = frozenset(view.shards).difference(view.listed) if form == "sharded" and view.meta is not None else ()
    is_named = F.udf(lambda name: name not in unlisted, "boolean", useArrow=True)("partition")
    is_needed = F.udf(is_silent, "boolean", useArrow=True)("rel")
    no, yes = F.lit(False), F.lit(True)  # noqa: FBT003 - columns
    is_copy = is_needed if form == "dual" else no
    agreed = frame_of(spark, _agreed(place, is_silent), ENTRIES)
    order = Window.partitionBy("rel").orderBy(F.col("damage").isNotNull(), "rank", "partition")
    return (
        counting.withColumns({"rank": F.lit(0), "is_counting": yes, "is_lasting": is_named})
        .unionByName(beside.withColumns({"rank": F.lit(1), "is_counting": is_copy, "is_lasting": is_needed}))
        .unionByName(agreed.withColumns({"rank": F.lit(AGREED), "is_counting": no, "is_lasting": yes}))
        .where("rel is not null")
        .withColumn("number", F.row_number().over(order))
        .where("number = 1")
        .drop("number", "partition", "damage")
    )


def lost_parts(view: IndexView, form: Form, damaged: Collection[str]) -> Callable[[str | None], bool]:
    """Of which partitions it is not known any more what the index that counts said."""
    if form == "dual":
        is_lost = bool(damaged) or view.monolith_tag is None
        return lambda _: is_lost
    readable = frozenset(view.shards).difference(damaged)
    listed = None if view.meta is None else frozenset(view.listed)
    return lambda name: name not in readable and (listed is None or name in listed)


def _agreed(place: Place, is_wanted: Callable[[str], bool]) -> Iterator[tuple[object, ...]]:
    """What this cache and the remote agreed on, of paths of which the index says nothing usable."""
    for row in place.state.all_base():
        entry = entry_of(row) if is_wanted(row.rel) else None
        if entry is not None:
            yield entry_row(row.rel, partition_of(row.rel), replace(entry, sha256=row.sha256))
