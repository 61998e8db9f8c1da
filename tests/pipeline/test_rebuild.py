"""An index made anew: complete, correct, above every commit there was, and in one step."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mire
from job_table import files_of, values
from mire.errors import InputError
from mire.flow.pull import pull
from mire.flow.verify import verify
from mire.model.index import Meta
from mire.pipeline.jobs.rebuild import form_of, rebuild_index
from mire.pipeline.jobs.survivors import lost_parts
from mire.pipeline.view import IndexView


def fill(store: mire.Store) -> None:
    """A few versions, published."""
    for number in range(2):
        store.model("aws/ec2/vpc", "vpc-1").put("state", f"{number}")
    store.model("echo", "e").put("note", "hello")


def rewrite(path: Path, rel: str, **members: Any) -> None:
    """Let an index say something else of a path."""
    text = json.loads(path.read_text())
    text["entries"].setdefault(rel, {}).update(members)
    path.write_text(json.dumps(text, separators=(",", ":")))


def test_a_sharded_index_comes_back_from_what_is_stored(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path, snapshot: Callable[[Path], Any]
) -> None:
    """List gone, a shard garbled, another lost: all entries are back with their hashes; clients go on.

    Of a push that died, what it stored is listed, and the marker that it replaced, and that leads to a version, counts.
    """
    store, remote = synced(), tmp_path / "remote"
    fill(store)
    before, shards = values(remote), remote / "_index"
    marker = "data/aws/ec2/vpc/vpc-1/state/latest"
    (remote / marker).write_text("1")
    before[marker] = (1, hashlib.sha256(b"1").hexdigest())
    seq = json.loads((shards / "_meta.json").read_text())["commitSeq"]
    (shards / "_meta.json").write_text("{")
    (shards / "data--aws--ec2--vpc--vpc-1.json").write_text("{")
    (shards / "data--echo--e.json").unlink()
    (remote / "data/x").mkdir()
    (remote / "data/x/odd").write_text("no index can list it")
    rewrite(shards / "data--echo--e--note.json", "data/echo/e/note/unknown", size="many")
    damaged = snapshot(remote)
    planned = rebuild_index(spark, store.datastore, dry_run=True)
    assert snapshot(remote) == damaged
    done = rebuild_index(spark, store.datastore)
    assert values(remote) == before
    assert (done.entries, done.hashed, done.gone, done.differing) == (len(before), 7, 0, 0)
    assert done.left_out == ("data/echo/e/note/unknown", "data/x/odd")
    assert replace(planned, is_dry_run=False, commit_seq=done.commit_seq) == done
    assert done.commit_seq is not None
    assert done.commit_seq > seq
    other = synced("other")
    assert not pull(other.datastore, full=True).findings
    store.model("echo", "e").put("note", "again")
    assert not verify(store.datastore, deep=True).is_damaged


def test_a_dual_index_comes_back_with_its_partitions(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path
) -> None:
    """A monolith that cannot be read is written anew from its partitions and the listing, and vouched for.

    What has no object stays listed, and what is rotten is not described as it is: no cache loses a copy by its pull.
    An object that its metadata vouches for is described as it is, whatever its entry said.
    """
    store, other, remote = synced(index="dual"), synced("other", index="dual"), tmp_path / "remote"
    fill(store)
    store.model("aws/ec2/vpc", "vpc-1").put("state", "2")
    pull(other.datastore, full=True)
    before, had, state = values(remote), files_of(other), "data/aws/ec2/vpc/vpc-1/state"
    (remote / ".datastore-index.json").write_text("{")
    (remote / "_index/data--echo--e.json").unlink()
    rewrite(remote / "_index/data--aws--ec2--vpc--vpc-1.json", f"{state}/2/raw", size=99)
    (remote / state / "1/raw").unlink()
    (remote / state / "3/raw").write_text("")
    (remote / "data/echo/e/note/latest").write_text("7")
    done = rebuild_index(spark, store.datastore)
    assert values(remote) == before
    assert (done.form, done.gone, done.differing, done.hashed, done.commit_seq) == ("dual", 1, 2, 3, None)
    for cache in (store, other):
        pull(cache.datastore, full=True)
        assert files_of(cache) == had


def test_rebuild_on_the_command_line(
    run: Callable[..., tuple[int, str, str]], synced: Callable[..., mire.Store], tmp_path: Path
) -> None:
    """A sound index is written again as it was; the numbers are shown, and what is wrong with the store."""
    store, remote = synced(), tmp_path / "remote"
    fill(store)
    code, out, err = run("index", "rebuild", "--repo", store.datastore.repo_dir, "--deep")
    assert (code, err) == (0, "")
    assert out.startswith("wrote 8 entries into 4 shards, commit ")
    assert out.endswith("\nkept 0, read 8 for their hash\n")
    (remote / "data/echo/e/note/1/raw").unlink()
    (remote / "data/echo/e/note/latest").write_text("7")
    code, out, _ = run("index", "rebuild", "--repo", store.datastore.repo_dir, "--dry-run")
    assert code == 0
    assert "\n1 without an object: 'mire repair' stores it again from a cache that has a copy\n" in out
    assert "\n1 whose object is something else: 'mire verify --pipeline --deep' shows them\n" in out


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
    ("view", "form", "damaged", "lost"),
    [
        (IndexView(meta=META, shards={"logs": "t"}), "sharded", (), set()),
        (IndexView(meta=META, shards={"logs": "t"}), "sharded", ("logs",), {"logs"}),
        (IndexView(meta=META), "sharded", ("logs",), {"logs"}),
        (IndexView(meta=None, shards={"logs": "t"}), "sharded", (), {"files"}),
        (IndexView(meta=None, monolith_tag="t"), "dual", (), set()),
        (IndexView(meta=None, monolith_tag="t"), "dual", (".datastore-index.json",), {"logs", "files"}),
        (IndexView(meta=None, shards={"logs": "t"}), "dual", (), {"logs", "files"}),
        (IndexView(meta=None), "sharded", (), {"logs", "files"}),
    ],
)
def test_of_which_partitions_the_index_is_lost(view: IndexView, form: Any, damaged: Any, lost: set[str]) -> None:
    """Of those that cannot be read and, without a list, of those that may have been; of all without a monolith."""
    is_lost = lost_parts(view, form, damaged)
    assert {name for name in ("logs", "files") if is_lost(name)} == lost


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
