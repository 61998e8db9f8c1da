"""Versions as Parquet: each once, whoever died when."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mire
from mire.errors import ConflictError, FormatError, InputError, RemoteError
from mire.pipeline.jobs import export as job
from mire.pipeline.jobs.export import export_store, read_export


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
        patch.setattr(job, "_publish", die)
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
        assert not export_store(spark, store.datastore, str(out), attributes="variant").is_new


def test_what_is_damaged_or_of_another_store_is_told(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path, repo: Path
) -> None:
    """Damaged metadata is a row with `_error`; an address and the export of another store are refused."""
    store, out = synced(), tmp_path / "out"
    store.model("echo", "e").put("note", "hello")
    (tmp_path / "remote/data/echo/e/note/1/metadata.yaml").write_text("{")
    assert export_store(spark, store.datastore, str(out)).failed == 1
    assert "metadata" in read_export(spark, str(out)).collect()[0]._error
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


def test_export_on_the_command_line(
    run: Callable[..., tuple[int, str, str]], synced: Callable[..., mire.Store], tmp_path: Path
) -> None:
    """The number of versions is shown, and that there is nothing new the next time."""
    store, out = synced(), str(tmp_path / "out")
    store.model("echo", "e").put("note", "hello")
    repo = store.datastore.repo_dir
    assert run("export", out, "--repo", repo)[1].startswith(f"exported 1 version to {out}, commit ")
    assert run("export", out, "--repo", repo)[1].startswith("nothing was committed since the last export")


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
