"""Versions as Parquet: each once, whoever died when."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mire
from mire.edge.state import close_states
from mire.errors import ConflictError, DeniedError, FormatError, InputError, RemoteError
from mire.pipeline.jobs import export as job
from mire.pipeline.jobs.export import export_store, read_export
from mire.testing.faults import Fail
from mire.testing.s3server import S3Server


def rows(spark: Any, directory: Path) -> list[tuple[Any, ...]]:
    """The versions in an export, with their commit."""
    found = read_export(spark, str(directory)).collect()
    return sorted((row.model_id, row.name, row.version, row.attributes) for row in found)


@pytest.mark.parametrize("index", ["sharded", "dual"])
def test_an_export_goes_on_where_the_last_one_ended(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    """New versions are added once, nothing twice; a run that dies before its rename adds nothing."""
    store, out = synced(index=index), tmp_path / "out"
    vpc = store.model("aws/ec2/vpc", "vpc-1")
    vpc.put("state", '{"n": 1}', content_type="application/json")
    planned = export_store(spark, store.datastore, str(out), dry_run=True)
    assert not out.exists()
    first = export_store(spark, store.datastore, str(out))
    assert (planned.versions, planned.commit) == (first.versions, first.commit)
    assert rows(spark, out) == [("vpc-1", "state", 1, '{"n": 1}')]
    again = export_store(spark, store.datastore, str(out))
    assert (again.versions, again.is_new) == (0, False)
    vpc.put("state", '{"n": 2}', content_type="application/json")
    store.model("echo", "e").put("note", "hello")

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(job, "publish", die)
        with pytest.raises(KeyboardInterrupt):
            export_store(spark, store.datastore, str(out))
    assert len(rows(spark, out)) == 1
    second = export_store(spark, store.datastore, str(out))
    assert second.versions == 2
    assert second.commit > first.commit
    assert rows(spark, out) == [
        ("e", "note", 1, None),
        ("vpc-1", "state", 1, '{"n": 1}'),
        ("vpc-1", "state", 2, '{"n": 2}'),
    ]
    assert [name for name in os.listdir(out) if name.startswith(".mire-export-")] == []


def test_attributes_as_variant_and_a_directory_as_a_store(spark: Any, repo: Path, tmp_path: Path) -> None:
    """A directory that is used in place is exported, too; attributes can be asked for members."""
    out = tmp_path / "out"
    with mire.open(repo) as store:
        store.model("aws/ec2/vpc", "vpc-1").put("state", '{"n": 7}', content_type="application/json")
        done = export_store(spark, store.datastore, str(out), attributes="variant")
        assert done.versions == 1
        found = read_export(spark, str(out)).selectExpr("variant_get(attributes, '$.n', 'int') n").collect()
        assert [row.n for row in found] == [7]
        # Later exports are as the first one was, and the dry run has the numbers of the run, also if there is nothing.
        for dry_run in (True, False):
            done = export_store(spark, store.datastore, str(out), dry_run=dry_run)
            assert (done.is_new, done.commit, done.versions) == (False, 1, 0)
        with pytest.raises(ConflictError, match="has attributes as variant, not as json"):
            export_store(spark, store.datastore, str(out), attributes="json")


def test_another_store_and_an_address_are_refused(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path, repo: Path
) -> None:
    """An export is of one store, in a directory; a note that cannot be read is told."""
    store, out = synced(), tmp_path / "out"
    store.model("echo", "e").put("note", "hello")
    export_store(spark, store.datastore, str(out))
    with mire.open(repo) as other:
        other.model("echo", "e").put("note", "another store")
        with pytest.raises(ConflictError, match="is an export of"):
            export_store(spark, other.datastore, str(out))
    with pytest.raises(InputError, match="is an address"):
        export_store(spark, store.datastore, "s3://bucket/out")
    note = next((out / "versions").glob("commit=*/_mire-export.json"))
    note.write_text("{")
    with pytest.raises(FormatError, match="move the directory away"):
        export_store(spark, store.datastore, str(out))


def test_what_cannot_be_read_is_told_once_and_exported_when_it_can_be(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path, snapshot: Callable[[Path], Any]
) -> None:
    """Damage of metadata, content, entries and shards is a row with `_error`, which the dry run counts as well."""
    store, out, remote = synced(), tmp_path / "out", tmp_path / "remote"
    for model in ("meta", "content", "entry", "garbled", "gone", "sound"):
        store.model("echo", model).put("note", f'{{"is": "{model}"}}', content_type="application/json")
    before = snapshot(remote)
    (remote / "data/echo/meta/note/1/metadata.yaml").write_text("{")
    (remote / "data/echo/content/note/1/raw").unlink()
    shard = remote / "_index/data--echo--entry.json"
    text = json.loads(shard.read_text())
    text["entries"]["data/echo/entry/note/1/metadata.yaml"] = {"size": "many"}
    shard.write_text(json.dumps(text, separators=(",", ":")))
    (remote / "_index/data--echo--garbled.json").write_text("{")
    (remote / "_index/data--echo--gone.json").unlink()

    planned = export_store(spark, store.datastore, str(out), dry_run=True)
    done = export_store(spark, store.datastore, str(out))
    assert (planned.versions, planned.failed, planned.commit) == (done.versions, done.failed, done.commit)
    assert (done.versions, done.failed) == (1, 5)
    told = [row for row in read_export(spark, str(out)).collect() if row._error is not None]
    assert {(row.model_id, row.version) for row in told} == {("meta", 1), ("content", 1), ("entry", 1), (None, None)}
    errors = " ".join(row._error for row in told)
    assert "'data--echo--garbled' cannot be understood" in errors
    assert "lists the shard 'data--echo--gone', which is not there" in errors
    assert "'data/echo/entry/note/1/metadata.yaml' in the index cannot be used" in errors
    again = export_store(spark, store.datastore, str(out))
    assert (again.is_new, again.versions, again.failed) == (False, 0, 5)

    for rel, data in before.items():
        if data is not None:
            (remote / rel).write_bytes(data)
    # Nothing was committed: what there is to export came back by itself.
    done = export_store(spark, store.datastore, str(out))
    assert (done.is_new, done.versions, done.failed) == (True, 5, 0)
    found = read_export(spark, str(out)).where("_error is null").collect()
    assert sorted(row.model_id for row in found) == ["content", "entry", "garbled", "gone", "meta", "sound"]


def test_a_version_is_a_row_again_only_if_its_metadata_changed(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path
) -> None:
    """An append makes another row, of which the last commit counts; what an index says of a hash does not."""
    store, out = synced(), tmp_path / "out"
    store.model("echo", "e").put("log", "one", streaming=True)
    shard = tmp_path / "remote/_index/data--echo--e.json"
    whole = shard.read_text()
    text = json.loads(whole)
    for entry in text["entries"].values():
        entry.pop("sha256")
    shard.write_text(json.dumps(text, separators=(",", ":")))
    first = export_store(spark, store.datastore, str(out))
    assert first.versions == 1
    # The index gets the hashes that it had not: a rebuild does that.
    shard.write_text(whole)
    store.model("echo", "other").put("note", "other")
    assert export_store(spark, store.datastore, str(out)).versions == 1
    store.model("echo", "e").append("log", "two")
    last = export_store(spark, store.datastore, str(out))
    assert last.versions == 1
    table = read_export(spark, str(out)).where("model_id = 'e'")
    assert sorted((row.commit, row.size_bytes) for row in table.collect()) == [(first.commit, 3), (last.commit, 6)]
    # It would be true of every version that ever was the latest.
    assert "is_latest" not in table.columns


def test_only_what_changed_is_read_again(spark: Any, bucket_repo: Callable[..., Path], tmp_path: Path) -> None:
    """Shards whose versions are all exported are not asked for again; a store that fails is an error, and no row."""
    out = str(tmp_path / "out")
    with S3Server(buckets=["mire-export"]) as server, mire.open(bucket_repo(server.url, "mire-export")) as store:
        for model in ("a", "b"):
            store.model("echo", model).put("note", model)
        rule = server.inject(Fail(403, "AccessDenied"), operation="GetObject", key="data/*/latest", times=None)
        with pytest.raises(DeniedError):
            export_store(spark, store.datastore, out)
        server.faults.remove(rule)
        assert export_store(spark, store.datastore, out).versions == 2
        store.model("echo", "a").put("note", "again")
        server.reset()
        assert export_store(spark, store.datastore, out).versions == 1
        asked = [each.key for each in server.log() if each.operation == "GetObject"]
        close_states(store.datastore.base)
    wanted = ["_index/data--echo--a--note.json", "_index/data--echo--a.json"]
    assert sorted(key for key in asked if key.startswith("_index/data--")) == wanted
    assert [key for key in asked if key.endswith("/metadata.yaml")] == ["data/echo/a/note/2/metadata.yaml"]


def test_export_on_the_command_line(
    run: Callable[..., tuple[int, str, str]], synced: Callable[..., mire.Store], tmp_path: Path
) -> None:
    """The number of versions is shown, and that there is nothing new the next time."""
    store, out = synced(), str(tmp_path / "out")
    store.model("echo", "e").put("note", "hello")
    repo = store.datastore.repo_dir
    assert run("export", out, "--repo", repo)[1].startswith(f"exported 1 version to {out}, commit ")
    assert run("export", out, "--repo", repo)[1].startswith("nothing is new since the last export")


def test_an_export_that_spark_writes_elsewhere_is_none(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where Spark's path is another directory than ours, that is an error, and no version counts as exported."""
    store = synced()
    store.model("echo", "e").put("note", "hello")
    theirs = os.path.join(os.getcwd(), f"mire-{tmp_path.name}")
    monkeypatch.chdir(tmp_path)
    try:
        # A path that every process sees as one of its own.
        with pytest.raises(RemoteError, match=r"Spark wrote 1 versions, and 0 of them are in") as raised:
            export_store(spark, store.datastore, f"/proc/self/cwd/mire-{tmp_path.name}")
    finally:
        shutil.rmtree(theirs)
    assert raised.value.kind == "unreachable"
    assert os.listdir(tmp_path / f"mire-{tmp_path.name}/versions") == []
    # A relative path is ours.
    assert export_store(spark, store.datastore, "out").versions == 1
    assert [row[0] for row in rows(spark, tmp_path / "out")] == ["e"]
