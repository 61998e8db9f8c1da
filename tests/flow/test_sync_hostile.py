"""Remotes that mean harm, or are damaged: skipped and told by name, nothing outside touched, the rest synced."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mire.edge.remote import Stream
from mire.edge.wrap import Wrapper
from mire.wire.partition import partition_of
from old_clients import Entries, august_push, entry_of, load, save, shard_key
from sync_world import META, MONOLITH, World, data, latest

BAD = (
    *("../escape", "data/../../escape", "data/x/../../../escape", "..", ".", "/etc/escape", "//escape", "", " "),
    *("C:/escape", "c:\\escape", "data\\escape", "..\\escape", "logs/a\\..\\..\\escape", "logs/\0", "logs/a\nb"),
    *("logs//x", "logs/./x", "logs/", "/", "logs/\x7f", "logs/\ud800", "logs/" + "n" * 256, "logs/" + "d/" * 600 + "x"),
    *("logs/" + "long/" * 2000 + "x", "\u2028/..", "data/aws/ec2/vpc/m/../../../../../escape"),
)
DAMAGED = (
    *({}, {"size": -1}, {"size": "3"}, {"size": 1.5}, {"size": True}, {"size": 2**60}, {"size": 3}),
    *({"size": 3, "lastModified": 7}, {"size": 3, "lastModified": "x", "sha256": "ABC"}),
    *({"size": 3, "lastModified": "x", "localMtime": 3}, {"size": None, "lastModified": "x"}),
)


def publish(world: World, entries: Entries) -> None:
    """Put entries into the index as they are, whatever they say."""
    if not world.sharded:
        document = load(world.memory, MONOLITH)
        document["entries"] |= entries
        save(world.memory, MONOLITH, document)
        return
    meta = load(world.memory, META)
    for rel, entry in entries.items():
        name = partition_of(rel) or "logs"
        if "/" in name or "\0" in name or "\\" in name or len(name) > 200 or not name.isprintable():
            name = "logs"
        shard = load(world.memory, shard_key(name)) or {"version": 1, "entries": {}}
        shard["entries"][rel] = entry
        save(world.memory, shard_key(name), shard)
        meta["partitions"] = sorted({*meta["partitions"], name})
    meta["commitSeq"] += 1
    save(world.memory, META, meta)


@pytest.fixture
def outside(plain: World) -> Iterator[Path]:
    """A directory beside the caches that nobody may touch."""
    path = plain.root / "outside"
    path.mkdir(parents=True)
    (path / "secret").write_text("untouched")
    yield path
    assert {each.name: each.read_text() for each in path.iterdir()} == {"secret": "untouched"}
    assert sorted(each.name for each in plain.root.iterdir() if not each.name.startswith("client-")) == ["outside"]
    for client in plain.clients:
        assert sorted(os.listdir(client.home)) in ([".swamp"], [".swamp", ".swamp.yaml"])
    assert not list(Path(plain.root).rglob("*escape*"))


def seed(world: World) -> None:
    """One good model."""
    one = world.client()
    one.version("m", 1, "good")
    one.push()


def test_names_that_lead_out_are_skipped(plain: World, outside: Path) -> None:
    """Every one is told; the good files arrive, wholly and by model."""
    seed(plain)
    publish(plain, {rel: entry_of(rel, b"evil") for rel in BAD})
    for scope in ((), ("m",)):
        client = plain.client()
        done = client.pull(*scope)
        assert set(client.files()) == set(plain.clients[0].files())
        if not scope:
            assert len(done.findings) == len(set(BAD))
        assert client.pull(*scope).count == 0


def test_entries_that_say_nothing_are_skipped(plain: World, outside: Path) -> None:
    """An entry with a wrong member is told by name, and takes no other one with it."""
    seed(plain)
    publish(plain, {f"logs/bad-{number}": dict(entry) for number, entry in enumerate(DAMAGED)})
    client = plain.client()
    done = client.pull()
    assert set(client.files()) == set(plain.clients[0].files())
    assert all(any(f"bad-{number}'" in finding for finding in done.findings) for number in range(len(DAMAGED)))


def test_a_file_where_a_directory_must_be(plain: World, outside: Path) -> None:
    """Of two entries that cannot both have a place one is told; so is one whose place a local file or directory has."""
    seed(plain)
    good = {"logs/a": b"a file", "logs/a/b": b"below it", "logs/c": b"a file"}
    for rel, content in good.items():
        plain.memory.put(rel, content)
    publish(plain, {rel: entry_of(rel, content) for rel, content in good.items()})
    client = plain.client()
    client.path("logs/c").mkdir(parents=True)
    client.scribble("logs/c/mine", "kept")
    done = client.pull()
    assert len(done.findings) == 2
    assert ("logs/a" in client.files()) != ("logs/a/b" in client.files())
    assert client.read("logs/c/mine") == b"kept"
    assert client.read(data("m")) == b"good"
    assert len(client.pull().findings) == 2


def test_names_that_differ_in_case_only_are_two_files(plain: World, outside: Path) -> None:
    """Where the file system tells them apart both arrive; neither is ever written over the other."""
    seed(plain)
    files = {"logs/name": b"small", "logs/NAME": b"LARGE"}
    for rel, content in files.items():
        plain.memory.put(rel, content)
    publish(plain, {rel: entry_of(rel, content) for rel, content in files.items()})
    client = plain.client()
    done = client.pull()
    if len(os.listdir(client.path("logs"))) == 2:
        assert {rel: client.read(rel) for rel in files} == files
    else:
        assert len(done.findings) == 1


def test_links_in_the_cache_lead_nowhere(plain: World, outside: Path) -> None:
    """A link to a file or directory outside is neither written through nor replaced, and what it shows stays."""
    seed(plain)
    files = {"logs/a": b"1", "files/deep/a": b"2", "audit/secret": b"3"}
    for rel, content in files.items():
        plain.memory.put(rel, content)
    publish(plain, {rel: entry_of(rel, content) for rel, content in files.items()})
    client = plain.client()
    client.path("logs").mkdir()
    os.symlink(outside / "secret", client.path("logs/a"))
    os.symlink(outside, client.path("files"))
    os.symlink(outside, client.path("audit"))
    done = client.pull()
    assert len(done.findings) == 3
    assert client.read(data("m")) == b"good"
    assert os.path.islink(client.path("logs/a"))
    august_push(plain.memory, removes=files)
    client.pull()
    assert os.path.islink(client.path("audit"))


def test_a_size_that_fills_the_disk_does_not(plain: World, outside: Path) -> None:
    """An object that is larger than announced is not read to its end; one that is announced as huge is not believed."""

    class Endless(Wrapper):
        """A remote whose objects never end."""

        def __init__(self) -> None:
            super().__init__(plain.remote)
            self.given = 0

        def get_stream(self, key: str) -> Stream:
            """The object, and more."""

            def chunks() -> Iterator[bytes]:
                while self.given < 1 << 26:
                    self.given += 1 << 20
                    yield b"x" * (1 << 20)

            return replace(super().get_stream(key), chunks=chunks())

    seed(plain)
    plain.memory.put("logs/huge", b"tiny")
    publish(plain, {"logs/huge": {**entry_of("logs/huge", b"tiny"), "size": 10**10, "sha256": "0" * 64}})
    client = plain.client()
    done = client.pull()
    assert [("logs/huge" in finding) for finding in done.findings] == [True]
    assert client.read(data("m")) == b"good"
    endless = Endless()
    other = plain.client(endless)
    august_push(plain.memory, {"logs/huge": b"tiny"})
    assert other.pull("m").count == 0
    assert endless.given < 1 << 24
    assert [each for each in os.listdir(f"{other.ds.base}/_index/mire-staging") if each.endswith(".tmp")] == []


def test_many_tiny_entries_cost_no_request_each(plain: World, outside: Path) -> None:
    """Content that is left at the remote is noted, however much there is, and the next pull asks once."""
    seed(plain)
    count = 20_000
    many = {f"data/many/tiny/m/n/{number}/raw": entry_of("x", b"") for number in range(1, count)}
    if plain.sharded:
        save(plain.memory, shard_key("data--many--tiny--m"), {"version": 1, "entries": many})
        meta = load(plain.memory, META)
        save(plain.memory, META, {**meta, "partitions": [*meta["partitions"], "data--many--tiny--m"], "commitSeq": 9})
    else:
        publish(plain, many)
    client = plain.client(lazy=True)
    plain.remote.take()
    done = client.pull()
    assert (done.left_out, done.findings) == (count, [])
    assert len(plain.remote.take()) < 12
    client.pull()
    assert len(plain.remote.take()) == 1


@pytest.mark.parametrize(
    "text", [b"", b"{", b'{"version":1,"entries":{"logs/x":{"key":"lo', b"\xff\xfe\x00", b"[1]", b"null"]
)
def test_a_garbled_shard_is_skipped(worlds: Callable[..., World], text: bytes) -> None:
    """The other partitions are synced, what it listed before stays, and it is told by name until it is mended."""
    world = worlds(sharded=True)
    seed(world)
    august_push(world.memory, {"logs/a": b"1", "audit/a": b"2"})
    client, fresh = world.client(), world.client()
    client.pull()
    good = world.get(shard_key("logs")) or b""
    world.memory.put(shard_key("logs"), text)
    meta = load(world.memory, META)
    save(world.memory, META, {**meta, "commitSeq": meta["commitSeq"] + 1})
    for _ in range(2):
        for each in (client, fresh):
            assert any("'logs'" in finding for finding in each.pull().findings)
    assert (client.read("logs/a"), fresh.read("logs/a")) == (b"1", None)
    assert fresh.read("audit/a") == b"2"
    world.memory.put(shard_key("logs"), good)
    assert fresh.pull().written == ["logs/a"]
    assert client.pull().findings == []


def test_a_list_of_odd_partitions_stops_nobody(worlds: Callable[..., World]) -> None:
    """Names that no store can hold, or that nobody wrote, are told; the others are read."""
    world = worlds(sharded=True)
    seed(world)
    meta = load(world.memory, META)
    odd = ["a\0b", "..", "x" * 2000, "data--nobody", "_root\n"]
    save(world.memory, META, {**meta, "partitions": [*meta["partitions"], *odd], "commitSeq": 7})
    client = world.client()
    assert len(client.pull().findings) == len(odd)
    assert client.read(latest("m")) == b"1"
