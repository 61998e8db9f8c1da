"""The copying of a migration: everything the source has, until it says nothing new.

Owns: what counts as the source's, what is done already, and in how many rounds it is copied.
Must not know: how an object is copied, what makes the copies count.
Keeps: nothing is copied into a store with data of somebody else; the source is only read; what a run that died left is
verified and used; the index and the listing are each read once in a round.
"""

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from mire.edge import clock
from mire.errors import ConflictError, FormatError, RemoteError, shown
from mire.flow.transfer import are_short
from mire.model.index import Entry
from mire.model.names import DATASTORE_SUBDIRS, RelPath
from mire.pipeline.frames import ENTRIES, TO_COPY, frame_of, kept, rows_of
from mire.pipeline.jobs.cores import cores_of
from mire.pipeline.sides import Side
from mire.pipeline.stages.copy import copy, is_listable
from mire.pipeline.stages.scan import scan
from mire.pipeline.stages.shards import entry_in, read_index
from mire.pipeline.stages.transfer import error_in, groups_for
from mire.pipeline.store import StoreSpec, open_spec
from mire.pipeline.view import IndexView, check_understood, look_at_index

_ROUNDS: Final = 3
"""Times what was published at the source meanwhile is brought, too."""
_AT_ONCE: Final = 16
_VALUES: Final = pa.schema([ENTRIES.field(name) for name in ("rel", "size_bytes", "sha256")])
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


def plan_all(spark: SparkSession, source: Side, target: Side, *, is_new: bool) -> Moved:
    """What `copy_all` would do; `is_new`: the target is not there yet."""
    with ExitStack() as stack:
        wanted = _look(spark, source.spec, stack)
        _check_target(spark, wanted, target)
        known = wanted.entries.withColumn("listable", F.udf(is_listable, "boolean", useArrow=True)("rel"))
        known = kept(stack, known)
        usable = known.where("listable")
        totals = _totals(usable)
        there = None if is_new else scan(spark, target.spec, cores=cores_of(spark))
        same = 0 if there is None else usable.join(there, ["rel", "size_bytes"]).count()
        left_out = known.where("not listable").select("rel").limit(_LEFT_OUT_MAX).collect()
    return Moved(
        source=source.name,
        target=target.name,
        objects=totals[0],
        size_bytes=totals[1],
        copied=totals[0] - same,
        there=same,
        left_out=tuple(sorted(row["rel"] for row in left_out)),
        is_dry_run=True,
    )


def copy_all(spark: SparkSession, source: Side, target: Side) -> tuple[dict[RelPath, Entry], Moved]:
    """Copy until the source says nothing new; what every object is, and the numbers."""
    done: dict[RelPath, Entry] = {}
    outcomes: Counter[str] = Counter()
    for attempt in range(_ROUNDS):
        with ExitStack() as stack:
            wanted = _look(spark, source.spec, stack)
            if attempt == 0:
                _check_target(spark, wanted, target)
            else:
                found = set(wanted.entries.select("rel").toArrow()["rel"].to_pylist())
                done = {rel: entry for rel, entry in done.items() if rel in found}
            table = _copies(spark, wanted, done, source, target).toArrow()
        left_out: list[str] = []
        for row in rows_of(table.to_batches()):
            _check_moved(row, source)
            outcomes[row["outcome"]] += 1
            if row["outcome"] == "left_out":
                left_out.append(row["rel"])
            else:
                done[RelPath(row["rel"])] = _entry(row)
        if source.spec.is_directory or look_at_index(open_spec(source.spec)) == wanted.view:
            return done, Moved(
                source=source.name,
                target=target.name,
                objects=len(done),
                size_bytes=sum(entry.size_bytes for entry in done.values()),
                copied=outcomes["copied"],
                there=outcomes["there"],
                left_out=tuple(sorted(left_out)[:_LEFT_OUT_MAX]),
            )
    raise RemoteError(
        f"{source.name} was changed again and again while it was copied: nothing was switched; run again when less is"
        " written there",
        transient=True,
        kind="torn",
    )


def _copies(spark: SparkSession, wanted: _Wanted, done: dict[RelPath, Entry], source: Side, target: Side) -> DataFrame:
    cores = cores_of(spark)
    fresh = wanted.entries
    if done:
        values = ((rel, entry.size_bytes, entry.sha256) for rel, entry in done.items())
        same = frame_of(spark, values, _VALUES)
        fresh = fresh.join(
            same,
            (fresh["rel"] == same["rel"])
            & (fresh["size_bytes"] == same["size_bytes"])
            & (fresh["sha256"].isNull() | (fresh["sha256"] == same["sha256"])),
            "left_anti",
        )
    there = scan(spark, target.spec, cores=cores).select(
        "rel", F.col("size_bytes").alias("there_size"), F.col("fingerprint").alias("there_fingerprint")
    )
    frame = fresh.join(there, "rel", "left").select(*TO_COPY.names)
    return copy(
        frame.repartition(groups_for(wanted.objects, cores)),
        source.spec,
        target.spec,
        at_once=_AT_ONCE,
        gathered=are_short(wanted.size_bytes, wanted.objects),
    )


def _look(spark: SparkSession, spec: StoreSpec, stack: ExitStack) -> _Wanted:
    """What the source has: by its index, or (a directory) by what is in it."""
    entries, view = _entries(spark, spec)
    entries = kept(stack, entries)
    if view is not None:
        _check_sound(entries)
    entries = entries.where(F.col("rel").isNotNull())
    objects, size_bytes = _totals(entries)
    return _Wanted(entries=entries, objects=objects, size_bytes=size_bytes, view=view)


def _totals(entries: DataFrame) -> tuple[int, int]:
    row = entries.agg(F.count("rel").alias("objects"), F.sum("size_bytes").alias("size")).collect()[0]
    return row["objects"], row["size"] or 0


def _entries(spark: SparkSession, spec: StoreSpec) -> tuple[DataFrame, IndexView | None]:
    cores = cores_of(spark)
    if spec.is_directory:
        listed = scan(spark, spec, cores=cores).where(F.split("rel", "/")[0].isin(*DATASTORE_SUBDIRS))
        blank = {name: F.lit(None).cast("string") for name in ENTRIES.names if name not in ("rel", "size_bytes")}
        return listed.select("rel", "size_bytes").withColumns(blank).select(*ENTRIES.names), None
    view = look_at_index(open_spec(spec))
    check_understood(view)
    return read_index(spark, spec, view, cores=cores), view


def _check_sound(entries: DataFrame) -> None:
    odd = entries.where("damage is not null and damage <> 'unlisted'").limit(1).collect()
    if odd:
        what = odd[0]["rel"] or odd[0]["partition"]
        raise FormatError(
            f"the index of the source is damaged at {shown(what)} ({odd[0]['damage']}): 'mire repair' or 'mire index"
            " rebuild' there first",
            kind="damaged_index",
        )


def _check_target(spark: SparkSession, wanted: _Wanted, target: Side) -> None:
    """Refuse a target that has data of its own: two stores are not mixed."""
    if target.ds is None:
        return
    view = look_at_index(open_spec(target.spec))
    check_understood(view)
    if view.form == "none":
        return
    ours = read_index(spark, target.spec, view, cores=cores_of(spark)).where("rel is not null").select("rel")
    foreign = ours.join(wanted.entries.select("rel"), "rel", "left_anti").limit(1).collect()
    if foreign:
        raise occupied(target, foreign[0]["rel"])


def occupied(target: Side, rel: str) -> ConflictError:
    """What to say of a target that has data of its own."""
    return ConflictError(
        f"{target.name} already has data of its own, for example {shown(rel)}: name an empty store, or a namespace with"
        " --to-namespace",
        kind="target_in_use",
    )


def _check_moved(row: dict[str, Any], source: Side) -> None:
    error = error_in(row)
    if error is not None:
        raise type(error)(
            f"{error.message}; nothing was switched, and {source.name} is as it was: run again to go on",
            kind=error.kind,
        )


def _entry(row: dict[str, Any]) -> Entry:
    """The entry in the target: what the source says of the object, with the hash that was verified."""
    before = entry_in({**row, "damage": None})
    if isinstance(before, Entry):
        return replace(before, extra={name: each for name, each in before.extra.items() if name != "key"})
    return Entry(size_bytes=row["size_bytes"], last_modified=clock.now_instant(), sha256=row["sha256"])
