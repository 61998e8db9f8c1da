"""A real cluster: jobs run there, and a worker that dies in the middle changes nothing but the time it takes."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mire.edge.objectstore import open_s3
from mire.model.backend import S3Settings
from mire.testing.faults import Run
from mire.testing.s3server import S3Server
from sparkconnect import HANG_S, Connect
from sparks import ACCESS, LARGE, QUICK, Cluster
from sync_world import committed

pytestmark = pytest.mark.xdist_group("spark")

FILES = 40
BUCKET = "mire-cluster"


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


def keys(server: S3Server) -> list[str]:
    """The data objects of the bucket."""
    return [key for key in server.keys(BUCKET) if key.startswith(("logs/", "copy/logs/"))]


def commits(server: S3Server) -> int:
    """How often the index was committed."""
    return int(json.loads(server.get(BUCKET, "_index/_meta.json") or b"")["commitSeq"])


def test_a_worker_dies_under_a_push_of_the_wheel(
    spark_cluster: Cluster, server: S3Server, repo: Path, tmp_path: Path, wheel_python: Path
) -> None:
    """The command of an installed wheel pushes on a cluster: the worker that is left goes on, it is committed once."""
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(
        f"spark.executor.extraJavaOptions {QUICK}\nspark.executor.memory {LARGE}\n"
        "spark.executor.cores 1\nspark.cores.max 2\n"
    )
    spark_cluster.have_workers()
    server.inject(Run(spark_cluster.replace_worker), operation="PutObject", key="logs/*", skip=FILES // 2, times=1)
    pushed = subprocess.run(
        [
            *(str(wheel_python.with_name("mire")), "push", "--all", "--pipeline", "--json"),
            *("--master", spark_cluster.master, "--repo", str(repo)),
        ],
        env={
            **os.environ,
            **ACCESS,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_CONF_DIR": str(conf),
            "SPARK_SUBMIT_OPTS": QUICK,
        },
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=HANG_S,
        check=False,
    )
    assert (pushed.returncode, pushed.stderr) == (0, b""), pushed.stderr.decode()[-2000:]
    told = json.loads(pushed.stdout)
    assert (len(told["sent"]), told["conflicts"], told["findings"]) == (FILES, [], [])
    assert len(keys(server)) == FILES
    remote = open_s3(
        S3Settings(bucket=BUCKET, endpoint=server.url, region="us-east-1", force_path_style=True),
    )
    assert len(committed(remote)) == FILES
    assert commits(server) == 1


def test_a_slow_task_is_run_twice_and_committed_once(
    spark_cluster: Cluster, spark_connect: Connect, server: S3Server, repo: Path
) -> None:
    """While a request of one task hangs, a speculative copy of it does the work: every file is sent, in one commit."""
    spark_cluster.have_workers()
    slow = "logs/0/0"
    hold = server.hold(operation="PutObject", key=slow)
    try:
        pushed = spark_connect.mire("push", "--all", "--pipeline", "--repo", str(repo))
        # The request that hangs was not applied yet: what is stored is the work of the copy.
        assert server.get(BUCKET, slow) == b"content 0"
    finally:
        hold.release()
    assert len(pushed["sent"]) == FILES
    assert hold.arrived.is_set()
    assert commits(server) == 1


def test_a_worker_dies_in_the_middle_of_each_job(
    spark_cluster: Cluster, spark_connect: Connect, server: S3Server, repo: Path, tmp_path: Path
) -> None:
    """Deep verification and migration go on with the worker that is left; an export has all there is."""
    pushed = spark_connect.mire("push", "--all", "--no-pipeline", "--repo", str(repo))
    assert len(pushed["sent"]) == FILES
    spark_cluster.have_workers()
    server.inject(Run(spark_cluster.replace_worker), operation="GetObject", key="logs/*", skip=FILES // 2, times=1)
    checked = spark_connect.mire("verify", "--pipeline", "--deep", "--repo", str(repo))
    assert (checked["entries"], checked["read"], checked["kinds"]) == (FILES, FILES, {})

    spark_cluster.have_workers()
    server.inject(Run(spark_cluster.replace_worker), operation="PutObject", key="copy/*", skip=FILES // 2, times=1)
    where = f"?endpoint={server.url}&region=us-east-1&forcePathStyle=true"
    moved = spark_connect.mire("migrate", f"s3://{BUCKET}{where}", f"s3://{BUCKET}/copy{where}")
    assert moved["objects"] == FILES
    assert moved["copied"] + moved["there"] == FILES
    assert len([key for key in keys(server) if key.startswith("copy/")]) == FILES
