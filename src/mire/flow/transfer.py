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
"""Up to here a file is read at once; a larger one is read as it is sent."""
_SHORT_BYTES: Final = 64 << 10
"""Files that are no larger, on average, are moved faster than threads on several processors can take turns."""
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
    fingerprint: str


def mtime_text(mtime_ns: int) -> str:
    """A file's time as the index keeps it: floored to milliseconds."""
    return instant_of(_EPOCH + timedelta(milliseconds=mtime_ns // 1_000_000))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpublished:
    """An object that we stored and did not publish yet: what it holds, and its fingerprint."""

    fingerprint: str
    sha256: str


def upload(
    remote: Remote, key: str, path: str, *, replaced: Entry | None, writer: str, known: Unpublished | None = None
) -> Sent:
    """Store a file in the place of what the index describes; a file that changes meanwhile is an error.

    `writer` says who we are, and `known` what we stored: an object that we did not live to publish is not stored again
    if it is the file, and may be replaced if it is not.
    """
    looked_ns = clock.now_ns()
    content, before = _content(path)
    fingerprint = None if known is None else _stored_before(remote, key, known)
    if known is None or fingerprint is None or known.sha256 != content.sha256():
        fingerprint = _store(remote, key, content, replaced, writer, ours=fingerprint)
    if content.size_bytes != before.size_bytes or _identity(path) != before:
        raise _changed(path)
    entry = Entry(
        size_bytes=before.size_bytes,
        last_modified=clock.now_instant(),
        local_mtime=mtime_text(before.mtime_ns),
        sha256=content.sha256(),
    )
    return Sent(entry=entry, identity=before, looked_ns=looked_ns, fingerprint=fingerprint)


def are_short(size_bytes: int, count: int) -> bool:
    """Whether moving so many files of this size in all is many short calls, for threads that stay together."""
    return size_bytes <= _SHORT_BYTES * count


class _Content:
    """The bytes of a file: at hand if they are few, else read as often as they are needed."""

    def __init__(self, path: str, data: bytes | None, size_bytes: int) -> None:
        self._path = path
        self.data = data
        self.size_bytes = size_bytes
        self._sha256 = None if data is None else hashlib.sha256(data).hexdigest()

    def sha256(self) -> str:
        """The hash of what was sent last, or would be."""
        if self._sha256 is None:
            for _ in self.chunks():
                pass
        assert self._sha256 is not None  # noqa: S101 - hashed by reading
        return self._sha256

    def chunks(self) -> Iterator[bytes]:
        """The bytes in pieces, hashed on the way."""
        digest, size = hashlib.sha256(), 0
        for chunk in files.chunks_of(self._path):
            digest.update(chunk)
            size += len(chunk)
            yield chunk
        self._sha256, self.size_bytes = digest.hexdigest(), size

    def is_in(self, found: "_Found") -> bool:
        """Whether an object has these bytes; a large one is read only if it could."""
        if self.data is not None or found.stat.size_bytes != self.size_bytes:
            return found.data is not None and found.data == self.data
        return hash_of(found.chunks) == self.sha256()

    def put(self, remote: Remote, key: str, condition: Condition, writer: str) -> Stored | Refused | Unknown:
        """Store the bytes under a condition."""
        if self.data is not None:
            return remote.put_if(key, self.data, condition, token=f"{writer}.{clock.new_token()}")
        return remote.put_stream_if(key, self.chunks, condition)


def _content(path: str) -> tuple[_Content, FileIdentity]:
    found = files.read_identified(path, limit=_SMALL_BYTES)
    if found is None:
        raise _changed(path)
    data, identity = found
    is_small = identity.size_bytes <= _SMALL_BYTES
    return _Content(path, data if is_small else None, len(data) if is_small else identity.size_bytes), identity


def hash_of(chunks: Iterator[bytes]) -> str:
    """The SHA-256 of pieces, one after the other."""
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def _stored_before(remote: Remote, key: str, known: Unpublished) -> str | None:
    """The fingerprint of what we stored, if it is still there."""
    try:
        return known.fingerprint if remote.head(key).fingerprint == known.fingerprint else None
    except NotFoundError:
        return None


def _store(
    remote: Remote, key: str, content: _Content, replaced: Entry | None, writer: str, *, ours: str | None
) -> str:
    """Store bytes in the place of what is described, or ours; the fingerprint of the object that has them."""
    # Large ones are looked for first, as they would be sent in vain.
    found = None if replaced is None and ours is None and content.data is not None else _look(remote, key)
    is_expected = found is None or found.stat.fingerprint == ours
    is_expected = is_expected or (found is not None and replaced is not None and _is_described(found, replaced))
    for _ in range(_TRIES):
        if found is not None and (content.data is not None or not is_expected) and content.is_in(found):
            return found.stat.fingerprint
        if not is_expected and found is not None and not is_free(remote, found.stat, writer):
            raise RemoteError(
                f"somebody is storing {shown(key)} right now, and it is not in the index yet: push again in a while",
                transient=True,
                kind="in_flight",
                key=key,
            )
        condition: Condition = Absent() if found is None else Matches(found.stat.fingerprint)
        match content.put(remote, key, condition, writer):
            case Stored(fingerprint):
                return fingerprint
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
    chunks: Iterator[bytes]


def _look(remote: Remote, key: str) -> _Found | None:
    try:
        stream = remote.get_stream(key)
        is_small = stream.stat.size_bytes <= _SMALL_BYTES
        return _Found(stream.stat, b"".join(stream.chunks) if is_small else None, stream.chunks)
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
