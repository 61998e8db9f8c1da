"""Push and pull, and what can stand in their way: laziness, emptied stores, other clocks, each other."""

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mire.errors import ConfigError, LockLostError, RemoteError
from mire.flow.hydrate import hydrate
from mire.flow.mark import marking
from mire.flow.push import commit_push, prepare_push, push
from mire.testing.misbehaving import MisbehavingRemote
from old_clients import august_push, old_push
from sync_world import META, MONOLITH, Hooked, World, data, latest, pair


def test_content_that_is_not_here_follows_its_entry(world: World) -> None:
    """What a lazy pull left out is noted anew when it changes, and brought as it is then; what is here is replaced."""
    one, lazy = world.client(), world.client(lazy=True)
    one.version("m", 1, "first")
    one.version("n", 1, "first")
    one.push()
    lazy.pull()
    hydrate(lazy.ds, [data("n")])
    for model in ("m", "n"):
        one.write(data(model), "second, longer")
    one.push()
    done = lazy.pull()
    assert (done.written, done.left_out) == ([data("n")], 1)
    assert hydrate(lazy.ds, [data("m")]).written == [data("m")]
    assert lazy.read(data("m")) == b"second, longer"
    assert lazy.files() == one.files()


def test_a_full_look_at_a_lazy_cache_sends_and_removes_nothing(world: World) -> None:
    """Files that were left at the remote are not taken for deleted, whatever is marked."""
    one, lazy = world.client(), world.client(lazy=True)
    one.version("m", 1, "x")
    one.push()
    lazy.pull()
    for act in (lazy.mark_all, lambda: lazy.mark("data"), lambda: lazy.mark(data("m")), lambda: None):
        act()
        assert lazy.push(full=True).count == 0
    assert len(world.objects()) == 3


def test_others_are_told_that_files_are_missing_on_purpose(plain: World) -> None:
    """The state file that all clients of a cache share says so while files are left out, and no longer."""
    one, lazy = plain.client(), plain.client(lazy=True)
    one.version("m", 1, "x")
    one.push()
    lazy.pull()
    sidecar = Path(lazy.ds.base, ".datastore-sync-state.json")
    assert '"lazyPullActive": true' in sidecar.read_text()
    lazy.pull(full=True)
    assert '"lazyPullActive": false' in sidecar.read_text()


def test_threads_and_processes_may_push_and_pull_one_cache(plain: World) -> None:
    """Whatever they do at once in one cache, everything written is published, and the cache agrees with the store."""
    one, errors = plain.client(), list[BaseException]()

    def work(number: int) -> None:
        try:
            for turn in range(4):
                one.write(f"logs/{number}", f"{number} {turn}")
                one.write("logs/shared", f"{number} {turn}")
                push(one.ds)
                one.pull()
        except BaseException as error:  # noqa: BLE001 - shown by the test
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    one.push()
    assert one.pull().is_whole
    plain.check()
    assert plain.objects() == one.files()


@pytest.mark.parametrize("form", ["v1", "v2"])
def test_a_commit_inside_any_request_of_another(worlds: Callable[..., World], form: str) -> None:
    """At every instant lists name what is there and proofs are true, and in the end both are published."""
    for skip in range(25):
        world = worlds(sharded=form == "v2")
        hooked = Hooked(world.remote)
        one, other = world.client(hooked), world.client()
        other.version("m", 1, "x")
        other.push()
        one.pull()
        other.pull()
        one.write(data("m", "ours"), "1")
        other.write(data("m", "theirs"), "2")
        other.remove(data("m"))
        hooked.at("*", "*", world.check_present, times=99)
        hooked.at("*", "*", world.check_present, after=True, times=99)
        hooked.at("*", "*", lambda other=other: other.push(), skip=skip)
        one.push()
        other.push()
        world.check()
        reader, scoped = world.client(), world.client()
        reader.pull()
        scoped.pull("m")
        assert reader.files() == scoped.files()
        assert {data("m", "ours"), data("m", "theirs")} <= reader.files().keys()
        assert data("m") not in reader.files()


def test_a_store_without_conditional_deletion(plain: World) -> None:
    """Objects still go after the index, and only as they were when that was decided."""
    properties = replace(plain.remote.properties, conditional_delete=False)
    remote = MisbehavingRemote(plain.remote, properties=properties)
    one, other = plain.client(remote), plain.client()
    one.write("logs/a", "x")
    one.write("logs/b", "y")
    one.push()
    other.pull()
    one.remove("logs/a")
    one.remove("logs/b")
    prepared, done = prepare_push(one.ds)
    plain.memory.put("logs/b", b"somebody's")
    commit_push(one.ds, prepared, done)
    assert plain.objects() == {"logs/b": b"somebody's"}
    assert len(done.findings) == 1
    assert plain.index() == {}


@pytest.mark.parametrize("pulls", [(), ("whole",), ("m",), ("m", "whole")])
def test_a_removal_that_died_before_its_object_went_is_completed(
    worlds: Callable[..., World], pulls: tuple[str, ...]
) -> None:
    """Whatever is pulled in between, the next push deletes the object, without which no peer lets its copy go."""
    for sharded in (False, True):
        world = worlds(sharded=sharded)
        hooked = Hooked(world.remote)
        one, other = world.client(hooked), world.client()
        one.version("m", 1, "x")
        one.push()
        other.pull()
        one.remove(data("m"))
        hooked.fail("delete_if", data("m"))
        with pytest.raises(RemoteError):
            one.push()
        assert data("m") not in world.index()
        other.write(data("m", "beside"), "in the same shard")
        other.push()
        for scope in pulls:
            one.pull(*(() if scope == "whole" else (scope,)))
        assert one.push().count == 0
        assert (data("m") in world.objects(), one.is_dirty) == (False, False)
        assert other.pull().removed == [data("m")]
        one.pull()
        assert other.files() == one.files()
        assert (one.pull().count, one.push().count) == (0, 0)
        world.check()


def test_what_a_peer_stored_after_our_crash_is_not_deleted(worlds: Callable[..., World]) -> None:
    """A removal that died before its object went does not take what somebody stored there since."""
    for sharded in (False, True):
        world = worlds(sharded=sharded)
        hooked = Hooked(world.remote)
        one, other = world.client(hooked), world.client()
        one.write("logs/a", "old")
        one.push()
        other.pull()
        one.remove("logs/a")
        hooked.fail("delete_if", "logs/a")
        with pytest.raises(RemoteError):
            one.push()
        august_push(world.memory, {"logs/a": b"new"})
        one.push()
        assert world.get("logs/a") == b"new"
        one.pull(theirs=True)
        other.pull()
        assert one.files() == other.files() == {"logs/a": b"new"}
        world.check()


def test_what_a_peer_is_about_to_publish_is_not_overwritten(plain: World) -> None:
    """An object that no index names yet belongs to whoever stored it, until it is published or long forgotten."""
    one, other = plain.client(), plain.client()
    one.write("logs/new", "first")
    prepared, done = prepare_push(one.ds)
    other.write("logs/new", "second")
    found = other.push()
    assert (found.count, len(found.findings)) == (0, 1)
    assert other.marks() == {"logs/new"}
    assert plain.get("logs/new") == b"first"
    commit_push(one.ds, prepared, done)
    assert [conflict.rel for conflict in other.push().conflicts] == ["logs/new"]
    plain.check()


def test_what_a_dead_push_left_is_replaced(plain: World) -> None:
    """By the same cache at once, by others after a while."""
    one = plain.client()
    for text in ("first", "second"):
        one.write("logs/mine", text)
        prepare_push(one.ds)
    assert one.push().uploaded == ["logs/mine"]
    remote = MisbehavingRemote(plain.remote)
    other = plain.client(remote)
    plain.memory.put("logs/theirs", b"nobody lists it")
    other.write("logs/theirs", "ours")
    assert other.push().findings
    remote.aged_ms = 3_600_000
    assert other.push().uploaded == ["logs/theirs"]
    plain.check()


def test_an_emptied_store_takes_nothing_away_and_is_filled_again(world: World) -> None:
    """A remote whose objects and index are gone is no deletion: what is here stays, and a push offers all of it."""
    one, other = world.client(), world.client()
    for model in ("m", "n"):
        one.version(model, 1, model)
    one.push()
    other.pull()
    before = other.files()
    for stat in list(world.memory.list()):
        world.memory.delete(stat.key)
    for _ in range(2):
        done = other.pull()
        assert (done.count, len(done.findings)) == (0, 1)
    other.write("logs/a", "more")
    done = other.push()
    assert len(done.uploaded) == len(before) + 1
    assert other.files() == {**before, "logs/a": b"more"}
    reader = world.client()
    reader.pull()
    assert reader.files() == other.files()
    one.pull()
    assert one.files() == other.files()
    world.check()


def test_an_emptied_store_is_filled_again_by_a_plain_push(world: World) -> None:
    """Once a pull has told that there is no index, nothing has to change here for a push to offer everything."""
    one, lazy = world.client(), world.client(lazy=True)
    one.version("m", 1, "x")
    one.push()
    lazy.pull()
    for stat in list(world.memory.list()):
        world.memory.delete(stat.key)
    assert lazy.pull().count == 0
    done = lazy.push()
    assert done.uploaded == [data("m", last="metadata.yaml"), latest("m")]
    assert [data("m") in finding for finding in done.findings] == [True]
    one.pull()
    one.push()
    assert world.objects() == one.files()
    assert lazy.pull(full=True).is_whole
    assert lazy.files() == one.files()


def test_an_index_that_was_away_for_a_moment_changes_nothing(plain: World) -> None:
    """A pull that meets a store without its index forgets nothing; when it is there again, everything is as before."""
    one, other = pair(plain)
    saved = {stat.key: plain.get(stat.key) or b"" for stat in plain.memory.list()}
    for key in saved:
        plain.memory.delete(key)
    assert other.pull().findings
    for key, content in saved.items():
        plain.memory.put(key, content)
    assert other.push().count == 0
    assert other.pull().is_whole
    assert not other.is_dirty
    one.remove("logs/a")
    one.push()
    assert other.pull().removed == ["logs/a"]


def test_another_store_is_offered_everything(worlds: Callable[..., World]) -> None:
    """A cache that is pointed at another remote forgets what it agreed with the first, and nothing of its own."""
    first, second = worlds(), worlds(sharded=True)
    one = first.client()
    one.version("m", 1, "x")
    one.push()
    named = MisbehavingRemote(second.remote, properties=replace(second.remote.properties, name="memory:second"))
    moved = one.on(named)
    assert moved.pull().count == 0
    assert moved.push().count == 3
    assert second.objects() == moved.files() == one.files()


def test_a_store_whose_monolith_went_back_is_noticed(worlds: Callable[..., World]) -> None:
    """What a pull of one model learned ahead of the whole is compared again, even with an old fingerprint."""
    world = worlds()
    one, other = world.client(), world.client()
    one.version("m", 1, "x")
    one.push()
    other.pull()
    saved = world.get(MONOLITH) or b""
    one.version("m", 2, "y")
    one.push()
    other.pull("m")
    assert other.read(latest("m")) == b"2"
    world.memory.put(MONOLITH, saved)
    done = other.pull()
    assert len(done.findings) == 3
    assert other.read(data("m", version=2)) == b"y"


def test_a_path_that_is_being_written_is_left_alone(world: World) -> None:
    """A pull replaces nothing that somebody here has begun to change; it is brought, or told, when they are done."""
    one, other = pair(world)
    one.write("logs/a", "newer")
    one.push()
    with marking(other.ds, str(other.path("logs/a"))):
        done = other.pull()
        assert (done.count, len(done.findings)) == (0, 1)
    assert other.read("logs/a") == b"base"
    assert other.pull().written == ["logs/a"]


def test_a_file_that_changes_while_its_successor_arrives_is_left_alone(worlds: Callable[..., World]) -> None:
    """Whoever writes during a download, marked or not, keeps what they wrote; it is a conflict from then on."""
    for is_marked in (True, False):
        world = worlds()
        hooked = Hooked(world.remote)
        one, other = world.client(), world.client(hooked)
        for rel in ("logs/a", "logs/gone"):
            one.write(rel, "base")
        one.push()
        other.pull()
        one.write("logs/a", "newer")
        one.remove("logs/gone")
        one.push()
        write = other.write if is_marked else other.scribble
        hooked.at("get_stream", "logs/a", lambda write=write: write("logs/a", "mine"))
        hooked.at("head", "logs/gone", lambda write=write: write("logs/gone", "mine, too"))
        done = other.pull()
        assert (done.count, len(done.findings)) == (0, 2)
        assert other.files() == {"logs/a": b"mine", "logs/gone": b"mine, too"}
        assert len(other.pull().conflicts) == 2


def test_a_marker_is_placed_after_what_it_shows(plain: World) -> None:
    """In whatever order files arrive, a reader never finds a marker whose version is not there yet."""
    hooked, has_marker = Hooked(plain.remote), threading.Event()
    one, other = plain.client(), plain.client(hooked)
    one.version("m", 1, "x")
    one.push()
    hooked.at("get_stream", latest("m"), has_marker.set, after=True)
    hooked.at("get_stream", data("m"), lambda: has_marker.wait(10))
    assert other.pull().written == [data("m", last="metadata.yaml"), data("m"), latest("m")]


@pytest.mark.parametrize("hours", [-30, 30])
def test_clocks_that_disagree_change_nothing(world: World, hours: int) -> None:
    """A store, a file or a memory from the future or the past costs at most a second look."""
    remote = MisbehavingRemote(world.remote)
    remote.clock_ms = hours * 3_600_000
    one, other = world.client(remote), world.client(remote)
    one.version("m", 1, "x")
    for rel in list(one.files()):
        stamp = one.path(rel).stat().st_mtime + hours * 3600
        os.utime(one.path(rel), (stamp, stamp))
    one.push()
    other.pull()
    other.with_state(lambda state: state.set_facts({"meta_looked_ms": str(hours * 1e12)}))
    one.version("m", 2, "y")
    one.remove(data("m"))
    one.push()
    other.pull()
    assert other.files() == one.files()
    one.mark_all()
    assert one.push().count == 0
    world.check()


def test_a_guard_that_objects_stops_before_the_commit(plain: World) -> None:
    """Without its lock a push publishes nothing, and keeps its marks."""
    one = plain.client()
    one.write("logs/a", "x")

    def lost() -> None:
        raise LockLostError("the lock is somebody else's")

    with pytest.raises(LockLostError):
        push(one.ds, guard=lost)
    assert plain.index() == {}
    assert one.marks() == {"logs/a"}
    prepared, done = prepare_push(one.ds)
    with pytest.raises(LockLostError):
        commit_push(one.ds, prepared, done, guard=lost)
    assert one.push().count == 1


def test_large_files_go_in_pieces(plain: World) -> None:
    """They arrive whole, and a change of one is seen."""
    one, other = plain.client(), plain.client()
    content = os.urandom(5 << 20)
    one.write("files/large", content)
    one.push()
    other.pull()
    assert other.read("files/large") == content
    one.write("files/large", content[::-1])
    one.push()
    assert other.pull().count == 1
    assert other.read("files/large") == content[::-1]
    plain.check()


def test_a_directory_has_nothing_to_push(plain: World) -> None:
    """A datastore without a remote says so."""
    one = plain.client()
    with pytest.raises(ConfigError, match="nothing to push or pull"):
        push(replace(one.ds, remote=None))


def test_an_old_client_that_empties_its_monolith_takes_no_objects_with_it(worlds: Callable[..., World]) -> None:
    """Entries that are gone while their objects are there cost no local copy, and are told."""
    world = worlds()
    one = world.client()
    one.version("m", 1, "x")
    one.push()
    one.pull()
    old_push(world.memory, snapshot={})
    done = one.pull()
    assert (done.count, len(done.findings)) == (0, 3)
    assert len(one.files()) == 3
    assert META in {stat.key for stat in world.memory.list()}
