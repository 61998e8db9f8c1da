"""A real cluster: jobs run there, and a worker that dies in the middle changes nothing but the time it takes."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mire.edge.objectstore import open_s3
from mire.model.backend import S3Settings
from mire.testing.faults import Rule, Run
from mire.testing.s3server import S3Server
from sparkconnect import HANG_S, Connect
from sparks import ACCESS, LARGE, QUICK, Cluster
from sync_world import committed

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


def mire(program: Path, directory: Path, *arguments: str, **variables: str) -> dict[str, Any]:
    """Run a command as its own process, which must end well and say nothing besides; its JSON document."""
    done = subprocess.run(
        [str(program.with_name("mire")), *arguments, "--json"],
        env={**os.environ, **ACCESS, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_SUBMIT_OPTS": QUICK, **variables},
        cwd=directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=HANG_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()[-2000:]
    document: dict[str, Any] = json.loads(done.stdout)
    return document


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
    kill = Run(spark_cluster.replace_worker)
    killed = server.inject(kill, operation="PutObject", key="logs/*", skip=FILES // 2, times=1)
    bulk = "push", "--all", "--pipeline", "--master", spark_cluster.master, "--repo", str(repo)
    # What the command line says counts more than the environment.
    pushed = mire(wheel_python, tmp_path, *bulk, SPARK_CONF_DIR=str(conf), SPARK_REMOTE="sc://127.0.0.1:1")
    assert (len(pushed["sent"]), pushed["conflicts"], pushed["findings"]) == (FILES, [], [])
    assert len(keys(server)) == FILES
    remote = open_s3(
        S3Settings(bucket=BUCKET, endpoint=server.url, region="us-east-1", force_path_style=True),
    )
    assert len(committed(remote)) == FILES
    assert commits(server) == 1
    # It died while it had work, which was done again: what it had stored was asked for a second time.
    assert killed.hits == 1
    assert max(Counter(key for operation, _, key, _ in server.log() if operation == "PutObject").values()) > 1


def test_a_slow_task_is_run_twice_and_committed_once(
    spark_cluster: Cluster, spark_connect: Connect, server: S3Server, repo: Path, tmp_path: Path
) -> None:
    """While a request of one task hangs, a speculative copy of it does the work: every file is sent, in one commit.

    The command is told the address of a Spark Connect server; the environment names another.
    """
    spark_cluster.have_workers()
    slow = "logs/0/0"
    hold = server.hold(operation="PutObject", key=slow)
    before = spark_connect.log.stat().st_size
    bulk = "push", "--all", "--pipeline", "--master", spark_connect.address, "--repo", str(repo)
    try:
        pushed = mire(Path(sys.executable), tmp_path, *bulk, SPARK_REMOTE="sc://127.0.0.1:1", JAVA_HOME="/nonexistent")
        # The request that hangs was not applied yet: what is stored is the work of the copy.
        assert server.get(BUCKET, slow) == b"content 0"
    finally:
        hold.release()
    assert len(pushed["sent"]) == FILES
    assert hold.arrived.is_set()
    assert commits(server) == 1
    # No task failed, and one was started a second time: a request that was only asked again would not show that.
    said = spark_connect.log.read_text(errors="replace")[before:]
    assert re.search(r"Starting task \d+\.1 in stage", said)
    assert [line for line in said.splitlines() if "Lost task" in line and "another attempt succeeded" not in line] == []


def check_lost(connect: Connect, before: int, killed: Rule) -> None:
    """Find that the worker was killed, and that it took a task with it."""
    assert killed.hits == 1
    said = connect.log.read_text(errors="replace")[before:]
    assert re.search(r"Lost executor .*Starting task \d+\.[1-9]\d* in stage", said, re.DOTALL)


def test_a_worker_dies_in_the_middle_of_each_job(
    spark_cluster: Cluster, spark_connect: Connect, server: S3Server, repo: Path
) -> None:
    """Over the server that SPARK_REMOTE names, deep verification and migration go on with the worker that is left."""
    spark_cluster.have_workers()
    pushed = spark_connect.mire("push", "--all", "--pipeline", "--repo", str(repo))
    assert len(pushed["sent"]) == FILES
    kill = Run(lambda: spark_cluster.replace_worker(spark_connect.busy_host()))
    before = spark_connect.log.stat().st_size
    killed = server.inject(kill, operation="GetObject", key="logs/*", skip=FILES // 2, times=1)
    checked = spark_connect.mire("verify", "--pipeline", "--deep", "--repo", str(repo))
    check_lost(spark_connect, before, killed)
    assert (checked["entries"], checked["read"], checked["kinds"]) == (FILES, FILES, {})

    spark_cluster.have_workers()
    before = spark_connect.log.stat().st_size
    killed = server.inject(kill, operation="PutObject", key="copy/*", skip=FILES // 2, times=1)
    where = f"?endpoint={server.url}&region=us-east-1&forcePathStyle=true"
    moved = spark_connect.mire("migrate", f"s3://{BUCKET}{where}", f"s3://{BUCKET}/copy{where}", "--pipeline")
    check_lost(spark_connect, before, killed)
    assert moved["objects"] == FILES
    assert moved["copied"] + moved["there"] == FILES
    assert len([key for key in keys(server) if key.startswith("copy/")]) == FILES


SEEN = """
import json, os, time
from mire.pipeline.frames import ENTRIES, frame_of, mapped
from mire.pipeline.progress import watched
texts = []
def show(text):
    texts.append(text)
    open({said!r}, "w").close()
def work(batches):
    until = time.monotonic() + {wait_s}
    while not os.path.exists({said!r}) and time.monotonic() < until:
        time.sleep(0.02)
    yield from batches
with watched(spark, show):
    mapped(frame_of(spark, [["a"] + [None] * 7], ENTRIES).coalesce(1), work, ENTRIES).collect()
print(json.dumps(texts))
"""


def test_one_sees_how_far_a_job_is_over_connect(spark_cluster: Cluster, spark_connect: Connect, tmp_path: Path) -> None:
    """The server tells how many tasks are done: the task of this job waits until that was said."""
    spark_cluster.have_workers()
    assert "spark: 0 of 1 tasks" in spark_connect.run(SEEN.format(said=str(tmp_path / "said"), wait_s=HANG_S))


def test_a_session_over_connect_is_not_another(spark_connect: Connect, repo: Path) -> None:
    """Where a process has a session at one server, the address of another is refused, also on the same host."""
    told = spark_connect.refused("verify", "--pipeline", "--master", "sc://127.0.0.1:1", "--repo", str(repo))
    assert told["kind"] == "other_session"
    assert f"at '{spark_connect.address}', not at 'sc://127.0.0.1:1'" in told["message"]
