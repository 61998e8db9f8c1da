"""From any store to any store: every object copied and verified, then shown at once.

Owns: what is copied, in how many rounds, and the one step that makes it count.
Must not know: how an object is copied, how an index is written.
Keeps: nothing in the target counts before everything is there; the source is only read; what a run that died left is
verified and used by the next.
"""

import os
from dataclasses import dataclass, replace
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from mire.edge import clock, files
from mire.errors import ConflictError, FormatError, InputError, RemoteError, shown
from mire.flow.commit import commit
from mire.flow.datastore import Datastore
from mire.flow.exchange import check_gate
from mire.flow.lock import hold_global
from mire.flow.place import open_place
from mire.flow.reading import read_for
from mire.model.index import Entry
from mire.model.names import DATASTORE_SUBDIRS, RelPath
from mire.pipeline.foreign import spark_errors
from mire.pipeline.frames import ENTRIES, MOVED, frame_of, rows_of
from mire.pipeline.jobs.cores import cores_of
from mire.pipeline.sides import Side
from mire.pipeline.stages.scan import scan
from mire.pipeline.stages.shards import entry_in, read_index
from mire.pipeline.stages.transfer import copy, error_in, groups_for
from mire.pipeline.store import StoreSpec, open_spec
from mire.pipeline.view import IndexView, check_understood, look_at_index
from mire.plan.commit import Changes
from mire.plan.threeway import Value, value_of
from mire.wire.partition import partition_of
from mire.wire.relpath import check_rel, is_temporary, tenant_of

_ROUNDS: Final = 3
"""Times what was published at the source meanwhile is brought, too."""
_AT_ONCE: Final = 16
_STAGING: Final = ".mire-migrating"


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


def migrate_store(spark: SparkSession, source: Side, target: Side, *, dry_run: bool = False) -> Moved:
    """Copy everything, then show it: an index is committed once, a directory gets its name last."""
    if source.spec == target.spec.to_read():
        raise InputError(f"SRC and DST are the same store, {shown(source.name)}: name two")
    with spark_errors("the migration"):
        if target.ds is not None:
            return _into_store(spark, source, target, target.ds, dry_run=dry_run)
        return _into_directory(spark, source, target, dry_run=dry_run)


def _into_store(spark: SparkSession, source: Side, target: Side, ds: Datastore, *, dry_run: bool) -> Moved:
    if dry_run:
        return _planned(spark, source, target)
    check_gate(ds)
    # The lock alone, without what a cached datastore does around its own work: its cache stays empty.
    with hold_global(replace(ds, lifecycle=None)) as hold, open_place(ds) as place:
        wanted, done = _copied(spark, source, target)
        hold.check(is_strict=True)
        is_sharded = ds.sync.is_sharded
        reading = read_for(place, wanted, is_fresh_sharded=is_sharded)
        # Compared with what the target said before a byte was copied: what somebody published since is a conflict.
        found = {rel: reading.entry(rel) for rel in wanted}
        odd = [rel for rel, entry in found.items() if entry is not None and value_of(entry) != value_of(wanted[rel])]
        if odd:
            raise _occupied(target, odd[0])
        # What a run before this one committed is not committed again.
        new = [rel for rel, entry in found.items() if entry is None]
        changes = Changes(upserts={rel: wanted[rel] for rel in new}, expected=dict.fromkeys(new))
        lost = commit(place, changes, reading, is_fresh_sharded=is_sharded).lost
    if lost:
        raise _occupied(target, lost[0])
    return done


def _into_directory(spark: SparkSession, source: Side, target: Side, *, dry_run: bool) -> Moved:
    root = str(target.spec.settings)
    final = os.path.join(root, target.spec.namespace) if target.spec.namespace else root
    if os.path.isdir(final) and os.listdir(final):
        raise ConflictError(
            f"DST {shown(final)} is not empty: name a directory that is not there yet", kind="target_in_use"
        )
    staging = f"{final.rstrip('/')}{_STAGING}"
    staged = replace(target, spec=StoreSpec(type=target.spec.type, settings=staging))
    if dry_run:
        return _planned(spark, source, replace(staged, name=target.name))
    files.make_dirs(staging)
    _, done = _copied(spark, source, staged)
    if os.path.isdir(final):
        os.rmdir(final)
    os.rename(staging, final)
    files.sync_dir(os.path.dirname(final))
    return replace(done, target=target.name)


def _planned(spark: SparkSession, source: Side, target: Side) -> Moved:
    entries, _ = _source_entries(spark, source.spec)
    is_new = isinstance(target.spec.settings, str) and not os.path.isdir(target.spec.settings)
    there = (
        spark.createDataFrame([], "rel string, there bigint")
        if is_new
        else scan(spark, target.spec, cores=cores_of(spark)).select("rel", F.col("size_bytes").alias("there"))
    )
    row = (
        entries.where(_listable("rel"))
        .join(there, "rel", "left")
        .agg(
            F.count("rel").alias("objects"),
            F.coalesce(F.sum("size_bytes"), F.lit(0)).alias("size"),
            F.count(F.when(F.col("there") == F.col("size_bytes"), 1)).alias("there"),
        )
        .collect()[0]
    )
    return Moved(
        source=source.name,
        target=target.name,
        objects=row["objects"],
        size_bytes=row["size"],
        copied=row["objects"] - row["there"],
        there=row["there"],
        left_out=_left_out(entries),
        is_dry_run=True,
    )


def _copied(spark: SparkSession, source: Side, target: Side) -> tuple[dict[RelPath, Entry], Moved]:
    """Copy until the source says nothing new; what every object is, and the numbers."""
    cores = cores_of(spark)
    _check_target(spark, source, target)
    wanted: dict[RelPath, Entry] = {}
    copied = there = 0
    left_out: tuple[str, ...] = ()
    for _ in range(_ROUNDS):
        entries, view = _source_entries(spark, source.spec)
        left_out = _left_out(entries)
        rows = {row["rel"]: row.asDict() for row in entries.toLocalIterator() if _is_listable(row["rel"])}
        fresh = [row for rel, row in rows.items() if not _is_done(row, wanted.get(RelPath(rel)))]
        wanted = {rel: entry for rel, entry in wanted.items() if rel in rows}
        frame = frame_of(spark, ([row[name] for name in ENTRIES.names] for row in fresh), ENTRIES)
        moves = copy(frame.repartition(groups_for(len(fresh), cores)), source.spec, target.spec, at_once=_AT_ONCE)
        table = moves.toArrow() if fresh else MOVED.empty_table()
        for row in rows_of(table.to_batches()):
            _check_moved(row, source)
            wanted[RelPath(row["rel"])] = _entry(rows[row["rel"]], row)
            copied, there = copied + (row["outcome"] == "copied"), there + (row["outcome"] == "there")
        if source.spec.is_directory or look_at_index(open_spec(source.spec)) == view:
            size = sum(entry.size_bytes for entry in wanted.values())
            done = Moved(
                source=source.name,
                target=target.name,
                objects=len(wanted),
                size_bytes=size,
                copied=copied,
                there=there,
                left_out=left_out,
            )
            return wanted, done
    raise RemoteError(
        f"{source.name} was changed again and again while it was copied: nothing was switched; run again when less is"
        " written there",
        transient=True,
        kind="torn",
    )


def _source_entries(spark: SparkSession, spec: StoreSpec) -> tuple[DataFrame, IndexView | None]:
    """What the source has: by its index, or (a directory) by what is in it."""
    cores = cores_of(spark)
    if spec.is_directory:
        listed = scan(spark, spec, cores=cores).where(F.split("rel", "/")[0].isin(*DATASTORE_SUBDIRS))
        blank = {name: F.lit(None).cast("string") for name in ENTRIES.names if name not in ("rel", "size_bytes")}
        return listed.select("rel", "size_bytes").withColumns(blank).select(*ENTRIES.names), None
    view = look_at_index(open_spec(spec))
    check_understood(view)
    entries = read_index(spark, spec, view, cores=cores)
    odd = entries.where("damage is not null and damage <> 'unlisted'").limit(1).collect()
    if odd:
        what = odd[0]["rel"] or odd[0]["partition"]
        raise FormatError(
            f"the index of the source is damaged at {shown(what)} ({odd[0]['damage']}): 'mire repair' or 'mire index"
            " rebuild' there first",
            kind="damaged_index",
        )
    return entries.where(F.col("rel").isNotNull()), view


def _is_listable(rel: str) -> bool:
    # What looks like a tenant's is a stray here: copied to a root it would be in that tenant's part.
    is_ours = partition_of(rel) is not None and tenant_of(rel) is None
    return is_ours and check_rel(rel) is None and not is_temporary(rel)


def _listable(column: str) -> Column:
    return F.udf(_is_listable, "boolean", useArrow=True)(column)


def _left_out(entries: DataFrame) -> tuple[str, ...]:
    rels = entries.select("rel").where(~_listable("rel"))
    return tuple(sorted(row["rel"] for row in rels.limit(20).collect()))


def _is_done(row: dict[str, Any], before: Entry | None) -> bool:
    if before is None or row["size_bytes"] != before.size_bytes:
        return False
    return row["sha256"] in (None, before.sha256)


def _check_target(spark: SparkSession, source: Side, target: Side) -> None:
    """Refuse a target that has data of its own: two stores are not mixed."""
    if target.ds is None:
        return
    view = look_at_index(open_spec(target.spec))
    check_understood(view)
    if view.form == "none":
        return
    ours = read_index(spark, target.spec, view, cores=cores_of(spark)).where("rel is not null").select("rel")
    theirs, _ = _source_entries(spark, source.spec)
    foreign = ours.join(theirs.select("rel"), "rel", "left_anti").limit(1).collect()
    if foreign:
        raise _occupied(target, foreign[0]["rel"])


def _occupied(target: Side, rel: str) -> ConflictError:
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


def _entry(row: dict[str, Any], moved: dict[str, Any]) -> Entry:
    """The entry in the target: what the source says of the object, with the hash that was verified."""
    before = entry_in(row)
    value = Value(size_bytes=moved["size_bytes"], sha256=moved["sha256"])
    if isinstance(before, Entry):
        extra = {name: each for name, each in before.extra.items() if name != "key"}
        return replace(before, size_bytes=value.size_bytes, sha256=value.sha256, extra=extra)
    return Entry(size_bytes=value.size_bytes, last_modified=clock.now_instant(), sha256=value.sha256)
