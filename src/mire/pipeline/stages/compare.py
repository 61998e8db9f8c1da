"""Index, listing and our side beside each other, and what that means: the same three-way decision as everywhere.

Owns: the join, and how its rows reach the plan.
Must not know: the rules (`plan/threeway`), what is done about them.
Keeps: every path that any side has is one row.
"""

from collections.abc import Iterator
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from mire.model.index import Entry
from mire.pipeline.frames import ACTIONS, COMPARED, batches_of, mapped, rows_of
from mire.pipeline.stages.shards import entry_in
from mire.plan.threeway import Here, Value, plan_pull_of, plan_push_of
from mire.wire.entry import decode_member


def compare(entries: DataFrame, objects: DataFrame, local: DataFrame) -> DataFrame:
    """What each side has of every path that any of them has."""
    listed = objects.select(
        "rel", F.col("size_bytes").alias("object_size"), F.col("modified_ms").alias("object_modified_ms")
    )
    ours = local.select(
        "rel", "here", F.col("size_bytes").alias("local_size"), F.col("sha256").alias("local_sha256"), "base"
    )
    return (
        entries.where(F.col("rel").isNotNull())
        .join(listed, "rel", "full_outer")
        .join(ours, "rel", "full_outer")
        .select(*COMPARED.names)
    )


def decide(compared: DataFrame) -> DataFrame:
    """What a push and a pull would do about each path."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches_of((_decided(row) for row in rows_of(batches)), ACTIONS)

    return mapped(compared.select(*COMPARED.names), work, ACTIONS)


def _decided(row: dict[str, Any]) -> tuple[str, str, str]:
    rel = row["rel"]
    found = entry_in(row)
    remote = found if isinstance(found, Entry) else None
    before = None if row["base"] is None else decode_member(rel, bytes(row["base"]))
    base = before if isinstance(before, Entry) else None
    here = cast("Here", row["here"] or "missing")
    value = None
    if here == "changed" and row["local_sha256"] is not None:
        value = Value(size_bytes=row["local_size"], sha256=row["local_sha256"])
    return rel, plan_push_of(here, base, remote, value), plan_pull_of(here, base, remote, value)
