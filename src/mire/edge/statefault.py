"""What can be wrong with the file of the private state, told apart.

Owns: which errors of SQLite say that the file cannot be believed, and which are the world's.
Must not know: what the file holds.
Keeps: a file is never given up because it was busy, full or unreachable.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from mire.errors import DeniedError, InternalError, MireError, RemoteError, shown


class Broken(Exception):  # noqa: N818 - a fact about the file, not a failure of the caller
    """The file cannot be believed."""


def damaged(path: str) -> RemoteError:
    """What a caller is told whose work met a damaged file; the new one is in place."""
    return RemoteError(
        f"the private state {shown(path)} was damaged and is set aside: run the command again, it looks at all files",
        kind="state_damaged",
        transient=True,
        path=path,
    )


@contextmanager
def mapped_sqlite(path: str) -> Iterator[None]:
    """Errors of SQLite become `Broken` or ours."""
    try:
        yield
    except sqlite3.Error as error:
        raise _error_of(error, path) from error
    except UnicodeDecodeError as error:
        raise Broken(str(error)) from error


def _error_of(error: sqlite3.Error, path: str) -> MireError | Broken:
    if isinstance(error, (sqlite3.ProgrammingError, sqlite3.InterfaceError, sqlite3.IntegrityError)):
        return InternalError(f"{shown(path)} was used wrongly: {error}")
    extended = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if extended == sqlite3.SQLITE_IOERR_SHORT_READ:
        return Broken("cut off")
    match extended & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return RemoteError(f"{shown(path)} is kept busy by another process: try again", transient=True, path=path)
        case sqlite3.SQLITE_FULL:
            return RemoteError(f"no space left to write {shown(path)}: free some", kind="full", path=path)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return DeniedError(f"no right to write {shown(path)}: {error}", path=path)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_FORMAT | sqlite3.SQLITE_ERROR:
            # Our statements are fixed, so one that makes no sense to SQLite met other tables than ours.
            return Broken(str(error))
        case _:
            return RemoteError(f"cannot use {shown(path)}: {error}", transient=True, path=path)
