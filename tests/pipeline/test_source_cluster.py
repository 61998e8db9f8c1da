"""The data source on a real cluster, over Spark Connect: workers have only the package, and one of them dies."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mire.testing.faults import ApplyThenFail, Run
from mire.testing.s3server import S3Server
from sparkconnect import HANG_S, Connect
from sparks import Cluster

MODELS = 20
STAGED = "_control/mire-spark/"
LOST = re.compile(r"Lost task \d+\.\d+ in stage")
DEAD = re.compile(r"Lost executor .*Starting task \d+\.[1-9]\d* in stage", re.DOTALL)
"""The worker took a task with it, which another one began anew."""
AGAIN = re.compile(r"Starting task \d+\.1 in stage")
WRITE = """
from pyspark.sql import functions as F
rows = spark.range({models}).select(
    F.lit("aws/ec2/vpc").alias("model_type"), F.concat(F.lit("vpc-"), "id").alias("model_id"),
    F.lit("state").alias("name"), F.to_json(F.struct("id")).alias("attributes"))
rows.repartition(4).write.format("mire").mode("append").save({path!r})
"""
CANCEL = """
import contextlib, json, threading, urllib.error, urllib.request
from pyspark_mire import spark_errors
told = []
def write():
    try:
        with spark_errors("the write"):
            rows.repartition(4).write.format("mire").mode("append").save({path!r})
    except Exception as error:
        told.append([type(error).__name__, getattr(error, "kind", str(error))])
thread = threading.Thread(target=write)
thread.start()
with contextlib.suppress(urllib.error.HTTPError):
    urllib.request.urlopen({barrier!r}).read()
spark.interruptAll()
thread.join()
print(json.dumps(told))
"""
READ = """
import json
from pyspark.sql import functions as F
found = spark.read.format("mire").option("path", {path!r}).load()
read = found.select("model_id", "version", F.get_json_object("attributes", "$.id").alias("id"), "_error").collect()
print(json.dumps(sorted([row.model_id, row.version, int(row.id), row._error] for row in read)))
"""


@pytest.fixture
def server() -> Iterator[S3Server]:
    """Our S3 server, with a bucket whose name addresses accept."""
    with S3Server(buckets=["bucket"]) as started:
        yield started


def address_of(server: S3Server) -> str:
    """The store, as the cluster reaches it."""
    return f"s3://bucket?region=us-east-1&forcePathStyle=true&endpoint={server.url}"


def staged(server: S3Server) -> list[str]:
    """What waits for a commit."""
    return [key for key in server.keys("bucket") if key.startswith(STAGED)]


def staged_by_the_next(server: S3Server) -> Callable[[str], bool]:
    """What another job stages: tasks of one that has ended may be about to store, and do it when nobody expects it."""
    known = {entry.key.split("/")[2] for entry in server.log() if entry.key.startswith(STAGED)}
    return lambda key: key.startswith(STAGED) and key.split("/")[2] not in known


def versions(server: S3Server) -> list[int]:
    """How many versions each model has, as clients see them."""
    found = [key for key in server.keys("bucket") if key.startswith("data/") and key.endswith("/metadata.yaml")]
    return [sum(key.startswith(f"data/aws/ec2/vpc/vpc-{number}/") for key in found) for number in range(MODELS)]


def test_tasks_of_a_write_fail_after_they_staged_are_cancelled_and_run_twice(
    spark_cluster: Cluster, spark_connect: Connect, server: S3Server
) -> None:
    """A row counts once, whatever became of what attempts had staged; of a cancelled write nothing is left."""
    path = address_of(server)
    spark_cluster.have_workers()
    # An attempt that stored its rows, and failed: another one stores them again.
    failed = server.inject(ApplyThenFail(403, "AccessDenied"), operation="PutObject", key=f"{STAGED}*", times=1)
    before = spark_connect.log.stat().st_size
    spark_connect.run(WRITE.format(path=path, models=MODELS))
    said = spark_connect.log.read_text(errors="replace")[before:]
    assert failed.hits == 1
    assert LOST.search(said)
    assert len({entry.key for entry in server.log() if entry.operation == "PutObject" and STAGED in entry.key}) > 4
    assert versions(server) == [1] * MODELS

    # One that is cancelled when rows of it are stored. A task that is on its way then may still store some, which are
    # nobody's, and go with the write of another day.
    seen = list[str]()
    index = {key: server.get("bucket", key) for key in server.keys("bucket") if key.startswith("_index/")}
    is_of_next = staged_by_the_next(server)
    late = server.hold(operation="PutObject", key=is_of_next, after=True)

    def look() -> None:
        late.arrived.wait(HANG_S)
        seen.extend(key for key in staged(server) if is_of_next(key))

    server.inject(Run(look), operation="GetObject", key="barrier")
    try:
        told = spark_connect.run(CANCEL.format(path=path, barrier=f"{server.url}/bucket/barrier"))
        deadline = time.monotonic() + HANG_S
        while not set(seen).isdisjoint(staged(server)) and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        late.release()
    assert told == [["RemoteError", "cancelled"]]
    assert seen
    assert set(seen).isdisjoint(staged(server))
    assert versions(server) == [1] * MODELS
    assert index == {key: server.get("bucket", key) for key in server.keys("bucket") if key.startswith("_index/")}

    # One that hangs while it stores: a copy of the task does the work, and is what counts.
    hold = server.hold(operation="PutObject", key=staged_by_the_next(server))
    before = spark_connect.log.stat().st_size
    try:
        spark_connect.run(WRITE.format(path=path, models=MODELS))
        assert hold.arrived.is_set()
        assert AGAIN.search(spark_connect.log.read_text(errors="replace")[before:])
        assert versions(server) == [2] * MODELS
    finally:
        hold.release()


def test_a_worker_dies_under_a_write_and_a_read_over_connect(
    spark_cluster: Cluster,
    spark_connect: Connect,
    server: S3Server,
    bucket_repo: Callable[..., Path],
    tmp_path: Path,
) -> None:
    """Rows are written and read through Spark Connect on a cluster; a worker dies in each: every row is there once.

    An export over Connect has them all, too.
    """
    path = address_of(server)
    for work, operation, key, skip, kill in (
        (WRITE, "PutObject", f"{STAGED}*", 0, spark_cluster.replace_worker),
        (READ, "GetObject", "data/*/metadata.yaml", MODELS // 2, spark_cluster.kill_worker),
    ):
        spark_cluster.have_workers()
        before = spark_connect.log.stat().st_size
        death = Run(lambda kill=kill: kill(spark_connect.busy_host()))  # type: ignore[misc]
        killed = server.inject(death, operation=operation, key=key, skip=skip, times=1)
        found = spark_connect.run(work.format(path=path, models=MODELS))
        assert killed.hits == 1
        assert DEAD.search(spark_connect.log.read_text(errors="replace")[before:])
    repo = bucket_repo(server.url, "bucket")
    exported = spark_connect.mire("export", str(tmp_path / "out"), "--repo", str(repo))
    assert found == sorted([f"vpc-{number}", 1, number, None] for number in range(MODELS))
    assert exported["versions"] == MODELS
