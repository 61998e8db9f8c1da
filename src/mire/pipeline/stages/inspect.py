"""Reading objects for what they are: their hash, and what metadata and markers say.

Owns: how one object is read and judged.
Must not know: what is expected of it.
Keeps: an object is read in pieces, however large; what cannot be read is a row that says why, never a failed job.
"""

import hashlib
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame

from mire.edge import pool
from mire.edge.remote import Remote
from mire.errors import FormatError, MireError
from mire.flow.read import METADATA_BYTES_MAX
from mire.pipeline.frames import INSPECTED, batches_of, mapped, rows_of
from mire.pipeline.store import StoreSpec, open_spec
from mire.wire.latest import decode_latest
from mire.wire.layout import DATA, LATEST, METADATA
from mire.wire.metadata import check_agrees, decode_metadata

AT_ONCE: Final = 16
_MARKER_BYTES_MAX: Final = 64


def inspect(rels: DataFrame, spec: StoreSpec) -> DataFrame:
    """The objects under some paths, read and hashed in tasks."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        remote = open_spec(spec)
        found = pool.run(lambda rel: _inspected(remote, rel), (row["rel"] for row in rows_of(batches)), at_once=AT_ONCE)
        yield from batches_of((row for _, row in found), INSPECTED)

    return mapped(rels.select("rel"), work, INSPECTED)


def _inspected(remote: Remote, rel: str) -> tuple[Any, ...]:
    head = bytearray()
    digest, size = hashlib.sha256(), 0
    try:
        for chunk in remote.get_stream(rel).chunks:
            digest.update(chunk)
            size += len(chunk)
            if len(head) <= METADATA_BYTES_MAX:
                head += chunk
    except MireError as error:
        return _failed(rel, error)
    said = _said(rel, bytes(head))
    if isinstance(said, MireError):
        return (rel, size, digest.hexdigest(), None, None, None, None, "metadata", said.message)
    return (rel, size, digest.hexdigest(), *said, None, None)


def _failed(rel: str, error: MireError) -> tuple[Any, ...]:
    return (rel, None, None, None, None, None, None, "unreadable", error.message)


def _said(rel: str, data: bytes) -> tuple[int | None, int | None, str | None, bool | None] | MireError:
    """What an object says about others: a marker its version, metadata the content it describes."""
    place, _, name = rel.rpartition("/")
    if not rel.startswith(f"{DATA}/"):
        return None, None, None, None
    if name == LATEST:
        return decode_latest(data[:_MARKER_BYTES_MAX]), None, None, None
    number = place.rpartition("/")[2]
    if name != METADATA or not number.isdigit():
        return None, None, None, None
    try:
        if len(data) > METADATA_BYTES_MAX:
            raise FormatError(f"metadata is larger than {METADATA_BYTES_MAX} bytes")  # noqa: TRY301 - one way to tell
        metadata = decode_metadata(data)
        check_agrees(metadata, metadata.name, int(number))
    except FormatError as error:
        return error
    return None, metadata.size_bytes, metadata.checksum, metadata.streaming
