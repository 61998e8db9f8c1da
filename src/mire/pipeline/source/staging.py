"""What tasks leave for the driver: one object each, under a name that no other attempt has.

Owns: where rows wait between their task and the commit.
Must not know: what is in them, how they are committed.
Keeps: no client syncs what is staged, so it is never visible; all of a job goes when the job ends, and what a job that
died left behind goes with a later one.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from mire.edge import clock
from mire.edge.files import chunks_of
from mire.errors import MireError
from mire.pipeline.store import StoreSpec, open_spec
from mire.wire.control import CONTROL

_PLACE: Final = f"{CONTROL}/mire-spark/"
_FORGOTTEN_MS: Final = 86_400_000.0
"""A job whose rows wait this long has died."""


@dataclass(frozen=True, kw_only=True)
class Staged(WriterCommitMessage):
    """What one task staged: its object, or None when it had no rows."""

    key: str | None
    rows: int


def stage(spec: StoreSpec, job: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Staged:
    """Store the rows of one task."""
    rows = 0
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "rows")
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
            for batch in batches:
                rows += batch.num_rows
                writer.write_batch(batch)
        if not rows:
            return Staged(key=None, rows=0)
        key = f"{_PLACE}{job}/{clock.new_uuid()}"
        open_spec(spec).put_stream(key, lambda: chunks_of(path))
    return Staged(key=key, rows=rows)


def bring(spec: StoreSpec, staged: Iterable[Staged], directory: str) -> list[str]:
    """The rows of all tasks as files, in the order of their tasks."""
    remote = open_spec(spec)
    paths: list[str] = []
    for each in staged:
        if each.key is not None:
            path = os.path.join(directory, f"rows-{len(paths)}")
            with open(path, "wb") as file:
                file.writelines(remote.get_stream(each.key).chunks)
            paths.append(path)
    return paths


def staged_batches(path: str) -> Iterator[pa.RecordBatch]:
    """The batches in a file of staged rows."""
    with pa.memory_map(path) as source, pa.ipc.open_stream(source) as reader:
        yield from reader


def clear(spec: StoreSpec, job: str) -> None:
    """Remove what a job staged, its lost attempts' too, and what jobs that died left; a failure harms nobody."""
    remote, mine = open_spec(spec), f"{_PLACE}{job}/"
    with contextlib.suppress(MireError):
        now_ms = remote.server_time_ms()
        for stat in list(remote.list(_PLACE)):
            if stat.key.startswith(mine) or now_ms - stat.modified_ms > _FORGOTTEN_MS:
                remote.delete(stat.key)
    if spec.is_directory:
        for place in (mine, _PLACE):
            with contextlib.suppress(OSError):
                os.rmdir(os.path.join(str(spec.settings), spec.namespace, place))
