"""Verification of this client's view: every kind of damage is found, told with a remedy, and nothing is changed."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mire
from mire.edge.memory import MemoryRemote
from mire.errors import ConfigError
from mire.flow.mark import mark
from mire.flow.pull import pull
from mire.flow.push import push
from mire.flow.repair import Repaired, repair
from mire.flow.verify import verify
from mire.model.config import SyncSettings
from mire.model.names import RelPath
from mire.model.verify import Verified
from old_clients import drop_from_index
from sync_world import check_lists

STATE = "data/aws/ec2/vpc/vpc-1/state"
MODEL = ("aws/ec2/vpc", "vpc-1")


class Client:
    """A repository whose directory is a cache of a remote in memory."""

    def __init__(self, directory: Path, remote: MemoryRemote, *, sharded: bool) -> None:
        directory.mkdir()
        store = mire.open(directory)
        self.ds = replace(store.datastore, remote=remote, sync=SyncSettings(is_sharded=sharded))
        self.store = mire.Store(self.ds)
        self.model = self.store.model(*MODEL)

    @property
    def tier(self) -> Path:
        """Where its files are."""
        return Path(self.ds.tier)

    def verify(self, **options: bool) -> Verified:
        """Verify it."""
        return verify(self.ds, **options)

    def kinds(self, **options: bool) -> list[str]:
        """What a verification finds."""
        return sorted(finding.kind for finding in self.verify(**options).findings)


@pytest.fixture
def remote() -> MemoryRemote:
    """An empty remote."""
    return MemoryRemote()


@pytest.fixture(params=[False, True], ids=["dual", "sharded"])
def clients(request: pytest.FixtureRequest, tmp_path: Path, remote: MemoryRemote) -> tuple[Client, Client]:
    """One client that pushed two versions, and one that pulled them without their content."""
    one = Client(tmp_path / "one", remote, sharded=request.param)
    two = Client(tmp_path / "two", remote, sharded=request.param)
    for text in ("first", "second"):
        one.model.put("state", text)
    push(one.ds)
    pull(two.ds)
    return one, two


Clients = tuple[Client, Client]


def test_a_healthy_store(clients: Clients) -> None:
    """Everything is counted, nothing is found; content that stays at the remote is no damage."""
    one, two = clients
    done = one.verify(deep=True)
    assert (done.entries, done.here, done.objects, done.findings, done.is_damaged) == (5, 5, 5, [], False)
    done = two.verify()
    assert (done.here, done.unhydrated, done.unhydrated_bytes, done.objects) == (3, 2, 11, 2)
    assert done.findings == []


def test_changes_and_news_are_no_damage(clients: Clients) -> None:
    """What waits to be pushed and what waits to be pulled is counted, not complained about."""
    one, two = clients
    one.model.put("state", "third")
    push(one.ds)
    two.store.model("svc", "web").put("state", "mine")
    done = two.verify()
    assert (done.dirty, done.behind, done.findings) == (3, 3, [])


@pytest.mark.parametrize(
    ("damage", "kinds"),
    [
        (lambda path: path.write_bytes(b"wrong"), ["changed_unmarked", "checksum"]),
        (lambda path: path.write_bytes(b"wrong!"), ["changed_unmarked", "checksum"]),
        (lambda path: path.unlink(), ["lost"]),
    ],
)
def test_damaged_content_is_found(clients: Clients, damage: Callable[[Path], Any], kinds: list[str]) -> None:
    """Bytes that nobody recorded are told, with what to do, whether the remote is asked or not."""
    one, _ = clients
    damage(one.tier / STATE / "1/raw")
    assert one.kinds() == one.kinds(is_local=True) == kinds
    done = one.verify()
    assert done.is_damaged
    assert all(finding.remedy for finding in done.findings)
    assert all(finding.path == f"{STATE}/1/raw" for finding in done.findings)


def test_wrong_content_at_the_remote_is_found_without_fetching_it(clients: Clients) -> None:
    """Who has only the metadata sees that the index describes other bytes than it was written for."""
    one, two = clients
    path = one.tier / STATE / "1/raw"
    path.write_bytes(b"wrong")
    push(one.ds, full=True)
    pull(two.ds)
    assert two.kinds() == two.kinds(is_local=True) == ["checksum"]


def test_a_file_nobody_recorded_is_noted(clients: Clients) -> None:
    """It is no damage, but nobody else has it."""
    one, _ = clients
    (one.tier / "audit").mkdir()
    (one.tier / "audit/commands-2026-01-01.jsonl").write_text("{}\n")
    done = one.verify()
    assert [finding.kind for finding in done.findings] == ["untracked"]
    assert not done.is_damaged


def test_damaged_metadata_is_found(clients: Clients) -> None:
    """Metadata that cannot be read is told by its own path."""
    one, _ = clients
    (one.tier / STATE / "1/metadata.yaml").write_text("{")
    assert one.kinds() == ["changed_unmarked", "metadata"]


def test_a_missing_object_is_found(clients: Clients, remote: MemoryRemote) -> None:
    """Who has no copy finds it at once; who has one finds it by looking deeply, and is told to keep it."""
    one, two = clients
    remote.delete(f"{STATE}/1/raw")
    assert two.kinds() == ["dangling"]
    assert one.kinds() == []
    (finding,) = one.verify(deep=True).findings
    assert (finding.kind, "keep it" in finding.remedy) == ("dangling", True)


def test_a_missing_object_is_stored_again_from_a_copy(clients: Clients, remote: MemoryRemote) -> None:
    """Only by a client whose bytes are those the index describes; the index does not change."""
    one, two = clients
    key = f"{STATE}/1/raw"
    remote.delete(key)
    assert repair(two.ds) == Repaired()
    index = {stat.key: stat.fingerprint for stat in remote.list("_index/")}
    (one.tier / key).write_bytes(b"FIRST")
    wrong = repair(one.ds)
    assert (wrong.stored, "not what the index describes" in wrong.findings[0]) == ([], True)
    (one.tier / key).write_bytes(b"first")
    assert repair(one.ds) == Repaired(stored=[RelPath(key)])
    assert remote.get(key).data == b"first"
    assert {stat.key: stat.fingerprint for stat in remote.list("_index/")} == index
    assert (one.kinds(deep=True), two.kinds(deep=True)) == ([], [])


def test_what_the_index_lost_is_found_and_listed_again(clients: Clients, remote: MemoryRemote) -> None:
    """Also by a client that has only the metadata: the object has the bytes that were agreed on."""
    one, two = clients
    lost = [f"{STATE}/1/raw", f"{STATE}/latest"]
    drop_from_index(remote, *lost)
    for client in clients:
        assert [kind for kind in client.kinds() if kind != "partition_differs"] == ["unlisted"] * 2
    assert repair(two.ds) == Repaired(listed=[RelPath(rel) for rel in lost])
    assert (one.kinds(deep=True), two.kinds(deep=True)) == ([], [])
    for client in clients:
        assert pull(client.ds, full=True).findings == []
    assert (two.tier / lost[0]).read_bytes() == b"first"
    check_lists(remote)


def test_what_was_deleted_or_changed_is_not_listed_again(clients: Clients, remote: MemoryRemote) -> None:
    """An object that is gone or has other bytes, and a path that is marked here, stay as they are."""
    one, two = clients
    drop_from_index(remote, f"{STATE}/1/raw", f"{STATE}/1/metadata.yaml", f"{STATE}/2/raw")
    remote.delete(f"{STATE}/1/raw")
    remote.put(f"{STATE}/1/metadata.yaml", b"x" * remote.head(f"{STATE}/1/metadata.yaml").size_bytes)
    mark(two.ds, f"{STATE}/2/raw")
    assert repair(two.ds) == Repaired()
    assert repair(one.ds) == Repaired(listed=[RelPath(f"{STATE}/2/raw")])
    with pytest.raises(ConfigError, match="is a directory"):
        repair(replace(one.ds, remote=None))


def test_another_object_is_found(clients: Clients, remote: MemoryRemote) -> None:
    """An object of another size than the index says is told."""
    _, two = clients
    remote.put(f"{STATE}/1/raw", b"something else")
    assert two.kinds() == ["object_differs"]


def test_a_bad_entry_is_found(clients: Clients, remote: MemoryRemote) -> None:
    """An entry that leads out of the cache, or says nothing, is told by name and not followed."""
    one, _ = clients
    key = next(
        stat.key
        for stat in remote.list()
        if stat.key.endswith(".json") and STATE.encode() in remote.get(stat.key).data and "--vpc-1" not in stat.key
    )
    document = json.loads(remote.get(key).data)
    good = next(iter(document["entries"].values()))
    document["entries"] |= {"data/../../escape/x/y/z": {**good}, f"{STATE}/9/raw": {"key": "x"}}
    remote.put(key, json.dumps(document, separators=(",", ":")).encode())
    assert one.kinds().count("bad_entry") >= 1
    assert not (one.tier.parent.parent / "escape").exists()


@pytest.mark.parametrize("clients", [True], indirect=True)
def test_shards_are_looked_at(clients: Clients, remote: MemoryRemote) -> None:
    """A shard that is missing, garbled or dropped from the list is told."""
    one, _ = clients
    shard, meta = "_index/data--aws--ec2--vpc--vpc-1.json", "_index/_meta.json"
    data, listed = remote.get(shard).data, remote.get(meta).data
    remote.delete(shard)
    assert "shard_missing" in one.kinds()
    remote.put(shard, b"{")
    assert "shard_unreadable" in one.kinds()
    remote.put(shard, data)
    document = json.loads(listed)
    document["partitions"].remove("data--aws--ec2--vpc--vpc-1")
    remote.put(meta, json.dumps(document).encode())
    done = one.verify()
    assert ([finding.kind for finding in done.findings], done.is_damaged) == (["shard_unlisted"], False)


@pytest.mark.parametrize("clients", [False], indirect=True)
def test_partitions_are_compared_with_the_monolith(clients: Clients, remote: MemoryRemote) -> None:
    """One that differs is damage only while the list vouches for it."""
    one, _ = clients
    shard, meta = "_index/data--aws--ec2--vpc--vpc-1.json", "_index/_meta.json"
    tag = remote.put(shard, b'{"version":1,"entries":{}}').fingerprint
    done = one.verify()
    assert ([finding.kind for finding in done.findings], done.is_damaged) == (["partition_differs"], False)
    document = json.loads(remote.get(meta).data)
    document["proof"]["shards"]["data--aws--ec2--vpc--vpc-1"] = tag
    remote.put(meta, json.dumps(document).encode())
    assert one.verify().is_damaged


def test_nothing_is_changed(clients: Clients, remote: MemoryRemote, snapshot: Callable[[Path], Any]) -> None:
    """Neither the cache nor the remote is touched, whatever is wrong."""
    one, two = clients
    (one.tier / STATE / "1/raw").write_bytes(b"wrong")
    remote.delete(f"{STATE}/2/raw")

    def state() -> Any:
        files = {path: data for path, data in snapshot(one.tier).items() if "mire-state" not in path}
        return files, snapshot(two.tier / "data"), {stat.key: remote.get(stat.key).data for stat in remote.list()}

    before = state()
    for client in (one, two):
        client.verify(deep=True)
        client.verify(is_local=True)
    assert state() == before


def test_a_directory_is_verified_by_its_metadata(repo: Path) -> None:
    """Without a remote content is compared with what was recorded about it."""
    with mire.open(repo) as store:
        store.model(*MODEL).put("state", "first")
        store.model(*MODEL).put("log", "one", streaming=True)
        store.model(*MODEL).append("log", "two")
        assert verify(store.datastore).findings == []
        path = Path(store.datastore.tier) / STATE / "1/raw"
        path.write_bytes(b"wrong")
        assert [finding.kind for finding in verify(store.datastore).findings] == ["checksum"]
