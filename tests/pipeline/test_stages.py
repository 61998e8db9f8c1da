"""Stages: a listing, an index and metadata as rows, whoever shares the work."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mire
from mire.edge.memory import MemoryRemote
from mire.edge.objectstore import open_local
from mire.flow.fence import fenced_for_job
from mire.model.names import SOLO
from mire.pipeline.stages.parse import Wanted, names_of, parse
from mire.pipeline.stages.scan import plan_pieces, scan
from mire.pipeline.stages.shards import ABSENT, UNLISTED, read_index
from mire.pipeline.store import spec_of
from mire.pipeline.view import look_at_index
from mire.wire.relpath import is_internal, tenant_of

MODELS = ("vpc-1", "vpc-2")


def fill(store: mire.Store) -> None:
    """Two models with three versions each, published."""
    for model in MODELS:
        for number in range(3):
            data = store.model("aws/ec2/vpc", model)
            data.put("state", f'{{"n": {number}}}', content_type="application/json", tags={"team": "a"})
    store.model("echo", "e").put("note", "hello")


def objects_in(remote: Path) -> dict[str, int]:
    """The data objects there are, with their sizes."""
    return {stat.key: stat.size_bytes for stat in open_local(str(remote)).list() if not is_internal(stat.key)}


_KEYS = st.lists(
    st.lists(st.sampled_from(["a", "b", "data", "_index", "c.d"]), min_size=1, max_size=5).map("/".join), max_size=20
)


@given(keys=_KEYS, wanted=st.integers(min_value=1, max_value=20))
def test_pieces_hold_every_object_once(keys: list[str], wanted: int) -> None:
    """However a listing is cut, every object that clients sync is in one piece; nothing that is a tenant's is asked."""
    remote = MemoryRemote()
    for key in keys:
        remote.put(key, b"")
    ours = fenced_for_job(remote, SOLO, (), is_read_only=True)
    found: list[str] = []
    for prefix, is_level in plan_pieces(ours, wanted=wanted, is_solo=True):
        stats = ours.list_level(prefix).objects if is_level else ours.list(prefix)
        found += [stat.key for stat in stats if not is_internal(stat.key) and tenant_of(stat.key) is None]
    assert sorted(found) == sorted({key for key in keys if not is_internal(key) and tenant_of(key) is None})


def test_other_namespaces_are_not_looked_into() -> None:
    """Without a namespace, the part of somebody who has one is in no piece; a directory without a claim is."""
    remote = MemoryRemote()
    for key in ("data/a", "team/.namespace.json", "team/data/a", "odd/a", "_index/_meta.json"):
        remote.put(key, b"{}")
    assert {prefix for prefix, _ in plan_pieces(remote, wanted=4, is_solo=True)} == {"", "data/", "odd/"}


def test_a_listing_is_rows(spark: Any, synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """Every object that clients sync is a row; nothing internal is, nor what is of a namespace that nobody claimed."""
    store = synced()
    fill(store)
    expected = objects_in(tmp_path / "remote")
    open_local(str(tmp_path / "remote")).put("unclaimed/data/x", b"somebody's")
    rows = scan(spark, spec_of(store.datastore), cores=2).collect()
    assert {row.rel: row.size_bytes for row in rows} == expected
    assert len({row.rel for row in rows}) == len(rows)


@pytest.mark.parametrize("index", ["dual", "sharded"])
def test_an_index_is_rows(spark: Any, synced: Callable[..., mire.Store], tmp_path: Path, index: str) -> None:
    """Both forms of an index give the same rows: one for each object, with its hash."""
    store = synced(index=index)
    fill(store)
    spec = spec_of(store.datastore)
    view = look_at_index(open_local(str(tmp_path / "remote")))
    assert view.form == index
    rows = read_index(spark, spec, view, cores=2).collect()
    assert {row.rel: row.size_bytes for row in rows} == objects_in(tmp_path / "remote")
    assert all(len(row.sha256) == 64 and row.partition and row.damage is None for row in rows)


def test_damaged_shards_are_rows(spark: Any, synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """A shard that is missing, garbled or not listed is a row that says so; the others are read."""
    store = synced()
    fill(store)
    shards = tmp_path / "remote" / "_index"
    (shards / "data--aws--ec2--vpc--vpc-1.json").unlink()
    (shards / "data--aws--ec2--vpc--vpc-2.json").write_text("{")
    (shards / "logs.json").write_text('{"version":1,"entries":{"logs/a":{"key":"logs/a","size":1,"lastModified":"t"}}}')
    view = look_at_index(open_local(str(tmp_path / "remote")))
    rows = read_index(spark, spec_of(store.datastore), view, cores=2).collect()
    about = {row.partition: row.damage for row in rows if row.rel is None}
    assert about.pop("data--aws--ec2--vpc--vpc-1") == ABSENT
    assert about.pop("logs") == UNLISTED
    assert "data--aws--ec2--vpc--vpc-2" in about.pop("data--aws--ec2--vpc--vpc-2")
    assert not about
    assert {row.rel for row in rows if row.partition == "data--aws--ec2--vpc"} == {
        f"data/aws/ec2/vpc/{model}/state/latest" for model in MODELS
    }


def test_versions_are_columns(spark: Any, synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """Metadata becomes columns, JSON content its attributes; the latest one is known; damage is a row of its own."""
    store = synced()
    fill(store)
    damaged = tmp_path / "remote" / "data/aws/ec2/vpc/vpc-2/state/2/metadata.yaml"
    damaged.write_text("version: [")
    spec = spec_of(store.datastore)
    entries = read_index(spark, spec, look_at_index(open_local(str(tmp_path / "remote"))), cores=2)
    rows = parse(names_of(entries), spec, Wanted(content=True)).collect()
    found = {(row.model_id, row.name, row.version): row for row in rows}
    assert len(rows) == len(found) == 7
    third = found["vpc-1", "state", 3]
    assert (third.model_type, third.is_latest, third.attributes) == ("aws/ec2/vpc", True, '{"n": 2}')
    assert (third.tags["team"], third.content, third._error) == ("a", b'{"n": 2}', None)
    assert not found["vpc-1", "state", 1].is_latest
    assert found["e", "note", 1].attributes is None
    assert "metadata" in found["vpc-2", "state", 2]._error
    latest = parse(names_of(entries), spec, Wanted(latest_only=True, attributes=False)).collect()
    assert {(row.model_id, row.version, row.attributes) for row in latest} == {
        ("vpc-1", 3, None),
        ("vpc-2", 3, None),
        ("e", 1, None),
    }
