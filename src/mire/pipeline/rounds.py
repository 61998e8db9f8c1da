"""The copying of a migration: everything the source has, until it says nothing new.

Owns: what counts as the source's, what is done already, and in how many rounds it is copied.
Must not know: how an object is copied, what makes the copies count.
Keeps: nothing is copied into a store with data of somebody else, and nothing that its index describes is replaced; the
source is only read, and an object that is not as its index says is damage only if that index is still the same; what a
run that died left is verified and used; the index and the listing are each read once in a round.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from mire.edge import clock
from mire.errors import ConflictError, FormatError, MireError, RemoteError, shown
from mire.flow.transfer import are_short
from mire.model.config import SyncSettings
from mire.model.index import Entry
from mire.model.names import DATASTORE_SUBDIRS, RelPath
from mire.pipeline.frames import ENTRIES, OBJECTS, TO_COPY, frame_of, kept, rows_of
from mire.pipeline.jobs.cores import are_tasks_worth_it, cores_of
from mire.pipeline.progress import counted
from mire.pipeline.sides import Side
from mire.pipeline.stages.copy import Copying, copy, copy_here
from mire.pipeline.stages.scan import scan
from mire.pipeline.stages.shards import read_index
from mire.pipeline.stages.transfer import at_once_in, error_in, groups_for
from mire.pipeline.store import StoreSpec, open_spec
from mire.pipeline.view import IndexView, check_indexed, check_understood, look_at_index

_ROUNDS: Final = 3
"""Times what was published at the source meanwhile is brought, too."""
_VALUES: Final = pa.schema([ENTRIES.field(name) for name in ("rel", "size_bytes", "sha256", "last_modified")])
_LEFT_OUT_MAX: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What was moved, or would be."""

    source: str
    target: str
    objects: int
    size_bytes: int
    copied: int
    there: int
    """Objects that were in the target already: left by a run that died, and verified."""
    left_out: tuple[str, ...] = ()
    """Paths that no index can list, or that are in the part of somebody else."""
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What the source has, as it was looked at."""

    entries: DataFrame
    objects: int
    size_bytes: int
    view: IndexView | None
    """The index that says so; None of a directory, which has none."""
    damage: FormatError | None
    """What is wrong with that index, or was while it was read."""


def plan_all(spark: SparkSession, source: Side, target: Side, *, is_new: bool) -> Moved:
    """What `copy_all` would do; `is_new`: the target is not there yet."""
    with ExitStack() as stack:
        wanted = _look(spark, source.spec, stack)
        if wanted.damage is not None:
            raise wanted.damage
        frame = _frame(spark, wanted, {}, target, stack, is_new=is_new)
        moved = kept(stack, _copies(spark, frame, wanted, source.spec, None if is_new else target.spec, dry_run=True))
        failed = moved.where("error is not null").limit(1).collect()
        if failed:
            raise _told(_error(failed[0].asDict()), source)
        numbers = moved.groupBy("outcome").agg(F.count("rel").alias("objects"), F.sum("size_bytes").alias("size"))
        found = {row["outcome"]: (row["objects"], row["size"]) for row in numbers.collect()}
        left_out = moved.where("outcome = 'left_out'").select("rel").orderBy("rel").limit(_LEFT_OUT_MAX).collect()
    copied, there = found.get("copied", (0, 0)), found.get("there", (0, 0))
    return Moved(
        source=source.name,
        target=target.name,
        objects=copied[0] + there[0],
        size_bytes=copied[1] + there[1],
        copied=copied[0],
        there=there[0],
        left_out=tuple(row["rel"] for row in left_out),
        is_dry_run=True,
    )


def copy_all(spark: SparkSession, source: Side, target: Side) -> tuple[dict[RelPath, Entry], Moved]:
    """Copy until the source says nothing new; what every object is, and the numbers."""
    done: dict[RelPath, Entry] = {}
    copied: set[RelPath] = set()
    for _ in range(_ROUNDS):
        left_out: list[str] = []
        with ExitStack() as stack:
            wanted = _look(spark, source.spec, stack)
            trouble: MireError | None = wanted.damage
            if trouble is None:
                if done:
                    found = set(wanted.entries.select("rel").toArrow()["rel"].to_pylist())
                    done = {rel: entry for rel, entry in done.items() if rel in found}
                frame = _frame(spark, wanted, done, target, stack)
                trouble = _take(_copied(spark, frame, wanted, source.spec, target.spec), done, copied, left_out)
        if source.spec.is_directory or look_at_index(open_spec(source.spec)) == wanted.view:
            if trouble is not None:
                raise _told(trouble, source)
            count = len(copied & done.keys())
            return done, Moved(
                source=source.name,
                target=target.name,
                objects=len(done),
                size_bytes=sum(entry.size_bytes for entry in done.values()),
                copied=count,
                there=len(done) - count,
                left_out=tuple(sorted(left_out)[:_LEFT_OUT_MAX]),
            )
    raise RemoteError(
        f"{source.name} was changed again and again while it was copied: nothing was switched; run again when less is"
        " written there",
        transient=True,
        kind="torn",
    )


def _take(
    rows: Iterable[dict[str, Any]], done: dict[RelPath, Entry], copied: set[RelPath], left_out: list[str]
) -> MireError | None:
    """Note what became of every object; the first error of one."""
    trouble: MireError | None = None
    for row in rows:
        rel = RelPath(row["rel"])
        if row["error"] is not None:
            trouble = trouble or _error(row)
            done.pop(rel, None)  # what was copied in an earlier round is not what the source has now
        elif row["outcome"] == "left_out":
            left_out.append(rel)
        else:
            done[rel] = _entry(row)
            if row["outcome"] == "copied":
                copied.add(rel)
    return trouble


def _frame(
    spark: SparkSession,
    wanted: _Wanted,
    done: dict[RelPath, Entry],
    target: Side,
    stack: ExitStack,
    *,
    is_new: bool = False,
) -> DataFrame:
    """What is to be copied, beside what the target has under the same path."""
    listed = _check_target(spark, wanted, target, stack).withColumn("is_listed", F.lit(True))  # noqa: FBT003 - a column
    objects = frame_of(spark, [], OBJECTS) if is_new else scan(spark, target.spec, cores=cores_of(spark))
    there = objects.select(
        "rel", F.col("size_bytes").alias("there_size"), F.col("fingerprint").alias("there_fingerprint")
    )
    frame = _fresh(spark, wanted, done).join(there, "rel", "left").join(listed, "rel", "left")
    return frame.select(*TO_COPY.names)


def _copied(
    spark: SparkSession, frame: DataFrame, wanted: _Wanted, source: StoreSpec, target: StoreSpec
) -> Iterator[dict[str, Any]]:
    """What became of every object, copied in tasks or, where those only cost, by this process."""
    if not are_tasks_worth_it(spark):
        table, gathered = frame.toArrow(), are_short(wanted.size_bytes, wanted.objects)
        at_once = SyncSettings().pushes_at_once(are_short=gathered)
        rows = copy_here(table.to_batches(), Copying(source=source, target=target, at_once=at_once, gathered=gathered))
        return counted(rows, table.num_rows)
    return rows_of(_copies(spark, frame, wanted, source, target).toArrow().to_batches())


def _copies(
    spark: SparkSession,
    frame: DataFrame,
    wanted: _Wanted,
    source: StoreSpec,
    target: StoreSpec | None,
    *,
    dry_run: bool = False,
) -> DataFrame:
    cores, gathered = cores_of(spark), are_short(wanted.size_bytes, wanted.objects)
    at_once = at_once_in(cores, SyncSettings().pushes_at_once(are_short=gathered), are_short=gathered)
    how = Copying(source=source, target=target, at_once=at_once, gathered=gathered, dry_run=dry_run)
    return copy(frame.repartition(groups_for(wanted.objects, cores)), how)


def _fresh(spark: SparkSession, wanted: _Wanted, done: dict[RelPath, Entry]) -> DataFrame:
    """What the source has that is not done, as far as its index tells: without a hash, the time must be the same."""
    fresh = wanted.entries
    if not done:
        return fresh
    values = ((rel, entry.size_bytes, entry.sha256, entry.last_modified) for rel, entry in done.items())
    same = frame_of(spark, values, _VALUES)
    return fresh.join(
        same,
        (fresh["rel"] == same["rel"])
        & (fresh["size_bytes"] == same["size_bytes"])
        & (fresh["last_modified"] == same["last_modified"])
        & (fresh["sha256"].isNull() | (fresh["sha256"] == same["sha256"])),
        "left_anti",
    )


def _look(spark: SparkSession, spec: StoreSpec, stack: ExitStack) -> _Wanted:
    """What the source has: by its index, or (a directory) by what is in it."""
    entries, view = _entries(spark, spec)
    entries = kept(stack, entries)
    # One job: another one for the damage would read the parts of an index one after the other.
    row = entries.agg(F.count("rel").alias("objects"), F.sum("size_bytes").alias("size"), _odd()).collect()[0]
    damage = None if view is None else _damage(row, "source")
    entries = entries.where(F.col("rel").isNotNull())
    return _Wanted(entries=entries, objects=row["objects"], size_bytes=row["size"] or 0, view=view, damage=damage)


def _entries(spark: SparkSession, spec: StoreSpec) -> tuple[DataFrame, IndexView | None]:
    cores = cores_of(spark)
    if spec.is_directory:
        listed = scan(spark, spec, cores=cores).where(F.split("rel", "/")[0].isin(*DATASTORE_SUBDIRS))
        blank = {name: F.lit(None).cast("string") for name in ENTRIES.names if name not in ("rel", "size_bytes")}
        return listed.select("rel", "size_bytes").withColumns(blank).select(*ENTRIES.names), None
    view = look_at_index(open_spec(spec))
    check_indexed(spec, view)
    return read_index(spark, spec, view, cores=cores), view


def _odd() -> Column:
    """Where an index is damaged first, in an aggregation."""
    at = F.struct(F.coalesce("rel", "partition").alias("what"), "damage")
    return F.min(F.when(F.expr("damage <> 'unlisted'"), at)).alias("odd")


def _damage(row: SparkRow, whose: str) -> FormatError | None:
    odd = row["odd"]
    if odd is None:
        return None
    return FormatError(
        f"the index of the {whose} is damaged at {shown(odd['what'])} ({odd['damage']}): 'mire repair' or 'mire index"
        " rebuild' there first",
        kind="damaged_index",
    )


def _check_target(spark: SparkSession, wanted: _Wanted, target: Side, stack: ExitStack) -> DataFrame:
    """Refuse a target that has data of its own, two stores are not mixed; the paths that its index lists."""
    none = frame_of(spark, [], _VALUES).select("rel")
    if target.spec.is_directory:
        return none
    view = look_at_index(open_spec(target.spec))
    check_understood(view)
    if view.form == "none":
        return none
    listed = kept(stack, read_index(spark, target.spec, view, cores=cores_of(spark)))
    damage = _damage(listed.agg(_odd()).collect()[0], "target")
    if damage is not None:
        raise damage
    listed = listed.where("rel is not null")
    ours = wanted.entries.select("rel", F.col("size_bytes").alias("size"), F.col("sha256").alias("sha"))
    is_odd = F.col("size").isNull() | (F.col("size") != F.col("size_bytes")) | (F.col("sha") != F.col("sha256"))
    foreign = listed.join(ours, "rel", "left").where(is_odd).limit(1).collect()
    if foreign:
        raise occupied(target, foreign[0]["rel"])
    return listed.select("rel")


def occupied(target: Side, rel: str) -> ConflictError:
    """What to say of a target that has data of its own."""
    return ConflictError(
        f"{target.name} already has data of its own, for example {shown(rel)}, which is not what the source has: name"
        " an empty store, or a namespace with --to-namespace",
        kind="target_in_use",
    )


def _error(row: dict[str, Any]) -> MireError:
    error = error_in(row)
    assert error is not None  # noqa: S101 - by the caller
    return error


def _told(error: MireError, source: Side) -> MireError:
    return type(error)(
        f"{error.message}; nothing was switched, and {source.name} is as it was: run again to go on", kind=error.kind
    )


def _entry(row: dict[str, Any]) -> Entry:
    """The entry in the target: what the source says of the object, with the hash that was verified."""
    extra = {} if row["extra"] is None else json.loads(row["extra"])
    extra.pop("key", None)
    return Entry(
        size_bytes=row["size_bytes"],
        last_modified=row["last_modified"] or clock.now_instant(),
        local_mtime=row["local_mtime"],
        sha256=row["sha256"],
        extra=extra,
    )
