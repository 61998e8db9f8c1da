"""Moving files and objects in tasks: up, down, and from store to store; hashed on the way and verified.

Owns: how a row becomes a move and a move a row.
Must not know: why something is moved, what is committed afterwards.
Keeps: a task moves a few at once, never more; a move that is done again (a retried or speculative task) ends in the
same state; what is wrong with one file is a row, what is wrong with a store ends the job.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

import pyarrow as pa
from pyspark.sql import DataFrame

from mire import errors
from mire.edge import pool
from mire.edge.boundary import Boundary
from mire.edge.files import Written
from mire.edge.remote import Absent, Matches, Refused, Remote, Stat, Unknown
from mire.errors import ConflictError, FormatError, MireError, NotFoundError, RemoteError, shown
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
SMALL_BYTES: Final = 4 << 20
"""Up to here an object is moved in one piece, with a condition."""
_ROWS_A_BATCH: Final = 256

Outcome = Literal["copied", "there"]
_Row = dict[str, Any]
_Result = tuple[Any, ...]


def groups_for(count: int, cores: int) -> int:
    """In how many tasks so many moves are done."""
    return max(1, min(max(cores, -(-count // ROWS_A_TASK)), 64 * cores, count or 1))


def _moves(frame: DataFrame, at_once: int, open_move: Callable[[], Callable[[_Row], _Result]]) -> DataFrame:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = pool.run(open_move(), rows_of(batches), at_once=at_once)
        yield from batches_of((result for _, result in found), MOVED, _ROWS_A_BATCH)

    return mapped(frame, work, MOVED)


def upload(frame: DataFrame, spec: StoreSpec, tier: str, writer: str, *, at_once: int) -> DataFrame:
    """Files of a cache into the store; a row's entry is what the index describes in their place."""

    def open_move() -> Callable[[_Row], _Result]:
        remote = open_spec(spec)
        _check_seen(tier)
        boundary = Boundary(tier)

        def move(row: _Row) -> _Result:
            rel, replaced = RelPath(row["rel"]), entry_in(row)
            path = os.path.join(tier, rel)
            try:
                boundary.check(path)
            except MireError as error:
                return _failed(rel, error)
            before = replaced if isinstance(replaced, Entry) else None
            sent = send_one(remote, rel, path, before, writer, _known_in(row))
            return _failed(rel, sent) if isinstance(sent, MireError) else _sent_row(rel, sent)

        return move

    return _moves(frame, at_once, open_move)


def download(frame: DataFrame, spec: StoreSpec, directory: str, *, at_once: int) -> DataFrame:
    """Objects into a directory, each under a temporary name; a row's entry is what it must be."""

    def open_move() -> Callable[[_Row], _Result]:
        remote = open_spec(spec)
        _check_seen(directory)

        def move(row: _Row) -> _Result:
            rel, entry = RelPath(row["rel"]), entry_in(row)
            if not isinstance(entry, Entry):
                return _failed(rel, FormatError(f"the index says nothing usable of {shown(rel)}"))
            came = fetch_one(remote, rel, entry, directory)
            return _failed(rel, came) if isinstance(came, MireError) else _came_row(rel, *came)

        return move

    return _moves(frame, at_once, open_move)


def copy(frame: DataFrame, source: StoreSpec, target: StoreSpec, *, at_once: int) -> DataFrame:
    """Objects from one store into another, verified by hash; what is there already is read instead of stored."""

    def open_move() -> Callable[[_Row], _Result]:
        one, other = open_spec(source), open_spec(target)

        def move(row: _Row) -> _Result:
            rel, entry = row["rel"], entry_in(row)
            try:
                return _copied(one, other, rel, row["size_bytes"], entry if isinstance(entry, Entry) else None)
            except (NotFoundError, FormatError, ConflictError) as error:
                return _failed(rel, error)

        return move

    return _moves(frame, at_once, open_move)


def _check_seen(directory: str) -> None:
    if not os.path.isdir(directory):
        raise RemoteError(
            f"a worker does not see {shown(directory)}: every worker must see it under this path; else run without"
            " --master, on this machine",
            kind="unreachable",
            path=directory,
        )


def _copied(one: Remote, other: Remote, rel: str, size_bytes: int, entry: Entry | None) -> _Result:
    there = _head(other, rel)
    if there is not None and there.size_bytes == size_bytes:
        found = _hashed(other, rel)
        if entry is not None and entry.sha256 is not None:
            is_same = found[0] == entry.sha256
        else:
            is_same = found == _hashed(one, rel)
        if is_same:
            return _copied_row(rel, *found, "there")
    if size_bytes > SMALL_BYTES:
        return _copied_large(one, other, rel, entry)
    data = one.get(rel).data
    sha256 = hashlib.sha256(data).hexdigest()
    _check_described(rel, len(data), sha256, entry)
    match other.put_if(rel, data, Absent() if there is None else Matches(there.fingerprint)):
        case Unknown(error):
            raise error
        case Refused():
            # A task that was run twice: what counts is whether the bytes are there.
            if _hashed(other, rel)[0] != sha256:
                raise ConflictError(f"somebody else is storing {shown(rel)} in the target: migrate into an empty store")
        case _:
            pass
    return _copied_row(rel, sha256, len(data), "copied")


def _copied_large(one: Remote, other: Remote, rel: str, entry: Entry | None) -> _Result:
    digest, size = hashlib.sha256(), 0

    def chunks() -> Iterator[bytes]:
        nonlocal digest, size
        digest, size = hashlib.sha256(), 0
        for chunk in one.get_stream(rel).chunks:
            digest.update(chunk)
            size += len(chunk)
            yield chunk

    other.put_stream(rel, chunks)
    _check_described(rel, size, digest.hexdigest(), entry)
    return _copied_row(rel, digest.hexdigest(), size, "copied")


def _check_described(rel: str, size: int, sha256: str, entry: Entry | None) -> None:
    if entry is not None and (size != entry.size_bytes or entry.sha256 not in (None, sha256)):
        raise FormatError(
            f"the object {shown(rel)} has {size} bytes with SHA-256 {sha256}, the index says {entry.size_bytes} and"
            f" {entry.sha256}: 'mire repair' at the source first",
            kind="mismatch",
        )


def _head(remote: Remote, rel: str) -> Stat | None:
    try:
        return remote.head(rel)
    except NotFoundError:
        return None


def _hashed(remote: Remote, rel: str) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    for chunk in remote.get_stream(rel).chunks:
        digest.update(chunk)
        size += len(chunk)
    return digest.hexdigest(), size


def _failed(rel: str, error: MireError) -> _Result:
    return (rel, *(None,) * 10, None, type(error).__name__, error.kind, error.message)


def _copied_row(rel: str, sha256: str, size: int, outcome: Outcome) -> _Result:
    return (rel, size, sha256, *(None,) * 8, outcome, None, None, None)


def _sent_row(rel: str, sent: Sent) -> _Result:
    entry, file = sent.entry, sent.identity
    facts = entry.size_bytes, entry.sha256, entry.last_modified, entry.local_mtime
    identity = file.mtime_ns, file.ctime_ns, file.inode
    return (rel, *facts, *identity, sent.looked_ns, sent.fingerprint, None, None, None, None, None)


def _known_in(row: _Row) -> Unpublished | None:
    if row["known_fingerprint"] is None:
        return None
    return Unpublished(fingerprint=row["known_fingerprint"], sha256=row["known_sha256"])


def _came_row(rel: str, temporary: str, written: Written) -> _Result:
    return (rel, written.size_bytes, written.sha256, *(None,) * 7, temporary, None, None, None, None)


def error_in(row: _Row) -> MireError | None:
    """What went wrong with a row, as it was raised in its task."""
    if row["error"] is None:
        return None
    made = getattr(errors, str(row["error_class"]), RemoteError)
    error: MireError = made(row["error"], kind=row["error_kind"])
    return error


def sent_in(row: _Row) -> Sent:
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
