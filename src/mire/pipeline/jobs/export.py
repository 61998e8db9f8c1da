"""Versions as Parquet, for whoever asks with other tools: each one once, a directory for each commit exported.

Owns: what is new since the last export, and the one step that makes it part of it.
Must not know: how metadata becomes columns.
Keeps: a version is in the export once, whoever died when: the files of a commit appear together, by one rename, with
the note that says what they are.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from mire.edge import clock, files
from mire.edge.turn import open_turn
from mire.errors import ConflictError, FormatError, InputError, NotFoundError, RemoteError, shown
from mire.flow.datastore import Datastore
from mire.flow.exchange import check_format
from mire.pipeline.foreign import spark_errors
from mire.pipeline.frames import ARTIFACTS
from mire.pipeline.jobs.cores import cores_of
from mire.pipeline.stages.parse import Wanted, names_of, parse
from mire.pipeline.stages.scan import scan
from mire.pipeline.stages.shards import read_index
from mire.pipeline.store import open_spec, spec_of
from mire.pipeline.view import IndexView, check_indexed, look_at_index

Attributes = Literal["json", "variant"]
VERSIONS: Final = "versions"
NOTE: Final = "_mire-export.json"
_STAGING: Final = ".mire-export-"
_LOCK: Final = ".mire-export.lock"
_KEY: Final = ("namespace", "model_type", "model_id", "name", "version", "metadata_sha256")
_PLACE: Final = r"^data/(.+)/([^/]+)/([^/]+)/(\d+)/metadata[.]yaml$"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What was exported, or would be."""

    directory: str
    commit: int
    versions: int
    failed: int
    """Versions whose metadata or content could not be read: they are rows with `_error`."""
    is_new: bool = True
    """False: nothing was committed since the last export."""
    is_dry_run: bool = False


def export_store(
    spark: SparkSession, ds: Datastore, directory: str, *, attributes: Attributes = "json", dry_run: bool = False
) -> Exported:
    """Add what is new to the export in a directory, which is made if need be."""
    if "://" in directory:
        raise InputError(f"{shown(directory)} is an address: an export goes into a directory that Spark can rename")
    # Spark may be elsewhere, where a relative path is another one.
    root = os.path.abspath(directory)
    if dry_run:
        with spark_errors("the export"):
            return replace(_exported(spark, ds, root, attributes, dry_run=True), directory=directory)
    files.make_dirs(os.path.join(root, VERSIONS))
    lock = os.path.join(root, _LOCK)
    with open_turn(lock, wait_ms=0.0, what="another export into this directory is at work"), spark_errors("the export"):
        for entry in files.list_dir(root):
            if entry.name.startswith(_STAGING):
                files.remove_tree(os.path.join(root, entry.name))
        return replace(_exported(spark, ds, root, attributes, dry_run=False), directory=directory)


def _exported(spark: SparkSession, ds: Datastore, directory: str, attributes: Attributes, *, dry_run: bool) -> Exported:
    check_format(ds)
    spec = spec_of(ds)
    remote = open_spec(spec)
    view = look_at_index(remote)
    check_indexed(spec, view)
    last, name = _last(directory), remote.properties.name
    if last is not None and last["store"] != name:
        raise ConflictError(
            f"{shown(directory)} is an export of {last['store']}, not of {name}: name another directory",
            kind="other_export",
        )
    tag = view.meta_tag if view.form == "sharded" else view.monolith_tag
    if last is not None and tag is not None and last["index"] == tag:
        return Exported(
            directory=directory, commit=last["commit"], versions=0, failed=0, is_new=False, is_dry_run=dry_run
        )
    commit = _number(view, None if last is None else last["commit"])
    new = _new(spark, ds, view, directory, last)
    wanted = Wanted(attributes=not dry_run)
    rows = _rows(new, parse(names_of(new), spec, wanted))
    if dry_run:
        count, failed = _counts(rows)
        return Exported(directory=directory, commit=commit, versions=count, failed=failed, is_dry_run=True)
    with _open_staging(directory) as staging:
        count, failed = _written(spark, rows, staging, attributes)
        if count == 0 and tag is None:
            # Without an index nothing tells a new state from the last one.
            return Exported(directory=directory, commit=commit - 1, versions=0, failed=0, is_new=False)
        note = {"version": 1, "store": name, "commit": commit, "index": tag, "attributes": attributes}
        _publish(directory, staging, commit, {**note, "versions": count})
    return Exported(directory=directory, commit=commit, versions=count, failed=failed)


@contextmanager
def _open_staging(directory: str) -> Iterator[str]:
    """A place for the files of a commit, which goes unless it was made part of the export: it may fill a disk."""
    staging = os.path.join(directory, f"{_STAGING}{clock.new_uuid()}")
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _written(spark: SparkSession, rows: DataFrame, staging: str, attributes: Attributes) -> tuple[int, int]:
    """Write versions into a directory; how many there are, and how many of them have an error."""
    shaped = rows if attributes == "json" else rows.withColumn("attributes", F.expr("try_parse_json(attributes)"))
    written = Observation()
    shaped = shaped.observe(written, F.count(F.lit(1)).alias("rows"))
    # By month as well: who asks about a time does not read the rest. A commit may bring versions of any age.
    shaped.withColumn("month", F.substring("created_at", 1, 7)).write.partitionBy("month").parquet(staging)
    count, failed = _counts(spark.read.parquet(staging)) if _has_files(staging) else (0, 0)
    if count < written.get["rows"]:
        directory = os.path.dirname(staging)
        raise RemoteError(
            f"Spark wrote {written.get['rows']} versions, and {count} of them are in {shown(directory)}: every worker"
            " must see it under this path; nothing was exported",
            kind="unreachable",
            path=directory,
        )
    return count, failed


def _last(directory: str) -> dict[str, Any] | None:
    """The note of the last commit that was exported."""
    root = os.path.join(directory, VERSIONS)
    commits = sorted(_commits(root)) if os.path.isdir(root) else []
    if not commits:
        return None
    path = os.path.join(root, f"commit={commits[-1]}", NOTE)
    try:
        with open(path, encoding="utf-8") as file:
            note = json.load(file)
        if note["version"] != 1:
            raise FormatError(f"{shown(path)} is of a newer mire: upgrade")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{shown(path)} cannot be read ({error}): move the directory away, and export anew") from None
    found: dict[str, Any] = note
    return found


def _commits(root: str) -> Iterator[int]:
    for name in os.listdir(root):
        key, _, number = name.partition("=")
        if key == "commit" and number.isdigit():
            yield int(number)


def _number(view: IndexView, last: int | None) -> int:
    """The number of this export: that of the commit, or one more where commits are not counted."""
    least = 1 if last is None else last + 1
    return max(least, view.commit_seq) if view.form == "sharded" else least


def _new(spark: SparkSession, ds: Datastore, view: IndexView, directory: str, last: dict[str, Any] | None) -> DataFrame:
    """The entries of metadata that no export has, each with the name it stands for."""
    spec, cores = spec_of(ds), cores_of(spark)
    if spec.is_directory:
        listed = scan(spark, spec, cores=cores)
        # Without an index the fingerprint of the file stands for its hash.
        entries = listed.select("rel", F.col("fingerprint").alias("sha256"))
    else:
        entries = read_index(spark, spec, view, cores=cores).where("rel is not null and damage is null")
    found = (
        entries.select("rel", F.coalesce("sha256", F.lit("")).alias("metadata_sha256"))
        .withColumn("namespace", F.lit(str(ds.config.namespace)))
        .withColumns(
            {
                "model_type": F.regexp_extract("rel", _PLACE, 1),
                "model_id": F.regexp_extract("rel", _PLACE, 2),
                "name": F.regexp_extract("rel", _PLACE, 3),
                "version": F.regexp_extract("rel", _PLACE, 4).cast("bigint"),
            }
        )
        .where("model_type <> ''")
    )
    root = os.path.join(directory, VERSIONS)
    if last is None or not _has_files(root):
        return found
    return found.join(spark.read.parquet(root).select(*_KEY), list(_KEY), "left_anti")


def _rows(new: DataFrame, parsed: DataFrame) -> DataFrame:
    keys = [name for name in _KEY if name != "metadata_sha256"]
    columns = [name for name in ARTIFACTS.names if name not in ("content", "_error")]
    return parsed.join(new.select(*_KEY), keys).select(*columns, "metadata_sha256", "_error")


def _counts(rows: DataFrame) -> tuple[int, int]:
    row = rows.agg(F.count("*").alias("all"), F.count("_error").alias("failed")).collect()[0]
    return row["all"], row["failed"]


def _has_files(root: str) -> bool:
    return any(name.endswith(".parquet") for _, _, names in os.walk(root) for name in names)


def _publish(directory: str, staging: str, commit: int, note: dict[str, Any]) -> None:
    """Make a commit part of the export: the note goes in, everything is on disk, one rename."""
    files.write_file(os.path.join(staging, NOTE), [json.dumps(note).encode()])
    root = os.path.join(directory, VERSIONS)
    with files.mapped(directory):
        for where, _, names in os.walk(staging):
            for name in names:
                with open(os.path.join(where, name), "rb") as file:
                    os.fsync(file.fileno())
            files.sync_dir(where)
        os.rename(staging, os.path.join(root, f"commit={commit}"))
    files.sync_dir(root)


def read_export(spark: SparkSession, directory: str) -> DataFrame:
    """An export as a table."""
    root = os.path.join(directory, VERSIONS)
    if not _has_files(root):
        raise NotFoundError(f"there is no export in {shown(directory)}: 'mire export' makes one")
    return spark.read.parquet(root)
