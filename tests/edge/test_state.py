"""The private state: marks by generation, the base in order, and a file that cannot be believed costs only a walk."""

import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from mire.edge import journal
from mire.edge.state import State, close_states, open_state, state_path
from mire.errors import RemoteError
from mire.model.base import BaseRow
from mire.model.mark import Mark, MarkKind, Pending
from mire.model.row import FileIdentity

REMOTE = "s3://bucket/prefix"


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[str]:
    """The directory of a cache; connections to its state are closed at the end."""
    yield str(tmp_path)
    close_states(str(tmp_path))


def opened(cache: str) -> AbstractContextManager[State]:
    """The state of the cache."""
    return open_state(cache, REMOTE)


def marked(cache: str, path: str, kind: MarkKind = "write") -> None:
    """A mark of a write that has ended."""
    with opened(cache) as state:
        state.done(state.begin({path: kind}))


def known(cache: str) -> None:
    """Say that everything was looked at."""
    with opened(cache) as state:
        state.acknowledge(state.pending(), [], is_bulk=True)


def pending(cache: str) -> Pending:
    """What is marked."""
    with opened(cache) as state:
        return state.pending()


def kinds(found: Pending) -> dict[str, str]:
    """The kind of each mark, by path."""
    return {mark.path: mark.kind for mark in found.records}


def in_child(work: Callable[[], object]) -> int:
    """Run something in a forked child; its exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def row_of(rel: str, *, partition: str = "p", identity: FileIdentity | None = None, entry: bytes = b"{}") -> BaseRow:
    """A row of the base."""
    return BaseRow(
        rel=rel,
        entry=entry,
        size_bytes=3,
        sha256="ab" * 32,
        last_modified="2026-05-02T08:00:00.000Z",
        partition=partition,
        identity=identity,
        looked_ns=7,
    )


def test_a_new_state_knows_nothing(cache: str) -> None:
    """Without a journal everything is to be looked at, until somebody did."""
    found = pending(cache)
    assert (found.is_known, found.is_bulk, found.records) == (False, False, ())
    known(cache)
    assert pending(cache).is_clean


def test_a_mark_is_open_until_the_write_ends(cache: str) -> None:
    """Between begin and done the mark says that its writer is at work; afterwards it stays."""
    with opened(cache) as state:
        ticket = state.begin({"data/a": "write", "data/b": "remove"})
        records = state.pending().records
        assert records == (Mark("data/a", "write", 2, is_open=True), Mark("data/b", "remove", 2, is_open=True))
        assert state.done(ticket) == ()
        assert [mark.is_open for mark in state.pending().records] == [False, False]


@pytest.mark.parametrize("order", [("remove", "write"), ("write", "remove"), ("unknown", "remove")])
def test_the_newest_kind_counts(cache: str, order: tuple[MarkKind, MarkKind]) -> None:
    """A removal followed by a write is a write, and the other way round."""
    for kind in order:
        marked(cache, "data/a", kind)
    assert kinds(pending(cache)) == {"data/a": order[1]}


def test_a_mark_made_after_the_look_survives_the_acknowledgement(cache: str) -> None:
    """A push acknowledges up to the generation it saw: a path marked again meanwhile stays marked."""
    marked(cache, "data/a")
    marked(cache, "data/b")
    seen = pending(cache)
    marked(cache, "data/a")
    with opened(cache) as state:
        state.acknowledge(seen, ["data/a", "data/b"])
    assert kinds(pending(cache)) == {"data/a": "write"}


def test_only_handled_paths_are_acknowledged(cache: str) -> None:
    """What a push did not deal with stays, and a push that fails acknowledges nothing."""
    marked(cache, "data/a")
    marked(cache, "data/b", "remove")
    with opened(cache) as state:
        state.acknowledge(state.pending(), ["data/a"])
    assert kinds(pending(cache)) == {"data/b": "remove"}


def test_a_path_marked_again_after_its_acknowledgement_counts_again(cache: str) -> None:
    """Once acknowledged a path is clean, and the next mark of it is a new one."""
    known(cache)
    for _ in range(3):
        marked(cache, "data/a")
        found = pending(cache)
        assert kinds(found) == {"data/a": "write"}
        with opened(cache) as state:
            state.acknowledge(found, ["data/a"])
        assert pending(cache).is_clean


def test_a_bulk_mark_goes_by_generation_too(cache: str) -> None:
    """A bulk mark made after the look is not acknowledged by it, and recorded removals survive beside it."""
    known(cache)
    marked(cache, "data/a", "remove")
    with opened(cache) as state:
        state.mark_bulk()
        seen = state.pending()
        assert (seen.is_bulk, kinds(seen)) == (True, {"data/a": "remove"})
        state.mark_bulk()
        state.acknowledge(seen, [], is_bulk=True)
        assert state.pending().is_bulk
        state.acknowledge(state.pending(), [], is_bulk=True)
        assert (state.pending().is_bulk, kinds(state.pending())) == (False, {"data/a": "remove"})


def test_the_mark_of_a_dead_writer_counts_as_done(cache: str) -> None:
    """A process that dies between begin and done leaves its mark, and nobody waits for it."""

    def die() -> None:
        with opened(cache) as state:
            state.begin({"data/a": "write"})
            os._exit(0)

    assert in_child(die) == 0
    assert pending(cache).records == (Mark("data/a", "write", 2, is_open=False),)


def test_a_live_writer_in_another_process_is_at_work(cache: str) -> None:
    """A push in another process sees that the write has not ended."""
    with opened(cache) as state:
        ticket = state.begin({"data/a": "write"})

        def look() -> None:
            assert [mark.is_open for mark in pending(cache).records] == [True]

        assert in_child(look) == 0
        state.done(ticket)


@pytest.mark.parametrize(("hours", "is_open"), [(0, True), (2, False)])
def test_a_writer_whose_pid_means_nothing_here_is_judged_by_age(*, cache: str, hours: int, is_open: bool) -> None:
    """A writer in another container, or from before a reboot, is believed for a while and not for ever."""
    with opened(cache) as state:
        ticket = state.begin({"data/a": "write"})
        (row,) = list(state.rows("SELECT path, generation, kind, is_open, pid, space, begun_ns FROM mark"))
        old = (*row[:5], "0badc0de", row[6] - hours * 3_600 * 10**9)
        state.run("UPDATE mark SET space=?, begun_ns=?, crc=?", (old[5], old[6], journal._crc(old)))
        assert [mark.is_open for mark in state.pending().records] == [is_open]
        state.done(ticket)


def test_a_write_that_ends_after_its_mark_was_acknowledged_is_marked_again(cache: str) -> None:
    """Should somebody take an open mark for done, nothing is lost: the writer marks once more when it ends."""
    with opened(cache) as state:
        ticket = state.begin({"data/a": "remove", "data/b": "write"})
        state.acknowledge(state.pending(), ["data/a"])
        assert state.done(ticket) == ("data/a",)
        assert kinds(state.pending()) == {"data/a": "remove", "data/b": "write"}
        assert not any(mark.is_open for mark in state.pending().records)


def test_a_forked_child_does_not_end_its_parents_write(cache: str) -> None:
    """A child that unwinds through a block of its parent leaves the parent's mark open."""
    with opened(cache) as state:
        ticket = state.begin({"data/a": "write"})

    def unwind() -> None:
        with opened(cache) as mine:
            mine.done(ticket)

    assert in_child(unwind) == 0
    assert [mark.is_open for mark in pending(cache).records] == [True]


def test_a_child_opens_its_own_connection(cache: str) -> None:
    """After a fork both sides go on marking, and nothing is lost."""
    marked(cache, "data/before")
    assert in_child(lambda: marked(cache, "data/child")) == 0
    marked(cache, "data/parent")
    assert set(kinds(pending(cache))) == {"data/before", "data/child", "data/parent"}


def test_marks_of_another_journal_are_not_acknowledged(cache: str) -> None:
    """A push that began before the journal was lost cannot acknowledge what was marked after it."""
    for number in range(5):
        marked(cache, f"data/{number}")
    seen = pending(cache)
    close_states(cache)
    Path(state_path(cache)).unlink()
    marked(cache, "data/0")
    with opened(cache) as state:
        state.acknowledge(seen, ["data/0"], is_bulk=True)
    assert (kinds(pending(cache)), pending(cache).is_known) == ({"data/0": "write"}, False)


def test_another_remote_or_namespace_means_nothing_is_known(cache: str) -> None:
    """Marks, base and facts are about one remote; opened for another one they are forgotten."""
    known(cache)
    marked(cache, "data/a")
    with opened(cache) as state:
        state.agree([row_of("data/a")])
        state.set_facts({"monolith": "e1"})
    with open_state(cache, f"{REMOTE}/team") as other:
        found = other.pending()
        assert (found.is_known, found.records, other.base_count(), other.fact("monolith")) == (False, (), 0, None)
    assert not pending(cache).is_known


def test_eight_processes_lose_nothing(cache: str) -> None:
    """Every mark that eight processes make at once is there, each under a generation of its own."""
    children = []
    for number in range(8):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                for count in range(20):
                    marked(cache, f"data/{number}/{count}")
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 8
    records = pending(cache).records
    assert {mark.path for mark in records} == {f"data/{number}/{count}" for number in range(8) for count in range(20)}
    assert len({mark.generation for mark in records}) == 160


def newer_schema(path: Path) -> None:
    """A file of a later mire."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version=99")
    connection.close()


def directory(path: Path) -> None:
    """A directory in the place of the file."""
    path.unlink()
    path.mkdir()
    (path / "thing").touch()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "garbage": lambda path: path.write_bytes(b"not a database " * 999),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:5000]),
    "newer": newer_schema,
    "directory": directory,
    "link": lambda path: (path.unlink(), path.symlink_to("nowhere")),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_that_cannot_be_believed_is_set_aside(cache: str, damage: str) -> None:
    """Whatever is wrong with the file: a new one takes its place, in which nothing is known, and it works."""
    known(cache)
    marked(cache, "data/a")
    close_states(cache)
    DAMAGES[damage](Path(state_path(cache)))
    found = pending(cache)
    assert (found.is_known, found.records) == (False, ())
    marked(cache, "data/b")
    assert kinds(pending(cache)) == {"data/b": "write"}
    aside = list(Path(cache, "_index").glob("*.aside*"))
    assert len(aside) == (damage != "missing")


def filled(cache: str) -> Pending:
    """A state with marks and base rows, closed: what it says."""
    known(cache)
    with opened(cache) as state:
        state.agree(row_of(f"data/svc/{number}/raw", entry=b"x" * 200) for number in range(200))
        for number in range(40):
            state.done(state.begin({f"data/svc/web-{number}/latest": "write", f"data/old/{number}": "remove"}))
    found = pending(cache)
    close_states(cache)
    return found


def looked(cache: str) -> Pending | None:
    """What is marked, or None when the file turned out to be damaged on the way and was set aside."""
    try:
        return pending(cache)
    except RemoteError as error:
        if error.kind != "state_damaged":
            raise
    assert not pending(cache).is_known
    return None


def test_a_cut_file_never_hides_a_mark(cache: str) -> None:
    """Cut off anywhere, the file either says all of its marks or nothing is known."""
    before, path = filled(cache), Path(state_path(cache))
    data = path.read_bytes()
    for length in range(0, len(data), 3_001):
        path.write_bytes(data[:length])
        found = looked(cache)
        assert found is None or not found.is_known or found.records == before.records
        close_states(cache)


def test_other_bytes_never_hide_a_mark(cache: str) -> None:
    """With any bytes overwritten, the file either says all of its marks or nothing is known."""
    before, path = filled(cache), Path(state_path(cache))
    data, chance = path.read_bytes(), random.Random(5)  # noqa: S311 - repeatable damage
    verdicts = set()
    for _ in range(120):
        start = chance.randrange(len(data))
        damaged = bytearray(data)
        damaged[start : start + 40] = chance.randbytes(40)
        path.write_bytes(damaged[: len(data)])
        found = looked(cache)
        verdicts.add(found is not None and found.is_known)
        assert found is None or not found.is_known or found.records == before.records
        close_states(cache)
    assert verdicts == {True, False}


def test_a_file_replaced_under_a_writer_does_not_swallow_its_mark(cache: str) -> None:
    """The file is lost and made anew between begin and done: the mark is in the new one."""
    with opened(cache) as state:
        ticket = state.begin({"data/a": "write"})
        shutil.rmtree(Path(cache, "_index"))
    known(cache)
    with opened(cache) as state:
        assert state.done(ticket) == ("data/a",)
    assert kinds(pending(cache)) == {"data/a": "write"}


def test_damage_met_in_the_middle_is_told_and_set_aside(cache: str) -> None:
    """Whoever meets the damage is told to run again, and the next one finds a new file."""
    known(cache)
    with opened(cache) as state:
        state.run("DROP TABLE base")
    with pytest.raises(RemoteError, match="set aside") as caught, opened(cache) as state:
        state.base_count()
    assert (caught.value.kind, caught.value.transient) == ("state_damaged", True)
    assert not pending(cache).is_known


def test_the_base_keeps_what_was_agreed(cache: str) -> None:
    """Rows come back as they were given, replaced by newer ones and gone when forgotten."""
    identity = FileIdentity(5, 6, 3, 2**64 - 1)
    rows = [row_of("data/a", identity=identity), replace(row_of("data/b", entry=b'{"k":"\xc3\xa9"}'), sha256=None)]
    with opened(cache) as state:
        state.agree(rows)
        assert state.base_of(["data/a", "data/b", "data/none"]) == {row.rel: row for row in rows}
        assert list(state.unhydrated()) == [rows[1]]
        newer = replace(rows[1], size_bytes=9, partition="q")
        state.agree([newer])
        assert (list(state.base_in("p")), list(state.base_in("q"))) == ([rows[0]], [newer])
        state.identify([("data/a", None, 0), ("data/b", identity, 8)])
        assert [(row.identity, row.looked_ns) for row in state.all_base()] == [(None, 0), (identity, 8)]
        state.forget(["data/a", "data/none"])
        assert (state.base_count(), [row.rel for row in state.all_base()]) == (1, ["data/b"])


def test_base_rows_come_in_the_order_of_their_paths(cache: str) -> None:
    """The order is that of Python's text, so that a walk can be merged with it, and below means below a slash."""
    rels = ["a", "a-b", "a.c", "a/b", "a/b/c", "a0", "aa", "é", "z", "\U0001f600", "\uffee", "a/é", "A"]
    with opened(cache) as state:
        state.agree(map(row_of, rels))
        assert [row.rel for row in state.all_base()] == sorted(rels)
        assert [row.rel for row in state.base_below("a")] == ["a", "a/b", "a/b/c", "a/é"]
        assert [row.rel for row in state.base_below("a/b")] == ["a/b", "a/b/c"]
        assert [row.rel for row in state.base_below("")] == sorted(rels)
        assert [row.rel for row in state.base_in("p")] == sorted(rels)


def test_many_rows_and_many_paths_are_asked_for_at_once(cache: str) -> None:
    """Neither the number of rows nor that of paths in one question has a limit."""
    rels = [f"data/{number:05d}" for number in range(25_000)]
    with opened(cache) as state:
        state.agree(map(row_of, rels))
        assert (state.base_count(), len(state.base_of(rels))) == (25_000, 25_000)
        state.forget(rels[1:])
        assert [row.rel for row in state.all_base()] == rels[:1]


def test_facts_and_shard_tags(cache: str) -> None:
    """Facts are kept and forgotten by name; those about shards are apart."""
    with opened(cache) as state:
        state.set_facts({"monolith": "e1", "meta": "e2"})
        state.set_shard_tags({"data--svc": "s1", "outputs": "s2"})
        state.set_facts({"meta": None})
        state.set_shard_tags({"outputs": None})
        assert (state.fact("monolith"), state.fact("meta")) == ("e1", None)
        assert state.shard_tags() == {"data--svc": "s1"}


def test_a_failed_block_changes_nothing(cache: str) -> None:
    """What a transaction did is taken back when its block raises, also in a transaction inside it."""
    known(cache)

    def fail(state: State) -> None:
        with state.transaction():
            state.mark_bulk()
            state.set_facts({"meta": "e"})
            raise RuntimeError

    with opened(cache) as state:
        with pytest.raises(RuntimeError):
            fail(state)
        assert (state.pending().is_clean, state.fact("meta")) == (True, None)


def test_marks_are_synced_to_disk_and_the_rest_is_not(cache: str) -> None:
    """A durable transaction waits for the disk (a lost mark is a lost change); others leave that to SQLite's log."""
    with opened(cache) as state:
        with state.transaction(is_durable=True):
            assert state.one("PRAGMA synchronous") == (2,)
        assert state.one("PRAGMA synchronous") == (1,)
        assert state.one("PRAGMA journal_mode") == ("wal",)
