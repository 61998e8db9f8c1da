"""Moving one file between cache and remote, whole and verified.

Owns: hashing on the way, temporary names, noticing that a file changed while it was sent, and that its object is not
the one that was to be replaced.
Must not know: why a file is moved, what else the index says.
Keeps: bytes reach their final name in the cache only when they have the size and hash that were expected; an object
that somebody else is about to publish is not overwritten.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from mire.edge import clock, files, staging, walk
from mire.edge.files import Written
from mire.edge.remote import Absent, Condition, Matches, Refused, Remote, Stat, Stored, Unknown
from mire.errors import FormatError, NotFoundError, RemoteError, shown
from mire.model.index import Entry
from mire.model.instant import instant_of
from mire.model.row import FileIdentity

_SMALL_BYTES: Final = 4 << 20
"""Up to here an object is stored in one request, which can have a condition; a larger one has none."""
_TRIES: Final = 5
_FORGOTTEN_MS: Final = 600_000.0
"""An object that no index describes, this old, belongs to a push that died: nobody takes so long to commit."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A file that is stored now: its entry for the index, which file it was, and when it was looked at."""

    entry: Entry
    identity: FileIdentity
    looked_ns: int


def mtime_text(mtime_ns: int) -> str:
    """A file's time as the index keeps it: floored to milliseconds."""
    return instant_of(_EPOCH + timedelta(milliseconds=mtime_ns // 1_000_000))


def upload(remote: Remote, key: str, path: str, *, replaced: Entry | None, writer: str) -> Sent:
    """Store a file in the place of what the index describes; a file that changes meanwhile is an error.

    `writer` says who we are: an object that we stored and did not live to publish may be replaced.
    """
    looked_ns = clock.now_ns()
    before = _identity(path)
    if before.size_bytes <= _SMALL_BYTES:
        data = files.read_file(path)
        if data is None:
            raise _changed(path)
        sha256, size = hashlib.sha256(data).hexdigest(), len(data)
        _store(remote, key, data, replaced, writer)
    else:
        sha256, size = _store_large(remote, key, path)
    if size != before.size_bytes or _identity(path) != before:
        raise _changed(path)
    entry = Entry(
        size_bytes=size,
        last_modified=clock.now_instant(),
        local_mtime=mtime_text(before.mtime_ns),
        sha256=sha256,
    )
    return Sent(entry=entry, identity=before, looked_ns=looked_ns)


def _store(remote: Remote, key: str, data: bytes, replaced: Entry | None, writer: str) -> None:
    found = None if replaced is None else _look(remote, key)
    is_expected = found is None or (replaced is not None and _is_described(found, replaced))
    for _ in range(_TRIES):
        if found is not None and found.data == data:
            return
        if not is_expected and found is not None and not is_free(remote, found.stat, writer):
            raise RemoteError(
                f"somebody is storing {shown(key)} right now, and it is not in the index yet: push again in a while",
                transient=True,
                kind="in_flight",
                key=key,
            )
        condition: Condition = Absent() if found is None else Matches(found.stat.fingerprint)
        match remote.put_if(key, data, condition, token=f"{writer}.{clock.new_uuid()}"):
            case Stored():
                return
            case Unknown(error):
                raise error
            case Refused():
                found, is_expected = _look(remote, key), False
    raise RemoteError(
        f"{shown(key)} was replaced again and again: push again", transient=True, kind="in_flight", key=key
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """An object that is there; without its bytes when they are many."""

    stat: Stat
    data: bytes | None


def _look(remote: Remote, key: str) -> _Found | None:
    try:
        stream = remote.get_stream(key)
        is_small = stream.stat.size_bytes <= _SMALL_BYTES
        return _Found(stream.stat, b"".join(stream.chunks) if is_small else None)
    except NotFoundError:
        return None


def _is_described(found: _Found, entry: Entry) -> bool:
    if found.stat.size_bytes != entry.size_bytes:
        return False
    return found.data is None or entry.sha256 in (None, hashlib.sha256(found.data).hexdigest())


def is_free(remote: Remote, stat: Stat, writer: str) -> bool:
    """Whether an object that no index describes may be replaced or deleted: it is ours, or forgotten."""
    if remote.server_time_ms() - stat.modified_ms > _FORGOTTEN_MS:
        return True
    if stat.size_bytes > _SMALL_BYTES:
        return False
    try:
        token = remote.get(stat.key).token
    except NotFoundError:
        return True
    return token is not None and token.startswith(f"{writer}.")


def _store_large(remote: Remote, key: str, path: str) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0

    def chunks() -> Iterator[bytes]:
        nonlocal digest, size
        digest, size = hashlib.sha256(), 0
        for chunk in files.chunks_of(path):
            digest.update(chunk)
            size += len(chunk)
            yield chunk

    remote.put_stream(key, chunks)
    return digest.hexdigest(), size


def download(remote: Remote, key: str, entry: Entry, directory: str) -> tuple[str, Written]:
    """Bring an object into a directory, under a temporary name; it is what the entry says, or that is an error."""
    temporary, written = staging.stage(directory, _bounded(remote.get_stream(key).chunks, entry.size_bytes))
    if written.size_bytes != entry.size_bytes or entry.sha256 not in (None, written.sha256):
        staging.discard(temporary)
        raise FormatError(
            f"the object {shown(key)} has {written.size_bytes} bytes with SHA-256 {written.sha256}, the index says"
            f" {entry.size_bytes} and {entry.sha256}: it is being replaced, or damaged",
            kind="mismatch",
            key=key,
        )
    return temporary, written


def _bounded(chunks: Iterator[bytes], size_bytes: int) -> Iterator[bytes]:
    """The pieces, ended soon after more came than were announced: a hostile object must not fill the disk."""
    left = size_bytes
    for chunk in chunks:
        yield chunk
        left -= len(chunk)
        if left < 0:
            return


def _identity(path: str) -> FileIdentity:
    found = walk.identity_at(path)
    if found is None:
        raise _changed(path)
    return found


def _changed(path: str) -> RemoteError:
    return RemoteError(
        f"{shown(path)} changed while it was sent: its mark stays, push again", transient=True, kind="in_use"
    )
