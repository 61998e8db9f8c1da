"""Lock files: created whole, renewed in place, taken over and removed only while provably the same file.

Owns: the file operations of a lock. A lock is an inode: whoever holds it keeps it open.
Must not know: what the body says, or when a lock is stale; it is given bytes and a judge.
Keeps: (1) a body appears with all its bytes or not at all (temporary file, then link);
(2) renewing writes to the open inode, so a holder that lost its lock cannot touch its successor's;
(3) renewing, taking over and removing happen under flock on that inode, after proving that the path still
leads to it, so of two programs that judge one lock stale exactly one gets it.
"""

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from mire.edge.files import create_opener, flocked, make_dirs, mapped, remove_empty, temporary_beside

Judge = Callable[[bytes, int], bool]
"""Told a lock's body and its age in milliseconds, says whether it may be taken or removed."""

_BODY_MAX = 65_536
_CREATE_TRIES = 10


@dataclass(frozen=True, slots=True)
class Found:
    """A lock file as it was a moment ago; its age is by the clock that stamps files in that directory."""

    body: bytes
    age_ms: int


def look(path: str) -> Found | None:
    """The lock file at a path, or None when there is none."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            body, stamp_ns = file.read(_BODY_MAX), os.fstat(file.fileno()).st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        # Unreadable, a link or a directory is not free: report it as garbled, with an age if there is one.
        try:
            body, stamp_ns = b"", os.lstat(path).st_mtime_ns
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            with mapped(path):
                raise error from None
    return Found(body, _age_ms(path, stamp_ns))


def _age_ms(path: str, stamp_ns: int) -> int:
    # On a share the server stamps files, so only a file stamped by it tells how old another one is.
    probe = temporary_beside(path)
    try:
        fd = os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except OSError:
        return (time.time_ns() - stamp_ns) // 1_000_000
    try:
        os.write(fd, b"?")
        return (os.fstat(fd).st_mtime_ns - stamp_ns) // 1_000_000
    finally:
        os.close(fd)
        with suppress(OSError):
            os.unlink(probe)


class HeldFile:
    """A lock file that is ours: the inode we made, kept open."""

    def __init__(self, path: str, fd: int, made: list[str] | None = None) -> None:
        self.path = path
        self._fd = fd
        self._made = made or []
        self._pid = os.getpid()
        status = os.fstat(fd)
        self._inode = (status.st_dev, status.st_ino)

    def is_current(self) -> bool:
        """Whether the path still leads to our inode."""
        return self._fd >= 0 and _inode_at(self.path) == self._inode

    def renew(self, offset: int, data: bytes) -> bool:
        """Write into our body; False when the lock is no longer ours."""
        with flocked(self._fd) as is_free:
            if not self.is_current():
                return False
            if is_free:
                with mapped(self.path):
                    os.pwrite(self._fd, data, offset)
            return True

    def release(self) -> bool:
        """Remove the file if it is still ours; False when it is not. Closing twice is fine."""
        if self._fd < 0:
            return True
        try:
            if self._pid != os.getpid():  # a forked child must not give away its parent's lock
                return True
            with flocked(self._fd) as is_free:
                if not self.is_current():
                    return False
                if is_free:  # else whoever is judging it right now may have it
                    with mapped(self.path):
                        os.unlink(self.path)
                    # A refused write must leave nothing, not even the directories that were made to lock in.
                    remove_empty(self._made)
                return True
        finally:
            os.close(self._fd)
            self._fd = -1


def create(path: str, body: bytes) -> HeldFile | None:
    """Create a lock file with its whole body; None when there is one already."""
    for _ in range(_CREATE_TRIES):
        made = make_dirs(os.path.dirname(path))
        try:
            return _create_once(path, body, made)
        except FileNotFoundError:
            continue  # the directory was removed in between, with the model that was in it
        except OSError as error:
            remove_empty(made)
            with mapped(path):
                raise error from None
    with mapped(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _create_once(path: str, body: bytes, made: list[str]) -> HeldFile | None:
    temporary, fd = _write_temporary(path, body)
    kept = False
    try:
        try:
            os.link(temporary, path)
            kept = True
        except FileExistsError:
            # A network file system may answer "exists" to a repeated request that succeeded the first time.
            kept = _inode_at(path) == _inode_of(fd)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
                raise
            return _create_without_links(path, body)
        return HeldFile(path, fd, made) if kept else None
    finally:
        if not kept:
            os.close(fd)
        with suppress(OSError):
            os.unlink(temporary)


def _create_without_links(path: str, body: bytes) -> HeldFile | None:
    # Without hard links the body cannot appear with the name; dying in between leaves an empty lock file,
    # which expires by age.
    try:
        fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        return None
    try:
        _write_whole(fd, body)
    except OSError:
        os.close(fd)
        os.unlink(path)
        raise
    return HeldFile(path, fd)


def take_over(path: str, body: bytes, judge: Judge) -> HeldFile | None:
    """Replace a lock file that `judge` condemns; None when it is gone, renewed, or someone else was first."""
    with _same_file(path) as condemned:
        if condemned is None or not judge(*condemned):
            return None
        with mapped(path):
            temporary, fd = _write_temporary(path, body)
        try:
            with mapped(path):
                os.replace(temporary, path)
        except BaseException:
            os.close(fd)
            with suppress(OSError):
                os.unlink(temporary)
            raise
        return HeldFile(path, fd)


def remove(path: str, judge: Judge) -> bool:
    """Remove a lock file that `judge` condemns; False when it is gone or not condemned."""
    with _same_file(path) as condemned:
        if condemned is None or not judge(*condemned):
            return False
        with mapped(path):
            os.unlink(path)
        return True


@contextmanager
def _same_file(path: str) -> Iterator[tuple[bytes, int] | None]:
    """The lock file's body and age while nobody of ours can change it; None when it is not there to judge."""
    fd = _open_to_judge(path)
    if fd is None:
        yield None
        return
    try:
        with flocked(fd) as is_free:
            if not is_free or _inode_at(path) != _inode_of(fd):
                yield None
                return
            body, stamp_ns = os.pread(fd, _BODY_MAX, 0), os.fstat(fd).st_mtime_ns
            yield body, _age_ms(path, stamp_ns)
    finally:
        os.close(fd)


def _open_to_judge(path: str) -> int | None:
    for flags in (os.O_RDWR, os.O_RDONLY):  # another user's lock may be readable only
        try:
            return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        except PermissionError as error:
            if flags == os.O_RDONLY:
                with mapped(path):
                    raise error from None
        except OSError as error:
            with mapped(path):
                raise error from None
    return None


def _write_temporary(path: str, body: bytes) -> tuple[str, int]:
    temporary = temporary_beside(path)
    fd = create_opener(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR)
    try:
        _write_whole(fd, body)
    except OSError:
        os.close(fd)
        os.unlink(temporary)
        raise
    return temporary, fd


def _write_whole(fd: int, body: bytes) -> None:
    if os.write(fd, body) != len(body):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _inode_of(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


def _inode_at(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
