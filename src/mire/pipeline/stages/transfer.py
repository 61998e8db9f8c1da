"""Moving files and objects in tasks, up and down; hashed on the way and verified.

Owns: how a row becomes a move and a move a row.
Must not know: why something is moved, what is committed afterwards.
Keeps: a task moves a few at once, never more; a move that is done again (a retried or speculative task) ends in the
same state; what is wrong with one file is a row, what is wrong with a store ends the job.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame

from mire import errors
from mire.edge import pool
from mire.edge.boundary import Boundary
from mire.edge.files import Written
from mire.errors import FormatError, MireError, RemoteError, shown
from mire.flow.apply import fetch_one
from mire.flow.send import send_one
from mire.flow.transfer import Sent, Unpublished
from mire.model.index import Entry
from mire.model.names import RelPath
from mire.model.row import FileIdentity
from mire.pipeline.frames import MOVED, batches_of, mapped, rows_of
from mire.pipeline.stages.shards import entry_in
from mire.pipeline.store import StoreSpec, open_spec

ROWS_A_TASK: Final = 1_000
"""Moves of one task: enough that starting it costs nothing, few enough that one that dies costs little."""
_ROWS_A_BATCH: Final = 256
_AT_ONCE_LEAST: Final = 4
_SHORT_AT_ONCE_LEAST: Final = 16
"""Of a task, however many there are: a cluster waits for a store as one machine does."""

Row = dict[str, Any]
Result = tuple[Any, ...]
"""The values of a row of `MOVED`."""


def groups_for(count: int, cores: int) -> int:
    """In how many tasks so many moves are done."""
    return max(1, min(max(cores, -(-count // ROWS_A_TASK)), 64 * cores, count or 1))


def at_once_in(cores: int, concurrency: int, *, are_short: bool) -> int:
    """How many of so many moves at the same time one task has, when every core runs one."""
    return max(_SHORT_AT_ONCE_LEAST if are_short else _AT_ONCE_LEAST, concurrency // cores)


def moves(
    frame: DataFrame, open_move: Callable[[], Callable[[Row], Result]], *, at_once: int, gathered: bool
) -> DataFrame:
    """What comes of moving each row, some of a task's at once; `gathered` as in `pool.run`."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = moves_here(rows_of(batches), open_move, at_once=at_once, gathered=gathered, is_alone=False)
        yield from batches_of(found, MOVED, _ROWS_A_BATCH)

    return mapped(frame, work, MOVED)


def moves_here(
    rows: Iterable[Row],
    open_move: Callable[[], Callable[[Row], Result]],
    *,
    at_once: int,
    gathered: bool,
    is_alone: bool,
) -> Iterator[Result]:
    """What comes of moving each row, by this process; `gathered` and `is_alone` as in `pool.run`."""
    moved = pool.run(open_move(), rows, at_once=at_once, gathered=gathered, is_alone=is_alone)
    return (result for _, result in moved)


def upload(frame: DataFrame, spec: StoreSpec, tier: str, writer: str, *, at_once: int, gathered: bool) -> DataFrame:
    """Files of a cache into the store; a row's entry is what the index describes in their place."""

    def open_move() -> Callable[[Row], Result]:
        remote = open_spec(spec)
        check_seen(tier)
        boundary = Boundary(tier)

        def move(row: Row) -> Result:
            rel, replaced = RelPath(row["rel"]), entry_in(row)
            path = os.path.join(tier, rel)
            try:
                boundary.check(path)
            except MireError as error:
                return failed_row(rel, error)
            before = replaced if isinstance(replaced, Entry) else None
            sent = send_one(remote, rel, path, before, writer, _known_in(row))
            return failed_row(rel, sent) if isinstance(sent, MireError) else _sent_row(rel, sent)

        return move

    return moves(frame, open_move, at_once=at_once, gathered=gathered)


def download(frame: DataFrame, spec: StoreSpec, directory: str, *, at_once: int, gathered: bool) -> DataFrame:
    """Objects into a directory, each under a temporary name; a row's entry is what it must be."""

    def open_move() -> Callable[[Row], Result]:
        remote = open_spec(spec)
        check_seen(directory)

        def move(row: Row) -> Result:
            rel, entry = RelPath(row["rel"]), entry_in(row)
            if not isinstance(entry, Entry):
                return failed_row(rel, FormatError(f"the index says nothing usable of {shown(rel)}"))
            came = fetch_one(remote, rel, entry, directory)
            return failed_row(rel, came) if isinstance(came, MireError) else _came_row(rel, *came)

        return move

    return moves(frame, open_move, at_once=at_once, gathered=gathered)


def check_seen(*directories: str) -> None:
    """Refuse to work where a directory of the driver's is not; in a task."""
    for directory in directories:
        if not os.path.isdir(directory):
            raise unseen(directory)


def unseen(directory: str) -> RemoteError:
    """The error of a worker that does not see a directory of the driver's."""
    return RemoteError(
        f"a worker does not see {shown(directory)}: every worker must see it under this path; else run without"
        " --master, on this machine",
        kind="unreachable",
        path=directory,
    )


def failed_row(rel: str, error: MireError) -> Result:
    """What kept a file or object from being moved."""
    return (rel, *(None,) * 12, type(error).__name__, error.kind, error.message)


def _sent_row(rel: str, sent: Sent) -> Result:
    entry, file = sent.entry, sent.identity
    facts = entry.size_bytes, entry.sha256, entry.last_modified, entry.local_mtime
    identity = file.mtime_ns, file.ctime_ns, file.inode
    return (rel, *facts, None, *identity, sent.looked_ns, sent.fingerprint, None, None, None, None, None)


def _known_in(row: Row) -> Unpublished | None:
    if row["known_fingerprint"] is None:
        return None
    return Unpublished(fingerprint=row["known_fingerprint"], sha256=row["known_sha256"])


def _came_row(rel: str, temporary: str, written: Written) -> Result:
    return (rel, written.size_bytes, written.sha256, *(None,) * 8, temporary, None, None, None, None)


def error_in(row: Row) -> MireError | None:
    """What went wrong with a row, as it was raised in its task."""
    if row["error"] is None:
        return None
    made = getattr(errors, str(row["error_class"]), RemoteError)
    error: MireError = made(row["error"], kind=row["error_kind"])
    return error


def sent_in(row: Row) -> Sent:
    """A file that a task stored."""
    return Sent(
        entry=Entry(
            size_bytes=row["size_bytes"],
            last_modified=row["last_modified"],
            local_mtime=row["local_mtime"],
            sha256=row["sha256"],
        ),
        identity=FileIdentity(row["mtime_ns"], row["ctime_ns"], row["size_bytes"], row["inode"]),
        looked_ns=row["looked_ns"],
        fingerprint=row["fingerprint"],
    )
