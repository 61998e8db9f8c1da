"""What a sync asks of the index of a store, exactly: in proportion to what changed, never to what there is."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from mire.edge.counted import Counted
from mire.edge.memory import content_fingerprint_of
from mire.flow.mark import mark_all
from mire.flow.pull import pull
from mire.flow.push import push
from mire.model.index import Entry, Meta, Proof
from mire.model.instant import Instant
from mire.model.names import RelPath
from mire.wire.meta import encode_meta
from mire.wire.monolith import encode_monolith
from mire.wire.partition import partition_of
from mire.wire.shard import encode_shard
from old_clients import august_push
from sync_world import META, MONOLITH, TYPE, World, data, fast_directory, latest

NOW = Instant("2026-01-01T00:00:00.000Z")
Asked = Counter[tuple[str, str]]
MARKERS = "_index/data--aws--ec2--vpc.json"


def fill(world: World, models: int) -> dict[str, bytes]:
    """A store with some models of three files each, written at once; what is in it."""
    files: dict[str, bytes] = {}
    for number in range(models):
        model = f"m-{number:05}"
        files |= {data(model): b"x", data(model, last="metadata.yaml"): b"y", latest(model): b"1"}
    groups: dict[str, dict[RelPath, Entry]] = {}
    entries: dict[RelPath, Entry] = {}
    for rel, content in files.items():
        world.memory.put(rel, content)
        sha256 = hashlib.sha256(content).hexdigest()
        entry = Entry(size_bytes=len(content), last_modified=NOW, local_mtime=NOW, sha256=sha256)
        entries[RelPath(rel)] = groups.setdefault(partition_of(rel) or "", {})[RelPath(rel)] = entry
    shards = {name: encode_shard(found) for name, found in groups.items()}
    for name, text in shards.items():
        world.memory.put(f"_index/{name}.json", text)
    if world.sharded:
        world.memory.put(META, encode_meta(Meta(version=2, partitions=tuple(shards), commit_seq=1)))
        return files
    monolith = encode_monolith(entries, NOW)
    world.memory.put(MONOLITH, monolith)
    tags = {name: content_fingerprint_of(text) for name, text in shards.items()}
    proof = Proof(monolith=content_fingerprint_of(monolith), shards=tags)
    world.memory.put(META, encode_meta(Meta(version=1, partitions=tuple(shards), proof=proof)))
    return files


@pytest.fixture(
    scope="module", params=[("v1", 50), ("v1", 1000), ("v2", 50), ("v2", 1000)], ids=lambda each: f"{each[0]}-{each[1]}"
)
def built(request: pytest.FixtureRequest) -> Iterator[World]:
    """A store of some size with two caches of it, made once: every test has a model of its own."""
    form, models = request.param
    with fast_directory() as path:
        world = World(path, sharded=form == "v2")
        fill(world, models)
        for _ in range(2):
            world.client(lazy=True)
        yield world
        world.close()


@pytest.fixture
def filled(built: World) -> World:
    """A store of some size with two caches that know all of it, content aside."""
    for client in built.clients[:2]:
        assert client.pull(theirs=True).is_whole
        assert client.push().is_whole
        client.pull()
    return built


def cost(world: World, act: Callable[[], object]) -> Asked:
    """What something asks of the index."""
    world.remote.take()
    act()
    return world.remote.take_index()


@pytest.fixture
def model(request: pytest.FixtureRequest) -> str:
    """A model that only this test writes."""
    return request.node.originalname.replace("_", "-")


def shards_of(model: str) -> tuple[str, str]:
    """The partitions of a model: its versions, and the markers of its type."""
    return f"_index/data--aws--ec2--vpc--{model}.json", MARKERS


def test_a_clean_push_asks_nothing(filled: World) -> None:
    """Not even whether the store is there."""
    one = filled.clients[0]
    filled.remote.take()
    assert one.push().count == 0
    assert filled.remote.take() == []


def test_a_pull_of_nothing_new_asks_once(filled: World) -> None:
    """One conditional request for the first object of the index, in any form, of any size, also for one model."""
    one = filled.clients[0]
    key = META if filled.sharded else MONOLITH
    assert cost(filled, one.pull) == {("get_if_changed", key): 1}
    assert cost(filled, lambda: one.pull(full=False)) == {("get_if_changed", key): 1}


def test_a_pull_of_nothing_new_in_a_namespace_asks_once(plain: World) -> None:
    """The same below a prefix."""
    one = plain.client(namespace="team")
    one.version("m", 1, "x")
    one.push()
    one.pull()
    plain.remote.take()
    one.pull()
    key = META if plain.sharded else MONOLITH
    assert plain.remote.take() == [("get_if_changed", f"team/{key}")]


def test_beside_a_monolith_the_list_is_looked_at_now_and_then(worlds: Callable[..., World]) -> None:
    """Whether somebody moved the store to shards is asked at most every thirty seconds, for one request."""
    world = worlds()
    one = world.client()
    one.version("m", 1, "x")
    one.push()
    one.pull()
    one.look_at_meta_again()
    assert cost(world, one.pull) == {("get_if_changed", META): 1, ("get_if_changed", MONOLITH): 1}
    assert cost(world, one.pull) == {("get_if_changed", MONOLITH): 1}


def test_a_push_of_one_model_writes_what_it_touches(filled: World, model: str) -> None:
    """The first object of the index is read; it and the touched partitions are written; others are not looked at."""
    one = filled.clients[0]
    one.version(model, 1, "one")
    one.push()
    one.version(model, 2, "two")
    asked = cost(filled, one.push)
    written = {("put_if", key): 1 for key in (*shards_of(model), META)}
    if filled.sharded:
        assert asked == {("get_if_changed", META): 1, **{("get", key): 1 for key in shards_of(model)}, **written}
    else:
        assert asked == {("get_if_changed", MONOLITH): 1, ("put_if", MONOLITH): 1, **written}


def test_a_push_that_touches_one_partition_writes_three_index_objects(filled: World, model: str) -> None:
    """Beside a monolith: it, one partition and the list; in a sharded store only the last two."""
    one = filled.clients[0]
    one.version(model, 1, "one")
    one.push()
    one.write(data(model), "other content")
    puts = {key for operation, key in cost(filled, one.push) if operation == "put_if"}
    assert puts == {shards_of(model)[0], META} | (set() if filled.sharded else {MONOLITH})


def test_a_push_after_others_committed_reads_the_list_as_well(filled: World, model: str) -> None:
    """Who was not the last to write beside a monolith learns the partitions' fingerprints from the list."""
    one, other = filled.clients[:2]
    one.version(model, 1, "one")
    one.push()
    other.pull()
    other.version(model, 2, "two")
    asked = cost(filled, other.push)
    if filled.sharded:
        assert sum(asked.values()) == 1 + 2 + 3
    else:
        reads = {("get_if_changed", MONOLITH): 1, ("get_if_changed", META): 1}
        assert asked == {**reads, **{("put_if", key): 1 for key in (MONOLITH, *shards_of(model), META)}}


def test_a_first_look_at_one_model_reads_at_most_five_index_objects(filled: World) -> None:
    """The list, what vouches for it, and the model's partitions; its marker is among what comes."""
    fresh = filled.client()
    asked = cost(filled, lambda: fresh.pull("m-00007"))
    assert sum(asked.values()) <= 5
    assert set(fresh.files()) == {data("m-00007"), data("m-00007", last="metadata.yaml"), latest("m-00007")}
    shards = ("_index/data--aws--ec2--vpc--m-00007.json", MARKERS)
    reads = {("get", META): 1, **{("get", key): 1 for key in shards}}
    assert asked == {**reads, **({("get_if_changed", META): 1} if filled.sharded else {("head", MONOLITH): 1})}


def test_a_pull_after_one_commit_reads_what_moved(filled: World, model: str) -> None:
    """The monolith; or the list, a listing of the shards, those that moved, and whether the list moved meanwhile."""
    one, other = filled.clients[:2]
    one.version(model, 1, "one")
    one.push()
    asked = cost(filled, other.pull)
    if not filled.sharded:
        assert asked == {("get_if_changed", MONOLITH): 1}
        return
    pages = -(-len([*filled.memory.list("_index/")]) // 1000)
    assert asked == {
        ("get_if_changed", META): 2,
        ("list", "_index/"): pages,
        **{("get", key): 1 for key in shards_of(model)},
    }


def test_a_pull_after_one_commit_to_one_shard_reads_the_list_once(filled: World, model: str) -> None:
    """One shard is whole in itself."""
    if not filled.sharded:
        return
    one, other = filled.clients[:2]
    one.write(f"logs/{model}", "x")
    one.push()
    asked = cost(filled, other.pull)
    del asked["list", "_index/"]
    assert asked == {("get_if_changed", META): 1, ("get", "_index/logs.json"): 1}


def test_a_conflict_does_not_make_every_pull_read_everything(filled: World) -> None:
    """What is unsettled is looked at again, and nothing else."""
    one, other = filled.clients[:2]
    model = "m-00007"
    one.write(latest(model), "2")
    one.push()
    other.write(latest(model), "3")
    assert len(other.pull().conflicts) == 1
    asked = cost(filled, other.pull)
    if filled.sharded:
        assert asked == {("get_if_changed", META): 1, ("get", MARKERS): 1}
    else:
        assert asked == {("get_if_changed", MONOLITH): 1}
    assert len(other.pull().conflicts) == 1


def test_a_full_look_at_an_unchanged_cache_asks_nothing(filled: World) -> None:
    """Everything is compared with the base, and the base is here."""
    one = filled.clients[0]
    mark_all(one.ds)
    assert cost(filled, one.push) == {}


def test_partitions_that_are_as_they_should_be_are_not_written_again(worlds: Callable[..., World]) -> None:
    """After a client that drops the proof, only what differs is written, also where fingerprints tell no content."""
    for content_fingerprint in (True, False):
        world = worlds(content_fingerprint=content_fingerprint)
        one = world.client()
        for number in range(20):
            one.version(f"m-{number}", 1, "x")
        one.push()
        august_push(world.memory, {data("m-3", version=2): b"y"})
        one.write("logs/a", "x")
        written = {key for operation, key in cost(world, one.push) if operation == "put_if"}
        assert MONOLITH in written
        assert "_index/logs.json" in written
        assert not {f"_index/data--aws--ec2--vpc--m-{number}.json" for number in range(20) if number != 3} & written


def test_counted_agrees(plain: World, model: str) -> None:
    """The wrapper that is shipped counts the same requests."""
    counted = Counted(plain.memory)
    one = plain.client(counted)
    one.version(model, 1, "one")
    push(one.ds)
    before = counted.costs()
    pull(one.ds)
    assert (counted.costs() - before).requests() == {"get_if_changed": 1}
    before = counted.costs()
    push(one.ds)
    assert (counted.costs() - before).total.requests == 0


def test_data_objects_cost_one_request_each_and_two_where_something_is_replaced(plain: World, model: str) -> None:
    """A new file is one conditional write; one that replaces another is read first, so that nobody's work is lost."""
    one = plain.client()
    one.version(model, 1, "one")
    plain.remote.take()
    one.push()
    asked = Counter(operation for operation, key in plain.remote.take() if key.startswith(f"data/{TYPE}"))
    assert asked == {"put_if": 3}
    one.version(model, 2, "two")
    plain.remote.take()
    one.push()
    asked = Counter(operation for operation, key in plain.remote.take() if key.startswith(f"data/{TYPE}"))
    assert asked == {"put_if": 3, "get_stream": 1}
