"""Google Cloud Storage as an end of whole-store jobs: migrations from and to it, a bulk push, and tables."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mire
from mire.edge.objectstore import open_gcs, open_local
from mire.edge.prefixed import Prefixed
from mire.edge.remote import Remote
from mire.edge.state import close_states
from mire.flow.mark import mark_all
from mire.flow.push import push
from mire.flow.verify import verify
from mire.model.backend import GcsSettings
from mire.pipeline.carrier import SparkCarrier
from mire.pipeline.jobs.migrate import Moved, migrate_store
from mire.pipeline.round_spark import round_on_spark
from mire.pipeline.sides import open_source, open_target
from mire.testing.gcsserver import GcsServer
from mire.testing.s3server import S3Server
from mire.wire.relpath import is_internal
from sparks import ACCESS
from sync_world import committed

LARGE = 5 << 20


@pytest.fixture
def gcs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GcsServer]:
    """Our GCS server with two buckets."""
    for name, value in {**ACCESS, "HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    with GcsServer(buckets=["bucket", "other"]) as server:
        yield server


def address(server: GcsServer, bucket: str = "bucket") -> str:
    """A bucket as a command takes it."""
    return f"gs://{bucket}/all?apiEndpoint={server.url}"


def remote_of(server: GcsServer, bucket: str = "bucket") -> Remote:
    """The same, open."""
    return open_gcs(GcsSettings(bucket=bucket, prefix="all", api_endpoint=server.url, auth="none"))


def repository(root: Path, server: GcsServer) -> Path:
    """A repository whose remote is a namespace of a bucket."""
    repo = root / "repo"
    repo.mkdir()
    (repo / ".swamp.yaml").write_text(
        'swampVersion: "1"\nrepoId: "00000000-0000-4000-8000-000000000009"\ndatastore:\n'
        '  type: "@swamp/gcs-datastore"\n  namespace: team\n  config:\n    bucket: bucket\n    prefix: all\n'
        f'    apiEndpoint: "{server.url}"\n    index: sharded\n'
    )
    return repo


def objects(remote: Remote) -> dict[str, bytes]:
    """The data in a store."""
    return {stat.key: remote.get(stat.key).data for stat in remote.list() if not is_internal(stat.key)}


def move(spark: Any, root: Path, source: str, target: str, *, index: str = "dual", **spaces: str) -> Moved:
    """Migrate between two addresses."""
    one = open_source(source, namespace=spaces.get("came", ""), repo_dir=str(root))
    other = open_target(target, namespace=spaces.get("goes", ""), index=index, repo_dir=str(root))
    return migrate_store(lambda: round_on_spark(spark), one, other)


def test_migrations_with_gcs_as_an_end(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path, gcs: GcsServer
) -> None:
    """S3 → GCS → directory → GCS: shards to a monolith to files to shards, into a namespace and out again.

    A target that has everything already is verified by reading, and nothing is copied.
    """
    store, source = synced(), open_local(str(tmp_path / "remote"))
    model = store.model("aws/ec2/vpc", "vpc-1")
    with model.hold():
        model.put("state", {"n": 1})
        model.put("state", {"n": 2})
        model.put("blob", b"x" * LARGE)
    wanted, entries = objects(source), committed(source)
    with S3Server(buckets=["bucket"]) as s3:
        for stat in source.list():
            s3.put("bucket", f"all/{stat.key}", source.get(stat.key).data)
        start = f"s3://bucket/all?region=eu-central-1&forcePathStyle=true&endpoint={s3.url}"
        done = move(spark, tmp_path, start, address(gcs), goes="team")
    assert (done.copied, done.there) == (len(wanted), 0)
    team = Prefixed(remote_of(gcs), "team")
    assert objects(team) == wanted
    assert committed(team) == entries
    assert team.head(".datastore-index.json").size_bytes > 0
    move(spark, tmp_path, address(gcs), f"file://{tmp_path}/plain", came="team")
    assert objects(open_local(str(tmp_path / "plain"))) == wanted
    move(spark, tmp_path, f"file://{tmp_path}/plain", address(gcs, "other"), index="sharded")
    last = remote_of(gcs, "other")
    assert objects(last) == wanted
    assert {rel: (entry.size_bytes, entry.sha256) for rel, entry in committed(last).items()} == {
        rel: (entry.size_bytes, entry.sha256) for rel, entry in entries.items()
    }
    assert not [stat.key for stat in last.list() if stat.key == ".datastore-index.json"]
    again = move(spark, tmp_path, address(gcs), address(gcs, "other"), index="sharded", came="team")
    assert (again.copied, again.there) == (0, len(wanted))


def test_artifacts_of_gcs_as_tables(spark: Any, tmp_path: Path, gcs: GcsServer) -> None:
    """The data source reads a bucket of GCS, its content too, and what is written to it is a version there."""
    repo = repository(tmp_path, gcs)
    with mire.open(repo) as store:
        store.model("aws/ec2/vpc", "vpc-1").put("state", {"n": 1})
        base = store.datastore.base
    close_states(base)
    columns = "model_type string, model_id string, name string, content string"
    rows = spark.createDataFrame([("aws/ec2/vpc", "vpc-1", "state", '{"n": 2}')], columns)
    rows.write.format("mire").mode("append").option("repo", str(repo)).save()
    found = spark.read.format("mire").options(namespace="team", content="true").load(address(gcs))
    read = {row["version"]: (row["is_latest"], bytes(row["content"])) for row in found.collect()}
    assert read == {1: (False, b'{"n":1}'), 2: (True, b'{"n": 2}')}


def test_a_bulk_push_to_gcs(spark: Any, tmp_path: Path, gcs: GcsServer) -> None:
    """Files that tasks store in a bucket of GCS are committed, agreed on, and sound; another push sends nothing."""
    with mire.open(repository(tmp_path, gcs)) as store:
        for text, count in (("text", 20), ("other", 5)):
            for number in range(count):
                path = Path(store.datastore.tier) / f"logs/{number % 7}/{number}"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"{text} {number}")
            mark_all(store.datastore)
            carrier = SparkCarrier(lambda: nullcontext(spark), worth_it=1)
            assert len(push(replace(store.datastore, carrier=carrier), full=True).uploaded) == count
            assert carrier.is_started
        assert push(store.datastore, full=True).count == 0
        assert not verify(store.datastore, deep=True).is_damaged
        base = store.datastore.base
    close_states(base)
    found = objects(Prefixed(remote_of(gcs), "team"))
    assert (len(found), found["logs/1/1"], found["logs/6/6"]) == (20, b"other 1", b"text 6")
