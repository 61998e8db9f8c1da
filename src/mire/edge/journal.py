"""The journal of marks: what is about to change, durably, before it changes; forgotten only by generation.

Owns: generations, kinds, and which writers are still at work.
Must not know: what a path means, or the sidecar that other programs read.
Keeps: a mark is on disk before `begin` returns; a mark made after a generation survives every acknowledgement of
that generation; a write that ends finds its mark, or makes it anew.
"""

import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, get_args

from mire.edge import clock, process
from mire.edge.statefault import Broken
from mire.edge.statefile import StateFile
from mire.model.lease import Host
from mire.model.mark import Mark, MarkKind, Pending, Ticket

_OPEN_NS: Final = 24 * 3_600 * 10**9
"""A write that is open this long ended without telling: its pid belongs to somebody else by now."""

_STRANGER_NS: Final = 3_600 * 10**9
"""The same for a writer whose pid we cannot judge, of another container or of before a reboot."""

_BATCH = 500
_KINDS: Final = frozenset(get_args(MarkKind))
_COLUMNS: Final = "path, generation, kind, is_open, pid, space, begun_ns"
_Row = tuple[str, int, str, int, int, str, int]


class Journal(StateFile):
    """The marks in an open state."""

    def begin(self, kinds: Mapping[str, MarkKind]) -> Ticket:
        """Record paths that are about to change; on disk when this returns."""
        host = process.this_host()
        with self.transaction(is_durable=True):
            generation = self._next_generation()
            self._insert(kinds.items(), generation, host, is_open=True)
        return Ticket(epoch=self.epoch, generation=generation, pid=host.pid, kinds=tuple(kinds.items()))

    def done(self, ticket: Ticket) -> tuple[str, ...]:
        """The write ended, well or not; marks that somebody acknowledged or lost meanwhile are made again: which."""
        if ticket.pid != os.getpid():
            return ()  # a forked child unwinds through its parent's blocks
        with self.transaction():
            lost = [each for each in ticket.kinds if not self._close(each[0], ticket)]
            if lost:
                self._insert(lost, self._next_generation(), process.this_host(), is_open=False)
        return tuple(path for path, _ in lost)

    def note(self, paths: Iterable[str]) -> None:
        """Record paths that somebody else marked, as far as there is no mark of them."""
        wanted = tuple(dict.fromkeys(paths))
        known = self.known(wanted)
        new = [(path, "unknown") for path in wanted if path not in known]
        if new:
            with self.transaction():
                self._insert(new, self._next_generation(), process.this_host(), is_open=False)

    def mark_bulk(self) -> None:
        """Record that anything may have changed."""
        with self.transaction(is_durable=True):
            self.set_meta("bulk", self._next_generation())

    def pending(self) -> Pending:
        """All marks that were not acknowledged, in the order of paths."""
        with self.snapshot():
            newest: dict[str, Mark] = {}
            space, now_ns = process.this_host().space, clock.now_ns()
            for row in self._checked(f"SELECT {_COLUMNS}, crc FROM mark ORDER BY path, generation"):  # noqa: S608
                path, generation, kind, is_open = row[0], row[1], row[2], _is_open(row, space, now_ns)
                before = newest.get(path)
                was_open = before is not None and before.is_open
                newest[path] = Mark(path, _kind(kind), generation, is_open or was_open)
            return Pending(
                epoch=self.epoch,
                generation=self.number("generation"),
                records=tuple(newest.values()),
                is_bulk=bool(self.number("bulk")),
                is_known=not self.number("unknown"),
            )

    def acknowledge(self, pending: Pending, paths: Iterable[str], *, is_bulk: bool = False) -> None:
        """Forget the marks of these paths that `pending` saw; `is_bulk` says that everything was looked at."""
        with self.transaction():
            if pending.epoch != self.epoch:
                return
            rows = ((path, pending.generation) for path in paths)
            self.run_many("DELETE FROM mark WHERE path=? AND generation<=?", rows)
            if is_bulk:
                for key in ("bulk", "unknown"):
                    if self.number(key) <= pending.generation:
                        self.set_meta(key, 0)

    def known(self, paths: Iterable[str]) -> set[str]:
        """Those of some paths that have a mark."""
        wanted, found = list(paths), set[str]()
        for start in range(0, len(wanted), _BATCH):
            batch = wanted[start : start + _BATCH]
            places = ",".join("?" * len(batch))
            found.update(path for (path,) in self.rows(f"SELECT path FROM mark WHERE path IN ({places})", batch))  # noqa: S608
        return found

    def first_marked(self, count: int) -> list[str]:
        """Some of the marked paths."""
        return [path for (path,) in self.rows("SELECT DISTINCT path FROM mark LIMIT ?", (count,))]

    @property
    def is_clear(self) -> bool:
        """Whether nothing is marked and everything is known."""
        return not self.number("bulk") and not self.number("unknown") and not self.first_marked(1)

    def _next_generation(self) -> int:
        generation = self.number("generation") + 1
        self.set_meta("generation", generation)
        return generation

    def _insert(self, kinds: Iterable[tuple[str, str]], generation: int, host: Host, *, is_open: bool) -> None:
        now_ns = clock.now_ns()
        rows = [(path, generation, kind, int(is_open), host.pid, host.space, now_ns) for path, kind in kinds]
        # The newest kind counts, so older marks of the path go, but not those of writers that are still at work.
        self.run_many(
            "DELETE FROM mark WHERE path=? AND (NOT is_open OR (pid=? AND space=?))",
            ((row[0], host.pid, host.space) for row in rows),
        )
        self.run_many("INSERT OR REPLACE INTO mark VALUES (?,?,?,?,?,?,?,?)", ((*row, _crc(row)) for row in rows))

    def _close(self, path: str, ticket: Ticket) -> bool:
        if ticket.epoch != self.epoch:
            return False
        where = (path, ticket.generation)
        rows = self._checked(f"SELECT {_COLUMNS}, crc FROM mark WHERE path=? AND generation=?", where)  # noqa: S608
        row = next(rows, None)
        if row is None:
            return False
        closed = (*row[:3], 0, *row[4:])
        self.run("UPDATE mark SET is_open=0, crc=? WHERE path=? AND generation=?", (_crc(closed), *where))
        return True

    def _checked(self, sql: str, parameters: tuple[Any, ...] = ()) -> Iterator[_Row]:
        for *row, crc in self.rows(sql, parameters):
            if _crc(tuple(row)) != crc:
                raise Broken("a mark does not match its checksum")
            path, generation, kind, is_open, pid, space, begun_ns = row
            yield path, generation, kind, is_open, pid, space, begun_ns


def _crc(row: tuple[Any, ...]) -> int:
    return zlib.crc32(repr(row).encode())


def _kind(text: str) -> MarkKind:
    if text not in _KINDS:
        raise Broken(f"a mark of kind {text!r}")
    kind: MarkKind = text  # type: ignore[assignment]
    return kind


def _is_open(row: _Row, space: str, now_ns: int) -> bool:
    _, _, _, is_open, pid, owner_space, begun_ns = row
    age_ns = abs(now_ns - begun_ns)  # a clock that was set back must not keep a mark open for ever
    if not is_open:
        return False
    if not space or owner_space != space:
        return age_ns < _STRANGER_NS
    return age_ns < _OPEN_NS and process.is_alive(pid)
