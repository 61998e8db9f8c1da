"""The catalog of all namespaces: rows of others are read from their metadata, by tasks, and only read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mire
from mire.flow.imports import import_catalogs, known_imports, open_imports
from mire.model.names import Namespace
from mire.pipeline.jobs.others import rebuild_others
from mire.wire.export import EXPORT_COLUMNS
from tenants import Tenant

BLUE, RED = Namespace("blue"), Namespace("red")
SHOWN = ",".join({"type_normalized": "model_type", "data_name": "name"}.get(name, name) for name in EXPORT_COLUMNS)


def fill(store: mire.Store) -> None:
    """Several versions, one with tags, a name that was renamed, one that is gone, and one version deleted."""
    vpc = store.model("aws/ec2/vpc", "vpc-1", name="main")
    for number in range(3):
        vpc.put("state", {"n": number}, tags={"env": "prod"})
    vpc.delete("state", 2)
    vpc.put("old", "x")
    vpc.rename("old", "new")
    vpc.put("gone", "x")
    vpc.mark_deleted("gone")


def rows_of(store: mire.Store, *namespaces: str) -> list[tuple[Any, ...]]:
    """What queries know of others."""
    with open_imports(store.datastore) as catalog:
        found = catalog.rows(f"SELECT {SHOWN} FROM version ORDER BY 1, 2, 3, 4, 6")  # noqa: S608 - our columns
        return [row for row in found if not namespaces or row[0] in namespaces]


def test_rows_are_those_that_others_publish(
    spark: Any,
    synced: Callable[..., mire.Store],
    tmp_path: Path,
    run: Callable[..., tuple[int, str, str]],
    snapshot: Callable[[Path], Any],
) -> None:
    """Read from metadata they are the same as from published catalogs, and there when nothing is published.

    A damaged file is told and costs its own row; a namespace whose index cannot be read keeps what was known of it.
    """
    ours, remote = synced("ours", namespace="ours"), tmp_path / "remote"
    ours.model("echo", "mine").put("note", "hello")
    for name in (BLUE, RED):
        fill(synced(name, namespace=name, index="dual" if name == RED else "sharded"))
    import_catalogs(ours.datastore, [BLUE, RED])
    published = rows_of(ours)
    assert len(published) == 6
    (remote / "blue/.catalog-export.json").unlink()
    before = snapshot(remote)
    with open_imports(ours.datastore) as catalog:
        catalog.run("DELETE FROM version")
    planned = rebuild_others(spark, ours.datastore, dry_run=True)
    assert rows_of(ours) == []
    done = rebuild_others(spark, ours.datastore)
    assert planned == done
    assert [(each.namespace, each.outcome, each.rows) for each in done.namespaces] == [
        (BLUE, "imported", 3),
        (RED, "imported", 3),
    ]
    assert (rows_of(ours), done.errors) == (published, [])
    assert snapshot(remote) == before
    answer = ours.query('ns == "blue" && attributes.n == 2')
    assert [(row["namespace"], row["modelName"]) for row in answer] == [("blue", "main")]
    # What is read from metadata says nothing about what is published: the next pull brings that, whole.
    assert [each.outcome for each in import_catalogs(ours.datastore, [RED])] == ["imported"]

    (remote / "blue/data/aws/ec2/vpc/vpc-1/state/1/metadata.yaml").write_text("version: [")
    (remote / "red/.datastore-index.json").write_text("{")
    (remote / "red/_index/_meta.json").write_text("{")
    code, out, _ = run(
        "catalog", "rebuild", "--pipeline", "--all-namespaces", "--json", "--repo", str(tmp_path / "ours")
    )
    document = json.loads(out)
    assert code == 5
    assert document["versions"] == 1
    (error,) = document["errors"]
    assert error.startswith("blue: aws/ec2/vpc/vpc-1/state/1: ")
    told = {each["namespace"]: (each["outcome"], each["rows"]) for each in document["namespaces"]}
    assert told == {"blue": ("imported", 2), "red": ("damaged", 3)}
    assert rows_of(ours, RED) == [row for row in published if row[0] == RED]


def test_a_damaged_shard_changes_nothing_it_might_hold(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path
) -> None:
    """Of a plain directory and of an index alike rows come; what a lost shard may list stays, what was seen counts."""
    ours, remote = synced("ours", namespace="ours"), tmp_path / "remote"
    ours.model("echo", "mine").put("note", "hello")
    blue = synced(BLUE, namespace=BLUE)
    fill(blue)
    blue.model("echo", "e").put("note", "hello")
    assert rebuild_others(spark, ours.datastore).namespaces[0].rows == 4
    blue.model("echo", "e").put("note", "more")
    (remote / "blue/_index/data--aws--ec2--vpc--vpc-1.json").write_text("{")
    done = rebuild_others(spark, ours.datastore)
    assert [(each.outcome, each.rows) for each in done.namespaces] == [("imported", 5)]
    assert [error.partition(" is skipped")[0] for error in done.errors] == [
        "blue: the shard 'data--aws--ec2--vpc--vpc-1' of the index"
    ]
    share = tmp_path / "share"
    share.mkdir()
    for name in (BLUE, RED):
        tenant = Tenant(tmp_path / f"plain-{name}", None, {"type": "filesystem", "path": str(share)})
        tenant.take(name)
        tenant.put("vpc-1", f"of {name}")
    with tenant.open() as store:
        rebuild_others(spark, store.datastore)
        assert [(each.namespace, each.rows) for each in known_imports(store.datastore)] == [(BLUE, 1)]
