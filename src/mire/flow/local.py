"""Our side of a path: what happened to it in the cache since it was last agreed on.

Owns: telling a change from a removal, and either from what merely is not here.
Must not know: the remote, what is done about it.
Keeps: links are never followed; a marked file is hashed, whatever its times say.
"""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass

from mire.edge import clock, files, walk
from mire.edge.tree import hash_file
from mire.errors import FormatError, shown
from mire.flow.datastore import Datastore
from mire.flow.mark import pending_marks
from mire.flow.place import Place
from mire.model.base import BaseRow
from mire.model.index import Entry
from mire.model.mark import Mark, Pending
from mire.model.names import RelPath
from mire.model.row import FileIdentity
from mire.plan import threeway
from mire.plan.change import absent_of, change_of
from mire.plan.mark import tops_of
from mire.plan.threeway import Value
from mire.wire.entry import decode_member, encode_member
from mire.wire.partition import partition_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """What is in the cache under a path; `value` of a file that was hashed, `identity` of any file."""

    state: threeway.Here
    identity: FileIdentity | None = None
    value: Value | None = None
    looked_ns: int = 0
    """When it was looked at, or a little before."""


def tier_path(ds: Datastore, rel: RelPath) -> str:
    """The file of a path; a link on the way that leads out of the cache is refused."""
    path = os.path.join(ds.tier, rel)
    files.check_inside(path, ds.tier)
    return path


def cache_rel(ds: Datastore, rel: str) -> str:
    """The path as marks have it: relative to the cache, namespace included."""
    return f"{ds.config.namespace}/{rel}" if ds.config.namespace else rel


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """The marks there are, by path, as of a generation."""

    generation: int
    by_path: Mapping[str, Mark]


def load_marks(place: Place) -> Marks:
    """The marks there are, those of other programs included."""
    return marks_of(pending_marks(place.ds))


def marks_of(pending: Pending) -> Marks:
    """The marks by path."""
    return Marks(generation=pending.generation, by_path={mark.path: mark for mark in pending.records})


def mark_of(ds: Datastore, rel: str, marks: Marks) -> Mark | None:
    """The mark of a path, or of the nearest directory above it."""
    path = cache_rel(ds, rel)
    while path:
        if (found := marks.by_path.get(path)) is not None:
            return found
        path = path.rpartition("/")[0]
    return None


def is_open_at(ds: Datastore, rel: str, marks: Marks) -> bool:
    """Whether somebody is writing a path, or something above it, right now."""
    return any(marks.by_path[top].is_open for top in tops_of(cache_rel(ds, rel)) if top in marks.by_path)


def here_of(ds: Datastore, rel: RelPath, row: BaseRow | None, marks: Marks, *, needs_hash: bool = True) -> Here:
    """What happened to a path in the cache."""
    path, looked_ns = tier_path(ds, rel), clock.now_ns()
    mark = mark_of(ds, rel, marks)
    identity = _regular(path)
    kind = None if mark is None else mark.kind
    if identity is None:
        if row is None:
            return Here(state="removed" if kind == "remove" else "missing")
        is_top_gone = mark is not None and mark.path != cache_rel(ds, rel) and not os.path.lexists(_marked(ds, mark))
        return Here(state=absent_of(row, kind, is_top_gone=is_top_gone))
    change = change_of(identity, row, now_ns=looked_ns, is_marked=mark is not None)
    if change == "same" or (change == "changed" and not needs_hash):
        return Here(state=change, identity=identity, looked_ns=looked_ns)
    hashed = hash_file(path)
    value = Value(size_bytes=hashed.file.size_bytes, sha256=hashed.sha256)
    if change == "hash":
        change = "same" if row is not None and row.sha256 == hashed.sha256 else "changed"
    return Here(state=change, identity=hashed.file, value=value, looked_ns=looked_ns)


def _marked(ds: Datastore, mark: Mark) -> str:
    return os.path.join(ds.base, mark.path)


def _regular(path: str) -> FileIdentity | None:
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise files.error_of(error, path) from error
    if not stat.S_ISREG(status.st_mode):
        raise FormatError(f"{shown(path)} is not a regular file, so it is not synced: replace it", kind="not_regular")
    return walk.identity_of(status)


def entry_of(row: BaseRow) -> Entry | None:
    """What was agreed on; None when it cannot be told, as of something nobody agreed on."""
    found = decode_member(row.rel, row.entry)
    return found if isinstance(found, Entry) else None


def agreed_row(
    rel: RelPath,
    entry: Entry,
    identity: FileIdentity | None,
    *,
    looked_ns: int,
    sha256: str | None = None,
    partition: str | None = None,
) -> BaseRow:
    """The base row of a path both sides agree on.

    `looked_ns` is when the file was last known to be that; `sha256` what was found where the entry does not say;
    `partition` where it is listed if not where the rule says.
    """
    return BaseRow(
        rel=rel,
        entry=encode_member(rel, entry),
        size_bytes=entry.size_bytes,
        sha256=entry.sha256 or sha256,
        last_modified=entry.last_modified,
        partition=partition or partition_of(rel) or "",
        identity=identity,
        looked_ns=looked_ns,
    )
