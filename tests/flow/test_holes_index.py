"""Broken indexes of the reference (wire-format §10, C): each way, and that ours neither stops nor makes it worse."""

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from mire.errors import FormatError, MireError
from old_clients import august_push, load, migrate_index, save, shard_key
from sync_world import META, MONOLITH, World, data, latest


def test_C1_a_listed_shard_that_is_gone_stops_nobody(worlds: Callable[..., World]) -> None:
    """What the shard named stays here, the rest is pulled and pushed, and nothing pretends that it was empty."""
    world = worlds(sharded=True)
    one, other, fresh = world.client(), world.client(), world.client()
    for model in ("m", "n"):
        one.version(model, 1, model)
    one.push()
    other.pull()
    world.memory.delete(shard_key("data--aws--ec2--vpc--m"))
    one.version("n", 2, "new")
    one.version("m", 2, "stuck")
    done = one.push()
    assert {data("n", version=2), latest("n")} <= set(done.uploaded)
    assert {data("m", version=2), data("m", version=2, last="metadata.yaml")} <= one.marks()
    for client in (other, fresh):
        found = client.pull()
        assert any("data--aws--ec2--vpc--m" in finding for finding in found.findings)
        assert client.read(data("n", version=2)) == b"new"
    assert other.read(data("m")) == b"m"
    assert fresh.pull("n").count == 0
    assert world.get(shard_key("data--aws--ec2--vpc--m")) is None


def test_C1_no_shard_of_ours_is_ever_deleted_or_unlisted(world: World) -> None:
    """Emptying partitions leaves objects behind every name in the list, at every instant."""
    one = world.client()
    one.version("m", 1, "x")
    one.version("n", 1, "y")
    one.push()
    world.remote.take()
    world_files = list(one.files())
    for rel in world_files:
        one.remove(rel)
    one.push()
    deleted = [key for operation, key in world.remote.take() if operation.startswith("delete")]
    assert sorted(deleted) == sorted(world_files)
    assert world.index() == {}
    world.check()


def test_C2_a_store_that_was_migrated_twice_takes_no_copies_with_it(worlds: Callable[..., World]) -> None:
    """Entries that a second migration dropped are told; the copies of them stay, and so do the objects."""
    world = worlds()
    one = world.client()
    one.version("m", 1, "x")
    one.push()
    migrate_index(world.memory)
    one.look_at_meta_again()
    one.version("m", 2, "y")
    one.push()
    one.pull()
    before = one.files()
    save(world.memory, MONOLITH, {**load(world.memory, MONOLITH), "entries": {}})
    migrate_index(world.memory)
    save(world.memory, META, {"version": 2, "partitions": [], "commitSeq": 1})
    for stat in list(world.memory.list("_index/")):
        if stat.key != META:
            save(world.memory, stat.key, {"version": 1, "entries": {}})
    done = one.pull()
    assert (done.count, len(done.findings)) == (0, len(before))
    assert one.files() == before


def test_C3_shards_of_another_rule_are_read_and_never_listed_without_being_there(worlds: Callable[..., World]) -> None:
    """A shard that another release named otherwise counts as long as it is listed; ours lists only what is there."""
    world = worlds(sharded=True)
    one, other = world.client(), world.client()
    one.version("m", 1, "x")
    one.push()
    rel = "workflows-evaluated/w/x.yaml"
    world.memory.put(rel, b"july")
    entry = {"key": rel, "size": 4, "lastModified": "2026-07-07T00:00:00.000Z"}
    save(world.memory, shard_key("workflows-evaluated--w"), {"version": 1, "entries": {rel: entry}})
    meta = load(world.memory, META)
    save(world.memory, META, {**meta, "partitions": [*meta["partitions"], "workflows-evaluated--w"], "commitSeq": 7})
    assert other.pull().count == 4
    assert other.read(rel) == b"july"
    one.write("workflows-evaluated/w/y.yaml", "ours")
    one.push()
    assert other.pull().written == ["workflows-evaluated/w/y.yaml"]
    assert other.read(rel) == b"july"
    world.check()


@pytest.mark.parametrize("is_known", [True, False])
def test_C4_a_sharded_store_without_its_list_is_not_taken_for_a_monolith(
    worlds: Callable[..., World], *, is_known: bool
) -> None:
    """The frozen monolith is not read, the shards are not overwritten, and the error says what is wrong."""
    world = worlds()
    one = world.client()
    one.version("m", 1, "x")
    one.push()
    migrate_index(world.memory)
    one.look_at_meta_again()
    one.pull()
    one.version("m", 2, "in shards only")
    one.push()
    world.memory.delete(META)
    client = one if is_known else world.client()
    before = {stat.key: world.get(stat.key) for stat in world.memory.list()}
    client.version("new", 1, "z")
    for act in (client.pull, client.push, lambda: client.pull("m")):
        with pytest.raises(FormatError, match="list of partitions is gone"):
            act()
    assert {stat.key: world.get(stat.key) for stat in world.memory.list() if stat.key in before} == before
    assert len(client.marks()) == 3


def test_C4_a_list_of_a_newer_version_is_not_overwritten(plain: World) -> None:
    """Whoever comes from the future is not taken for absent."""
    one = plain.client()
    one.version("m", 1, "x")
    one.push()
    save(plain.memory, META, {"version": 3, "partitions": [], "commitSeq": 9})
    fresh = plain.client()
    fresh.version("n", 1, "y")
    for act in (fresh.pull, fresh.push):
        with pytest.raises(FormatError, match="upgrade"):
            act()
    assert load(plain.memory, META)["version"] == 3


def test_C4_a_crash_before_the_first_list_is_not_taken_for_damage(worlds: Callable[..., World]) -> None:
    """Partitions that a dead client wrote after its monolith say nothing new, and are no reason to refuse."""
    world = worlds()
    august_push(world.memory, {data("m"): b"x", latest("m"): b"1"}, dies_after="partitions")
    one = world.client()
    assert one.pull().count == 2
    one.version("n", 1, "y")
    assert one.push().is_whole
    world.check()


def test_C5_a_path_that_no_index_can_list_is_told_and_not_uploaded(world: World) -> None:
    """It is neither stored where nobody sees it nor counted as a commit."""
    one = world.client()
    one.write("data/x", "too short a path")
    one.write("workflow-runs/x.yaml", "too short, too")
    one.write("config/x", "a shard of its own")
    done = one.push()
    assert done.uploaded == ["config/x"]
    assert len(done.findings) == 2
    assert list(world.objects()) == ["config/x"]
    world.remote.take()
    one.push()
    assert world.remote.take() == []


def test_C6_a_shard_of_a_newer_version_is_left_alone(worlds: Callable[..., World]) -> None:
    """It is told by name; other partitions are synced, and nothing is written over it."""
    world = worlds(sharded=True)
    one, other = world.client(), world.client()
    one.version("m", 1, "x")
    one.push()
    key = shard_key("data--aws--ec2--vpc--m")
    save(world.memory, key, {"version": 2, "entries": [], "future": True})
    one.version("m", 2, "y")
    one.write("logs/a", "z")
    done = one.push()
    assert "logs/a" in done.uploaded
    assert any("version" in finding for finding in done.findings)
    assert load(world.memory, key)["future"] is True
    found = other.pull()
    assert other.read("logs/a") == b"z"
    assert any("data--aws--ec2--vpc--m" in finding for finding in found.findings)


def test_C7_one_bad_entry_does_not_stop_a_pull(plain: World) -> None:
    """It is told by name and skipped; the rest arrives, and it is not told again while nothing moves."""
    one, other = plain.client(), plain.client()
    one.version("m", 1, "x")
    one.push()
    bad = {"../../escape": 1, "logs/": 2, "logs//x": 3}
    for key in (MONOLITH,) if not plain.sharded else (shard_key("data--aws--ec2--vpc--m"),):
        document = load(plain.memory, key)
        document["entries"] |= {
            rel: {"key": rel, "size": size, "lastModified": "2026-01-01T00:00:00.000Z"} for rel, size in bad.items()
        }
        save(plain.memory, key, document)
    if plain.sharded:
        save(plain.memory, META, {**load(plain.memory, META), "commitSeq": 9})
    done = other.pull()
    assert (done.count, len(done.findings)) == (3, 3)
    assert other.files() == one.files()
    assert other.pull().findings == []


def test_C8_a_file_is_on_disk_before_it_has_its_name(worlds: Callable[..., World]) -> None:
    """Every rename in a pull comes after an fsync of what is renamed, and is followed by one of the directory."""
    world = worlds()
    one, other = world.client(), world.client()
    one.version("m", 1, "x")
    one.push()
    calls: list[str] = []

    def hook(_: object, event: str, function: Any) -> None:
        if event == "c_call" and getattr(function, "__name__", "") in ("fsync", "replace"):
            calls.append(function.__name__)

    threading.setprofile(hook)
    sys.setprofile(hook)
    try:
        other.pull()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    replaced = calls.count("replace")
    assert replaced >= 3
    assert calls.count("fsync") >= 2 * replaced
    assert calls[-1] == "fsync"


def test_C8_a_lost_or_empty_state_costs_a_walk_and_changes_nothing(world: World) -> None:
    """Without the private state, or with an empty state file, everything is compared and nothing is sent or removed."""
    one, other = world.client(), world.client()
    one.version("m", 1, "x")
    one.push()
    other.pull()
    again = other.on(world.remote)
    for name in os.listdir(f"{again.ds.base}/_index"):
        if name.startswith(("mire-state", "mire-monolith")):
            os.truncate(f"{again.ds.base}/_index/{name}", 0)
    with open(f"{again.ds.base}/.datastore-sync-state.json", "wb"):
        pass
    before = world.index()
    assert again.push().count == 0
    assert again.pull().count == 0
    assert world.index() == before
    assert again.files() == one.files()


def test_errors_of_an_index_name_it(plain: World) -> None:
    """Whatever is wrong with the first object of an index, the error names the object and nothing is changed."""
    one = plain.client()
    one.version("m", 1, "x")
    one.push()
    key = META if plain.sharded else MONOLITH
    for text in (b"", b"{", b"\xff\xfe", b"[]", b'{"version":1}', b'{"version":"1","entries":{}}'):
        plain.memory.put(key, text)
        fresh = plain.client()
        with pytest.raises(MireError, match=r"_meta\.json|datastore-index\.json"):
            fresh.pull()
        assert fresh.files() == {}
