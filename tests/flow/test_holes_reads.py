"""Stale reads of the reference (wire-format §10, B): each way, and that ours is not misled."""

from collections.abc import Callable
from typing import Any

import pytest

from mire.errors import RemoteError
from mire.flow.pull import pull
from old_clients import august_push, discover, load, migrate_index, old_push, save, shard_key
from sync_world import META, MONOLITH, TYPE, Hooked, World, data, latest, ref


def test_B1_readers_follow_a_store_that_was_moved_to_shards(worlds: Callable[..., World]) -> None:
    """After a migration by the reference, which leaves the monolith as it is, a pull-only client sees what comes."""
    world = worlds()
    one, reader, august = world.client(), world.client(), world.memory
    one.version("m", 1, "x")
    one.push()
    reader.pull()
    migrate_index(august)
    august_push(august, {data("n"): b"in shards"})
    reader.look_at_meta_again()
    assert reader.pull().written == [data("n")]
    assert reader.pull().count == 0


def test_B1_a_writer_that_missed_the_move_publishes_in_the_shards(worlds: Callable[..., World]) -> None:
    """Pushing on the strength of a monolith that is frozen by now loses nothing that others committed to shards."""
    world = worlds(two_phase=True)
    one, other = world.client(), world.client()
    one.version("m", 1, "x")
    one.push()
    other.pull()
    migrate_index(world.memory)
    august_push(world.memory, {data("m", "theirs"): b"in the same shard", latest("m", "theirs"): b"1"})
    other.version("m", 1, "ours", name="ours")
    assert other.push().is_whole
    one.look_at_meta_again()
    one.pull()
    other.look_at_meta_again()
    other.pull()
    assert one.files() == other.files()
    assert {data("m", "theirs"), data("m", "ours"), data("m")} <= world.index().keys()
    world.check()


@pytest.mark.parametrize("pulls", [False, True])
@pytest.mark.parametrize(("writes", "removes"), [(True, False), (False, True), (True, True)])
def test_B1_a_writer_that_missed_the_move_and_failed_publishes_in_the_shards(
    worlds: Callable[..., World], *, writes: bool, removes: bool, pulls: bool
) -> None:
    """A push that dies after any request, perhaps with a frozen monolith written, is completed in the shards."""
    for requests in range(30):
        world = worlds()
        hooked = Hooked(world.remote)
        one, other = world.client(hooked), world.client()
        one.version("m", 1, "x")
        one.write("logs/gone", "y")
        one.push()
        other.pull()
        migrate_index(world.memory)
        if writes:
            one.version("m", 2, "ours")
        if removes:
            one.remove("logs/gone")
        hooked.fail("*", "*", skip=requests, times=99)
        try:
            one.push()
            is_through = True
        except RemoteError:
            is_through = False
        retry = one.on(world.remote)
        if pulls:
            retry.pull()
        retry.push()
        assert not retry.is_dirty
        assert world.index().keys() == one.files().keys()
        other.look_at_meta_again()
        assert other.pull().is_whole
        assert other.files() == one.files()
        world.check()
        if is_through:
            return
    raise AssertionError("a push of four files makes more than 30 requests")


def test_B2_a_model_without_a_shard_is_not_looked_for_in_a_frozen_monolith(worlds: Callable[..., World]) -> None:
    """In a sharded store a scoped pull of something new brings nothing and asks nothing of the monolith."""
    world = worlds()
    one, other = world.client(), world.client()
    one.version("m", 1, "x")
    one.push()
    migrate_index(world.memory)
    world.remote.take()
    assert other.pull("new").count == 0
    assert MONOLITH not in {key for _, key in world.remote.take()}
    other.version("mine", 1, "unpushed")
    other.pull("new")
    assert len(other.marks()) == 3


def test_B3_a_full_pull_after_a_lazy_one_brings_the_content(world: World) -> None:
    """Also in a new process, also when nothing moved, also for one model only."""
    one, other = world.client(), world.client(lazy=True)
    one.version("m", 1, "x")
    one.version("n", 1, "y")
    one.push()
    assert (other.pull().count, other.read(data("m"))) == (4, None)
    again = other.on(world.remote)
    assert again.pull("m", full=True).written == [data("m")]
    assert again.pull(full=True).written == [data("n")]
    assert again.pull(full=True).count == 0
    assert again.files() == one.files()


@pytest.mark.parametrize("model_type", [TYPE, "echo", "swamp/echo"])
def test_B4_a_scoped_pull_brings_the_markers(world: World, model_type: str) -> None:
    """A model's `latest` is in another shard than its versions, and comes with them, whatever the depth of the type."""
    one, other = world.client(), world.client()
    for model in ("m", "n"):
        one.store.model(model_type, model).put("state", {"n": 1})
        one.store.model(model_type, model).put("other", {"n": 1})
    one.push()
    pull(other.ds, models=[ref("m", model_type)])
    assert other.store.model(model_type, "m").get("state").json() == {"n": 1}
    assert other.store.model(model_type, "m").get("other").json() == {"n": 1}
    assert all("/m/" in rel for rel in other.files())


def test_B5_a_stale_partition_is_never_believed(worlds: Callable[..., World]) -> None:
    """Whatever an old client left of the partitions, a scoped pull brings what the monolith says."""
    world = worlds()
    one, reader = world.client(), world.client()
    one.version("m", 1, "x")
    one.push()
    reader.pull("m")
    old_push(world.memory, {data("m", version=2): b"y", latest("m"): b"2"})
    assert reader.pull("m").count == 2
    old_push(world.memory, removes=[data("m")])
    assert reader.pull("m").removed == [data("m")]
    for step in ("monolith", "partitions", ""):
        august_push(world.memory, {latest("m"): step.encode() or b"end"}, dies_after=step)
        reader.pull("m")
        assert reader.read(latest("m")) == (step.encode() or b"end")


def test_B5_a_partition_that_is_written_late_is_not_believed(worlds: Callable[..., World]) -> None:
    """A slow writer that puts an old partition in the place of a newer one does not mislead a reader with a proof."""
    world = worlds()
    one, reader = world.client(), world.client()
    one.version("m", 1, "x")
    one.push()
    stale = world.get(shard_key("data--aws--ec2--vpc--m")) or b""
    one.version("m", 2, "y")
    one.push()
    world.memory.put(shard_key("data--aws--ec2--vpc--m"), stale)
    reader.pull("m")
    assert reader.files() == one.files()


def test_B6_a_snapshot_of_two_commits_is_read_again(worlds: Callable[..., World]) -> None:
    """A commit that comes between the shards of one reading does not leave a mixture behind."""
    for scope in ((), ("m",)):
        world = worlds(sharded=True)
        hooked = Hooked(world.remote)
        one, reader = world.client(), world.client(hooked)
        for number in range(1, 4):
            one.version("m", number, f"v{number}")
        one.push()

        def move_on(one: Any = one) -> None:
            one.version("m", 4, "v4")
            one.remove(data("m"))
            one.push()

        hooked.at("get", "_index/data*", move_on, skip=1)
        reader.pull(*scope)
        assert reader.files() == one.files()
        assert reader.pull(*scope).count == 0


def test_B7_bytes_that_are_not_what_the_index_says_are_not_kept(world: World) -> None:
    """A damaged object of the right size is told, and neither placed nor remembered."""
    one, other = world.client(), world.client()
    one.version("m", 1, "good")
    one.push()
    world.memory.put(data("m"), b"evil")
    for _ in range(2):
        done = other.pull()
        assert [data("m") in finding for finding in done.findings] == [True]
        assert other.read(data("m")) is None
    world.memory.put(data("m"), b"good")
    assert other.pull().written == [data("m")]


def test_B8_an_entry_without_its_object_is_told_and_costs_little(plain: World) -> None:
    """The rest is synced, nobody prunes the index, and a pull does not read everything again because of it."""
    one, other = plain.client(), plain.client()
    for model in ("m", "n", "o"):
        one.version(model, 1, model)
    one.push()
    plain.memory.delete(data("m"))
    assert other.pull().count == 8
    plain.remote.take()
    done = other.pull()
    assert [data("m") in finding for finding in done.findings] == [True]
    assert len(plain.remote.take()) <= 5
    assert data("m") in plain.index()
    assert other.read(data("n")) == b"n"
    plain.memory.put(data("m"), b"m")
    assert other.pull().written == [data("m")]


def test_B9_nothing_is_taken_from_the_root_in_the_place_of_a_namespace(world: World) -> None:
    """A namespaced client never gets, lists or hears of an object outside its namespace."""
    root, one, other = world.client(), world.client(namespace="team"), world.client(namespace="team")
    root.version("m", 1, "of the root")
    root.push()
    one.version("m", 1, "of the team")
    one.push()
    world.memory.delete(f"team/{data('m')}")
    world.remote.take()
    done = other.pull()
    assert other.read(data("m")) is None
    assert len(done.findings) == 1
    assert all(key.startswith("team/") for _, key in world.remote.take())


def test_B10_an_equal_count_of_commits_is_no_proof(worlds: Callable[..., World]) -> None:
    """A store that was migrated anew and counts from the beginning again is read, not taken for known."""
    world = worlds(sharded=True)
    one, reader = world.client(), world.client()
    one.version("m", 1, "x")
    one.push()
    reader.pull()
    meta = load(world.memory, META)
    assert meta["commitSeq"] == 1
    save(world.memory, META, {**meta, "commitSeq": 0})
    august_push(world.memory, {data("n"): b"new"})
    assert load(world.memory, META)["commitSeq"] == 1
    assert reader.pull().written == [data("n")]


def test_B11_what_was_discovered_without_a_hash_is_compared_by_content(worlds: Callable[..., World]) -> None:
    """Entries made of a listing have no hash: a change of equal size is pushed, and equal bytes are no conflict."""
    world = worlds()
    one, other = world.client(), world.client()
    world.memory.put("logs/a", b"from elsewhere")
    discover(world.memory)
    one.scribble("logs/a", "from elsewhere")
    assert one.pull().is_whole
    other.pull()
    assert other.read("logs/a") == b"from elsewhere"
    other.write("logs/a", "from the other")
    assert other.push().count == 1
    assert one.pull().count == 1
    assert one.read("logs/a") == b"from the other"
    world.check()
