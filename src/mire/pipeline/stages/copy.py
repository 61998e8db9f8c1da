"""Copying objects from store to store in tasks, verified by hash.

Owns: what is read, what is stored, and what is found to be there already.
Must not know: which objects are copied and why, what is committed afterwards.
Keeps: an object in the target is replaced only as it was listed, and never one that its index describes; one that is
there counts only after its bytes were read; a copy that is made again (a retried or speculative task) ends in the same
state.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from pyspark.sql import DataFrame

from mire.edge.remote import Absent, Condition, Matches, Refused, Remote, Stored, Unknown
from mire.errors import ConflictError, FormatError, NotFoundError, RemoteError, shown
from mire.model.index import Entry
from mire.pipeline.frames import MOVED
from mire.pipeline.stages.shards import entry_in
from mire.pipeline.stages.transfer import Result, Row, failed_row, moves, moves_here
from mire.pipeline.store import StoreSpec, open_spec
from mire.wire.partition import partition_of
from mire.wire.relpath import check_rel, is_temporary, tenant_of

SMALL_BYTES: Final = 4 << 20
"""Up to here an object is copied in one piece."""

Outcome = Literal["copied", "there", "left_out"]


def is_listable(rel: str) -> bool:
    """Whether a store may come to have the object of a path: one that an index can list, and nobody else's."""
    # What looks like a tenant's is a stray here: copied to a root it would be in that tenant's part.
    is_ours = partition_of(rel) is not None and tenant_of(rel) is None
    return is_ours and check_rel(rel) is None and not is_temporary(rel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Copying:
    """From where to where, how many at the same time, and whether they are small (`gathered` as in `pool.run`).

    A dry run only looks at what is there; only then there may be no target yet.
    """

    source: StoreSpec
    target: StoreSpec | None
    at_once: int
    gathered: bool
    dry_run: bool = False

    def open(self) -> Callable[[Row], Result]:
        """What makes one copy."""
        one, other = open_spec(self.source), None if self.target is None else open_spec(self.target)

        def move(row: Row) -> Result:
            if not is_listable(row["rel"]):
                return _row(row, None, row["size_bytes"], "left_out")
            entry = entry_in(row)
            try:
                return _copied(one, other, row, entry if isinstance(entry, Entry) else None, dry_run=self.dry_run)
            except (NotFoundError, FormatError, ConflictError) as error:
                return failed_row(row["rel"], error)
            except RemoteError as error:
                if error.kind != "changed":
                    raise
                return failed_row(row["rel"], error)

        return move


def copy(frame: DataFrame, how: Copying) -> DataFrame:
    """Objects from one store into another, in tasks; what is there already is read instead of stored."""
    return moves(frame, how.open, at_once=how.at_once, gathered=how.gathered)


def copy_here(rows: Iterable[Row], how: Copying) -> Iterator[Row]:
    """The same, by this process."""
    found = moves_here(rows, how.open, at_once=how.at_once, gathered=how.gathered, is_alone=True)
    names = tuple(MOVED.names)  # made anew whenever Arrow is asked
    return (dict(zip(names, result, strict=True)) for result in found)


def _copied(one: Remote, other: Remote | None, row: Row, entry: Entry | None, *, dry_run: bool) -> Result:
    rel, fingerprint = row["rel"], row["there_fingerprint"]
    if other is not None and row["there_size"] == row["size_bytes"]:
        found = _hashed(other, rel)
        is_known = entry is not None and entry.sha256 is not None
        if found == (_hashed(one, rel) if entry is None or not is_known else (entry.sha256, row["size_bytes"])):
            return _row(row, *found, "there")
    if row["is_listed"] and fingerprint is not None:
        raise ConflictError(
            f"the target lists {shown(rel)}, and its object has other bytes than the source: it is not replaced; 'mire"
            " verify' there shows whether it is damaged; else name an empty store",
            kind="target_in_use",
        )
    if dry_run or other is None:
        return _row(row, None, row["size_bytes"], "copied")
    condition = Absent() if fingerprint is None else Matches(fingerprint)
    is_small = row["size_bytes"] <= SMALL_BYTES
    outcome, sha256, size = (_put_small if is_small else _put_large)(one, other, rel, entry, condition)
    match outcome:
        case Unknown(error):
            raise error
        # A task that was run twice, or died: what counts is whether the bytes are there.
        case Refused() if _hashed(other, rel) != (sha256, size):
            raise ConflictError(f"somebody else is storing {shown(rel)} in the target: migrate into an empty store")
        case _:
            return _row(row, sha256, size, "copied")


_Put = tuple[Stored | Refused | Unknown, str, int]


def _put_small(one: Remote, other: Remote, rel: str, entry: Entry | None, condition: Condition) -> _Put:
    data = one.get(rel).data
    sha256 = hashlib.sha256(data).hexdigest()
    _check_described(rel, len(data), sha256, entry)
    return other.put_if(rel, data, condition), sha256, len(data)


def _put_large(one: Remote, other: Remote, rel: str, entry: Entry | None, condition: Condition) -> _Put:
    digest, size = hashlib.sha256(), 0

    def chunks() -> Iterator[bytes]:
        nonlocal digest, size
        digest, size = hashlib.sha256(), 0
        for chunk in one.get_stream(rel).chunks:
            digest.update(chunk)
            size += len(chunk)
            yield chunk

    outcome = other.put_stream_if(rel, chunks, condition)
    # A refusal may come before everything was read.
    found = _hashed(one, rel) if isinstance(outcome, Refused) else (digest.hexdigest(), size)
    _check_described(rel, found[1], found[0], entry)
    return outcome, *found


def _check_described(rel: str, size: int, sha256: str, entry: Entry | None) -> None:
    if entry is not None and (size != entry.size_bytes or entry.sha256 not in (None, sha256)):
        raise FormatError(
            f"the object {shown(rel)} has {size} bytes with SHA-256 {sha256}, the index says {entry.size_bytes} and"
            f" {entry.sha256}: 'mire repair' at the source first",
            kind="mismatch",
        )


def _hashed(remote: Remote, rel: str) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    for chunk in remote.get_stream(rel).chunks:
        digest.update(chunk)
        size += len(chunk)
    return digest.hexdigest(), size


def _row(row: Row, sha256: str | None, size: int, outcome: Outcome) -> Result:
    said = row["last_modified"], row["local_mtime"], row["extra"]
    return (row["rel"], size, sha256, *said, *(None,) * 6, outcome, None, None, None)
