"""Holes that the newest release of the reference still has (newest §3, a to n): each way, and that ours has not."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mire.errors import RemoteError
from mire.flow.local import agreed_row
from mire.flow.mark import marking
from mire.flow.push import commit_push, prepare_push
from mire.model.index import Entry
from mire.model.names import RelPath
from mire.model.row import FileIdentity
from mire.plan.change import RACY_NS, change_of
from mire.plan.threeway import plan_push_of
from sync_world import META, MONOLITH, TYPE, Client, Hooked, World, data


@pytest.mark.parametrize("order", ["before", "after"])
def test_a_a_bulk_mark_drops_no_deletion(world: World, order: str) -> None:
    """A recorded deletion is published by the next push, whatever else is marked, and does not come back."""
    one, other = world.client(), world.client()
    one.version("m", 1, "x")
    one.version("n", 1, "y")
    one.push()
    other.pull()
    if order == "before":
        one.mark_all()
    one.remove(data("m"))
    one.mark(data("m"))
    if order == "after":
        one.mark_all()
    assert one.push().removed == [data("m")]
    other.pull()
    one.pull()
    assert one.files() == other.files()
    assert data("m") not in world.objects()
    assert data("m") not in one.files()


@pytest.mark.parametrize("failing", ["index", "objects", "deletion"])
def test_b_a_push_that_fails_forgets_nothing(worlds: Callable[..., World], failing: str) -> None:
    """After a failure at any step the marks are as they were, and a plain retry publishes writes and deletions."""
    for sharded in (False, True):
        world = worlds(sharded=sharded)
        hooked = Hooked(world.remote)
        one, other = world.client(hooked), world.client()
        one.version("m", 1, "x")
        one.push()
        other.pull()
        one.remove(data("m"))
        one.version("n", 1, "new")
        before = one.marks()
        index = META if sharded else MONOLITH
        hooked.fail(
            *{"index": ("put_if", index), "objects": ("put_if", "data/*"), "deletion": ("delete*", "*")}[failing]
        )
        with pytest.raises(RemoteError):
            one.push()
        assert one.marks() == before
        assert one.push().is_whole
        other.pull()
        assert other.files() == one.files()
        assert world.objects() == one.files()
        world.check()


def test_c_a_pull_overwrites_nothing_that_exists_nowhere_else(world: World) -> None:
    """A file both sides changed stays as it is here, theirs is put beside it, and the push does not win by itself."""
    one, other = world.client(), world.client()
    one.write("logs/a", "base")
    one.push()
    other.pull()
    one.write("logs/a", "theirs")
    one.push()
    other.write("logs/a", "ours!!")
    done = other.pull()
    assert [conflict.rel for conflict in done.conflicts] == ["logs/a"]
    assert other.read("logs/a") == b"ours!!"
    theirs = done.conflicts[0].theirs
    assert theirs is not None
    with open(theirs, "rb") as file:
        assert file.read() == b"theirs"
    assert [conflict.rel for conflict in other.push().conflicts] == ["logs/a"]
    assert world.get("logs/a") == b"theirs"
    assert other.marks() == {"logs/a"}


def test_d_a_commit_acknowledges_only_what_was_prepared(plain: World) -> None:
    """Marks made between the two phases survive, those of prepared paths included; so they do a commit of nothing."""
    one, other = plain.client(), plain.client()
    one.write("logs/a", "1")
    prepared, done = prepare_push(one.ds)
    one.write("logs/b", "late")
    one.write("logs/a", "2")
    assert commit_push(one.ds, prepared, done).uploaded == ["logs/a"]
    assert one.marks() == {"logs/a", "logs/b"}
    assert one.push().count == 2
    prepared, done = prepare_push(one.ds)
    one.write("logs/c", "later")
    commit_push(one.ds, prepared, done)
    assert one.push().count == 1
    other.pull()
    assert other.files() == one.files()


def test_e_a_commit_of_a_peer_between_the_phases_is_not_skipped(plain: World) -> None:
    """What was committed after the first phase read the index is brought by the next pull."""
    one, other = plain.client(), plain.client()
    one.version("m", 1, "x")
    one.push()
    one.pull()
    one.write("logs/a", "1")
    one.mark_all()
    prepared, done = prepare_push(one.ds)
    other.version("y", 1, "in another shard")
    other.push()
    commit_push(one.ds, prepared, done)
    assert one.pull().count == 3
    assert one.read(data("y")) == b"in another shard"
    other.pull()
    assert one.files() == other.files()


def test_f_an_object_leaves_the_store_after_the_index(worlds: Callable[..., World]) -> None:
    """At every instant each entry has its object, and a deletion that was only prepared is seen by nobody."""
    for sharded in (False, True):
        world = worlds(sharded=sharded, two_phase=True)
        hooked = Hooked(world.remote)
        one, other = world.client(hooked), world.client()
        one.version("m", 1, "x")
        one.push()
        hooked.at("*", "*", world.check_present, times=1000)
        hooked.at("*", "*", world.check_present, after=True, times=1000)
        one.remove(data("m"))
        one.write(data("m", version=2), "y")
        prepared, done = prepare_push(one.ds)
        assert other.pull().findings == []
        assert other.read(data("m")) == b"x"
        commit_push(one.ds, prepared, done)
        assert data("m") not in world.objects()


def test_g_what_is_marked_before_it_is_written_is_not_taken_for_deleted(world: World) -> None:
    """A push of another process between mark and write deletes nothing, and the write is pushed later."""
    one, other = world.client(), world.client()
    one.write("logs/known", "x")
    one.push()
    for rel in ("logs/new", "logs/known"):
        with marking(one.ds, str(one.path(rel))):
            one.path(rel).unlink(missing_ok=True)
            assert one.on(world.remote).push().count == 0
            one.scribble(rel, f"written {rel}")
        one.mark("logs/by-another-program")
        assert one.push().uploaded == [rel]
    other.pull()
    assert other.files() == one.files()


def test_h_equal_size_and_time_hide_no_change_of_a_marked_file(world: World) -> None:
    """A file rewritten with its old size and time is pushed when it is marked, and found by a full look, too."""
    one, other = world.client(), world.client()
    for rel in ("logs/marked", "logs/unmarked"):
        one.write(rel, "old")
        os.utime(one.path(rel), (10**9, 10**9))
    one.push()
    other.pull()
    for rel in ("logs/marked", "logs/unmarked"):
        one.scribble(rel, "new")
        os.utime(one.path(rel), (10**9, 10**9))
    one.mark("logs/marked")
    assert one.push().uploaded == ["logs/marked"]
    one.mark_all()
    assert one.push().uploaded == ["logs/unmarked"]
    assert other.pull().count == 2
    assert other.files() == one.files()


def test_i_a_directory_mark_adopts_what_a_peer_added(world: World) -> None:
    """What this cache never held is not deleted by marking the directory it belongs to."""
    one, other = world.client(), world.client()
    one.version("m", 1, "x")
    one.push()
    other.pull()
    one.version("m", 2, "y")
    one.push()
    other.mark(f"data/{TYPE}/m")
    assert other.push().count == 0
    other.pull()
    assert other.files() == one.files()
    assert len(world.index()) == 5


@pytest.mark.parametrize("how", ["bulk", "path", "nothing"])
def test_j_a_stale_copy_of_a_deleted_file_does_not_come_back(world: World, how: str) -> None:
    """Also when it was the only file there was: the copy goes with the next pull, and no push sends it."""
    one, other = world.client(), world.client()
    one.write("logs/only", "x")
    one.push()
    other.pull()
    one.remove("logs/only")
    one.push()
    if how == "bulk":
        other.mark_all()
    elif how == "path":
        other.mark("logs/only")
    assert other.push().count == 0
    assert other.pull().removed == ["logs/only"]
    other.mark_all()
    other.push()
    assert world.index() == {}
    assert world.objects() == {}


def old_copy(client: Client, rel: str, content: str) -> None:
    """A client lists a file that it has had for long."""
    client.write(rel, content)
    os.utime(client.path(rel), (1_700_000_000, 1_700_000_000))
    client.push()


def test_j_a_deletion_that_a_peer_undoes_is_repeated_once(world: World) -> None:
    """A stale copy that an older program pushed goes again, its bytes are kept; who insists has the last word."""
    one, old = world.client(), world.client()
    one.write("logs/a", "x")
    one.push()
    one.remove("logs/a")
    one.push()
    old_copy(old, "logs/a", "x")
    done = one.pull()
    assert (done.count, [each.rel for each in done.repeated], done.findings) == (0, ["logs/a"], [])
    assert Path(done.repeated[0].theirs or "").read_bytes() == b"x"
    assert one.pull().repeated == []
    assert one.push().removed == ["logs/a"]
    assert (world.index(), world.objects()) == ({}, {})
    old.pull()
    old_copy(old, "logs/a", "x")
    done = one.pull()
    assert (done.written, done.repeated) == (["logs/a"], [])
    world.check()


@pytest.mark.parametrize("what", ["new file", "other content", "much later"])
def test_j_a_later_write_of_a_deleted_path_stands(world: World, what: str) -> None:
    """What was written after the deletion, or differs from what was deleted, is nobody's stale copy."""
    one, other = world.client(), world.client()
    one.write("logs/a", "x")
    one.push()
    one.remove("logs/a")
    one.push()
    if what == "new file":
        other.write("logs/a", "x")
        other.push()
    else:
        old_copy(other, "logs/a", "x" if what == "much later" else "y")
    if what == "much later":
        (key, text), *_ = one.with_state(lambda state: state.facts_below("deleted/")).items()
        size, sha256, deleted_ms = text.split()
        long_ago = f"{size} {sha256} {int(deleted_ms) - 90_000_000}"
        one.with_state(lambda state: state.set_facts({f"deleted/{key}": long_ago}))
    done = one.pull()
    assert (done.written, done.repeated) == (["logs/a"], [])


def test_j_an_edit_of_a_deleted_file_is_a_conflict(world: World) -> None:
    """It is told, and published only when somebody says so."""
    one, other = world.client(), world.client()
    one.write("logs/a", "x")
    one.push()
    other.pull()
    one.remove("logs/a")
    one.push()
    other.write("logs/a", "edited")
    assert [conflict.why for conflict in other.push().conflicts] == ["changed here, removed there"]
    assert [conflict.why for conflict in other.pull().conflicts] == ["changed here, removed there"]
    assert world.index() == {}
    assert other.push(ours=True).uploaded == ["logs/a"]
    one.pull()
    assert one.read("logs/a") == b"edited"
    world.check()


def test_l_damage_is_not_pushed() -> None:
    """A file that rots without anybody writing it is neither read nor sent as if it were news."""
    file = FileIdentity(mtime_ns=10**18, ctime_ns=10**18, size_bytes=4, inode=7)
    entry = Entry(size_bytes=4, last_modified="2026-01-01T00:00:00.000Z", sha256="0" * 64)
    base = agreed_row(RelPath("logs/a"), entry, file, looked_ns=10**18 + RACY_NS)
    change = change_of(file, base, now_ns=2 * 10**18, is_marked=False)
    assert change == "same"
    assert plan_push_of(change, entry, entry, None) == "nothing"
