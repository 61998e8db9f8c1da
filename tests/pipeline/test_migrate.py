"""From any store to any store: everything arrives, verified, and counts only then."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mire
from mire.edge.objectstore import open_local
from mire.edge.prefixed import Prefixed
from mire.errors import ConflictError, FormatError, InputError, NotFoundError
from mire.pipeline.jobs.migrate import migrate_store
from mire.pipeline.rounds import Moved
from mire.pipeline.sides import open_source, open_target
from mire.wire.relpath import is_internal
from sync_world import committed


def fill(store: mire.Store) -> None:
    """A few versions."""
    for number in range(2):
        store.model("aws/ec2/vpc", "vpc-1").put("state", f"{number}")
    store.model("echo", "e").put("note", "hello")


def objects(root: Path, namespace: str = "") -> dict[str, bytes]:
    """The data objects of a namespace."""
    remote = Prefixed(open_local(str(root)), namespace) if namespace else open_local(str(root))
    found = {stat.key: remote.get(stat.key).data for stat in remote.list() if not is_internal(stat.key)}
    return {key: data for key, data in found.items() if namespace or not key.startswith("team/")}


def move(spark: Any, source: str, target: str, root: Path, **options: Any) -> Moved:
    """Migrate between two addresses."""
    one = open_source(source, namespace=options.pop("from_namespace", ""), repo_dir=str(root))
    namespace, index = options.pop("to_namespace", ""), options.pop("index", "dual")
    other = open_target(target, namespace=namespace, index=index, repo_dir=str(root))
    return migrate_store(spark, one, other, **options)


def test_between_stores_forms_and_namespaces(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path, snapshot: Callable[[Path], Any]
) -> None:
    """A sharded store of nobody's becomes a dual one of a namespace, and back; the source stays as it was."""
    fill(synced())
    one, two, three = tmp_path / "remote", tmp_path / "two", tmp_path / "three"
    two.mkdir()
    three.mkdir()
    before = snapshot(one)
    planned = move(spark, f"cached:{one}", f"cached:{two}", tmp_path, to_namespace="team", dry_run=True)
    done = move(spark, f"cached:{one}", f"cached:{two}", tmp_path, to_namespace="team")
    assert (planned.objects, planned.copied, planned.size_bytes) == (done.objects, done.copied, done.size_bytes)
    assert snapshot(one) == before
    assert objects(two, "team") == objects(one)
    assert committed(Prefixed(open_local(str(two)), "team")) == committed(open_local(str(one)))
    assert (two / "team/.datastore-index.json").exists()
    move(spark, f"cached:{two}", f"cached:{three}", tmp_path, from_namespace="team", index="sharded")
    assert objects(three) == objects(one)
    assert committed(open_local(str(three))) == committed(open_local(str(one)))
    assert not (three / ".datastore-index.json").exists()


def test_from_and_to_plain_directories(spark: Any, tmp_path: Path, synced: Callable[..., mire.Store]) -> None:
    """A directory that is used in place becomes a store with hashes; a store becomes a directory in one rename."""
    repo = tmp_path / "plain"
    repo.mkdir()
    with mire.open(repo) as store:
        fill(store)
        tier = store.datastore.tier
    store_dir, final = tmp_path / "store", tmp_path / "final"
    store_dir.mkdir()
    done = move(spark, f"file://{tier}", f"cached:{store_dir}", tmp_path)
    assert (done.copied, done.there) == (8, 0)
    assert all(entry.sha256 for entry in committed(open_local(str(store_dir))).values())
    move(spark, f"cached:{store_dir}", f"file://{final}", tmp_path)
    assert objects(final) == objects(store_dir) == objects(Path(tier))
    assert [path.name for path in tmp_path.iterdir() if "migrating" in path.name] == []
    with pytest.raises(ConflictError, match="is not empty"):
        move(spark, f"cached:{store_dir}", f"file://{final}", tmp_path)


def test_a_run_that_died_is_gone_on_with(spark: Any, synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """What is there is verified by its hash: sound objects stay, rotten ones are replaced; again changes nothing."""
    fill(synced())
    one, two = tmp_path / "remote", tmp_path / "two"
    two.mkdir()
    for key, data in list(objects(one).items())[:3]:
        (two / key).parent.mkdir(parents=True, exist_ok=True)
        (two / key).write_bytes(data)
    key, data = list(objects(one).items())[3]
    (two / key).parent.mkdir(parents=True, exist_ok=True)
    (two / key).write_bytes(b"x" * len(data))
    done = move(spark, f"cached:{one}", f"cached:{two}", tmp_path, index="sharded")
    assert (done.copied, done.there) == (5, 3)
    assert objects(two) == objects(one)
    meta = (two / "_index/_meta.json").read_bytes()
    again = move(spark, f"cached:{one}", f"cached:{two}", tmp_path, index="sharded")
    assert (again.copied, again.there) == (0, 8)
    assert (two / "_index/_meta.json").read_bytes() == meta


def test_damage_and_foreign_data_stop_it_before_anything_counts(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path
) -> None:
    """A rotten object at the source, or data of somebody else in the target: an error, and no index in the target."""
    fill(synced())
    one, two = tmp_path / "remote", tmp_path / "two"
    two.mkdir()
    (one / "data/echo/e/note/1/raw").write_text("jello")
    with pytest.raises(FormatError, match=r"data/echo/e/note/1/raw.*nothing was switched.*run again to go on"):
        move(spark, f"cached:{one}", f"cached:{two}", tmp_path)
    assert committed(open_local(str(two))) == {}
    (one / "data/echo/e/note/1/raw").write_text("hello")
    other = synced("other", remote=two)
    other.model("echo", "x").put("note", "mine")
    with pytest.raises(ConflictError, match="already has data of its own"):
        move(spark, f"cached:{one}", f"cached:{two}", tmp_path)
    (one / "_index/data--echo--e.json").unlink()
    (tmp_path / "three").mkdir()
    with pytest.raises(FormatError, match="is damaged at 'data--echo--e'"):
        move(spark, f"cached:{one}", f"cached:{tmp_path / 'three'}", tmp_path)


def test_what_cannot_be_migrated_is_refused(spark: Any, synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """A source that is not there, and one store given twice, are refused."""
    (tmp_path / "remote").mkdir()
    with pytest.raises(InputError, match="are the same store"):
        move(spark, f"file://{tmp_path}/remote", f"file://{tmp_path}/remote", tmp_path)
    with pytest.raises(NotFoundError, match="is not there"):
        move(spark, f"file://{tmp_path}/nowhere", f"file://{tmp_path}/x", tmp_path)


def test_migrate_on_the_command_line(
    run: Callable[..., tuple[int, str, str]], synced: Callable[..., mire.Store], tmp_path: Path
) -> None:
    """The numbers are shown, and the verdict."""
    fill(synced())
    code, out, err = run("migrate", f"cached:{tmp_path}/remote", f"file://{tmp_path}/copy")
    assert (code, err) == (0, "")
    assert "copied         8" in out
    assert "everything is there, and counts" in out


def test_what_strayed_from_a_tenant_stays_behind(spark: Any, synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """An index that lists somebody else's path is not followed into that part; the numbers of the dry run agree."""
    fill(synced(index="dual"))
    one, two, stray = tmp_path / "remote", tmp_path / "two", "team/data/echo/e/note/1/raw"
    monolith = json.loads((one / ".datastore-index.json").read_text())
    monolith["entries"][stray] = monolith["entries"]["data/echo/e/note/1/raw"]
    (one / ".datastore-index.json").write_text(json.dumps(monolith))
    (one / stray).parent.mkdir(parents=True)
    (one / stray).write_text("hello")
    two.mkdir()
    planned = move(spark, f"cached:{one}", f"cached:{two}", tmp_path, dry_run=True)
    done = move(spark, f"cached:{one}", f"cached:{two}", tmp_path)
    assert done.left_out == planned.left_out == (stray,)
    assert (planned.objects, planned.size_bytes) == (done.objects, done.size_bytes)
    assert not (two / "team").exists()
