"""Moving one file between cache and remote, whole and verified.

Owns: hashing on the way, temporary names, and noticing that a file changed while it was sent.
Must not know: why a file is moved, what the index says.
Keeps: bytes reach their final name in the cache only when they have the size and hash that were expected.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from mire.edge import clock, files, staging, walk
from mire.edge.remote import Remote
from mire.errors import FormatError, RemoteError, shown
from mire.model.index import Entry
from mire.model.instant import instant_of
from mire.model.row import FileIdentity

_SMALL_BYTES = 4 << 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A file that is stored now: its entry for the index, and which file it was."""

    entry: Entry
    identity: FileIdentity


def mtime_text(mtime_ns: int) -> str:
    """A file's time as the index keeps it: floored to milliseconds."""
    return instant_of(_EPOCH + timedelta(milliseconds=mtime_ns // 1_000_000))


def upload(remote: Remote, key: str, path: str) -> Sent:
    """Store a file; one that changes meanwhile is an error, and its mark stays."""
    before = _identity(path)
    digest = hashlib.sha256()
    if before.size_bytes <= _SMALL_BYTES:
        data = files.read_file(path)
        if data is None:
            raise _changed(path)
        digest.update(data)
        size = len(data)
        remote.put(key, data)
    else:
        size = 0

        def chunks() -> Iterator[bytes]:
            nonlocal digest, size
            digest, size = hashlib.sha256(), 0
            for chunk in files.chunks_of(path):
                digest.update(chunk)
                size += len(chunk)
                yield chunk

        remote.put_stream(key, chunks)
    if size != before.size_bytes or _identity(path) != before:
        raise _changed(path)
    entry = Entry(
        size_bytes=size,
        last_modified=clock.now_instant(),
        local_mtime=mtime_text(before.mtime_ns),
        sha256=digest.hexdigest(),
    )
    return Sent(entry=entry, identity=before)


def download(remote: Remote, key: str, entry: Entry, directory: str) -> str:
    """Bring an object's bytes under a temporary name into a directory; other bytes than the entry says are an error."""
    is_small = entry.size_bytes <= _SMALL_BYTES
    chunks = [remote.get(key).data] if is_small else _bounded(remote.get_stream(key).chunks, entry.size_bytes)
    temporary, written = staging.stage(directory, chunks)
    if written.size_bytes != entry.size_bytes or entry.sha256 not in (None, written.sha256):
        staging.discard(temporary)
        raise FormatError(
            f"the object {shown(key)} has {written.size_bytes} bytes with SHA-256 {written.sha256}, the index says"
            f" {entry.size_bytes} and {entry.sha256}: it is being replaced, or damaged",
            kind="mismatch",
            key=key,
        )
    return temporary


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
