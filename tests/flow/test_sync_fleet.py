"""Old clients, August clients and ours on one store, in any order: readers see what was committed, and nothing else."""

import os
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from mire.wire.partition import partition_of
from old_clients import august_index, august_push, migrate_index, old_index, old_push
from sync_world import META, TYPE, Client, Hooked, World, body_at, data, latest

SEEDS = range(60 if os.environ.get("MIRE_HYPOTHESIS") == "thorough" else 2)
MODELS = ("a", "b")
LOOSE = ("logs/x", "config/x", "workflow-runs/w/workflow-run-1.yaml", "outputs/t/m/run.yaml", "audit/day.jsonl")
PATHS = (
    *(data(model, version=number) for model in MODELS for number in (1, 2)),
    *(latest(model) for model in MODELS),
    *LOOSE,
)


class Fleet:
    """A store, what was committed to it, and whoever uses it."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.random = random.Random(seed)  # noqa: S311 - the same order again is the point
        self.ours = [world.client(), world.client()]
        self.truth: dict[str, bytes] = {}
        self.is_sharded = world.sharded
        self.count = 0
        self.log: list[str] = []
        if world.sharded:
            self.ours[0].write("logs/x", "first")
            self.ours[0].push()
            self.truth["logs/x"] = b"first"

    def content(self) -> bytes:
        """Something that nobody wrote before, often of equal size."""
        self.count += 1
        return f"{self.count:03}".encode()

    def step(self) -> None:
        """One thing that happens."""
        actions = [self.august, self.august, self.our_write, self.our_write, self.our_removal, self.our_pull]
        if not self.is_sharded:
            actions += [self.old, self.august_dies]
            if self.count > 8:
                actions.append(self.migrate)
        act = self.random.choice(actions)
        self.log.append(act.__name__)
        act()

    def _change(self, known: tuple[str, ...]) -> tuple[dict[str, bytes], list[str]]:
        writes = {rel: self.content() for rel in self.random.sample(known, self.random.randint(1, 3))}
        gone = [rel for rel in known if rel in self.truth and rel not in writes and self.random.random() < 0.15]
        return writes, gone

    def _publish(self, writes: dict[str, bytes], gone: list[str]) -> None:
        self.truth |= writes
        for rel in gone:
            del self.truth[rel]

    def old(self) -> None:
        """A client that knows the monolith only."""
        writes, gone = self._change(PATHS)
        old_push(self.world.memory, writes, gone)
        self._publish(writes, gone)

    def august(self) -> None:
        """A client of August; in a sharded store it cannot list `config`, and makes our shard of it disappear."""
        writes, gone = self._change(tuple(rel for rel in PATHS if not rel.startswith("config/")))
        august_push(self.world.memory, writes, gone)
        self._publish(writes, gone)

    def august_dies(self) -> None:
        """The same, and it dies after its monolith."""
        writes, gone = self._change(PATHS)
        august_push(self.world.memory, writes, gone, dies_after=self.random.choice(["monolith", "partitions"]))
        self._publish(writes, gone)

    def migrate(self) -> None:
        """Somebody runs the reference's migration."""
        migrate_index(self.world.memory)
        self.is_sharded = True
        for client in self.ours:
            client.look_at_meta_again()

    def our_write(self) -> None:
        """One of ours writes, up to date or not, and pushes; what others changed meanwhile is a conflict."""
        client = self.random.choice(self.ours)
        if self.random.random() < 0.5:
            client.pull()
        for rel in self.random.sample(PATHS, 2):
            client.write(rel, self.content())
        self._our_push(client)

    def our_removal(self) -> None:
        """One of ours removes something it has."""
        client = self.random.choice(self.ours)
        if client.files():
            client.remove(self.random.choice(sorted(client.files())))
        self._our_push(client)

    def _our_push(self, client: Client) -> None:
        done = client.push()
        assert done.findings == [], self.log
        for rel in done.uploaded:
            self.truth[rel] = client.read(rel) or b""
        for rel in done.removed:
            self.truth.pop(rel, None)
        assert not set(done.uploaded) & {conflict.rel for conflict in done.conflicts}
        if done.conflicts:
            client.pull(theirs=True)
            assert client.push().count == 0

    def our_pull(self) -> None:
        """One of ours catches up, or looks at one model."""
        client = self.random.choice(self.ours)
        self._pulled(client)

    def _pulled(self, client: Client) -> None:
        client.look_at_meta_again()
        done = client.pull(*self.random.choice([(), (), ("a",)]))
        assert not done.conflicts, self.log
        client.pull()
        assert client.files() == self.truth, self.log
        assert client.push().count == 0

    def check(self, number: int) -> None:
        """Whoever comes new sees what was committed, wholly and by model."""
        whole, scoped = self.world.client(), self.world.client()
        assert whole.pull().findings == [], self.log
        assert whole.files() == self.truth, (number, self.log)
        model = self.random.choice(MODELS)
        scoped.pull(model)
        of_model = {rel: text for rel, text in self.truth.items() if rel.startswith(f"data/{TYPE}/{model}/")}
        assert scoped.files() == of_model, (number, self.log)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fingerprints", ["etags", "generations"])
@pytest.mark.parametrize("form", ["v1", "v2"])
def test_any_order_of_clients(worlds: Callable[..., World], form: str, fingerprints: str, seed: int) -> None:
    """After every step new readers see exactly what was committed, and caches that live on agree at the end."""
    world = worlds(sharded=form == "v2", content_fingerprint=fingerprints == "etags")
    fleet = Fleet(world, seed)
    for number in range(18):
        fleet.step()
        fleet.check(number)
    for client in fleet.ours:
        fleet._pulled(client)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("form", ["v1", "v2"])
def test_our_own_clients_at_the_same_time(worlds: Callable[..., World], form: str, seed: int) -> None:
    """Pushes and pulls of ours inside one another's requests, without any lock: at rest all agree and all is whole."""
    world = worlds(sharded=form == "v2")
    chance = random.Random(seed)  # noqa: S311 - the same order again is the point
    hooks = [Hooked(world.remote) for _ in range(3)]
    clients = [world.client(hook) for hook in hooks]
    written: set[bytes] = set()
    busy: set[Client] = set()

    def work(client: Client) -> None:
        if client in busy:  # it would wait for itself
            return
        busy.add(client)
        for rel in chance.sample(PATHS, 2):
            content = f"{len(written):04}".encode()
            written.add(content)
            client.write(rel, content)
        client.push()
        client.pull()
        busy.remove(client)

    for _ in range(6):
        index = chance.randrange(3)
        other = clients[(index + chance.choice([1, 2])) % 3]
        hooks[index].at("*", "*", lambda other=other: work(other), skip=chance.randrange(12))
        work(clients[index])
    for client in clients:
        client.pull(theirs=True)
        client.push()
    for client in clients:
        client.pull(theirs=True)
        assert client.push().count == 0
    world.check()
    expected = {rel: world.get(rel) for rel in world.index()}
    for client in (*clients, world.client()):
        client.pull()
        assert client.files() == expected
    assert set(expected.values()) <= written


@pytest.mark.parametrize("form", ["v1", "v2"])
@pytest.mark.parametrize("kind", ["old", "august"])
def test_what_an_unconditional_writer_took_is_told(worlds: Callable[..., World], form: str, kind: str) -> None:
    """A peer that commits from a snapshot older than ours unlists our files: told within one sync, and none is lost."""
    if (form, kind) == ("v2", "old"):
        pytest.skip("an old client writes nothing that counts in a sharded store")
    world = worlds(sharded=form == "v2")
    one = world.client()
    one.version("a", 1, "x")
    one.push()
    one.pull()
    snapshot = old_index(world.memory) if kind == "old" else august_index(world.memory)
    one.write(data("a", version=2), "y")
    one.push()
    act = old_push if kind == "old" else august_push
    act(world.memory, {data("a", version=3): b"z"}, snapshot=snapshot)
    done = one.pull()
    assert (done.written, done.removed) == ([data("a", version=3)], [])
    assert [data("a", version=2) in finding for finding in done.findings] == [True]
    assert one.read(data("a", version=2)) == b"y"
    assert len(one.pull().findings) == 1


def test_a_partition_that_august_deleted_twice_leaves_no_copy(worlds: Callable[..., World]) -> None:
    """Files of a shard that came and went between our looks go, whatever we knew of it."""
    world = worlds(sharded=True)
    one = world.client()
    one.write(data("a"), "x")
    one.write("logs/x", "stays")
    one.push()
    august_push(world.memory, removes=[data("a")])
    one.write(data("a", version=2), "y")
    one.push()
    august_push(world.memory, removes=[data("a", version=2)])
    assert one.pull().removed == [data("a"), data("a", version=2)]
    assert one.files() == {"logs/x": b"stays"}


def test_a_shard_that_is_left_from_long_ago_names_nothing(worlds: Callable[..., World]) -> None:
    """Partitions that an old client let go stale, and a migration did not list, bring nothing back, read or written."""
    world = worlds()
    one = world.client()
    one.version("a", 1, "x")
    one.write("logs/x", "stays")
    one.push()
    old_push(world.memory, removes=[data("a"), data("a", last="metadata.yaml"), latest("a")])
    migrate_index(world.memory)
    for scope in ((), ("a",)):
        reader = world.client()
        assert reader.pull(*scope).findings == []
        assert not [rel for rel in reader.files() if "/a/" in rel]
    one.look_at_meta_again()
    one.pull()
    assert one.files() == {"logs/x": b"stays"}
    one.version("a", 2, "new")
    one.push()
    assert data("a") not in world.index()
    assert data("a", version=2) in world.index()
    world.check()


def test_a_shard_that_august_unlisted_is_listed_again(worlds: Callable[..., World]) -> None:
    """Whoever comes new sees it all the same, and our next commit puts it back on the list."""
    world = worlds(sharded=True)
    one = world.client()
    one.write("config/x", "ours")
    one.write("logs/x", "too")
    one.push()
    august_push(world.memory, {"logs/y": b"august"})
    meta = body_at(world.memory, META)
    assert meta is not None
    assert b"config" not in meta.data
    reader = world.client()
    reader.pull()
    assert reader.read("config/x") == b"ours"
    one.write("logs/z", "more")
    one.push()
    assert "config/x" in world.index()
    world.check()


def test_a_kept_monolith_says_what_the_shards_say(worlds: Callable[..., World]) -> None:
    """Who knows only the monolith sees every commit; those of peers that do not keep it with the next of ours."""
    world = worlds(sharded=True)
    one, other = world.client(), world.client()
    one.ds = replace(one.ds, sync=replace(one.ds.sync, is_monolith_kept=True))

    def check() -> None:
        shown = {rel: entry["sha256"] for rel, entry in old_index(world.memory).items()}
        assert shown == {rel: entry.sha256 for rel, entry in world.index().items()}

    one.version("m", 1, "1")
    one.push()
    check()
    one.version("m", 2, "2")
    one.remove(data("m", version=1))
    world.remote.take()
    one.push()
    check()
    reads = [key for operation, key in world.remote.take() if operation.startswith("get") and key.startswith("_index/")]
    touched = [f"_index/{partition_of(rel)}.json" for rel in (data("m"), latest("m"))]
    assert sorted(reads) == sorted([META, *touched])
    other.pull()
    other.version("n", 1, "x")
    other.push()
    one.version("k", 1, "x")
    one.push()
    check()
    assert other.pull().findings == []
    world.check()
