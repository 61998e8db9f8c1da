"""The file of the private state: opened, believed or set aside, read and written.

Owns: the connection, the schema, who the file is bound to, and the decision whether it can be believed.
Must not know: what marks and base rows mean.
Keeps: whatever is wrong with the file (missing, cut off, other bytes, another schema, a directory in its place,
another remote) makes a new one, which says that nothing is known: it costs a full walk, never a change.
"""

import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar
from urllib.parse import quote

from mire.edge import files
from mire.edge.statefault import Broken, mapped_sqlite
from mire.errors import RemoteError, shown

SCHEMA: Final = 1
_APPLICATION: Final = 0x6D697265
_BUSY_S = 30.0
_PAGES = -16_000
"""Page cache of a connection: 16 MB, so that memory does not grow with the store."""
_LOG_BYTES = 4 << 20
_ASIDE = ".aside"
_TABLES: Final = """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE mark (path TEXT NOT NULL, generation INTEGER NOT NULL, kind TEXT NOT NULL, is_open INTEGER NOT NULL,
        pid INTEGER NOT NULL, space TEXT NOT NULL, begun_ns INTEGER NOT NULL, crc INTEGER NOT NULL,
        PRIMARY KEY (path, generation)) WITHOUT ROWID;
    CREATE TABLE partition (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE base (rel TEXT PRIMARY KEY, partition INTEGER NOT NULL, size_bytes INTEGER NOT NULL, sha256 TEXT,
        last_modified TEXT NOT NULL, mtime_ns INTEGER, ctime_ns INTEGER, file_size INTEGER, inode INTEGER,
        looked_ns INTEGER NOT NULL, entry BLOB NOT NULL) WITHOUT ROWID;
    CREATE INDEX base_by_partition ON base (partition);
    CREATE TABLE fact (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
_FORGETFUL: Final = ("mark", "base", "partition", "fact", "meta")


class StateFile:
    """An open state, used by one caller at a time."""

    def __init__(self, connection: sqlite3.Connection, path: str, inode: int) -> None:
        self._connection = connection
        self._inode = inode
        self.path = path
        self.identity = ""
        self.epoch = ""

    @property
    def is_current(self) -> bool:
        """Whether the path still leads to this file, still bound as it was: another process may have replaced it."""
        try:
            if os.stat(self.path).st_ino != self._inode:
                return False
        except OSError:
            return False
        return (self.meta("identity"), self.meta("epoch")) == (self.identity, self.epoch)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a statement, one by one."""
        with mapped_sqlite(self.path):
            cursor = self._connection.execute(sql, parameters)
        while True:
            with mapped_sqlite(self.path):
                found = cursor.fetchmany(500)
            if not found:
                return
            yield from found

    def one(self, sql: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The first row of a statement."""
        with mapped_sqlite(self.path):
            cursor = self._connection.execute(sql, parameters)
            row: tuple[Any, ...] | None = cursor.fetchone()
            cursor.close()
            return row

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Run a statement; how many rows it changed."""
        with mapped_sqlite(self.path):
            return self._connection.execute(sql, parameters).rowcount

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> int:
        """Run a statement for each of some rows; how many rows were changed in all."""
        with mapped_sqlite(self.path):
            return self._connection.executemany(sql, rows).rowcount

    def meta(self, key: str) -> Any:
        """One fact about the file itself."""
        row = self.one("SELECT value FROM meta WHERE key=?", (key,))
        return None if row is None else row[0]

    def number(self, key: str) -> int:
        """One of the numbers every file has."""
        value = self.meta(key)
        if not isinstance(value, int):
            raise Broken(f"{key} is {value!r}")
        return value

    def set_meta(self, key: str, value: object) -> None:
        """Record a fact about the file itself."""
        self.run("INSERT OR REPLACE INTO meta VALUES (?,?)", (key, value))

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything read in the block is as of one moment; nobody waits for it."""
        if self._connection.in_transaction:
            yield
            return
        self.run("BEGIN")
        try:
            yield
        finally:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    @contextmanager
    def transaction(self, *, is_durable: bool = False) -> Iterator[None]:
        """All or nothing, and when durable on disk by the end; inside another one it is a part of that."""
        if self._connection.in_transaction:
            yield
            return
        if is_durable:
            self.run("PRAGMA synchronous=FULL")
        try:
            self.run("BEGIN IMMEDIATE")
            try:
                yield
                self.run("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise
        finally:
            if is_durable:
                with suppress(sqlite3.Error):
                    self._connection.execute("PRAGMA synchronous=NORMAL")

    def close(self) -> None:
        """Close the connection."""
        with suppress(sqlite3.Error):
            self._connection.close()


File = TypeVar("File", bound=StateFile)


def open_file(path: str, identity: str, kind: type[File]) -> File:
    """The state at a path, bound to an identity; made new when it cannot be believed."""
    # Opening is short and alone, so that nobody pairs one file with the log of another that takes its place.
    with _guarded(path):
        try:
            found = _opened(path, kind)
        except Broken:
            _replace(path)
            found = _opened(path, kind)
        try:
            _bind(found, identity)
        except BaseException:
            found.close()
            raise
        return found


def set_aside(path: str, broken: StateFile) -> None:
    """Take a file that turned out to be damaged out of the way, unless somebody did so already."""
    broken.close()
    with _guarded(path):
        with suppress(OSError):
            if os.stat(path).st_ino != broken._inode:  # noqa: SLF001 - our own class
                return
        _replace(path)


@contextmanager
def _guarded(path: str) -> Iterator[None]:
    files.make_dirs(os.path.dirname(path))
    with files.mapped(path):
        fd = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        with files.flocked(fd) as is_free:
            if not is_free:
                raise RemoteError(f"{shown(path)} is kept busy by a stopped process: end it", transient=True, path=path)
            yield
    finally:
        os.close(fd)


def _opened(path: str, kind: type[File]) -> File:
    if not files.is_regular(path):
        raise Broken("not a file")
    inode = os.stat(path).st_ino
    found = kind(_connect(path), path, inode)
    try:
        _check(found)
        found.identity, found.epoch = str(found.meta("identity")), str(found.meta("epoch"))
    except BaseException:
        found.close()
        raise
    return found


def _check(found: StateFile) -> None:
    if found.one("PRAGMA application_id") != (_APPLICATION,) or found.one("PRAGMA user_version") != (SCHEMA,):
        raise Broken("another schema")
    # Damage among base rows shows as a conflict or as an error; a mark that silently went would be a lost change.
    if found.one("PRAGMA quick_check(mark)") != ("ok",):
        raise Broken("the check failed")


def _connect(path: str) -> sqlite3.Connection:
    with mapped_sqlite(path):
        connection = sqlite3.connect(
            f"file:{quote(path)}?mode=rw", uri=True, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
        )
    try:
        with mapped_sqlite(path):
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(f"PRAGMA cache_size={_PAGES}")
            connection.execute(f"PRAGMA journal_size_limit={_LOG_BYTES}")
    except BaseException:
        connection.close()
        raise
    return connection


def _replace(path: str) -> None:
    """Make a new file and give it the name; what was there is kept aside, once, for whoever wants to look at it."""
    fresh = f"{path}.new"
    for leftover in (fresh, f"{fresh}-wal", f"{fresh}-shm", f"{fresh}-journal"):
        files.remove_tree(leftover)
    with files.mapped(fresh):
        os.close(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
    connection = _connect(fresh)
    try:
        with mapped_sqlite(fresh):
            connection.execute("PRAGMA journal_mode=WAL").fetchone()
            connection.execute("PRAGMA synchronous=FULL")
            connection.executescript(f"BEGIN IMMEDIATE;{_TABLES}COMMIT;")
            connection.execute(f"PRAGMA application_id={_APPLICATION}")
            connection.execute(f"PRAGMA user_version={SCHEMA}")
    finally:
        connection.close()
    with files.mapped(path):
        if files.is_regular(path):
            files.remove_tree(path + _ASIDE)
            os.rename(path, path + _ASIDE)
        elif os.path.lexists(path):  # whoever put that there may want it back
            os.rename(path, f"{path}{_ASIDE}-{secrets.token_hex(4)}")
        # The old log must be gone before the new file has the name: SQLite would replay it.
        for suffix in ("-wal", "-shm", "-journal"):
            files.remove_tree(path + suffix)
        os.rename(fresh, path)
    files.sync_dir(os.path.dirname(path))


def _bind(found: StateFile, identity: str) -> None:
    """Forget everything that is about another remote or namespace; from then on nothing is known."""
    if found.identity == identity and found.meta("generation") is not None:
        return
    with found.transaction(is_durable=True):
        for table in _FORGETFUL:
            found.run(f"DELETE FROM {table}")  # noqa: S608 - our own tables
        found.identity, found.epoch = identity, secrets.token_hex(8)
        found.set_meta("identity", identity)
        found.set_meta("epoch", found.epoch)
        found.set_meta("generation", 1)
        found.set_meta("unknown", 1)
        found.set_meta("bulk", 0)
