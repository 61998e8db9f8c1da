"""What the reference loses (wire-format §10, A and G): each way, and that ours does not."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mire.edge.retrying import Patience, Retrying
from sync_world import META, MONOLITH, TYPE, Hooked, World, data, latest


def sidecar(client_base: str) -> dict[str, object]:
    """The state file that all clients of a cache share."""
    found: dict[str, object] = json.loads(Path(client_base, ".datastore-sync-state.json").read_bytes())
    return found


def test_A1_the_second_write_to_a_path_is_pushed(world: World) -> None:
    """However often a path is written and pushed, others get the last version, and no mark is left behind."""
    one, other = world.client(), world.client()
    for number in (1, 2, 3):
        one.version("m", number, f"content {number}")
        assert one.push().count == 3
        other.pull()
        assert other.files() == one.files()
    left = sidecar(one.ds.base)
    assert (left["localDirty"], left["dirtyPaths"], left["bulkInvalidated"]) == (False, [], False)
    world.check()


def test_A2_a_change_of_equal_size_arrives_and_is_not_pushed_back(world: World) -> None:
    """A marker that went from 1 to 2 is brought; a stale copy of it is never sent, whatever is marked."""
    one, other = world.client(), world.client()
    one.version("m", 1, "v1")
    one.push()
    other.pull()
    one.version("m", 2, "v2")
    one.push()
    other.mark_all()
    other.mark(latest("m"))
    assert other.push().count == 0
    assert world.get(latest("m")) == b"2"
    assert other.pull().count == 3
    assert other.files() == one.files()


def test_A3_many_marks_delete_nothing_that_is_merely_not_here(world: World) -> None:
    """A cache that holds one model of many pushes more paths than any client counts, and the others stay."""
    one, other = world.client(), world.client()
    for model in ("a", "b", "c"):
        one.version(model, 1, model)
    one.push()
    other.pull("a")
    for number in range(201):
        other.write(f"logs/run-{number}.log", str(number))
    assert sidecar(other.ds.base)["bulkInvalidated"] is True
    done = other.push()
    assert (len(done.uploaded), done.removed) == (201, [])
    assert len(world.index()) == 9 + 201
    assert len(world.objects()) == 9 + 201
    other.mark_all()
    assert other.push().count == 0
    assert len(world.objects()) == 9 + 201


def test_A4_a_dangling_link_in_a_marked_directory_deletes_nothing(world: World) -> None:
    """What cannot be looked at below a marked directory is no reason to take the rest for deleted."""
    one = world.client()
    one.version("m", 1, "x")
    one.push()
    before = world.index()
    os.symlink("nowhere", one.path(data("m", last="link")))
    os.symlink("nowhere", one.path(f"data/{TYPE}/m/state/0"))
    one.write(data("m", version=2), "y")
    one.mark(f"data/{TYPE}/m")
    done = one.push()
    assert (done.uploaded, done.removed) == ([data("m", version=2)], [])
    assert world.index().keys() == before.keys() | {data("m", version=2)}


def test_A5_a_walk_that_fails_on_the_way_deletes_nothing_and_stays_marked(world: World) -> None:
    """A directory that cannot be listed is told; the rest is pushed, and everything is looked at again later."""
    one = world.client()
    one.version("m", 1, "x")
    one.push()
    room = 4090 - len("logs")
    names = [*["d" * 200] * (room // 201), "d" * (room % 201 - 1)]
    here = os.open(one.path(""), os.O_RDONLY)
    for name in ("logs", *names):
        os.mkdir(name, dir_fd=here)
        here, done_with = os.open(name, os.O_RDONLY, dir_fd=here), here
        os.close(done_with)
    os.close(here)
    one.scribble("telemetry/zzz", "after the trouble")
    one.mark_all()
    done = one.push()
    assert (done.uploaded, done.removed) == (["telemetry/zzz"], [])
    assert any("cannot be listed" in finding for finding in done.findings)
    assert one.is_dirty
    assert data("m") in world.index()
    shutil.rmtree(one.path("logs"))
    assert one.push().is_whole
    assert not one.is_dirty


def test_A6_a_pull_clears_no_mark_and_overwrites_no_change(world: World) -> None:
    """Work that a crashed command left unpushed survives any number of pulls."""
    one, other = world.client(), world.client()
    one.version("m", 1, "x")
    one.push()
    other.pull()
    other.version("mine", 1, "unpushed")
    other.write(data("m"), "edited here, another size")
    one.version("m", 2, "y")
    one.push()
    assert other.pull().count == 3
    assert other.read(data("m")) == b"edited here, another size"
    assert len(other.marks()) == 4
    assert other.push().count == 4
    assert world.get(data("m")) == b"edited here, another size"
    world.check()


def test_A7_marks_made_during_a_push_survive_it(worlds: Callable[..., World]) -> None:
    """What is written while a push is at work, the same path included, is pushed by the next one."""
    for sharded in (False, True):
        world = worlds(sharded=sharded)
        hooked = Hooked(world.remote)
        one, other = world.client(hooked), world.client()
        one.version("m", 1, "first")
        hooked.at("put_if", "_index/*" if sharded else MONOLITH, lambda one=one: one.version("m", 2, "second"))
        one.push()
        assert len(one.marks()) == 3
        other.pull()
        assert other.read(latest("m")) == b"1"
        assert one.push().count == 3
        other.pull()
        assert other.files() == one.files()
        world.check()


def test_A8_deletions_of_every_verb_reach_the_peers(world: World) -> None:
    """A version, a name, a renamed name and what retention lets go: gone at the remote, and from the peer's cache."""
    one, other = world.client(), world.client()
    model = one.store.model("AWS::EC2::VPC", "m")
    for number in range(4):
        for name in ("state", "old", "gone"):
            model.put(name, {"n": number}, version_policy=2)
    one.push()
    other.pull()
    model.delete("state", 2)
    model.delete("gone")
    model.rename("old", "new")
    assert one.store.retain().versions_removed
    one.push()
    assert world.objects().keys() == one.files().keys()
    other.pull()
    assert other.files() == one.files()
    mirror = other.store.model("AWS::EC2::VPC", "m")
    assert [row.name for row in mirror.names()] == [row.name for row in model.names()]
    assert mirror.versions("state") == model.versions("state")
    world.check()


def test_A8_a_lazy_client_deletes_what_it_never_fetched(world: World) -> None:
    """Content that was left at the remote goes with its version, from the index and from the store."""
    one, other = world.client(), world.client(lazy=True)
    one.store.model("AWS::EC2::VPC", "m").put("state", {"n": 1})
    one.store.model("AWS::EC2::VPC", "m").put("state", {"n": 2})
    one.push()
    assert other.pull().left_out == 2
    other.store.model("AWS::EC2::VPC", "m").delete("state", 1)
    other.push()
    assert data("m") not in world.index()
    assert data("m") not in world.objects()
    one.pull()
    assert one.read(data("m")) is None
    assert one.read(data("m", version=2)) is not None


def test_A9_a_marked_directory_deletes_nothing_that_a_peer_added(world: World) -> None:
    """Below a marked directory only what this cache once held can be deleted."""
    one, other = world.client(), world.client()
    one.write("workflow-runs/w/workflow-run-1.yaml", "a")
    one.write("workflow-runs/w/workflow-run-2.yaml", "b")
    one.push()
    other.pull()
    one.write("workflow-runs/w/workflow-run-3.yaml", "c")
    one.push()
    other.path("workflow-runs/w/workflow-run-1.yaml").unlink()
    other.mark("workflow-runs/w")
    assert other.push().removed == ["workflow-runs/w/workflow-run-1.yaml"]
    other.pull()
    one.pull()
    assert one.files() == other.files()
    assert sorted(one.files()) == [f"workflow-runs/w/workflow-run-{n}.yaml" for n in (2, 3)]


def test_A10_a_cut_off_object_replaces_no_file_and_is_not_pushed(world: World) -> None:
    """A download that is not what the index says leaves the old file, which is not sent over the object either."""
    one, other = world.client(), world.client()
    one.version("m", 1, "a long content")
    one.push()
    other.pull()
    one.write(data("m"), "a longer content")
    one.push()
    good = world.get(data("m")) or b""
    world.memory.put(data("m"), good[:5])
    done = other.pull()
    assert (done.count, len(done.findings)) == (0, 1)
    assert other.read(data("m")) == b"a long content"
    other.mark_all()
    assert other.push().count == 0
    world.memory.put(data("m"), good)
    assert other.pull().count == 1
    assert other.files() == one.files()


def test_A11_of_two_writers_of_a_path_one_wins_and_index_and_object_agree(worlds: Callable[..., World]) -> None:
    """Whenever the second writer comes, one version is published whole, the other is a conflict and keeps its bytes."""
    for sharded in (False, True):
        for operation, key in (("get_stream", "logs/a"), ("put_if", "logs/a"), ("put_if", "_index/*"), ("get*", "*")):
            world = worlds(sharded=sharded)
            hooked = Hooked(world.remote)
            one, other = world.client(hooked), world.client()
            other.write("logs/a", "base")
            other.push()
            one.pull()
            one.write("logs/a", "from one")
            other.write("logs/a", "from other, longer")
            hooked.at(operation, key, lambda other=other: other.push())
            mine = one.push()
            theirs = other.push()
            world.check()
            assert len(mine.conflicts) + len(theirs.conflicts) <= 1
            winner = world.get("logs/a")
            assert winner in (b"from one", b"from other, longer")
            assert (one.read("logs/a"), other.read("logs/a")) == (b"from one", b"from other, longer")
            loser = other if winner == b"from one" else one
            assert loser.push().conflicts
            assert loser.pull().conflicts
            loser.pull(theirs=True)
            assert loser.read("logs/a") == winner


def test_A12_a_path_without_its_namespace_deletes_nothing(world: World) -> None:
    """A mark that names no file of ours is acknowledged, and the file of the same name in our namespace stays."""
    one = world.client(namespace="team")
    one.write("logs/a", "x")
    one.push()
    one.mark("logs/a")
    done = one.push()
    assert (done.count, done.findings) == (0, [])
    assert world.get("team/logs/a") == b"x"
    assert not one.is_dirty


def test_A13_no_object_is_ever_copied_or_moved(world: World) -> None:
    """Nothing that is synced goes through a copy inside the store, so a partial one cannot pass for done."""
    one, other = world.client(), world.client()
    one.version("m", 1, "x")
    one.push()
    other.pull()
    one.store.model("AWS::EC2::VPC", "n").put("a", {"x": 1})
    one.store.model("AWS::EC2::VPC", "n").rename("a", "b")
    one.push()
    other.pull()
    assert "copy" not in {operation for operation, _ in world.remote.take()}


def test_G1_temporary_files_stay_here(world: World) -> None:
    """Neither our temporary files nor those that the reference leaves behind are pushed, whatever is marked."""
    one = world.client()
    one.write("logs/a", "x")
    for name in (
        "_catalog.db-0123456789abcdef.tmp",
        ".1b4e28ba-2fa1-41d2-883f-0016d3cca427.tmp",
        "_catalog.db-wal",
    ):
        one.scribble(f"logs/{name}", "half")
        one.scribble(name, "half")
    one.mark_all()
    one.mark("logs")
    one.push(full=True)
    assert list(world.objects()) == ["logs/a"]


def test_G2_no_link_is_followed_out_of_the_cache(world: World, tmp_path: Path) -> None:
    """A link to a file or directory elsewhere is not sent, does not stop the push, and is told by name."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("private")
    one = world.client()
    one.write("logs/a", "x")
    os.symlink(secret / "key", one.path("logs/link-to-file"))
    os.symlink(secret, one.path("logs/link-to-dir"))
    os.symlink(secret, one.path("files"))
    for path in ("logs", "logs/link-to-file", "files/key"):
        one.mark(path)
    done = one.push()
    assert done.uploaded == ["logs/a"]
    assert list(world.objects()) == ["logs/a"]
    assert any("link-to-file" in finding for finding in done.findings)


@pytest.mark.parametrize("sharded", [False, True])
def test_G3_every_request_of_a_sync_is_tried_again(worlds: Callable[..., World], *, sharded: bool) -> None:
    """One failure of any kind of request, at any key, is not noticed by whoever pushes or pulls."""
    world = worlds(sharded=sharded)
    hooked = Hooked(world.remote)
    patient = Retrying(hooked, Patience(pause=lambda _: None))
    one, other = world.client(patient), world.client(patient)
    for operation in ("get", "get_if_changed", "get_stream", "head", "list", "put_if", "delete_if"):
        for key in (MONOLITH, META, "_index/", "_index/data*", "data/*"):
            hooked.fail(operation, key)
    one.version("m", 1, "x")
    one.version("m", 2, "y")
    one.push()
    other.pull()
    one.remove(data("m"))
    one.push()
    other.pull()
    other.pull("m")
    assert other.files() == one.files()
    world.check()
