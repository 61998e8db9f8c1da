"""An index made anew: complete, correct, above every commit there was, and in one step."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mire
from mire.edge.objectstore import open_local
from mire.errors import InputError
from mire.flow.pull import pull
from mire.flow.verify import verify
from mire.model.index import Meta
from mire.pipeline.jobs.rebuild import form_of, rebuild_index
from mire.pipeline.view import IndexView
from sync_world import committed


def fill(store: mire.Store) -> None:
    """A few versions, published."""
    for number in range(2):
        store.model("aws/ec2/vpc", "vpc-1").put("state", f"{number}")
    store.model("echo", "e").put("note", "hello")


def values(remote: Path) -> dict[str, tuple[int, str | None]]:
    """What the index says."""
    return {rel: (entry.size_bytes, entry.sha256) for rel, entry in committed(open_local(str(remote))).items()}


def test_a_sharded_index_comes_back_from_what_is_stored(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path, snapshot: Callable[[Path], Any]
) -> None:
    """List gone, a shard garbled, another lost: all entries are back with their hashes; clients go on."""
    store, remote = synced(), tmp_path / "remote"
    fill(store)
    before, shards = values(remote), remote / "_index"
    seq = json.loads((shards / "_meta.json").read_text())["commitSeq"]
    (shards / "_meta.json").write_text("{")
    (shards / "data--aws--ec2--vpc--vpc-1.json").write_text("{")
    (shards / "data--echo--e.json").unlink()
    (remote / "data/x").mkdir()
    (remote / "data/x/odd").write_text("no index can list it")
    damaged = snapshot(remote)
    planned = rebuild_index(spark, store.datastore, dry_run=True)
    assert snapshot(remote) == damaged
    done = rebuild_index(spark, store.datastore)
    assert values(remote) == before
    assert (done.entries, done.hashed, done.left_out) == (len(before), 6, ("data/x/odd",))
    assert (planned.entries, planned.hashed, planned.kept, planned.shards) == (
        done.entries,
        done.hashed,
        done.kept,
        done.shards,
    )
    assert done.commit_seq is not None
    assert done.commit_seq > seq
    other = synced("other")
    assert not pull(other.datastore, full=True).findings
    store.model("echo", "e").put("note", "again")
    assert not verify(store.datastore, deep=True).is_damaged


def test_a_dual_index_comes_back_with_its_partitions(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path
) -> None:
    """A monolith that cannot be read is written anew from its partitions and the listing, and vouched for."""
    store, remote = synced(index="dual"), tmp_path / "remote"
    fill(store)
    before = values(remote)
    (remote / ".datastore-index.json").write_text("{")
    (remote / "_index/data--echo--e.json").unlink()
    (remote / "data/aws/ec2/vpc/vpc-1/state/1/raw").unlink()
    done = rebuild_index(spark, store.datastore)
    before.pop("data/aws/ec2/vpc/vpc-1/state/1/raw")
    assert values(remote) == before
    assert (done.form, done.gone, done.hashed, done.commit_seq) == ("dual", 1, 2, None)
    assert {finding.kind for finding in verify(store.datastore).findings} <= {"lost"}


def test_rebuild_on_the_command_line(
    run: Callable[..., tuple[int, str, str]], synced: Callable[..., mire.Store]
) -> None:
    """A sound index is written again as it was; the numbers are shown."""
    store = synced()
    fill(store)
    code, out, err = run("index", "rebuild", "--repo", store.datastore.repo_dir, "--deep")
    assert (code, err) == (0, "")
    assert out.startswith("wrote 8 entries into 4 shards, commit ")
    assert "kept 0, read 8 for their hash, dropped 0 without an object" in out


META = Meta(version=2, partitions=("logs",), commit_seq=1)


@pytest.mark.parametrize(
    ("view", "wanted", "form"),
    [
        (IndexView(meta=META), None, "sharded"),
        (IndexView(meta=Meta(version=1), monolith_tag="t"), None, "dual"),
        (IndexView(meta=None), None, "dual"),
        (IndexView(meta=None), "sharded", "sharded"),
        (IndexView(meta=None, shards={"logs": "t"}), None, "sharded"),
        (IndexView(meta=None, monolith_tag="t"), None, "dual"),
        (IndexView(meta=None, monolith_tag="t", shards={"logs": "t"}), "dual", "dual"),
    ],
)
def test_the_form_is_that_of_the_old_index(view: IndexView, wanted: Any, form: str) -> None:
    """What the old index was, as far as it can be told; where it cannot, what was asked for."""
    assert form_of(view, wanted, is_sharded=False) == form


@pytest.mark.parametrize(
    ("view", "wanted", "message"),
    [
        (IndexView(meta=META), "dual", "there is no way back"),
        (IndexView(meta=None, monolith_tag="t", shards={"logs": "t"}), None, "say --index sharded or --index dual"),
    ],
)
def test_the_form_is_never_guessed(view: IndexView, wanted: Any, message: str) -> None:
    """An index of another form than was asked for, or of either, is not touched."""
    with pytest.raises(InputError, match=message):
        form_of(view, wanted, is_sharded=False)
