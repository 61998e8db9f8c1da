"""What the data source asks of a store: exact requests, and none that a filter or a schema makes needless."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mire
from mire.edge.state import close_states
from mire.testing.s3server import S3Server
from sparks import ACCESS

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
MODELS = ("vpc-1", "vpc-2", "vpc-3")


@pytest.fixture
def s3_server() -> Iterator[S3Server]:
    """Our S3 server, fresh, with a bucket whose name addresses accept."""
    with S3Server(buckets=["bucket"]) as server:
        yield server


@pytest.fixture(params=["sharded", "dual"])
def bucket(s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The address of a bucket with three models of two names and two versions each, in both forms of an index."""
    for name, value in {**ACCESS, "HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / ".swamp.yaml").write_text(
        'swampVersion: "1"\nrepoId: "00000000-0000-4000-8000-000000000000"\ndatastore:\n'
        '  type: "@swamp/s3-datastore"\n  config:\n    bucket: bucket\n    region: eu-central-1\n'
        f"    forcePathStyle: true\n    endpoint: {s3_server.url!r}\n    index: {request.param}\n"
    )
    with mire.open(repo) as store:
        for model in MODELS:
            data = store.model("aws/ec2/vpc", model)
            with data.hold():
                for name in ("state", "log"):
                    for number in range(2):
                        data.put(name, {"n": number} if name == "state" else f"{number}")
        base = store.datastore.base
    close_states(base)
    s3_server.reset()
    return f"s3://bucket?region=eu-central-1&forcePathStyle=true&endpoint={s3_server.url}"


def asked(server: S3Server) -> Counter[str]:
    """The requests since the last look, by what they were for."""
    found: Counter[str] = Counter()
    for entry in server.log():
        kind = "index" if entry.key.startswith(("_index/", ".datastore-index")) else entry.key.rpartition("/")[2]
        found[f"{entry.operation} {kind}"] += 1
    server.reset()
    return found


def test_requests_are_planned_from_the_index(spark: Any, bucket: str, s3_server: S3Server) -> None:
    """No listing; of the index its list, its shards once, and one request for each file that is read."""
    frame = spark.read.format("mire").option("path", bucket)
    rows = frame.load().collect()
    assert len(rows) == 12
    is_dual = any(entry.key == ".datastore-index.json" for entry in s3_server.log())
    counts = asked(s3_server)
    head = {"HeadObject index": 1} if is_dual else {}
    index = counts.pop("GetObject index")
    assert index == 1 + 4 + 3  # the list, four shards, and that of the markers for the three tasks of other ones
    assert counts == {**head, "GetObject metadata.yaml": 12, "GetObject raw": 6}
    assert frame.option("table", "versions").load().count() == 12
    counts = asked(s3_server)
    assert counts.pop("GetObject index") == index
    assert counts == head
    assert frame.option("table", "artifacts").option("attributes", "none").load().count() == 12
    counts = asked(s3_server)
    assert (counts["GetObject metadata.yaml"], counts["GetObject raw"]) == (12, 0)


def test_filters_are_handed_down_when_asked_for(spark: Any, bucket: str, s3_server: S3Server) -> None:
    """With the session's setting and the option, shards and files of other models are not asked for."""
    spark.conf.set(PUSHDOWN, "true")
    try:
        frame = spark.read.format("mire").option("path", bucket).option("pushdown", "true").load()
        found = frame.where("model_type = 'aws/ec2/vpc' and model_id = 'vpc-2' and name like 'sta%' and version = 2")
        assert [(row.model_id, row.name, row.version) for row in found.collect()] == [("vpc-2", "state", 2)]
        counts = asked(s3_server)
        assert counts.pop("GetObject index") == 3  # the list, the model's shard, that of its markers
        assert counts["GetObject metadata.yaml"] == counts["GetObject raw"] == 2
        assert found.where("model_id = 'vpc-3'").count() == 0
    finally:
        spark.conf.unset(PUSHDOWN)
    assert spark.read.format("mire").option("path", bucket).load().where("model_id = 'vpc-2'").count() == 4
