"""From tables that were compared to findings: each by the same judgement as `mire verify` makes.

Owns: which rows can be something, decided in columns, and the way of the others to the plan.
Must not know: what a difference means (`plan/verify`).
Keeps: only what may be a finding reaches Python; the rest of a million rows is compared where it is.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from mire.model.index import Damaged, Entry
from mire.model.verify import Finding
from mire.pipeline.frames import FINDINGS, batches_of, kept, mapped, rows_of
from mire.pipeline.stages.inspect import inspect
from mire.pipeline.stages.shards import ABSENT, UNLISTED, entry_in
from mire.pipeline.store import StoreSpec
from mire.pipeline.view import IndexView
from mire.plan.verify import (
    checksum_finding,
    entry_finding,
    hash_finding,
    marker_finding,
    metadata_finding,
    object_finding,
    orphan_finding,
    partition_finding,
    shard_findings,
    unlisted_finding,
)
from mire.wire.relpath import check_rel

YOUNG_MS: Final = 600_000
"""An object that no index describes, this young, may belong to a push under way."""

_RAW: Final = r"^(data/.+/\d+)/raw$"
_META: Final = r"^(data/.+/\d+)/metadata[.]yaml$"
_LATEST: Final = r"^(data/.+)/latest$"


def finding_row(finding: Finding) -> tuple[object, ...]:
    """A finding in the order of its columns."""
    return finding.kind, finding.path, finding.message, finding.remedy, finding.is_damage


def _judged(frame: DataFrame, judge: Callable[[dict[str, Any]], Iterable[Finding | None]]) -> DataFrame:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = (finding for row in rows_of(batches) for finding in judge(row) if finding is not None)
        yield from batches_of(map(finding_row, found), FINDINGS)

    return mapped(frame, work, FINDINGS)


def index_findings(entries: DataFrame) -> DataFrame:
    """What is wrong with the shards themselves."""

    def judge(row: dict[str, Any]) -> Iterator[Finding]:
        name, why = row["partition"], row["damage"]
        return shard_findings(
            (name,) if why == ABSENT else (),
            ((name, why),) if why not in (ABSENT, UNLISTED) else (),
            (name,) if why == UNLISTED else (),
        )

    return _judged(entries.where(F.col("rel").isNull()).select("partition", "damage"), judge)


def object_findings(compared: DataFrame, *, now_ms: int, has_index: bool) -> DataFrame:
    """What the index and the listing say otherwise of a path; a store without an index has no orphans."""
    size, stored = F.col("size_bytes"), F.col("object_size")
    is_entry = F.col("last_modified").isNotNull()
    is_odd = F.col("damage").isNotNull() | (is_entry & (stored.isNull() | (stored != size)))
    if has_index:
        is_odd |= ~is_entry & stored.isNotNull()
    is_odd |= is_entry & ~F.col("rel").rlike(r"^[A-Za-z0-9_@/.-]*$")

    def judge(row: dict[str, Any]) -> list[Finding | None]:
        rel, entry = row["rel"], entry_in(row)
        reason = entry.reason if isinstance(entry, Damaged) else check_rel(rel)
        if reason is not None:
            return [entry_finding(rel, reason)]
        if isinstance(entry, Entry):
            return [object_finding(rel, entry, row["object_size"], is_here=row["here"] in ("same", "changed"))]
        if row["base"] is not None:
            return [unlisted_finding(rel)]
        is_young = now_ms - row["object_modified_ms"] < YOUNG_MS
        return [orphan_finding(rel, row["object_size"], is_young=is_young)]

    return _judged(compared.where(is_odd), judge)


def partition_findings(entries: DataFrame, copies: DataFrame, view: IndexView) -> DataFrame:
    """Partitions beside a monolith that say something else than it does."""
    said = ["partition", "rel", "size_bytes", "last_modified", "local_mtime", "sha256", "extra", "damage"]
    told = entries.where(F.col("rel").isNotNull() & F.col("partition").isNotNull()).select(*said)
    there = copies.where(F.col("rel").isNotNull()).select(*said)
    unreadable = copies.where(F.col("rel").isNull() & ~F.col("damage").isin(ABSENT, UNLISTED)).select("partition")
    absent = copies.where(F.col("rel").isNull() & (F.col("damage") == ABSENT)).select("partition")
    differing = told.exceptAll(there).select("partition").union(there.exceptAll(told).select("partition"))
    # A partition of which there is nothing lags behind like any other.
    names = differing.union(unreadable).union(absent).distinct()
    proof = None if view.meta is None else view.meta.proof
    vouched = dict(proof.shards) if proof is not None and view.is_proven else {}
    tags = dict(view.shards)

    def judge(row: dict[str, Any]) -> list[Finding]:
        name = row["partition"]
        tag = tags.get(name)
        return [partition_finding(name, is_proven=tag is not None and vouched.get(name) == tag)]

    return _judged(names, judge)


def is_read(*, is_directory: bool) -> Column:
    """Whether an object is read when everything is: without an index all of them, to be compared with metadata."""
    is_there = F.col("object_size").isNotNull()
    return is_there if is_directory else is_there & F.col("last_modified").isNotNull()


def deep_findings(stack: ExitStack, compared: DataFrame, spec: StoreSpec) -> DataFrame:
    """What every object says when it is read."""
    wanted = compared.where(is_read(is_directory=spec.is_directory))
    read = kept(stack, inspect(wanted, spec))
    expected = wanted.drop("object_size", "object_modified_ms")
    read_as = read.select(
        "rel",
        F.col("size_bytes").alias("read_size"),
        F.col("sha256").alias("read_sha256"),
        F.col("error_kind"),
        F.col("error"),
    )
    is_odd = F.col("error").isNotNull() | (F.col("read_sha256") != F.col("sha256"))
    odd = expected.join(read_as, "rel").where(is_odd)
    return _judged(odd, _judge_read).unionByName(_content(read)).unionByName(_markers(read))


def _judge_read(row: dict[str, Any]) -> list[Finding | None]:
    rel, entry = row["rel"], entry_in(row)
    if row["error_kind"] == "metadata":
        return [metadata_finding(rel, row["error"])]
    if row["error"] is not None:
        return [Finding(kind="unreadable", path=rel, message=row["error"], remedy="look again, or make it readable")]
    if not isinstance(entry, Entry) or entry.size_bytes != row["read_size"]:
        return []  # sizes were compared already
    return [hash_finding(rel, entry, row["read_sha256"], is_here=row["here"] == "same")]


def _content(read: DataFrame) -> DataFrame:
    """Content that is not what its own metadata says."""
    raw = read.select(
        F.regexp_extract("rel", _RAW, 1).alias("place"),
        "rel",
        F.col("size_bytes").alias("size"),
        F.col("sha256").alias("sha"),
    ).where("place <> '' and sha is not null")
    said = read.select(
        F.regexp_extract("rel", _META, 1).alias("place"), "meta_size", "meta_checksum", "meta_streaming"
    ).where("place <> '' and meta_streaming is not null")
    is_odd = (F.col("size") != F.col("meta_size")) | (F.col("sha") != F.col("meta_checksum"))
    return _judged(raw.join(said, "place").where(is_odd), _judge_content)


def _judge_content(row: dict[str, Any]) -> list[Finding | None]:
    content = row["size"], row["sha"]
    streaming = row["meta_streaming"]
    return [checksum_finding(row["rel"], content, row["meta_size"], row["meta_checksum"], is_streaming=streaming)]


def _markers(read: DataFrame) -> DataFrame:
    """Markers that lead to no version."""
    marker = read.select(
        "rel", F.regexp_extract("rel", _LATEST, 1).alias("name"), "marker", F.col("error").alias("failed")
    ).where("name <> '' and failed is null")
    there = read.select(F.regexp_extract("rel", _META, 1).alias("place")).where("place <> ''")
    places = marker.withColumn("place", F.concat_ws("/", "name", F.col("marker").cast("string")))
    lost = places.join(there, "place", "left_anti")
    return _judged(lost, lambda row: [marker_finding(row["rel"], row["marker"])])
