"""The base in the private state: per path, what cache and remote last agreed on.

Owns: base rows, partitions by number, small facts such as fingerprints.
Must not know: what an entry says, how a partition is named.
Keeps: rows come in the order of their paths, so that a walk can be compared without loading either.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from mire.edge.statefile import StateFile
from mire.model.base import BaseRow
from mire.model.row import FileIdentity

_BATCH = 500
_AGREED = 20_000
"""Rows agreed in one transaction: enough to be fast, and a log that stays small."""

_SELECT: Final = (
    "SELECT rel, entry, size_bytes, sha256, last_modified, name, mtime_ns, ctime_ns, file_size, inode, looked_ns"
    " FROM base JOIN partition ON partition.id = base.partition"
)
_SELECT_ALL: Final = _SELECT.replace(" JOIN ", " CROSS JOIN ")
"""For whole scans: SQLite would else begin with the small table, and sort everything afterwards."""

_BELOW: Final = "WHERE rel = ? OR (rel > ? AND rel < ?) ORDER BY rel"
RawRow = tuple[Any, ...]
"""A row as SQLite gives it: making nouns of all of them would cost more than the walk they are compared with."""

_SHARD = "shard/"
_WORD = 1 << 64


class Base(StateFile):
    """The base rows and facts in an open state."""

    def base_of(self, rels: Iterable[str]) -> dict[str, BaseRow]:
        """The rows of some paths, as far as there are any."""
        found: dict[str, BaseRow] = {}
        for batch in _batches(rels, _BATCH):
            places = ",".join("?" * len(batch))
            found.update((row[0], row_of(row)) for row in self.rows(f"{_SELECT} WHERE rel IN ({places})", batch))
        return found

    def base_below(self, rel: str) -> Iterator[BaseRow]:
        """The row of a path and of all paths below it, in order; of everything for the empty path."""
        if not rel:
            yield from self.all_base()
            return
        yield from map(row_of, self.rows(f"{_SELECT} {_BELOW}", _below(rel)))

    def base_in(self, partition: str) -> Iterator[BaseRow]:
        """The rows of a partition, in order."""
        yield from map(row_of, self.rows(f"{_SELECT} WHERE name = ? ORDER BY rel", (partition,)))

    def partitions(self) -> list[str]:
        """The names of all partitions that any row was ever in."""
        return [name for (name,) in self.rows("SELECT name FROM partition")]

    def all_base(self) -> Iterator[BaseRow]:
        """All rows, in order, one by one."""
        yield from map(row_of, self.rows(f"{_SELECT_ALL} ORDER BY rel"))

    def raw_base(self, rel: str = "") -> Iterator[tuple[str, RawRow]]:
        """The rows at and below a path, in order, cheaply: `row_of` makes one, `numbers_in` tells of which file."""
        if rel:
            return ((values[0], values) for values in self.rows(f"{_SELECT} {_BELOW}", _below(rel)))
        return ((values[0], values) for values in self.rows(f"{_SELECT_ALL} ORDER BY rel"))

    def base_count(self) -> int:
        """How many rows there are."""
        row = self.one("SELECT count(*) FROM base")
        return int(row[0]) if row else 0

    def unhydrated(self) -> Iterator[BaseRow]:
        """The rows of files whose content is not here, in order."""
        yield from map(row_of, self.rows(f"{_SELECT_ALL} WHERE mtime_ns IS NULL ORDER BY rel"))

    def agree(self, rows: Iterable[BaseRow]) -> None:
        """Record what was agreed on, replacing what was known of these paths."""
        numbers: dict[str, int] = {}
        for batch in _batches(rows, _AGREED):
            with self.transaction():
                for name in {row.partition for row in batch} - numbers.keys():
                    numbers[name] = self._number(name)
                sql = "INSERT OR REPLACE INTO base VALUES (?,?,?,?,?,?,?,?,?,?,?)"
                self.run_many(sql, (_values(row, numbers[row.partition]) for row in batch))

    def identify(self, files: Iterable[tuple[str, FileIdentity | None, int]]) -> None:
        """Record which file on disk (None: no longer any) a path's agreed content is in, and when it was looked at."""
        sql = "UPDATE base SET mtime_ns=?, ctime_ns=?, file_size=?, inode=?, looked_ns=? WHERE rel=?"
        with self.transaction():
            self.run_many(sql, ((*_identity_values(each), looked_ns, rel) for rel, each, looked_ns in files))

    def forget(self, rels: Iterable[str]) -> None:
        """Drop the rows of some paths: nothing is agreed about them."""
        with self.transaction():
            self.run_many("DELETE FROM base WHERE rel=?", ((rel,) for rel in rels))

    def fact(self, key: str) -> str | None:
        """A small fact, such as the fingerprint of an index object."""
        row = self.one("SELECT value FROM fact WHERE key=?", (key,))
        return None if row is None else str(row[0])

    def set_facts(self, facts: Mapping[str, str | None]) -> None:
        """Record some facts at once; None forgets one."""
        with self.transaction():
            self.run_many("DELETE FROM fact WHERE key=?", ((key,) for key, value in facts.items() if value is None))
            kept = (fact for fact in facts.items() if fact[1] is not None)
            self.run_many("INSERT OR REPLACE INTO fact VALUES (?,?)", kept)

    def has_facts_below(self, prefix: str) -> bool:
        """Whether there are facts whose names begin with a prefix, which ends with '/'."""
        return self.one("SELECT 1 FROM fact WHERE key > ? AND key < ? LIMIT 1", _within(prefix)) is not None

    def facts_below(self, prefix: str) -> dict[str, str]:
        """The facts whose names begin with a prefix, which ends with '/' and is left out."""
        found = self.rows("SELECT key, value FROM fact WHERE key > ? AND key < ?", _within(prefix))
        return {key[len(prefix) :]: value for key, value in found}

    def shard_tags(self) -> dict[str, str]:
        """The fingerprint each partition's shard had when its rows were agreed."""
        return self.facts_below(_SHARD)

    def set_shard_tags(self, tags: Mapping[str, str | None]) -> None:
        """Record fingerprints of shards; None forgets one."""
        self.set_facts({f"{_SHARD}{name}": tag for name, tag in tags.items()})

    def _number(self, name: str) -> int:
        self.run("INSERT OR IGNORE INTO partition (name) VALUES (?)", (name,))
        row = self.one("SELECT id FROM partition WHERE name=?", (name,))
        return int(row[0]) if row else 0


def _within(prefix: str) -> tuple[str, str]:
    return prefix, f"{prefix[:-1]}0"


def _below(rel: str) -> tuple[str, str, str]:
    # '0' comes right after '/', so the range is everything that begins with `rel/`.
    return rel, f"{rel}/", f"{rel}0"


def numbers_in(values: RawRow) -> tuple[tuple[Any, ...], int]:
    """Of which file (mtime_ns, ctime_ns, size, inode) a row is, and when that was looked at."""
    return values[6:10], values[10]


def row_of(values: RawRow) -> BaseRow:
    """A row as a noun."""
    rel, entry, size, sha256, modified, partition, mtime_ns, ctime_ns, file_size, inode, looked_ns = values
    identity = None if mtime_ns is None else FileIdentity(mtime_ns, ctime_ns, file_size, inode % _WORD)
    return BaseRow(
        rel=rel,
        entry=entry,
        size_bytes=size,
        sha256=sha256,
        last_modified=modified,
        partition=partition,
        identity=identity,
        looked_ns=looked_ns,
    )


def _values(row: BaseRow, partition: int) -> tuple[Any, ...]:
    head = (row.rel, partition, row.size_bytes, row.sha256, row.last_modified)
    return (*head, *_identity_values(row.identity), row.looked_ns, row.entry)


def _identity_values(identity: FileIdentity | None) -> tuple[int | None, ...]:
    if identity is None:
        return (None, None, None, None)
    # SQLite's integers have a sign; the inodes of some file systems use all 64 bits.
    inode = identity.inode if identity.inode < _WORD // 2 else identity.inode - _WORD
    return (identity.mtime_ns, identity.ctime_ns, identity.size_bytes, inode)


def _batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
