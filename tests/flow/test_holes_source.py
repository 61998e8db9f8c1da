"""Holes found in the source of the newest release (newest §3.2, X1 to X15): each way, and that ours has not."""

import os
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from mire.errors import RemoteError
from mire.flow.push import commit_push, prepare_push
from old_clients import drop_from_index, load, prune_by_listing, save
from sync_world import META, MONOLITH, TYPE, Hooked, World, data, latest


def test_X1_a_pull_writes_nothing_remote(worlds: Callable[..., World]) -> None:
    """Whatever is missing, damaged, dangling or in conflict, no request of a pull changes the store."""
    for sharded in (False, True):
        world = worlds(sharded=sharded)
        one, other = world.client(), world.client()
        for model in ("m", "n", "o"):
            one.version(model, 1, model)
        one.push()
        other.pull()
        other.version("m", 2, "ours")
        one.version("m", 2, "theirs")
        one.push()
        world.memory.delete(data("n"))
        world.memory.put(data("o"), b"damaged")
        world.remote.take()
        for options in ({}, {"full": True}, {"theirs": True}, {"dry_run": True}):
            other.pull(**options)
            other.pull("m", **options)
            world.client().pull(**options)
        assert world.remote.take_writes() == []
        assert data("n") in world.index()


def test_X1_entries_that_a_reader_pruned_take_no_copy_with_them(worlds: Callable[..., World]) -> None:
    """A peer that prunes by a short listing takes live files out of the index; copies here stay, and it is told."""
    world = worlds(sharded=True)
    one, other = world.client(), world.client()
    one.version("m", 1, "x")
    one.push()
    other.pull()
    prune_by_listing(world.memory, [latest("m")])
    one.write("logs/a", "moves the list")
    one.push()
    done = other.pull()
    assert (done.written, done.removed, len(done.findings)) == (["logs/a"], [], 2)
    assert other.read(data("m")) == b"x"


def test_X2_a_first_push_that_fails_leaves_a_namespace_dirty(worlds: Callable[..., World]) -> None:
    """A commit that never happened is retried by the next push, in a namespace as anywhere."""
    for sharded in (False, True):
        world = worlds(sharded=sharded, two_phase=True)
        hooked = Hooked(world.remote)
        one, other = world.client(hooked, namespace="team"), world.client(namespace="team")
        one.version("m", 1, "x")
        hooked.fail("put_if", f"team/{META if sharded else MONOLITH}")
        with pytest.raises(RemoteError):
            one.push()
        assert len(one.marks()) == 3
        assert one.push().is_whole
        assert other.pull().count == 3


def test_X3_a_path_that_cannot_be_read_keeps_its_mark(world: World) -> None:
    """It is told, the rest is pushed, and the next push tries again."""
    one = world.client()
    one.write("logs/a", "x")
    one.write("logs/good", "y")
    one.path("logs/a").unlink()
    os.mkfifo(one.path("logs/a"))
    one.mark("logs/a")
    done = one.push()
    assert done.uploaded == ["logs/good"]
    assert len(done.findings) == 1
    one.path("logs/a").unlink()
    one.write("logs/a", "x")
    assert one.push().uploaded == ["logs/a"]


def test_X3_a_file_that_nobody_may_read_keeps_its_mark(plain: World) -> None:
    """Without the right to read a marked file the rest is pushed, and its mark waits."""
    one = plain.client()
    for rel in ("logs/secret", "logs/good"):
        one.write(rel, "old")
    one.push()
    for rel in ("logs/secret", "logs/good"):
        one.write(rel, "new")
    one.path("logs/secret").chmod(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            _become_nobody(plain.root)
            done = one.push()
            os._exit(0 if (done.uploaded, len(done.findings)) == (["logs/good"], 1) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert one.marks() == {"logs/secret"}


def _become_nobody(root: Path) -> None:
    """Give up every right beyond those of others, if there are any; everything but the one file stays usable."""
    if os.geteuid():
        return
    for path in (root, *root.parents, *root.rglob("*")):
        if str(path).startswith("/dev/shm/mire-") and path.name != "secret":  # noqa: S108 - where the world is
            path.chmod(0o777)
    os.setgid(65534)
    os.setuid(65534)


@pytest.mark.parametrize("step", ["list", "get", "put_if", "head"])
def test_X4_two_first_pushes_to_an_empty_store_both_count(worlds: Callable[..., World], step: str) -> None:
    """Whatever the moment at which another first push happens, of either form, both are listed in the end."""
    for sharded, other_sharded in ((True, True), (False, False), (True, False), (False, True)):
        for skip in range(3):
            world = worlds(sharded=sharded)
            hooked = Hooked(world.remote)
            one, other = world.client(hooked), world.client(sharded=other_sharded)
            other.version("n", 1, "other's")
            hooked.at(step, "*", lambda other=other: other.push(), skip=skip)
            one.version("m", 1, "one's")
            one.push()
            other.push()
            reader = world.client()
            reader.pull()
            assert reader.files() == {**one.files(), **other.files()}, (sharded, other_sharded, skip)
            world.check()


def test_X5_nothing_is_deleted_because_looking_failed(world: World) -> None:
    """A child of a marked directory that cannot be looked at takes no other file with it."""
    one = world.client()
    one.version("m", 1, "x")
    one.push()
    name = one.path(f"data/{TYPE}/m/state/1")
    name.rename(name.with_name("elsewhere"))
    os.symlink("elsewhere", name)
    one.mark(f"data/{TYPE}/m")
    done = one.push()
    assert done.removed == []
    assert data("m") in world.index()


def test_X6_a_copy_that_did_not_change_here_is_never_sent(world: World) -> None:
    """A full push, or a marked directory, of a cache that did not pull leaves the newer version alone."""
    one, other = world.client(), world.client()
    one.version("m", 1, "v1")
    one.push()
    other.pull()
    one.write(data("m"), "v2")
    one.push()
    for act in (other.mark_all, lambda: other.mark(f"data/{TYPE}/m"), lambda: other.mark(data("m"))):
        act()
        assert other.push().count == 0
    assert other.push(full=True).count == 0
    assert world.get(data("m")) == b"v2"


def test_X7_entries_that_vanish_while_their_objects_stay_take_no_copy(world: World) -> None:
    """Loss of an index is told by path, for as long as it lasts, and costs no local byte."""
    one, other = world.client(), world.client()
    one.version("m", 1, "x")
    one.push()
    other.pull()
    drop_from_index(world.memory, data("m"))
    for _ in range(2):
        done = other.pull()
        assert (done.count, [data("m") in finding for finding in done.findings]) == (0, [True])
    assert other.read(data("m")) == b"x"
    other.mark_all()
    assert other.push().count == 0


def test_X8_a_count_of_commits_never_goes_back_because_of_us(worlds: Callable[..., World]) -> None:
    """After a list that counts from the beginning again our next commit is above everything we saw."""
    world = worlds(sharded=True)
    one = world.client()
    for number in (1, 2, 3):
        one.version("m", number, str(number))
        one.push()
    save(world.memory, META, {**load(world.memory, META), "commitSeq": 1})
    one.version("m", 4, "4")
    one.push()
    assert load(world.memory, META)["commitSeq"] == 4


def test_X9_control_records_and_the_format_marker_are_never_touched(world: World) -> None:
    """Neither push nor pull reads, writes or lists anything below `_control`, in a namespace or outside."""
    for namespace in ("", "team"):
        one, other = world.client(namespace=namespace), world.client(namespace=namespace)
        one.scribble("_control/mine", "local")
        one.version("m", 1, "x")
        one.mark_all()
        one.push()
        other.pull()
    assert [key for _, key in world.remote.take() if "_control" in key] == []


@pytest.mark.parametrize("key", [MONOLITH, META, "_index/data*", "data/*"])
def test_X11_a_lost_answer_is_no_second_change(worlds: Callable[..., World], key: str) -> None:
    """A write that happened without an answer is found done by the retry: nothing is doubled, lost or in conflict."""
    for sharded in (False, True):
        world = worlds(sharded=sharded)
        hooked = Hooked(world.remote)
        one, other = world.client(hooked), world.client()
        one.version("m", 1, "x")
        hooked.fail("put_if", key, after=True)
        if sharded and key == MONOLITH:
            one.push()
        else:
            with pytest.raises(RemoteError):
                one.push()
        assert one.push().conflicts == []
        assert not one.is_dirty
        other.pull()
        assert other.files() == one.files()
        world.check()


def test_X13_reading_and_lazy_states_are_loaded_before_the_decision(worlds: Callable[..., World]) -> None:
    """A new process that pulls in full after a lazy pull of another one brings what is missing, and then rests."""
    world = worlds(sharded=True)
    one, other = world.client(), world.client(lazy=True)
    one.version("m", 1, "x")
    one.push()
    other.pull()
    again = other.on(world.remote)
    assert again.pull(full=True).written == [data("m")]
    assert again.pull(full=True).count == 0


def test_X14_a_reader_keeps_the_old_file_while_an_object_is_being_replaced(worlds: Callable[..., World]) -> None:
    """Between upload and commit the index describes other bytes: nothing is placed; once committed, it arrives."""
    for sharded in (False, True):
        world = worlds(sharded=sharded, two_phase=True)
        hooked = Hooked(world.remote)
        one, other, fresh = world.client(), world.client(), world.client(hooked)
        one.write("logs/a", "old")
        one.push()
        other.pull()
        one.write("logs/a", "new, longer")
        prepared, done = prepare_push(one.ds)
        assert other.pull().count == 0
        assert other.read("logs/a") == b"old"
        hooked.at("get_stream", "logs/a", lambda one=one, p=prepared, d=done: commit_push(one.ds, p, d), after=True)
        found = fresh.pull()
        assert (found.findings, found.written) == ([], ["logs/a"])
        assert fresh.read("logs/a") == b"new, longer"
        assert other.pull().count == 1


def test_X15_the_count_is_exactly_what_changed_in_the_cache(world: World) -> None:
    """Files written and files removed, and nothing else: a pull that says 0 changed no file, not even its time."""
    one, other = world.client(), world.client()
    one.version("m", 1, "x")
    one.version("m", 2, "y")
    one.push()
    assert other.pull().count == 5
    one.remove(data("m"))
    one.write(latest("m"), "3")
    one.push()
    done = other.pull()
    assert (done.count, done.written, done.removed) == (2, [latest("m")], [data("m")])
    before = {rel: other.path(rel).stat().st_mtime_ns for rel in other.files()}
    for options in ({}, {"full": True}):
        assert other.pull(**options).count == 0
        assert other.pull("m", **options).count == 0
    assert {rel: other.path(rel).stat().st_mtime_ns for rel in other.files()} == before
