"""A remote in a directory: an object is a file, a key its path.

Owns: conditions on files. Every change is made under one advisory lock of the directory.
Must not know: what the bytes mean.
Keeps: an object appears with all its bytes or not at all; a fingerprint is a hash of the content, so that a file
rewritten with the same size in the same tick of the clock is noticed. Head and list therefore read the files.
No link is followed: an object is a regular file.
"""

import errno
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from mire.edge import files, linkless
from mire.edge.key import check_key, check_prefix, is_key
from mire.edge.memory import content_fingerprint_of
from mire.edge.remote import (
    Body,
    Condition,
    Level,
    Matches,
    Properties,
    Refused,
    Removed,
    Stat,
    Stored,
    Stream,
    Unknown,
)
from mire.errors import DeniedError, InputError, NotFoundError, RemoteError, shown
from mire.model.names import PRIVATE_PREFIX

_LINKLESS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


class LocalRemote:
    """A `Remote` below a directory; made of a path only, so it can be sent to another process.

    The directory is made when something is stored, unless it `must_exist`: then nothing is stored where it was.
    """

    def __init__(self, directory: str, *, must_exist: bool = False) -> None:
        self._root = os.path.abspath(directory)
        self._must_exist = must_exist

    @property
    def properties(self) -> Properties:
        """What this remote can do."""
        return Properties(
            name=f"file://{self._root}",
            conditional_put=True,
            conditional_delete=True,
            content_fingerprint=True,
        )

    def get(self, key: str) -> Body:
        """The object, all at once."""
        fd, status, path = self._open(key)
        data = files.read_open(fd, status.st_size, path)
        stat = Stat(
            key=key,
            size_bytes=len(data),
            fingerprint=content_fingerprint_of(data),
            modified_ms=status.st_mtime_ns // 1_000_000,
        )
        return Body(stat=stat, data=data)

    def get_if_changed(self, key: str, fingerprint: str) -> Body | None:
        """The object, or None when it still has this fingerprint."""
        body = self.get(key)
        return None if body.stat.fingerprint == fingerprint else body

    def get_stream(self, key: str) -> Stream:
        """The object in pieces; they are hashed again on the way, in case somebody writes into the file."""
        stat = self.head(key)
        return Stream(stat=stat, chunks=self._verified(stat))

    def _verified(self, stat: Stat) -> Iterator[bytes]:
        digest = hashlib.md5(usedforsecurity=False)
        with self._opened(stat.key) as file:
            for chunk in files.chunks_from(file):
                digest.update(chunk)
                yield chunk
        if digest.hexdigest() != stat.fingerprint:
            raise RemoteError(
                f"object {shown(stat.key)} in {self.properties.name} changed while it was read: read it again",
                kind="changed",
                transient=True,
                key=stat.key,
            )

    def head(self, key: str) -> Stat:
        """What is known of the object."""
        with self._opened(key) as file:
            return _stat_of(key, file)

    def put(self, key: str, data: bytes) -> Stored:
        """Store an object, replacing what is there."""
        return self.put_stream(key, lambda: (data,))

    def put_if(
        self, key: str, data: bytes, condition: Condition, *, token: str | None = None
    ) -> Stored | Refused | Unknown:
        """Store an object if the condition holds; tokens are not kept, bytes tell as much."""
        del token
        return self.put_stream_if(key, lambda: (data,), condition)

    def put_stream_if(
        self, key: str, open_chunks: Callable[[], Iterable[bytes]], condition: Condition
    ) -> Stored | Refused | Unknown:
        """Store an object from pieces if the condition holds when all of them are there."""
        path = self._path(key)
        with self._temporary(open_chunks) as (temporary, fingerprint), self._guard():
            if isinstance(condition, Matches) and self._fingerprint_at(key) != condition.fingerprint:
                return Refused()
            try:
                if isinstance(condition, Matches):
                    self._move(temporary, path)
                elif not self._link(temporary, path):
                    return Refused()
            except DeniedError:
                raise
            except RemoteError as error:  # a disk or share that fails may have done it
                return Unknown(error)
        return Stored(fingerprint)

    def put_stream(self, key: str, open_chunks: Callable[[], Iterable[bytes]]) -> Stored:
        """Store an object from pieces."""
        path = self._path(key)
        with self._temporary(open_chunks) as (temporary, fingerprint), self._guard():
            self._move(temporary, path)
        return Stored(fingerprint)

    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is fine."""
        path = self._path(key)
        if self._exists(key):
            with self._guard():
                self._remove(path)

    def delete_if(self, key: str, fingerprint: str) -> Removed | Refused | Unknown:
        """Remove the object only if it has this fingerprint."""
        path = self._path(key)
        if not self._exists(key):
            return Removed()
        with self._guard():
            found = self._fingerprint_at(key)
            if found is not None and found != fingerprint:
                return Refused()
            if found is not None:
                self._remove(path)
        return Removed()

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Stat]:
        """The objects below a prefix, by ascending key; one that goes away meanwhile may be missing."""
        check_prefix(prefix)
        return self._walk(prefix, after or "")

    def _walk(self, prefix: str, after: str) -> Iterator[Stat]:
        for name in _names(self._root, prefix):
            key = prefix + name
            if name.endswith("/"):
                if key > after or after.startswith(key):
                    yield from self._walk(key, after)
            elif key > after:
                with suppress(NotFoundError):
                    yield self.head(key)

    def list_level(self, prefix: str = "") -> Level:
        """One level of the listing; a directory without objects is not shown."""
        check_prefix(prefix)
        prefixes: list[str] = []
        objects: list[Stat] = []
        for name in _names(self._root, prefix):
            if not name.endswith("/"):
                with suppress(NotFoundError):
                    objects.append(self.head(prefix + name))
            elif next(self._walk(prefix + name, ""), None) is not None:
                prefixes.append(prefix + name)
        return Level(prefixes=tuple(prefixes), objects=tuple(objects))

    def copy(self, source: str, target: str) -> None:
        """Copy an object, replacing what is there."""
        self._path(target)
        self.put_stream(target, lambda: self.get_stream(source).chunks)

    def server_time_ms(self) -> float:
        """The clock that stamps files in the directory, which on a share is that of the file server."""
        with self._temporary(lambda: (b"?",)) as (temporary, _), files.mapped(temporary):
            return os.stat(temporary).st_mtime_ns / 1e6

    def _place(self, key: str) -> str:
        """Where an object is, or would be; what leads there was not looked at."""
        check_key(key)
        if _is_private(key[key.rfind("/") + 1 :]):
            raise InputError(f"key {shown(key)} is reserved for unfinished files: choose another", key=key)
        return f"{self._root}/{key}" if self._root != "/" else f"/{key}"

    def _path(self, key: str) -> str:
        path = self._place(key)
        files.check_inside(path, self._root)
        return path

    def _open(self, key: str) -> tuple[int, os.stat_result, str]:
        """The file of an object, open, what is known of it, and its path."""
        path = self._place(key)
        found = linkless.open_regular(path, self._root)
        if found is None:
            raise NotFoundError(f"there is no object {shown(key)} in {self.properties.name}", key=key)
        return *found, path

    @contextmanager
    def _opened(self, key: str) -> Iterator[BinaryIO]:
        fd, _, path = self._open(key)
        with files.mapped(path), open(fd, "rb") as file:
            yield file

    def _exists(self, key: str) -> bool:
        return files.is_regular(self._path(key))

    def _fingerprint_at(self, key: str) -> str | None:
        try:
            return self.head(key).fingerprint
        except NotFoundError:
            return None

    @contextmanager
    def _temporary(self, open_chunks: Callable[[], Iterable[bytes]]) -> Iterator[tuple[str, str]]:
        digest = hashlib.md5(usedforsecurity=False)

        def hashed() -> Iterator[bytes]:
            for chunk in open_chunks():
                digest.update(chunk)
                yield bytes(chunk)

        with files.staged(self._root, hashed(), sweep_s=_SWEEP_S, must_exist=self._must_exist) as (temporary, _):
            yield temporary, digest.hexdigest()

    @contextmanager
    def _guard(self) -> Iterator[None]:
        with files.directory_guard(self._root):
            yield

    def _move(self, temporary: str, path: str) -> None:
        made = files.make_dirs(os.path.dirname(path))
        try:
            files.move_file(temporary, path)
        except BaseException:
            files.remove_empty(made)
            raise

    def _link(self, temporary: str, path: str) -> bool:
        """Give the file its name only where there is none, also against programs that do not take the guard."""
        made = files.make_dirs(os.path.dirname(path))
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno in _LINKLESS and not os.path.lexists(path):
                files.move_file(temporary, path)
                return True
            files.remove_empty(made)
            raise files.error_of(error, path) from error
        files.sync_dir(os.path.dirname(path))
        return True

    def _remove(self, path: str) -> None:
        files.remove_file(path)
        with suppress(OSError):  # the directory still holds something
            while (path := os.path.dirname(path)) != self._root:
                os.rmdir(path)


_SWEEP_S = 86_400.0


def _names(root: str, prefix: str) -> list[str]:
    """Names at one level that can be keys, in the order of keys: a directory ends in '/'."""
    names: list[str] = []
    path = os.path.join(root, prefix)
    try:
        with os.scandir(path) as found:
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    names.append(f"{entry.name}/")
                elif entry.is_file(follow_symlinks=False) and not _is_private(entry.name):
                    names.append(entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise files.error_of(error, path) from error
    return sorted(name for name in names if is_key(prefix + name.rstrip("/")))


def _is_private(name: str) -> bool:
    return name.startswith(f"{PRIVATE_PREFIX}-") and name.endswith(".tmp")


def _stat_of(key: str, file: BinaryIO) -> Stat:
    digest, size = hashlib.md5(usedforsecurity=False), 0
    for chunk in files.chunks_from(file):
        digest.update(chunk)
        size += len(chunk)
    modified_ms = os.fstat(file.fileno()).st_mtime_ns // 1_000_000
    return Stat(key=key, size_bytes=size, fingerprint=digest.hexdigest(), modified_ms=modified_ms)
