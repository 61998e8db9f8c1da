"""A real cluster: jobs run there, and a worker that dies in the middle changes nothing but the time it takes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mire.edge.objectstore import open_s3
from mire.model.backend import S3Settings
from mire.testing.faults import Run
from mire.testing.s3server import S3Server
from sparks import ACCESS, Cluster
from sync_world import committed

pytestmark = pytest.mark.xdist_group("spark")

FILES = 40
BUCKET = "mire-cluster"
HANG_S = 240
MIRE = Path(sys.executable).with_name("mire")


@pytest.fixture
def server() -> Iterator[S3Server]:
    """Our S3 server; it accepts any credentials."""
    with S3Server(buckets=[BUCKET]) as started:
        yield started


@pytest.fixture
def repo(tmp_path: Path, server: S3Server, bucket_repo: Callable[..., Path]) -> Path:
    """A repository with some files that are not pushed, whose remote is a bucket."""
    path = bucket_repo(server.url, BUCKET)
    cache = tmp_path / "home/.swamp/repos/00000000-0000-4000-8000-000000000001"
    for number in range(FILES):
        file = cache / f"logs/{number % 5}/{number}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"content {number}")
    return path


def mire(tmp_path: Path, *arguments: str, **variables: str) -> dict[str, Any]:
    """Run a command as its own process; its JSON document."""
    environ = {**os.environ, **ACCESS, **variables, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [str(MIRE), *arguments, "--json"],
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert done.stderr == b""
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def keys(server: S3Server) -> list[str]:
    """The data objects of the bucket."""
    return [key for key in server.keys(BUCKET) if key.startswith(("logs/", "copy/logs/"))]


def test_a_worker_dies_in_the_middle_of_each_job(
    spark_cluster: Cluster, server: S3Server, repo: Path, tmp_path: Path
) -> None:
    """Bulk push, deep verification and migration go on with the worker that is left; each is committed once."""
    spark_cluster.have_workers()
    server.inject(Run(spark_cluster.kill_worker), operation="PutObject", key="logs/*", skip=FILES // 2, times=1)
    pushed = mire(tmp_path, "push", "--all", "--pipeline", "--master", spark_cluster.master, "--repo", str(repo))
    assert (len(pushed["sent"]), pushed["conflicts"], pushed["findings"]) == (FILES, [], [])
    assert len(keys(server)) == FILES
    remote = open_s3(
        S3Settings(bucket=BUCKET, endpoint=server.url, region="us-east-1", force_path_style=True),
    )
    assert len(committed(remote)) == FILES
    assert json.loads(server.get(BUCKET, "_index/_meta.json") or b"")["commitSeq"] == 1

    spark_cluster.have_workers()
    server.inject(Run(spark_cluster.kill_worker), operation="GetObject", key="logs/*", skip=FILES // 2, times=1)
    checked = mire(tmp_path, "verify", "--pipeline", "--deep", "--master", spark_cluster.master, "--repo", str(repo))
    assert (checked["entries"], checked["read"], checked["kinds"]) == (FILES, FILES, {})

    spark_cluster.have_workers()
    server.inject(Run(spark_cluster.kill_worker), operation="PutObject", key="copy/*", skip=FILES // 2, times=1)
    where = f"?endpoint={server.url}&region=us-east-1&forcePathStyle=true"
    moved = mire(
        tmp_path, "migrate", f"s3://{BUCKET}{where}", f"s3://{BUCKET}/copy{where}", "--master", spark_cluster.master
    )
    assert moved["objects"] == FILES
    assert moved["copied"] + moved["there"] == FILES
    assert len([key for key in keys(server) if key.startswith("copy/")]) == FILES


def test_a_slow_task_is_run_twice_and_committed_once(
    spark_cluster: Cluster, server: S3Server, repo: Path, tmp_path: Path
) -> None:
    """While a request of one task hangs, a speculative copy of it does the work: every file is sent, in one commit."""
    spark_cluster.have_workers()
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(
        "spark.speculation true\nspark.speculation.interval 100ms\nspark.speculation.quantile 0.1\n"
        "spark.speculation.multiplier 1.1\nspark.speculation.minTaskRuntime 500ms\n"
    )
    slow = "logs/0/0"
    hold = server.hold(operation="PutObject", key=slow)
    try:
        pushed = mire(
            tmp_path,
            *("push", "--all", "--pipeline", "--master", spark_cluster.master, "--repo", str(repo)),
            SPARK_CONF_DIR=str(conf),
        )
        # The request that hangs was not applied yet: what is stored is the work of the copy.
        assert server.get(BUCKET, slow) == b"content 0"
    finally:
        hold.release()
    assert len(pushed["sent"]) == FILES
    assert hold.arrived.is_set()
    assert json.loads(server.get(BUCKET, "_index/_meta.json") or b"")["commitSeq"] == 1
