"""Moving an index from a monolith to shards: nothing is dropped, nobody is left behind, any step may be the last."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mire
from mire.edge.lockobject import ObjectLocks
from mire.edge.memory import MemoryRemote
from mire.edge.remote import Remote, Stored
from mire.edge.wrap import Wrapper
from mire.errors import FormatError, RemoteError
from mire.flow.index import fetch_index, summary_of
from mire.flow.migrate import migrate_index
from mire.flow.place import open_place
from mire.flow.pull import pull
from mire.flow.push import push
from mire.model.config import SyncSettings

META, MONOLITH = "_index/_meta.json", ".datastore-index.json"


class Client:
    """A repository whose directory is a cache of a remote."""

    def __init__(self, directory: Path, remote: Remote) -> None:
        directory.mkdir(exist_ok=True)
        self.ds = replace(
            mire.open(directory).datastore, remote=remote, locks=ObjectLocks(remote), sync=SyncSettings(is_lazy=False)
        )
        self.store = mire.Store(self.ds)

    def put(self, model_id: str, text: str) -> None:
        """Write a version and push it."""
        self.store.model("svc/web", model_id).put("state", text)
        assert push(self.ds).is_whole

    def get(self, model_id: str) -> str:
        """What the latest version says."""
        return self.store.model("svc/web", model_id).get("state").text()

    def entries(self) -> set[str]:
        """What the index lists."""
        with open_place(self.ds) as place:
            return {rel for rel, _ in fetch_index(place).entries()}


@pytest.fixture
def remote() -> MemoryRemote:
    """An empty remote."""
    return MemoryRemote()


@pytest.fixture
def make(tmp_path: Path, remote: MemoryRemote) -> Callable[[str], Client]:
    """A new client of the remote."""
    return lambda name: Client(tmp_path / name, remote)


def meta_of(remote: MemoryRemote) -> Any:
    """The list of partitions."""
    return json.loads(remote.get(META).data)


def test_everything_is_listed_afterwards(make: Callable[[str], Client], remote: MemoryRemote) -> None:
    """All entries are in shards, the list is sorted and counted, and the monolith has another fingerprint."""
    one, two = make("one"), make("two")
    for number in range(4):
        one.put(f"m-{number}", f"text {number}")
    pull(two.ds)
    before, tag = one.entries(), remote.head(MONOLITH).fingerprint
    planned = migrate_index(one.ds, dry_run=True)
    assert remote.head(MONOLITH).fingerprint == tag
    done = migrate_index(one.ds)
    assert (done.is_done, done.entries, done.left_out) == (True, len(before), ())
    assert (planned.entries, planned.shards, planned.is_done) == (done.entries, done.shards, True)
    assert one.entries() == before
    meta = meta_of(remote)
    assert (meta["version"], meta["partitions"]) == (2, sorted(meta["partitions"]))
    assert meta["commitSeq"] == done.commit_seq
    assert remote.head(MONOLITH).fingerprint != tag
    assert json.loads(remote.get(MONOLITH).data)["entries"].keys() == before
    with open_place(one.ds) as place:
        assert summary_of(fetch_index(place)).form == "sharded"
    assert ".datastore.lock" not in [stat.key for stat in remote.list()]


def test_old_caches_go_on(make: Callable[[str], Client]) -> None:
    """Clients that knew the monolith see later commits, and theirs are seen, also of what they had not pulled."""
    one, two, three = make("one"), make("two"), make("three")
    one.put("a", "1")
    pull(two.ds)
    two.put("a", "2")
    three.put("b", "1")
    pull(one.ds)
    two.store.model("svc/web", "c").put("state", "marked before")
    migrate_index(one.ds)
    push(two.ds)
    one.put("a", "3")
    three.put("b", "2")
    for client in (one, two, three, make("four")):
        for _ in range(2):
            assert pull(client.ds).is_whole
        assert [client.get(name) for name in "abc"] == ["3", "2", "marked before"]


def test_a_sharded_store_is_left_alone(make: Callable[[str], Client], remote: MemoryRemote) -> None:
    """Migrating again changes no byte: what was committed since would be forgotten."""
    one = make("one")
    one.put("a", "1")
    migrate_index(one.ds)
    one.put("a", "2")
    before = {stat.key: stat.fingerprint for stat in remote.list()}
    for client in (one, make("two")):
        done = migrate_index(client.ds)
        assert (done.is_done, done.commit_seq) == (False, meta_of(remote)["commitSeq"])
    assert {stat.key: stat.fingerprint for stat in remote.list()} == before


def test_an_empty_store_becomes_sharded(make: Callable[[str], Client], remote: MemoryRemote) -> None:
    """Without an index there is nothing to list, and the next push lists its own."""
    one = make("one")
    assert migrate_index(one.ds).is_done
    assert (meta_of(remote)["version"], meta_of(remote)["partitions"]) == (2, [])
    one.put("a", "1")
    two = make("two")
    pull(two.ds)
    assert two.get("a") == "1"
    assert MONOLITH not in [stat.key for stat in remote.list()]


def test_the_count_of_commits_never_goes_back(make: Callable[[str], Client], remote: MemoryRemote) -> None:
    """A store that was sharded once, and demoted by an old client, counts on above what anybody saw."""
    one = make("one")
    one.put("a", "1")
    seen = migrate_index(one.ds).commit_seq
    one.put("a", "2")
    later = meta_of(remote)["commitSeq"]
    assert later > seen
    for stat in list(remote.list("_index/")):
        remote.delete(stat.key)
    document = json.loads(remote.get(MONOLITH).data)
    remote.put(MONOLITH, json.dumps(document).encode())
    assert migrate_index(one.ds).commit_seq > later
    assert migrate_index(make("two").ds).commit_seq > later


def test_what_no_shard_can_list_is_refused(make: Callable[[str], Client], remote: MemoryRemote) -> None:
    """It is named and nothing is changed; leaving it out keeps its object and says so."""
    one = make("one")
    one.put("a", "1")
    document = json.loads(remote.get(MONOLITH).data)
    good = next(iter(document["entries"].values()))
    stray = {rel: {**good, "key": rel} for rel in ("data/stray", "workflow-runs/x")}
    document["entries"] |= {**stray, "_index/internal.json": {**good}}
    remote.put(MONOLITH, json.dumps(document).encode())
    remote.put("data/stray", b"stray")
    before = {stat.key: stat.fingerprint for stat in remote.list()}
    with pytest.raises(FormatError) as refused:
        migrate_index(one.ds)
    assert (refused.value.kind, refused.value.names["paths"]) == ("unpartitionable", ["data/stray", "workflow-runs/x"])
    assert {stat.key: stat.fingerprint for stat in remote.list()} == before
    done = migrate_index(one.ds, leave_out=True)
    assert done.left_out == ("data/stray", "workflow-runs/x")
    assert remote.get("data/stray").data == b"stray"
    assert one.entries() == {rel for rel in document["entries"] if rel.startswith("data/svc/")}


def test_stale_partitions_are_made_anew(make: Callable[[str], Client], remote: MemoryRemote) -> None:
    """Partitions that an old client left behind, and some of long ago, say nothing old afterwards."""
    one = make("one")
    one.put("a", "1")
    one.put("b", "1")
    remote.put("_index/data--svc--web--a.json", b'{"version":1,"entries":{}}')
    ghost = json.loads(remote.get("_index/data--svc--web--b.json").data)
    remote.put("_index/data--gone.json", json.dumps(ghost).encode())
    before = one.entries()
    migrate_index(one.ds)
    assert one.entries() == before
    assert json.loads(remote.get("_index/data--gone.json").data)["entries"] == {}


class Dying(Wrapper):
    """A remote that fails for good from its n-th write on, as for a client that was killed."""

    def __init__(self, remote: Remote, writes: int) -> None:
        super().__init__(remote)
        self.left = writes

    def _around(self, operation: str, key: str, call: Callable[[], Any]) -> Any:
        if operation.startswith(("put", "delete")) and not key.endswith(".lock"):
            self.left -= 1
            if self.left < 0:
                raise RemoteError("killed", kind="killed")
        return super()._around(operation, key, call)


def test_dying_between_any_two_writes(tmp_path: Path) -> None:
    """After each write the store is a whole one of either form; the next run, from there or elsewhere, finishes."""
    for writes in range(20):
        for survivor in ("same", "other"):
            directory = tmp_path / f"{writes}-{survivor}"
            directory.mkdir()
            remote = MemoryRemote()
            one = Client(directory / "one", remote)
            for name in "ab":
                one.put(name, "1")
            # As after a client that knows no partitions: all of them have to be written.
            for stat in list(remote.list("_index/")):
                remote.delete(stat.key)
            before, tag = one.entries(), remote.head(MONOLITH).fingerprint
            dying = Client(directory / "one", Dying(remote, writes))
            try:
                migrate_index(replace(dying.ds, locks=one.ds.locks))
                is_over = True
            except RemoteError:
                is_over = False
            reader = Client(directory / "reader", remote)
            assert pull(reader.ds).is_whole
            assert [reader.get(name) for name in "ab"] == ["1", "1"]
            again = one if survivor == "same" else reader
            migrate_index(again.ds)
            assert again.entries() == before
            if survivor == "same":
                assert remote.head(MONOLITH).fingerprint != tag
            again.put("a", "2")
            pull(reader.ds)
            assert (reader.get("a"), reader.get("b")) == ("2", "1")
        if is_over:
            assert writes > 4
            return
    pytest.fail("a migration of two models takes more than 20 writes")


def test_what_an_old_client_writes_meanwhile_is_kept(tmp_path: Path) -> None:
    """A client that knows only the monolith commits right before the list is switched: its entry is in the shards."""

    class Busy(Wrapper):
        """A remote where somebody writes the monolith just before the new list."""

        is_done = False

        def put_if(self, key: str, data: bytes, *arguments: Any, **options: Any) -> Any:
            if key == META and not self.is_done:
                self.is_done = True
                document = json.loads(self._remote.get(MONOLITH).data)
                rel = next(rel for rel in document["entries"] if rel.endswith("/raw"))
                new = rel.replace("/1/raw", "/7/raw")
                document["entries"][new] = {**document["entries"][rel], "key": new}
                assert isinstance(self._remote.put(MONOLITH, json.dumps(document).encode()), Stored)
            return super().put_if(key, data, *arguments, **options)

    remote = MemoryRemote()
    one = Client(tmp_path / "one", remote)
    one.put("a", "1")
    before = one.entries()
    busy = Client(tmp_path / "one", Busy(remote))
    migrate_index(replace(busy.ds, locks=one.ds.locks))
    assert meta_of(remote)["version"] == 2
    assert one.entries() - before == {"data/svc/web/a/state/7/raw"}
