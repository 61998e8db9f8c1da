"""Versions as Parquet, for whoever asks with other tools: each one once, a directory for each commit exported.

Owns: what is new since the last export, and which parts of an index need not be read again.
Must not know: how metadata becomes columns, how a commit becomes part of an export (`exportdir`).
Keeps: a version is in the export once for each metadata it had, whoever died when. What could not be read is a row with
`_error`, told once, and tried again until it is exported. A part of an index is passed over only if every version
it names is exported.
"""

import os
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from mire.edge.remote import Remote
from mire.errors import ConflictError, InputError, RemoteError, shown
from mire.flow.datastore import Datastore
from mire.flow.exchange import check_format
from mire.flow.place import MONOLITH
from mire.pipeline.foreign import spark_errors
from mire.pipeline.frames import PARSED, kept
from mire.pipeline.jobs.changed import only, parts_of
from mire.pipeline.jobs.cores import cores_of
from mire.pipeline.jobs.exportdir import (
    Attributes,
    Note,
    load_past,
    open_export,
    open_staging,
    publish,
    read_export,
    read_rows,
)
from mire.pipeline.jobs.judge import index_findings
from mire.pipeline.stages.parse import Wanted, names_of, parse
from mire.pipeline.stages.scan import scan
from mire.pipeline.stages.shards import UNLISTED, read_index
from mire.pipeline.store import StoreSpec, open_spec, spec_of
from mire.pipeline.view import IndexView, check_indexed, look_at_index

__all__ = ["Attributes", "Exported", "export_store", "read_export"]

_ID: Final = ("namespace", "model_type", "model_id", "name", "version")
_PLACE: Final = r"^data/(.+)/([^/]+)/([^/]+)/(\d+)/metadata[.]yaml$"
_COLUMNS: Final = (
    # Which version is the latest changes with the next one, and a row stays.
    *(name for name in PARSED.names if name not in ("is_latest", "content", "_error")),
    "metadata_tag",
    "_error",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What was exported, or would be."""

    directory: str
    commit: int
    """The last one that is part of the export."""
    versions: int
    failed: int
    """What could not be read now, versions and parts of the index: each is a row with `_error`, once."""
    is_new: bool = True
    """False: nothing was added."""
    is_dry_run: bool = False


def export_store(
    spark: SparkSession,
    ds: Datastore,
    directory: str,
    *,
    attributes: Attributes | None = None,
    dry_run: bool = False,
) -> Exported:
    """Add what is new to the export in a directory, which is made if need be.

    `attributes` are what they are in that export already, and JSON text in a new one, unless it is said.
    """
    if "://" in directory:
        raise InputError(f"{shown(directory)} is an address: an export goes into a directory that Spark can rename")
    # Spark may be elsewhere, where a relative path is another one.
    root = os.path.abspath(directory)
    with ExitStack() as stack:
        if not dry_run:
            stack.enter_context(open_export(root))
        stack.enter_context(spark_errors("the export"))
        done = _exported(spark, ds, root, attributes, dry_run=dry_run)
    return replace(done, directory=directory)


def _exported(
    spark: SparkSession, ds: Datastore, directory: str, attributes: Attributes | None, *, dry_run: bool
) -> Exported:
    check_format(ds)
    spec = spec_of(ds)
    remote = open_spec(spec)
    view = look_at_index(remote)
    check_indexed(spec, view)
    past = load_past(directory)
    note = _note(directory, past, view, remote.properties.name, attributes)
    known = {} if past is None else past.parts
    nothing = Exported(
        directory=directory,
        commit=0 if past is None else past.commit,
        versions=0,
        failed=0,
        is_new=False,
        is_dry_run=dry_run,
    )
    unread = _unread(view, known)
    if not unread and not spec.is_directory:
        return nothing
    before = None if past is None or not past.rows else read_rows(spark, directory)
    with ExitStack() as stack:
        entries = kept(stack, _entries(spark, spec, view, unread))
        new = kept(stack, _new(entries, spec, before))
        rows = _rows(entries, new, spec, before)
        if dry_run:
            staging, written = "", kept(stack, rows.select(*_ID, "metadata_sha256", "metadata_tag", "_error"))
            versions, failed = _counts(written)
        else:
            staging = stack.enter_context(open_staging(directory))
            written, versions, failed = _written(spark, rows, staging, note.attributes)
        left = _left(entries, new, written, before)
        failing = sum(left.values())
        note = replace(note, rows=versions + failed, parts=_whole(remote, view, known, left))
        if not note.rows and not note.parts:
            return replace(nothing, failed=failing)
        if not dry_run:
            publish(directory, staging, note)
    return Exported(directory=directory, commit=note.commit, versions=versions, failed=failing, is_dry_run=dry_run)


def _note(directory: str, past: Note | None, view: IndexView, store: str, attributes: Attributes | None) -> Note:
    """The note of the next commit, without what is not known yet; refused if the export is of something else."""
    if past is not None and past.store != store:
        raise ConflictError(
            f"{shown(directory)} is an export of {past.store}, not of {store}: name another directory",
            kind="other_export",
        )
    if past is not None and attributes not in (None, past.attributes):
        raise ConflictError(
            f"{shown(directory)} has attributes as {past.attributes}, not as {attributes}: leave that out, or name"
            " another directory",
            kind="other_export",
        )
    least = 1 if past is None else past.commit + 1
    return Note(
        store=store,
        # That of the store's commit, or one more where those are not counted.
        commit=max(least, view.commit_seq) if view.form == "sharded" else least,
        attributes=past.attributes if past is not None else attributes or "json",
        rows=0,
    )


def _unread(view: IndexView, known: dict[str, str]) -> set[str]:
    """The parts of an index that are not exported as a whole, as they are now."""
    tags = parts_of(view)
    names = view.partitions if view.form == "sharded" else (MONOLITH,) if view.form == "dual" else ()
    return {name for name in names if name not in tags or known.get(name) != tags[name]}


def _whole(remote: Remote, view: IndexView, known: dict[str, str], left: Collection[str | None]) -> dict[str, str]:
    """The parts of which every version is exported now, and was not before."""
    # A shard that nothing lists counts less than the same one would if it were listed.
    whole = set(view.listed) - set(left) if view.form == "sharded" else {MONOLITH} if not left else set()
    # Tasks read them some time after they were listed: only what has still that fingerprint is what they read.
    tags = parts_of(view).items() & parts_of(look_at_index(remote)).items()
    return {name: tag for name, tag in tags if name in whole and known.get(name) != tag}


def _entries(spark: SparkSession, spec: StoreSpec, view: IndexView, unread: Collection[str]) -> DataFrame:
    """What an index says of metadata and of its own parts, or what a listing says of a directory."""
    cores = cores_of(spark)
    if spec.is_directory:
        none = F.lit(None).cast("string")
        # Without an index the fingerprint of a file stands for when it was stored.
        entries = scan(spark, spec, cores=cores).withColumns(
            {"partition": none, "last_modified": F.col("fingerprint"), "sha256": none, "damage": none}
        )
    else:
        entries = read_index(spark, spec, only(view, unread) if view.form == "sharded" else view, cores=cores)
    is_wanted = F.col("rel").isNull() | F.col("rel").rlike(_PLACE)
    return entries.where(is_wanted).select("rel", "partition", "size_bytes", "last_modified", "sha256", "damage")


def _new(entries: DataFrame, spec: StoreSpec, before: DataFrame | None) -> DataFrame:
    """The versions that are named and that no export has; `said` is what is said of their metadata."""
    tag = F.when(F.col("sha256").isNull(), F.concat_ws("/", "last_modified", "size_bytes"))
    named = entries.where("rel is not null").select(
        F.lit(str(spec.namespace)).alias("namespace"),
        F.regexp_extract("rel", _PLACE, 1).alias("model_type"),
        F.regexp_extract("rel", _PLACE, 2).alias("model_id"),
        F.regexp_extract("rel", _PLACE, 3).alias("name"),
        F.regexp_extract("rel", _PLACE, 4).try_cast("bigint").alias("version"),
        tag.alias("metadata_tag"),
        F.coalesce("sha256", tag).alias("said"),
        "rel",
        "partition",
        "damage",
    )
    return named if before is None else named.join(_done(before), [*_ID, "said"], "left_anti")


def _rows(entries: DataFrame, new: DataFrame, spec: StoreSpec, before: DataFrame | None) -> DataFrame:
    """The rows that are to be added: of versions, and of what cannot be used of the index."""
    usable = new.where("damage is null")
    parsed = parse(names_of(usable), spec, Wanted()).join(usable.select(*_ID, "metadata_tag"), list(_ID))
    why = F.format_string("'%s' in the index cannot be used: %s", "rel", "damage")
    damaged = new.where("damage is not null").select(*_ID, why.alias("_error"))
    shards = index_findings(entries).where("is_damage").select(F.col("message").alias("_error"))
    shards = shards.withColumn("namespace", F.lit(str(spec.namespace)))
    rows = parsed.unionByName(damaged, allowMissingColumns=True).unionByName(shards, allowMissingColumns=True)
    return rows.select(*_COLUMNS) if before is None else _without(rows.select(*_COLUMNS), before)


def _left(entries: DataFrame, new: DataFrame, written: DataFrame, before: DataFrame | None) -> dict[str | None, int]:
    """The parts of an index that name what is still not exported, with how much of that cannot be read."""
    told = [each.where("_error is not null").select(*_ID) for each in (written, before) if each is not None]
    failed = reduce(lambda one, other: one.union(other), told).distinct().withColumn("failed", F.lit(1))
    versions = new.join(_done(written), [*_ID, "said"], "left_anti").join(failed, list(_ID), "left")
    shards = entries.where(F.col("rel").isNull() & (F.col("damage") != UNLISTED)).withColumn("failed", F.lit(1))
    left = versions.select("partition", "failed").union(shards.select("partition", "failed"))
    rows = left.groupBy("partition").agg(F.count("failed").alias("failed")).collect()
    return {row["partition"]: row["failed"] for row in rows}


def _done(rows: DataFrame) -> DataFrame:
    """The versions of an export, each with everything an index may say of the metadata it was made of."""
    said = F.explode(F.array("metadata_sha256", "metadata_tag")).alias("said")
    return rows.where("_error is null").select(*_ID, said)


def _without(rows: DataFrame, before: DataFrame) -> DataFrame:
    """Rows that say something new: of another content of the metadata, or of another error."""
    says = F.coalesce("_error", "metadata_sha256")
    was = before.select(*(F.col(name).alias(f"was_{name}") for name in _ID), says.alias("was_says"))
    is_same = says == F.col("was_says")
    for name in _ID:
        is_same &= F.col(name).eqNullSafe(F.col(f"was_{name}"))
    return rows.join(was, is_same, "left_anti")


def _written(spark: SparkSession, rows: DataFrame, staging: str, attributes: Attributes) -> tuple[DataFrame, int, int]:
    """Write rows into a directory: what is there then, how many of versions, how many that say why there is none."""
    shaped = rows if attributes == "json" else rows.withColumn("attributes", F.expr("try_parse_json(attributes)"))
    observed = Observation()
    shaped = shaped.observe(observed, F.count(F.lit(1)).alias("rows"))
    # By month as well: who asks about a time does not read the rest. A commit may bring versions of any age.
    shaped.withColumn("month", F.substring("created_at", 1, 7)).write.partitionBy("month").parquet(staging)
    written = spark.read.parquet(staging) if _has_files(staging) else rows.limit(0)
    versions, failed = _counts(written)
    if versions + failed < observed.get["rows"]:
        directory = os.path.dirname(staging)
        raise RemoteError(
            f"Spark wrote {observed.get['rows']} versions, and {versions + failed} of them are in {shown(directory)}:"
            " every worker must see it under this path; nothing was exported",
            kind="unreachable",
            path=directory,
        )
    return written, versions, failed


def _counts(rows: DataFrame) -> tuple[int, int]:
    """Rows of versions, and rows that say why there is none."""
    row = rows.agg(F.count("*").alias("all"), F.count("_error").alias("failed")).collect()[0]
    return row["all"] - row["failed"], row["failed"]


def _has_files(root: str) -> bool:
    return any(name.endswith(".parquet") for _, _, names in os.walk(root) for name in names)
