"""Remotes that mean harm, or are damaged: skipped and told by name, nothing outside touched, the rest synced."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mire.edge.remote import Stream
from mire.edge.wrap import Wrapper
from mire.errors import MireError, shown
from mire.wire.partition import partition_of
from old_clients import Entries, august_push, entry_of, load, save, shard_key
from sync_world import META, MONOLITH, Hooked, World, data, latest

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


def listed(world: World) -> Entries:
    """Every entry of the index, whatever its name."""
    if not world.sharded:
        return dict(load(world.memory, MONOLITH)["entries"])
    return {
        rel: entry
        for name in load(world.memory, META)["partitions"]
        for rel, entry in load(world.memory, shard_key(name))["entries"].items()
    }


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
            assert all(any(shown(rel) in finding for finding in done.findings) for rel in BAD)
        assert all("\n" not in finding for finding in done.findings)
        assert client.pull(*scope).count == 0


def test_names_that_lead_out_are_nobodys_to_push(plain: World, outside: Path) -> None:
    """A push beside them publishes ours and leaves them in the index as they are: they may mean something to others."""
    seed(plain)
    publish(plain, {rel: entry_of(rel, b"evil") for rel in BAD})
    client = plain.client()
    client.pull()
    client.version("m", 2, "mine")
    client.mark_all()
    assert client.push().count == 3
    assert {rel for rel in BAD if rel.isprintable() and rel.isascii()} - set(listed(plain)) == set()
    plain.clients[0].pull()
    assert plain.clients[0].files() == client.files()


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


def test_a_link_that_appears_meanwhile_leads_nowhere(plain: World, outside: Path) -> None:
    """A link put in the place of a directory while its files arrive, or go: nothing is written through it."""
    hooked = Hooked(plain.remote)
    one, other = plain.client(), plain.client(hooked)
    for rel in ("files/deep/a", "logs/deep/secret"):
        one.write(rel, "base")
    one.push()
    other.pull()

    def divert(rel: str) -> None:
        shutil.rmtree(other.path(rel))
        other.path(rel).symlink_to(outside)

    one.write("files/deep/new", "good")
    one.remove("logs/deep/secret")
    one.push()
    hooked.at("get_stream", "files/deep/new", lambda: divert("files/deep"))
    hooked.at("head", "logs/deep/secret", lambda: divert("logs/deep"))
    done = other.pull()
    assert (done.count, len(done.findings)) == (0, 2)
    assert all(other.path(rel).is_symlink() for rel in ("files/deep", "logs/deep"))


def test_links_in_the_cache_are_not_pushed(plain: World, outside: Path) -> None:
    """Whatever is marked, no byte from outside is sent, nothing is taken for deleted, and the links are told."""
    one = plain.client()
    for rel in ("logs/a", "files/deep/secret", "audit/b"):
        one.write(rel, "good")
    one.push()
    before = plain.objects()
    one.path("logs/a").unlink()
    one.path("logs/a").symlink_to(outside / "secret")
    shutil.rmtree(one.path("files/deep"))
    one.path("files/deep").symlink_to(outside)
    one.path("audit/dir").symlink_to(outside)
    one.path("audit/dangling").symlink_to(outside / "nothing")
    one.mark_all()
    for rel in ("logs/a", "files/deep", "files/deep/secret", "audit", "audit/dir/secret"):
        one.mark(rel)
    one.write("audit/c", "more")
    done = one.push(full=True)
    assert done.uploaded == ["audit/c"]
    assert plain.objects() == {**before, "audit/c": b"more"}
    assert all(any(name in finding for finding in done.findings) for name in ("logs/a", "files/deep", "audit/dir"))
    plain.check()


def test_odd_names_in_the_cache_are_not_pushed(plain: World) -> None:
    """A file that no client could place again is told by name, and takes no other one with it."""
    one = plain.client()
    odd = ("logs/a\\b", "logs/a\nb", "logs/\udce9", "C:x/y")
    for rel in odd:
        one.scribble(rel, "odd")
    one.scribble("logs/good", "good")
    one.mark_all()
    done = one.push()
    assert (done.uploaded, len(done.findings)) == (["logs/good"], len(odd))
    assert set(plain.objects()) == {"logs/good"}


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
    client.write("logs/a", "mine")
    (finding,) = client.push().findings
    assert "'logs/a'" in finding
    assert shard_key("logs") in finding
    assert (world.get(shard_key("logs")), client.marks()) == (text, {"logs/a"})
    client.write("logs/a", "1")
    client.push()
    world.memory.put(shard_key("logs"), good)
    assert fresh.pull().written == ["logs/a"]
    assert client.pull().findings == []


@pytest.mark.parametrize("text", [b"", b"{", b"\xff\xfe\x00", b"[1]", b"null", b'{"version":1,"partitions":"x"}'])
def test_a_garbled_list_beside_a_monolith_is_told(worlds: Callable[..., World], text: bytes) -> None:
    """Nobody knows whether the store was moved to shards: an error names the list, marks wait, and it is not replaced.

    Once it is mended everything is published, and everything arrives.
    """
    world = worlds()
    seed(world)
    client, fresh = world.client(), world.client()
    client.pull()
    client.version("m", 2, "mine")
    good = world.get(META) or b""
    world.memory.put(META, text)
    client.look_at_meta_again()
    for act in (client.pull, client.push, client.push, fresh.pull, lambda: fresh.pull("m")):
        with pytest.raises(MireError, match=r"_meta\.json"):
            act()
    assert (world.get(META), client.is_dirty, fresh.files()) == (text, True, {})
    world.memory.put(META, good)
    client.push()
    assert not client.is_dirty
    assert fresh.pull().is_whole
    assert fresh.files() == client.files()
    world.check()


def test_a_garbled_partition_beside_a_monolith_is_not_believed(worlds: Callable[..., World]) -> None:
    """A scoped reader takes the monolith's word, and the next writer mends the partition."""
    world = worlds()
    seed(world)
    good = world.get(shard_key("data--aws--ec2--vpc--m"))
    for text in (b"", b"{", b"\xff\xfe", b'{"version":1,"entries":{}}'):
        world.memory.put(shard_key("data--aws--ec2--vpc--m"), text)
        fresh = world.client()
        assert fresh.pull("m").count == 3
        assert fresh.files() == world.clients[0].files()
    world.clients[0].version("m", 2, "more")
    world.clients[0].push()
    assert world.get(shard_key("data--aws--ec2--vpc--m")) not in (None, good)
    world.check()


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
