"""The catalog's SQLite file: opened, healed or replaced, read and written.

Owns: the connection, the schema, and the decision whether the file can be believed.
Must not know: what rows mean, or where they come from.
Keeps: a catalog is a cache. Whatever is wrong with the file (not a database, cut off, other bytes, another
schema, a directory in its place) costs a rebuild, never an answer.
"""

import os
import secrets
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

SCHEMA: Final = 1
_BUSY_S = 10.0
_PAGES = -32_000
"""Page cache of a connection: 32 MB, so that a rebuild's memory does not grow with the store."""


_SAMPLES: Final = 400
_INDEXES: Final = {
    "version_by_id": "version (model_id, is_latest)",
    "version_by_type": "version (model_type, is_latest, created_at)",
    "version_by_time": "version (is_latest, created_at)",
    "version_by_model": "version (model_name, name, is_latest)",
    "version_by_run": "version (workflow_run_id) WHERE workflow_run_id <> ''",
}

_UNBELIEVABLE = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What reading a file of other bytes ends in; text that is not UTF-8 is one of them."""


class Broken(Exception):  # noqa: N818 - a fact about the file, not a failure of the caller
    """The file cannot be believed."""


SealedRow = tuple[Any, ...]
"""The values of a row, and after them their checksum."""


class CatalogFile:
    """An open catalog."""

    def __init__(self, connection: sqlite3.Connection, path: str | None, columns: Sequence[tuple[str, str]]) -> None:
        self._connection = connection
        # SQLite folds only ASCII letters.
        connection.create_function("mire_fold", 1, str.casefold, deterministic=True)
        self.path = path
        self._inode = None if path is None else os.stat(path).st_ino
        self._names = [name for name, _ in columns]
        self._shared: _Shared | None = None

    @property
    def is_in_memory(self) -> bool:
        """Whether nothing of it survives this process, because the disk could not take it."""
        return self.path is None

    @property
    def is_current(self) -> bool:
        """Whether the path still leads to this file: another process may have replaced it."""
        try:
            return self.path is None or os.stat(self.path).st_ino == self._inode
        except OSError:
            return False

    def leave(self) -> None:
        """Remember what must be the same for `is_as_left`, before a while without use."""
        self._shared = None if self.path is None else _shared_of(self.path)

    @property
    def is_as_left(self) -> bool:
        """Whether the path leads to this file, and nobody but a catalog's owner has touched it."""
        if self.path is None or (self._shared is not None and _shared_of(self.path) != self._shared):
            return False
        try:
            return self.is_current and _read_stamp(self.path) == _stamp_of(self.path)
        except OSError:
            return False

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a statement, one by one."""
        try:
            yield from self._connection.execute(sql, parameters)
        except _UNBELIEVABLE as error:
            raise Broken(str(error)) from error

    def one(self, sql: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The first row of a statement."""
        return next(self.rows(sql, parameters), None)

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Run a statement; how many rows it changed."""
        try:
            return self._connection.execute(sql, parameters).rowcount
        except _UNBELIEVABLE as error:
            raise Broken(str(error)) from error

    def insert(self, rows: Iterable[SealedRow]) -> None:
        """Add or replace versions, each with the checksum of its values."""
        marks = ",".join("?" * (len(self._names) + 1))
        sql = f"INSERT OR REPLACE INTO version ({','.join(self._names)},crc) VALUES ({marks})"  # noqa: S608 - our names
        try:
            self._connection.executemany(sql, rows)
        except _UNBELIEVABLE as error:
            raise Broken(str(error)) from error

    def drop_indexes(self) -> None:
        """Do without indexes while much is inserted; whoever drops them makes them again."""
        for name in _INDEXES:
            self.run(f"DROP INDEX IF EXISTS {name}")

    def create_indexes(self) -> None:
        """Make the indexes that are missing."""
        for name, what in _INDEXES.items():
            self.run(f"CREATE INDEX IF NOT EXISTS {name} ON {what}")

    def weigh_indexes(self) -> None:
        """Let SQLite look at samples: without them it prefers an index in order to the one that finds a key."""
        for _ in self.rows(f"PRAGMA analysis_limit={_SAMPLES}"):
            pass
        self.run("ANALYZE")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing."""
        self.run("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise
        self.run("COMMIT")
        if self.path is not None:
            _write_stamp(self.path)  # a commit may have written to the file, and the next process must know it was us

    @contextmanager
    def beside(self, other: "CatalogFile") -> Iterator[None]:
        """A block in which statements can name the tables of another catalog as `beside.version`."""
        self.run("ATTACH DATABASE ? AS beside", (other.path or ":memory:",))
        try:
            yield
        finally:
            self.run("DETACH DATABASE beside")

    def close(self) -> None:
        """Close the connection and stamp the file as left by us."""
        # The last one to close writes the log into the file; of a file that was replaced nothing is ours to stamp.
        is_ours = self.path is not None and self.is_as_left
        with suppress(OSError):
            _mend_shared(self.path, self._shared)
        with suppress(sqlite3.Error):
            self._connection.close()
        if is_ours and self.path is not None:
            _write_stamp(self.path)


def sealed(row: Sequence[Any]) -> SealedRow:
    """A row with its checksum."""
    return (*row, checksum(row))


def checksum(row: Sequence[Any]) -> int:
    """A checksum of a row's values, to notice bytes that changed on disk."""
    return zlib.crc32(repr(tuple(row)).encode(errors="surrogatepass"))


def open_catalog(path: str, columns: Sequence[tuple[str, str]]) -> CatalogFile:
    """The catalog at a path, made new when it cannot be believed; in memory where the disk refuses."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            return _open_checked(path, columns)
        except (Broken, *_UNBELIEVABLE):
            discard(path)
            return _open_checked(path, columns)
    except (OSError, Broken, *_UNBELIEVABLE):
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        _create(connection, columns)
        return CatalogFile(connection, None, columns)


def discard(path: str) -> None:
    """Move a catalog that cannot be believed out of the way and remove it."""
    for suffix in ("-wal", "-shm", "-journal", ".stamp"):
        with suppress(OSError):
            os.unlink(path + suffix)
    with suppress(FileNotFoundError):
        if os.path.isdir(path) and not os.path.islink(path):
            os.rename(path, f"{path}-aside-{secrets.token_hex(4)}")  # whoever put it there may want it back
        else:
            os.unlink(path)


def _open_checked(path: str, columns: Sequence[tuple[str, str]]) -> CatalogFile:
    is_new = not os.path.lexists(path)
    is_known = not is_new and _read_stamp(path) == _stamp_of(path)
    connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode=WAL").fetchone()
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute(f"PRAGMA cache_size={_PAGES}")
        found = CatalogFile(connection, path, columns)
        _settle_schema(connection, columns)
        if not is_new and not is_known:
            _verify(found, columns)
        if not is_known:
            _write_stamp(path)
    except BaseException:
        connection.close()
        raise
    return found


def _settle_schema(connection: sqlite3.Connection, columns: Sequence[tuple[str, str]]) -> None:
    schema = connection.execute("PRAGMA user_version").fetchone()[0]
    if schema == 0 and not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        _create(connection, columns)
    elif schema != SCHEMA:
        raise Broken(f"schema {schema}, not {SCHEMA}")


def _create(connection: sqlite3.Connection, columns: Sequence[tuple[str, str]]) -> None:
    body = ",".join(f"{name} {kind} NOT NULL" for name, kind in columns)
    connection.executescript(
        f"""
        BEGIN IMMEDIATE;
        CREATE TABLE IF NOT EXISTS version ({body}, crc INTEGER NOT NULL,
            UNIQUE (model_type, model_id, name, version, namespace));
        {";".join(f"CREATE INDEX IF NOT EXISTS {name} ON {what}" for name, what in _INDEXES.items())};
        CREATE TABLE IF NOT EXISTS name (root INTEGER NOT NULL, path TEXT NOT NULL, identity TEXT NOT NULL,
            streaming INTEGER NOT NULL, error TEXT NOT NULL, scanned_ns INTEGER NOT NULL,
            PRIMARY KEY (root, path)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
        PRAGMA user_version={SCHEMA};
        COMMIT;
        """
    )


def _verify(catalog: CatalogFile, columns: Sequence[tuple[str, str]]) -> None:
    """Whether a file that someone else touched still says what we wrote."""
    if catalog.one("PRAGMA integrity_check(1)") != ("ok",):
        raise Broken("the integrity check failed")
    names = ",".join(name for name, _ in columns)
    for *row, crc in catalog.rows(f"SELECT {names},crc FROM version"):  # noqa: S608 - our own column names
        if checksum(row) != crc:
            raise Broken("a row does not match its checksum")


_Shared = tuple[int, int]
"""Inode and size of the file beside the catalog that SQLite keeps mapped into memory."""


def _shared_of(path: str) -> _Shared | None:
    try:
        status = os.stat(f"{path}-shm")
    except OSError:
        return None
    return status.st_ino, status.st_size


def _mend_shared(path: str | None, left: _Shared | None) -> None:
    # If somebody cut the mapped file short, touching the lost pages would kill the process; SQLite finds zeros
    # instead and makes them anew.
    found = None if path is None else _shared_of(path)
    if left is not None and found is not None and found[0] == left[0] and found[1] < left[1]:
        os.truncate(f"{path}-shm", left[1])


def _stamp_of(path: str) -> str:
    status = os.stat(path)
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ino}"


def _read_stamp(path: str) -> str | None:
    try:
        with open(f"{path}.stamp", encoding="ascii") as file:
            return file.read(200)
    except (OSError, ValueError):
        return None


def _write_stamp(path: str) -> None:
    with suppress(OSError), open(f"{path}.stamp", "w", encoding="ascii") as file:
        file.write(_stamp_of(path))
