"""Indexes the reference wrote: read in the fast form, and written again in the same bytes."""

import json
from pathlib import Path

import pytest

from mire.model.index import Entry
from mire.model.names import SOLO, Namespace, RelPath
from mire.wire.canonical import frame_of
from mire.wire.indextext import IndexText
from mire.wire.meta import decode_meta, encode_meta, meta_key, sort_partitions
from mire.wire.monolith import decode_monolith, encode_monolith, monolith_key, monolith_of
from mire.wire.shard import decode_shard, encode_shard, shard_key, shard_of, shard_prefix

GOLDEN = Path(__file__).parent.parent / "golden"
STORES = {
    "v1": (GOLDEN / "v1" / "bucket", SOLO),
    "v1-incremental": (GOLDEN / "v1-incremental" / "bucket", SOLO),
    "v2": (GOLDEN / "v2" / "bucket", SOLO),
    "namespaced": (GOLDEN / "namespaced" / "bucket" / "swamp", Namespace("team-a")),
}


@pytest.fixture(params=sorted(STORES))
def store(request: pytest.FixtureRequest) -> tuple[Path, Namespace]:
    """A bucket the reference wrote, and the namespace in it."""
    return STORES[request.param]


def monolith(store: tuple[Path, Namespace]) -> IndexText:
    """The monolith of a store."""
    root, namespace = store
    return decode_monolith((root / monolith_key(namespace)).read_bytes())


def entries(index: IndexText) -> dict[RelPath, Entry]:
    """All entries; the reference writes no bad ones."""
    assert all(isinstance(entry, Entry) for entry in index.values())
    return dict(index.items())


def test_monoliths_come_back(store: tuple[Path, Namespace]) -> None:
    """A monolith is read without being rewritten, and its entries encode to the same bytes."""
    root, namespace = store
    data = (root / monolith_key(namespace)).read_bytes()
    assert frame_of(data) is not None
    index = decode_monolith(data)
    assert index.data == data
    assert {rel: entry.size_bytes for rel, entry in entries(index).items()} == {
        rel: entry["size"] for rel, entry in json.loads(data)["entries"].items()
    }
    assert encode_monolith(entries(index), json.loads(data)["lastPulled"]) == data


def test_shards_come_back_and_follow_from_the_monolith(store: tuple[Path, Namespace]) -> None:
    """Every listed shard encodes to the same bytes, and is the one the monolith implies by the partition rule."""
    root, namespace = store
    index = monolith(store)
    groups = index.by_partition()
    meta = decode_meta((root / meta_key(namespace)).read_bytes(), "meta")
    assert set(groups) == set(meta.partitions)
    for partition in meta.partitions:
        key = shard_key(namespace, partition)
        data = (root / key).read_bytes()
        assert frame_of(data) is not None
        assert encode_shard(entries(decode_shard(data, key))) == data
        assert shard_of(index, groups[partition]) == shard_of(index, index.of_partition(partition)) == data
    on_disk = {path.name for path in (root / shard_prefix(namespace)).iterdir()}
    assert on_disk == {f"{partition}.json" for partition in (*meta.partitions, "_meta")}


def test_the_list_comes_back_in_its_order(store: tuple[Path, Namespace]) -> None:
    """Version 1 lists partitions as they come up in the monolith, version 2 sorts them."""
    root, namespace = store
    data = (root / meta_key(namespace)).read_bytes()
    meta = decode_meta(data, "meta")
    assert encode_meta(meta) == data
    groups = tuple(monolith(store).by_partition())
    assert meta.partitions == (groups if meta.version == 1 else sort_partitions(groups))


def test_shards_add_up_to_the_monolith(store: tuple[Path, Namespace]) -> None:
    """The monolith made of the shards says what the reference's monolith says."""
    root, namespace = store
    meta = decode_meta((root / meta_key(namespace)).read_bytes(), "meta")
    shards = [decode_shard((root / shard_key(namespace, name)).read_bytes(), name) for name in meta.partitions]
    whole = decode_monolith(monolith_of(shards, "2026-01-01T00:00:00.000Z"))
    assert entries(whole) == entries(monolith(store))


def test_of_shards_that_disagree_the_last_counts() -> None:
    """A path in two shards is taken from the later one."""
    older, newer = Entry(size_bytes=1, last_modified=""), Entry(size_bytes=2, last_modified="")
    shards = [decode_shard(encode_shard({"a": older, "b": older}), "x"), decode_shard(encode_shard({"a": newer}), "y")]
    assert dict(decode_monolith(monolith_of(shards, "now"))) == {"b": older, "a": newer}


def test_a_push_of_the_reference_is_repeated_byte_for_byte() -> None:
    """One version added and one name deleted: the same changes of the same monolith give the same text."""
    before, after = monolith(STORES["v1"]), monolith(STORES["v1-incremental"])
    diff = before.diff(after)
    assert (len(diff.added), len(diff.changed), len(diff.removed)) == (2, 1, 7)
    upserts = {rel: after[rel] for rel in (*diff.changed, *diff.added)}
    pulled = json.loads(after.data)["lastPulled"]
    assert before.with_changes(upserts, diff.removed, last_pulled=pulled) == after.data


def test_the_indented_copy_in_a_cache_is_read() -> None:
    """The reference's local copy becomes the text of the remote again."""
    data = (GOLDEN / "v1" / "cache" / ".datastore-index.json").read_bytes()
    assert data.startswith(b"{\n  ")
    assert decode_monolith(data).data == monolith(STORES["v1"]).data


def test_keys_are_those_of_the_format() -> None:
    """Indexes are at the root of a solo store and below a namespace."""
    assert monolith_key(SOLO) == ".datastore-index.json"
    assert meta_key(SOLO) == "_index/_meta.json"
    assert shard_key(Namespace("green"), "data--a--b") == "green/_index/data--a--b.json"
    assert encode_shard({}) == b'{"version":1,"entries":{}}'
