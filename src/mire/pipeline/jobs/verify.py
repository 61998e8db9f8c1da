"""Verifying a whole store: index against listing, its parts against each other, and deeply every object.

Owns: which tables are compared, and the numbers of the report.
Must not know: what a difference means (`plan/verify`), how a report is shown.
Keeps: nothing is changed; memory of the driver does not grow with the store; whatever could not be looked at is told.
The index is read before objects are listed, as they are stored before it names them; what it came to say otherwise
meanwhile is no damage.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from mire.flow.datastore import Datastore
from mire.flow.exchange import check_format
from mire.flow.place import META
from mire.model.verify import Finding
from mire.pipeline.foreign import spark_errors
from mire.pipeline.frames import FINDINGS, LOCAL, frame_of, kept
from mire.pipeline.here import local_side
from mire.pipeline.jobs.changed import changed_parts, only
from mire.pipeline.jobs.cores import cores_of
from mire.pipeline.jobs.findings import place_of, write_findings
from mire.pipeline.jobs.judge import (
    deep_findings,
    finding_row,
    index_findings,
    is_read,
    object_findings,
    partition_findings,
)
from mire.pipeline.stages.compare import compare, decide
from mire.pipeline.stages.scan import scan
from mire.pipeline.stages.shards import read_index, read_shards
from mire.pipeline.store import StoreSpec, open_spec, spec_of
from mire.pipeline.view import IndexView, index_damage, look_at_index
from mire.plan.verify import list_finding

SHOWN_MAX: Final = 1_000
"""Findings the driver takes in; all of them are in the table that can be written."""
_CHANGED: Final = "it was changed while the store was verified: verify again"
_NAMES: Final = pa.schema([("moved", pa.string())])


@dataclass(slots=True, kw_only=True)
class StoreVerified:
    """What was compared, in numbers, and what was found."""

    form: str
    entries: int = 0
    objects: int = 0
    size_bytes: int = 0
    inspected: int = 0
    """Objects that were read as a whole."""
    to_push: int = 0
    to_pull: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    damaged: int = 0
    findings: list[Finding] = field(default_factory=list)
    """The first of them."""
    table: str | None = None
    """Where all of them were written."""

    @property
    def is_damaged(self) -> bool:
        """Whether something is wrong, and not only noteworthy."""
        return self.damaged > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """What a verification worked out, while it can still be asked."""

    compared: DataFrame
    findings: DataFrame
    kinds: dict[str, tuple[int, int]]
    """How many findings of each kind there are, and how many of those are damage."""
    view: IndexView


def verify_store(
    spark: SparkSession,
    ds: Datastore,
    *,
    deep: bool = False,
    table: str | None = None,
    objects: DataFrame | None = None,
) -> StoreVerified:
    """Compare everything; `deep` reads every object, `table` is a directory for all findings, as Parquet.

    `objects` is a listing that somebody has already, for example of an S3 inventory; without one the store is listed.
    """
    with spark_errors("the verification"):
        place = None if table is None else place_of(spark, table)
        with open_tables(spark, ds, deep=deep, objects=objects) as tables:
            done = _reported(tables, deep=deep, is_directory=spec_of(ds).is_directory)
            if place is not None:
                write_findings(tables.findings, place, sum(done.kinds.values()))
                done.table = table
    return done


def _reported(tables: Tables, *, deep: bool, is_directory: bool) -> StoreVerified:
    done = _counted(tables, StoreVerified(form=tables.view.form), deep=deep, is_directory=is_directory)
    done.kinds = {kind: count for kind, (count, _) in tables.kinds.items()}
    done.damaged = sum(damaged for _, damaged in tables.kinds.values())
    if done.kinds:
        first = tables.findings.orderBy(F.desc("is_damage"), "kind", "path").limit(SHOWN_MAX)
        done.findings = [Finding(**row.asDict()) for row in first.collect()]
    return done


def _kinds_of(findings: DataFrame) -> dict[str, tuple[int, int]]:
    """How many findings of each kind there are, and how many of those are damage; this works out what is kept."""
    kinds = findings.groupBy("kind").agg(
        F.count("*").alias("count"), F.sum(F.col("is_damage").cast("bigint")).alias("damaged")
    )
    # A few rows: to let Spark sort them would be another job.
    rows = sorted(kinds.collect(), key=lambda row: str(row["kind"]))
    return {row["kind"]: (row["count"], row["damaged"]) for row in rows}


@contextmanager
def open_tables(
    spark: SparkSession, ds: Datastore, *, deep: bool, objects: DataFrame | None = None
) -> Iterator[Tables]:
    """The tables of a verification; they are kept until the block ends."""
    check_format(ds)
    spec, cores = spec_of(ds), cores_of(spark)
    remote = open_spec(spec)
    view = look_at_index(remote)
    with ExitStack() as stack:
        entries = kept(stack, _entries(spark, spec, view, cores))
        entries.count()
        troubles: list[str] = []
        local = local_side(stack, spark, ds, troubles) if ds.is_cache else frame_of(spark, [], LOCAL)
        listed = scan(spark, spec, cores=cores) if objects is None else objects
        compared = kept(stack, compare(entries, listed, local))
        parts = [
            frame_of(spark, _told(index_damage(spec, view), troubles), FINDINGS),
            index_findings(entries),
            object_findings(compared, now_ms=int(remote.server_time_ms()), has_index=not spec.is_directory),
        ]
        if view.form == "dual":
            parts.append(partition_findings(entries, read_shards(spark, spec, view, cores=cores), view))
        if deep:
            parts.append(deep_findings(stack, compared, spec))
        findings = parts[0]
        for part in parts[1:]:
            findings = findings.unionByName(part)
        findings = kept(stack, findings)
        kinds = _kinds_of(findings)
        after = look_at_index(remote)
        changed = changed_parts(view, after)
        if changed:
            names = frame_of(spark, [(name,) for name in sorted(changed)], _NAMES)
            was, now = entries, _entries(spark, spec, after, cores)
            if view.form == after.form == "sharded":
                was = entries.join(names, F.col("partition") == F.col("moved"), "left_semi")
                now = _entries(spark, spec, only(after, changed), cores)
            findings = kept(stack, _excused(findings, _paths_changed(was, now).union(names)))
            kinds = _kinds_of(findings)
        yield Tables(compared=compared, findings=findings, kinds=kinds, view=view)


def _paths_changed(was: DataFrame, now: DataFrame) -> DataFrame:
    """The paths of which two readings of an index do not say the same."""
    before, after = (each.where("rel is not null").drop("partition") for each in (was, now))
    return before.exceptAll(after).union(after.exceptAll(before)).select(F.col("rel").alias("moved"))


def _excused(findings: DataFrame, moved: DataFrame) -> DataFrame:
    """Findings, with what is about paths or parts of the index that somebody changed meanwhile as notes."""
    is_moved = F.col("moved").isNotNull()
    return findings.join(moved.distinct(), F.col("path") == F.col("moved"), "left").select(
        "kind",
        "path",
        "message",
        F.when(is_moved, F.lit(_CHANGED)).otherwise(F.col("remedy")).alias("remedy"),
        (F.col("is_damage") & ~is_moved).alias("is_damage"),
    )


def _entries(spark: SparkSession, spec: StoreSpec, view: IndexView, cores: int) -> DataFrame:
    # Without a list that can be read, the shards still say what they say.
    if view.damage is not None and view.monolith_tag is None:
        return read_shards(spark, spec, view, cores=cores)
    return read_index(spark, spec, view, cores=cores)


def _told(damage: str | None, troubles: list[str]) -> list[tuple[object, ...]]:
    found = [] if damage is None else [list_finding(META, damage)]
    found += [
        Finding(kind="unreadable", path="", message=message, remedy="make it readable, or remove it")
        for message in troubles
    ]
    return [finding_row(each) for each in found]


def _counted(tables: Tables, done: StoreVerified, *, deep: bool, is_directory: bool) -> StoreVerified:
    compared = tables.compared
    is_entry = F.col("last_modified").isNotNull() | F.col("damage").isNotNull()
    numbers = compared.agg(
        F.count(F.when(is_entry, 1)).alias("entries"),
        F.count("object_size").alias("objects"),
        F.coalesce(F.sum("object_size"), F.lit(0)).alias("size_bytes"),
        F.count(F.when(is_read(is_directory=is_directory), 1)).alias("read"),
        F.count("here").alias("local"),
    ).collect()[0]
    done.entries, done.objects, done.size_bytes = numbers["entries"], numbers["objects"], numbers["size_bytes"]
    done.inspected = numbers["read"] if deep else 0
    if numbers["local"]:
        actions = decide(compared).agg(
            F.count(F.when(F.col("push").isin("upload", "remove"), 1)).alias("push"),
            F.count(F.when(F.col("pull").isin("download", "remove"), 1)).alias("pull"),
        )
        row = actions.collect()[0]
        done.to_push, done.to_pull = row["push"], row["pull"]
    return done
