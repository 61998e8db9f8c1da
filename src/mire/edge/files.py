"""Files and directories: read, replace atomically, claim, remove. The only code that opens one.

Owns: durability (temp, fsync, rename, directory fsync) and the mapping of operating system errors.
Must not know: what any file means.
Keeps: a file under its final name always has all its bytes; nothing is followed out of its boundary.
"""

import errno
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import BinaryIO

from mire.errors import DeniedError, FormatError, InputError, MireError, NotFoundError, RemoteError, shown
from mire.model.names import PRIVATE_PREFIX
from mire.model.row import FileIdentity

CHUNK_BYTES = 1 << 20
_MODE = 0o666
_FLOCK_TRIES = 5_000
_FLOCK_PAUSE_S = 0.001


def error_of(error: OSError, path: str) -> MireError:
    """An operating system error as ours."""
    code, reason = error.errno, error.strerror or str(error)
    match code:
        case errno.EACCES | errno.EPERM:
            return DeniedError(f"no right to use {shown(path)}: {reason}", path=path)
        case errno.EROFS:
            return DeniedError(f"{shown(path)} is on a read-only file system", kind="read_only", path=path)
        case errno.ENOENT:
            return NotFoundError(f"{shown(path)} is not there", path=path)
        case errno.ENAMETOOLONG:
            return InputError(f"the path {shown(path)} is too long for this file system: shorten it", path=path)
        case errno.ELOOP:
            return InputError(f"{shown(path)} leads through too many symbolic links", path=path)
        case errno.ENOSPC | errno.EDQUOT:
            return RemoteError(f"no space left to write {shown(path)}: free some", kind="full", path=path)
        case errno.EISDIR | errno.ENOTDIR | errno.ENOTEMPTY:
            return FormatError(f"{shown(path)} is in the way: {reason}", kind="in_the_way", path=path)
        case _:
            transient = code in (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.EBUSY)
            return RemoteError(f"cannot use {shown(path)}: {reason}", transient=transient, path=path)


@contextmanager
def mapped(path: str) -> Iterator[None]:
    """Operating system errors of the block become ours, naming `path`."""
    try:
        yield
    except MireError:
        raise
    except OSError as error:
        raise error_of(error, path) from error
    except ValueError as error:  # an embedded NUL
        raise InputError(f"the path {shown(path)} cannot be used: {error}") from error


def check_inside(path: str, boundary: str) -> None:
    """Refuse a path that a symbolic link leads out of its boundary."""
    with mapped(path):
        if path.startswith(f"{boundary}/") and not _has_link(path, boundary):
            return
        real, root = os.path.realpath(path), os.path.realpath(boundary)
    if real != root and not real.startswith(root.rstrip("/") + "/"):
        raise InputError(
            f"{shown(path)} leads out of the datastore, to {shown(real)}: remove the symbolic link",
            kind="outside",
            path=path,
        )


def _has_link(path: str, boundary: str) -> bool:
    """Whether anything below the boundary on the way to `path` is a link; nothing is, below what is missing."""
    end = len(boundary)
    while end >= 0:
        end = path.find("/", end + 1)
        part = path if end < 0 else path[:end]
        try:
            if stat.S_ISLNK(os.lstat(part).st_mode):
                return True
        except (FileNotFoundError, NotADirectoryError):
            return False
    return False


def read_file(path: str, *, limit: int | None = None) -> bytes | None:
    """The bytes of a file, or None when there is none; with a limit, at most one byte more than it."""
    try:
        with open(path, "rb") as file:
            # Asking for as much as the limit would allocate that much for every small file.
            if limit is None or os.fstat(file.fileno()).st_size <= limit:
                return file.read()
            return file.read(limit + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise error_of(error, path) from error


def read_identified(path: str, *, limit: int) -> tuple[bytes, FileIdentity] | None:
    """A small file with the identity of what was read, or None when there is none; at most a byte above the limit."""
    try:
        # A pipe in the place of a file must not make us wait for somebody to write to it.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise error_of(error, path) from error
    try:
        status = os.fstat(fd)
        data = os.read(fd, min(status.st_size, limit) + 1)
        while len(data) != status.st_size and len(data) <= limit and (more := os.read(fd, limit + 1 - len(data))):
            data += more
    except OSError as error:
        raise error_of(error, path) from error
    finally:
        os.close(fd)
    return data, FileIdentity(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def read_open(fd: int, size: int, path: str) -> bytes:
    """All bytes of an open file, which is closed; `size` is what it has, unless it changes meanwhile."""
    try:
        # One byte more than there is: a file that did not grow is read with one call.
        pieces = [os.read(fd, size + 1)]
        found = len(pieces[0])
        while found != size and (more := os.read(fd, CHUNK_BYTES)):
            pieces.append(more)
            found += len(more)
    except OSError as error:
        raise error_of(error, path) from error
    finally:
        os.close(fd)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def read_marker(path: str) -> bytes | None:
    """A small text file, or the target of the symbolic link that older versions kept in its place."""
    try:
        return os.fsencode(os.readlink(path))
    except OSError as error:
        if error.errno == errno.EINVAL:
            # Only a file can be a marker; opening a pipe would wait for somebody to write to it.
            return read_file(path, limit=64) if is_regular(path) else None
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        raise error_of(error, path) from error


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a directory; symbolic links are looked through."""

    name: str
    is_dir: bool


def list_dir(path: str) -> list[Entry]:
    """The entries of a directory, by name; an absent directory has none."""
    try:
        with os.scandir(path) as found:
            return sorted((Entry(entry.name, _is_dir(entry)) for entry in found), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise error_of(error, path) from error


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def is_file(path: str) -> bool:
    """Whether a regular file is there."""
    return os.path.isfile(path)


def is_dir(path: str) -> bool:
    """Whether a directory is there."""
    return os.path.isdir(path)


def is_link(path: str) -> bool:
    """Whether a symbolic link is there."""
    return os.path.islink(path)


def is_regular(path: str) -> bool:
    """Whether the path itself, not what a link points to, is a regular file."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise error_of(error, path) from error


def size_of(path: str) -> int | None:
    """The size of a file, or None when there is none."""
    try:
        return os.stat(path).st_size
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise error_of(error, path) from error


def open_read(path: str) -> BinaryIO:
    """A file opened for reading."""
    with mapped(path):
        return open(path, "rb")


def chunks_of(path: str, length: int | None = None) -> Iterator[bytes]:
    """A file's bytes in pieces, at most `length` of them in all."""
    with open_read(path) as file:
        yield from chunks_from(file, length)


def chunks_from(file: BinaryIO, length: int | None = None) -> Iterator[bytes]:
    """The rest of an open file in pieces."""
    # read1 hands over what there is: a pipe is followed as it is written, and a signal is noticed at once.
    read = getattr(file, "read1", file.read)
    left = length
    while left is None or left > 0:
        chunk = read(CHUNK_BYTES if left is None else min(CHUNK_BYTES, left))
        if chunk == b"":
            return
        left = None if left is None else left - len(chunk)
        yield chunk


def sync_dir(path: str) -> None:
    """Make the names in a directory survive a power cut."""
    with mapped(path):
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno != errno.EINVAL:  # some network file systems cannot sync directories
                raise
        finally:
            os.close(fd)


def make_dirs(path: str, *, is_durable: bool = True) -> list[str]:
    """Create a directory and those above it, durable in those that hold them (or left to the caller); those made."""
    missing: list[str] = []
    made: list[str] = []
    while not os.path.isdir(path):
        missing.append(path)
        parent = os.path.dirname(path)
        if parent == path:
            break
        path = parent
    try:
        for part in reversed(missing):
            with mapped(part):
                try:
                    os.mkdir(part)
                    made.append(part)
                except FileExistsError:
                    if not os.path.isdir(part):
                        raise FormatError(f"{shown(part)} is in the way: a directory must be there") from None
            if is_durable:
                sync_dir(os.path.dirname(part))
    except MireError:
        remove_empty(made)
        raise
    return made


def remove_empty(directories: list[str]) -> None:
    """Take back directories that were made, innermost first, as far as they are still empty."""
    with suppress(OSError):
        for directory in reversed(directories):
            os.rmdir(directory)


def claim_dir(path: str) -> bool:
    """Create a directory exclusively; False when someone was first."""
    with mapped(path):
        try:
            os.mkdir(path)
        except FileExistsError:
            return False
    sync_dir(os.path.dirname(path))
    return True


@dataclass(frozen=True, slots=True)
class Written:
    """What went into a file."""

    size_bytes: int
    sha256: str


def write_file(path: str, chunks: Iterable[bytes]) -> Written:
    """Replace a file atomically and durably: temporary name, fsync, rename, fsync of the directory."""
    temporary = temporary_beside(path)
    try:
        with mapped(path):
            written = write_synced(temporary, chunks)
            os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    sync_dir(os.path.dirname(path))
    return written


def write_synced(path: str, chunks: Iterable[bytes]) -> Written:
    """Write a new file, its bytes on disk by the end; its name is not."""
    digest, size = hashlib.sha256(), 0
    with mapped(path), open(path, "xb", opener=create_opener) as file:
        for chunk in chunks:
            file.write(chunk)
            digest.update(chunk)
            size += len(chunk)
        file.flush()
        os.fsync(file.fileno())
    return Written(size, digest.hexdigest())


@contextmanager
def staged(
    directory: str, chunks: Iterable[bytes], *, sweep_s: float, must_exist: bool = False
) -> Iterator[tuple[str, Written]]:
    """Content written durably under a temporary name, to be moved into its place; removed if it is not.

    What writers that died left there longer than `sweep_s` ago is removed on the way. The directory is made unless it
    `must_exist`.
    """
    if not must_exist:
        make_dirs(directory)
    temporary = temporary_beside(os.path.join(directory, "_"))
    try:
        written = write_synced(temporary, chunks)
        with mapped(temporary):
            written_s = os.stat(temporary).st_mtime
        _sweep_temporaries(directory, older_than=written_s - sweep_s)
        yield temporary, written
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def _sweep_temporaries(directory: str, *, older_than: float) -> None:
    # Compared with a file just written there: on a share only the server's clock says how old a file is.
    with suppress(OSError), os.scandir(directory) as found:
        for entry in found:
            is_ours = entry.name.startswith(f"{PRIVATE_PREFIX}-") and entry.name.endswith(".tmp")
            if is_ours and entry.stat(follow_symlinks=False).st_mtime < older_than:
                os.unlink(entry.path)


def move_file(source: str, path: str) -> None:
    """Give a durably written file its name, atomically; copied where that would cross file systems."""
    with mapped(path):
        try:
            os.replace(source, path)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            write_file(path, chunks_of(source))
    sync_dir(os.path.dirname(path))


def write_through(path: str, chunks: Iterable[bytes]) -> int:
    """Write into what is there, a device or a pipe, without replacing it; the number of bytes."""
    size = 0
    with mapped(path), open(path, "wb", buffering=0) as file:
        for chunk in chunks:
            view = memoryview(chunk)
            while view:
                view = view[file.write(view) :]
            size += len(chunk)
    return size


def create_file(path: str, data: bytes) -> bool:
    """Create a file with all its bytes, durably; False when there is one already, which stays as it is."""
    temporary = temporary_beside(path)
    try:
        with mapped(path):
            write_synced(temporary, [data])
            try:
                os.link(temporary, path)
            except FileExistsError:
                return False
    finally:
        with suppress(OSError):
            os.unlink(temporary)
    sync_dir(os.path.dirname(path))
    return True


def temporary_beside(path: str) -> str:
    """A new temporary name in the directory of `path`, of a kind that no client ever syncs."""
    return os.path.join(os.path.dirname(path), f"{PRIVATE_PREFIX}-{secrets.token_hex(8)}.tmp")


def create_opener(path: str, flags: int) -> int:
    """Open with the usual rights (the umask decides), closed in children."""
    return os.open(path, flags | os.O_CLOEXEC, _MODE)


def grow_file(path: str, committed_bytes: int, chunks: Iterable[bytes]) -> int:
    """Append durably after the committed bytes, dropping what a dead writer left behind them; the new size."""
    size = committed_bytes
    with mapped(path), open(path, "r+b") as file:
        file.truncate(committed_bytes)
        file.seek(committed_bytes)
        for chunk in chunks:
            file.write(chunk)
            size += len(chunk)
        file.flush()
        os.fsync(file.fileno())
    return size


def append_line(path: str, line: bytes) -> None:
    """Append one line durably in one write; a torn last line of a dead writer is closed first."""
    with mapped(path):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, _MODE)
        try:
            with flocked(fd) as is_free:
                if not is_free:
                    raise _stuck(path)
                end = os.lseek(fd, 0, os.SEEK_END)
                torn = end > 0 and os.pread(fd, 1, end - 1) != b"\n"
                data = b"\n" + line if torn else line
                written = os.write(fd, data)
                if written != len(data):
                    os.ftruncate(fd, end)
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(fd)
        finally:
            os.close(fd)
    sync_dir(os.path.dirname(path))


def remove_file(path: str) -> bool:
    """Remove a file or link durably; False when there was none."""
    try:
        os.unlink(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise error_of(error, path) from error
    sync_dir(os.path.dirname(path))
    return True


def remove_tree(path: str) -> None:
    """Remove a directory and everything below it, never following a link; missing is fine."""
    with mapped(path):
        try:
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                os.unlink(path)
                return
            with os.scandir(path) as found:
                entries = list(found)
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    remove_tree(entry.path)
                else:
                    os.unlink(entry.path)
            os.rmdir(path)
        except FileNotFoundError:
            return
    sync_dir(os.path.dirname(path))


@contextmanager
def flocked(fd: int) -> Iterator[bool]:
    """Advisory lock on an open file, which the kernel releases if we die.

    Says False when someone else kept it throughout: a process holds it only between a few system calls, so
    it was stopped there. Where the file system cannot lock, the block runs unlocked and is told True.
    """
    import fcntl  # noqa: PLC0415 - POSIX only, and only needed when something is written

    locked = contended = False
    for _ in range(_FLOCK_TRIES):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            contended = True
            time.sleep(_FLOCK_PAUSE_S)
        except OSError:
            contended = False
            break
        else:
            locked = True
            break
    try:
        yield locked or not contended
    finally:
        if locked:
            fcntl.flock(fd, fcntl.LOCK_UN)


@contextmanager
def directory_guard(path: str) -> Iterator[None]:
    """Keep other processes of ours out of a directory for the few operations that must not interleave."""
    with mapped(path):
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with flocked(fd) as is_free:
            if not is_free:
                raise _stuck(path)
            yield
    finally:
        os.close(fd)


def _stuck(path: str) -> RemoteError:
    return RemoteError(f"{shown(path)} is kept busy by a stopped process: continue or end it", transient=True)
