"""The tables that flow between stages: their columns, in one place.

Owns: every schema, and how rows become batches of one.
Must not know: what fills a table, or who reads it.
Keeps: times are text or whole numbers as the wire has them: no table depends on a time zone.
"""

import gc
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from itertools import islice
from typing import Any, Final

import pyarrow as pa
from pyarrow.parquet import ParquetWriter
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType
from pyspark.storagelevel import StorageLevel

from mire.edge import files
from mire.pipeline.foreign import told
from mire.pipeline.release import check_release, this_release
from mire.pipeline.session import is_connected

BATCH: Final = 10_000
"""Rows of a batch: enough that handing one over costs little, few enough to fit beside a hundred others."""

_PIECE: Final = 10 * BATCH
_HERE: Final = re.compile(r"local(\[.*\])?")

_TEXT, _NUMBER, _FLAG = pa.string(), pa.int64(), pa.bool_()

ENTRIES: Final = pa.schema(
    [
        ("rel", _TEXT),
        ("partition", _TEXT),
        ("size_bytes", _NUMBER),
        ("last_modified", _TEXT),
        ("local_mtime", _TEXT),
        ("sha256", _TEXT),
        ("extra", _TEXT),
        ("damage", _TEXT),
    ]
)
"""What an index says, a row for each entry; `extra` is JSON, `damage` why an entry says nothing usable."""

OBJECTS: Final = pa.schema([("rel", _TEXT), ("size_bytes", _NUMBER), ("fingerprint", _TEXT), ("modified_ms", _NUMBER)])
"""What a listing shows, without what no client syncs."""

LOCAL: Final = pa.schema(
    [("rel", _TEXT), ("here", _TEXT), ("size_bytes", _NUMBER), ("sha256", _TEXT), ("base", pa.binary())]
)
"""Our side of every path: what happened to it, the value of a file that changed, and the entry last agreed on."""

COMPARED: Final = pa.schema(
    [
        *ENTRIES,
        pa.field("object_size", _NUMBER),
        pa.field("object_modified_ms", _NUMBER),
        pa.field("here", _TEXT),
        pa.field("local_size", _NUMBER),
        pa.field("local_sha256", _TEXT),
        pa.field("base", pa.binary()),
    ]
)
"""Index, listing and our side beside each other: whatever any of them has."""

ACTIONS: Final = pa.schema([("rel", _TEXT), ("push", _TEXT), ("pull", _TEXT)])
"""What a push and a pull would do about each path."""

INSPECTED: Final = pa.schema(
    [
        ("rel", _TEXT),
        ("size_bytes", _NUMBER),
        ("sha256", _TEXT),
        ("marker", _NUMBER),
        ("meta_size", _NUMBER),
        ("meta_checksum", _TEXT),
        ("meta_streaming", _FLAG),
        ("error_kind", _TEXT),
        ("error", _TEXT),
    ]
)
"""Objects that were read: what they are, and what those say that say something about others."""

FINDINGS: Final = pa.schema(
    [("kind", _TEXT), ("path", _TEXT), ("message", _TEXT), ("remedy", _TEXT), ("is_damage", _FLAG)]
)
"""What a verification found."""

TO_MOVE: Final = pa.schema([*ENTRIES, pa.field("known_fingerprint", _TEXT), pa.field("known_sha256", _TEXT)])
"""What is to be moved: what the index says of it, and what we stored under its path and did not publish."""

TO_COPY: Final = pa.schema(
    [
        *ENTRIES,
        pa.field("there_size", _NUMBER),
        pa.field("there_fingerprint", _TEXT),
        pa.field("is_listed", _FLAG),
    ]
)
"""What is to be copied: what the source says of it, what is under its path in the target already, and whether the index
of the target lists that."""

MOVED: Final = pa.schema(
    [
        ("rel", _TEXT),
        ("size_bytes", _NUMBER),
        ("sha256", _TEXT),
        ("last_modified", _TEXT),
        ("local_mtime", _TEXT),
        ("extra", _TEXT),
        ("mtime_ns", _NUMBER),
        ("ctime_ns", _NUMBER),
        ("inode", _NUMBER),
        ("looked_ns", _NUMBER),
        ("fingerprint", _TEXT),
        ("temporary", _TEXT),
        ("outcome", _TEXT),
        ("error_class", _TEXT),
        ("error_kind", _TEXT),
        ("error", _TEXT),
    ]
)
"""Files and objects that were moved, with what is known of them now; or why one was not."""

SCANS: Final = pa.schema([("scans", pa.binary())])
"""What looks into names gave, for the catalog: pickled, from one process of ours to another."""

SHOWN: Final = pa.schema(
    [
        ("namespace", _TEXT),
        ("model_type", _TEXT),
        ("model_id", _TEXT),
        ("name", _TEXT),
        ("version", pa.int64()),
        ("values", pa.binary()),
        ("error", _TEXT),
        ("fault", _TEXT),
    ]
)
"""Versions of other namespaces for the catalog: its values, pickled by a task of ours; what is damaged; or, with the
class of the error, why the store could not be read."""

RETENTION: Final = pa.schema(
    [
        ("model_type", _TEXT),
        ("model_id", _TEXT),
        ("name", _TEXT),
        ("version", _NUMBER),
        ("created_us", _NUMBER),
        ("is_endless", _FLAG),
        ("run_reason", _TEXT),
        ("duration_us", _NUMBER),
        ("policy_count", _NUMBER),
        ("policy_us", _NUMBER),
        ("is_held", _FLAG),
        ("size_bytes", _NUMBER),
        ("is_odd", _FLAG),
    ]
)
"""What retention depends on, a row for each version a reader sees; `is_odd` names are left to the verb itself."""

ARTIFACTS: Final = pa.schema(
    [
        ("namespace", _TEXT),
        ("model_type", _TEXT),
        ("model_id", _TEXT),
        ("name", _TEXT),
        ("version", _NUMBER),
        ("is_latest", _FLAG),
        ("id", _TEXT),
        ("data_type", _TEXT),
        ("content_type", _TEXT),
        ("lifetime", _TEXT),
        ("version_policy", _TEXT),
        ("lifecycle", _TEXT),
        ("renamed_to", _TEXT),
        ("streaming", _FLAG),
        ("size_bytes", _NUMBER),
        ("checksum", _TEXT),
        ("created_at", _TEXT),
        ("owner_type", _TEXT),
        ("owner_ref", _TEXT),
        ("workflow_id", _TEXT),
        ("workflow_run_id", _TEXT),
        ("workflow_name", _TEXT),
        ("job_name", _TEXT),
        ("step_name", _TEXT),
        ("source", _TEXT),
        ("tags", pa.map_(_TEXT, _TEXT)),
        ("attributes", _TEXT),
        ("content", pa.binary()),
        ("_error", _TEXT),
    ]
)
"""Versions with their metadata; `attributes` is the JSON text of structured content, `_error` why a row says less."""

PARSED: Final = pa.schema([*ARTIFACTS, pa.field("metadata_sha256", _TEXT)])
"""The same, with the hash of the metadata as it was read."""

VERSIONS: Final = pa.schema(
    [
        ("namespace", _TEXT),
        ("model_type", _TEXT),
        ("model_id", _TEXT),
        ("name", _TEXT),
        ("version", _NUMBER),
        ("is_latest", _FLAG),
        ("size_bytes", _NUMBER),
        ("sha256", _TEXT),
        ("last_modified", _TEXT),
        ("_error", _TEXT),
    ]
)
"""Versions as the index alone tells them: size and hash are those of the content."""

FILES: Final = pa.schema(
    [
        ("namespace", _TEXT),
        ("path", _TEXT),
        ("partition", _TEXT),
        ("size_bytes", _NUMBER),
        ("last_modified", _TEXT),
        ("local_mtime", _TEXT),
        ("sha256", _TEXT),
        ("extra", _TEXT),
        ("_error", _TEXT),
    ]
)
"""The entries of an index; `extra` is JSON: members that this mire does not know."""

_STEP: Final = pa.struct(
    [pa.field(name, _TEXT) for name in ("job_name", "step_name", "status", "started_at", "completed_at", "error")]
)

RUNS: Final = pa.schema(
    [
        ("namespace", _TEXT),
        ("workflow_id", _TEXT),
        ("workflow_name", _TEXT),
        ("id", _TEXT),
        ("status", _TEXT),
        ("started_at", _TEXT),
        ("completed_at", _TEXT),
        ("tags", pa.map_(_TEXT, _TEXT)),
        ("steps", pa.list_(_STEP)),
        ("document", _TEXT),
        ("path", _TEXT),
        ("_error", _TEXT),
    ]
)
"""Runs of workflows; `steps` are those of all jobs, `document` is the whole record as JSON."""

OUTPUTS: Final = pa.schema(
    [
        ("namespace", _TEXT),
        ("model_type", _TEXT),
        ("method_name", _TEXT),
        ("id", _TEXT),
        ("definition_id", _TEXT),
        ("status", _TEXT),
        ("started_at", _TEXT),
        ("completed_at", _TEXT),
        ("duration_ms", _NUMBER),
        ("retry_count", _NUMBER),
        ("triggered_by", _TEXT),
        ("error", _TEXT),
        ("document", _TEXT),
        ("path", _TEXT),
        ("_error", _TEXT),
    ]
)
"""Executions of methods; `error` is what a failed one said, `document` is the whole record as JSON."""


def spark_schema(schema: pa.Schema) -> StructType:
    """A schema as Spark takes it."""
    return from_arrow_schema(schema)


def batch_of(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows, each with its values in the order of the schema, as one batch."""
    columns = zip(*rows, strict=True) if rows else ([] for _ in schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def batches_of(rows: Iterable[Sequence[Any]], schema: pa.Schema, size: int = BATCH) -> Iterator[pa.RecordBatch]:
    """Rows in batches, none larger than `size`."""
    left = iter(rows)
    while chunk := list(islice(left, size)):
        yield batch_of(chunk, schema)


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    """The rows of batches, by column name."""
    for batch in batches:
        yield from batch.to_pylist()


def frame_of(spark: SparkSession, rows: Iterable[Sequence[Any]], schema: pa.Schema) -> DataFrame:
    """A table of the driver's rows."""
    table = pa.Table.from_batches(batches_of(rows, schema), schema)
    return spark.createDataFrame(table, spark_schema(schema))


def streamed(stack: ExitStack, spark: SparkSession, rows: Iterable[Sequence[Any]], schema: pa.Schema) -> DataFrame:
    """The same of more rows than the driver should hold, until the stack ends.

    An embedded Spark reads a file of them; others get them piece by piece.
    """
    if _is_embedded(spark):
        return _filed(stack, spark, rows, schema)
    left = iter(rows)
    found = frame_of(spark, islice(left, _PIECE), schema)
    while some := list(islice(left, _PIECE)):
        found = found.unionAll(frame_of(spark, some, schema))
    return found


def _is_embedded(spark: SparkSession) -> bool:
    """Whether tasks run in this machine, and see its files."""
    return not is_connected(spark) and _HERE.fullmatch(str(spark.sparkContext.master)) is not None


def _filed(stack: ExitStack, spark: SparkSession, rows: Iterable[Sequence[Any]], schema: pa.Schema) -> DataFrame:
    directory = tempfile.mkdtemp(prefix="mire-")
    # Tables made of this one read the file, too, and do not hold it: it stays as long as the job.
    stack.callback(shutil.rmtree, directory, ignore_errors=True)
    path = os.path.join(directory, "rows.parquet")
    with files.mapped(path), ParquetWriter(path, schema) as writer:
        for batch in batches_of(rows, schema, BATCH):
            writer.write_table(pa.Table.from_batches([batch]))  # on disk at once: batches of their own it gathers
    return spark.read.schema(spark_schema(schema)).parquet(f"file://{directory}")


def kept(stack: ExitStack, frame: DataFrame) -> DataFrame:
    """A table that is worked out once, however often it is asked, until the stack ends."""
    found = frame.persist(StorageLevel.MEMORY_AND_DISK)
    stack.callback(_let_go, found)
    return found


def _let_go(frame: DataFrame) -> None:
    # It only gives memory back. A Spark that does not answer any more has none, and why is what the job raises.
    with suppress(Exception):
        frame.unpersist()


def mapped(
    frame: DataFrame, work: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: pa.Schema
) -> DataFrame:
    """A table with every partition of it worked on where it is; a worker of another release is refused."""
    driver = this_release()

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with told():
            check_release(driver)
            _set_imports_aside()
            yield from work(batches)

    return frame.mapInArrow(task, spark_schema(schema))


@cache
def _set_imports_aside() -> None:
    """Have the garbage collector pass over what a worker imported: after each task Spark lets it look at everything.

    For a small task that took longer than the task itself.
    """
    gc.freeze()


def spread(spark: SparkSession, items: Sequence[Mapping[str, Any]], schema: pa.Schema, groups: int) -> DataFrame:
    """A small table of the driver's, in so many partitions: each is one task's work."""
    rows = [[item[name] for name in schema.names] for item in items]
    return frame_of(spark, rows, schema).repartition(max(1, min(groups, len(items))))
