"""The data source on a real cluster, over Spark Connect: workers have only the package, and one of them dies."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

from mire.testing.faults import Run
from mire.testing.s3server import S3Server
from servers import free_ports
from sparks import ACCESS, READY_S, Cluster

pytestmark = pytest.mark.xdist_group("spark")

MODELS = 20
HANG_S = 300
WRITE = """
rows = spark.range(models).select(
    F.lit("aws/ec2/vpc").alias("model_type"), F.concat(F.lit("vpc-"), "id").alias("model_id"),
    F.lit("state").alias("name"), F.to_json(F.struct("id")).alias("attributes"))
rows.repartition(4).write.format("mire").mode("append").save(path)
print("[]")
"""
READ = """
found = spark.read.format("mire").option("path", path).load()
read = found.select("model_id", "version", F.get_json_object("attributes", "$.id").alias("id"), "_error").collect()
print(json.dumps(sorted([row.model_id, row.version, int(row.id), row._error] for row in read)))
"""
CLIENT = """
import json, sys
from pyspark.sql import SparkSession, functions as F
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
path, models = sys.argv[2], int(sys.argv[3])
"""


@contextlib.contextmanager
def connect_server(master: str, directory: Path) -> Iterator[str]:
    """A Spark Connect server whose tasks run on a cluster; its address."""
    home = Path(pyspark.__file__).parent
    (port,) = free_ports(1)
    environ = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    environ |= {**ACCESS, "HOME": str(directory), "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_NO_DAEMONIZE": "1", "SPARK_LOG_DIR": str(directory)}
    conf = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.executor.memory": "512m",
        **{f"spark.executorEnv.{name}": value for name, value in ACCESS.items()},
    }
    options = [each for name, value in conf.items() for each in ("--conf", f"{name}={value}")]
    with (directory / "connect.log").open("wb") as log:
        process = subprocess.Popen(
            [str(home / "sbin/start-connect-server.sh"), "--master", master, *options],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environ,
            cwd=directory,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + READY_S
        while process.poll() is None and time.monotonic() < deadline and not is_open(port):
            time.sleep(0.1)
        assert is_open(port), (directory / "connect.log").read_text(errors="replace")[-2000:]
        yield f"sc://127.0.0.1:{port}"
    finally:
        # The script leaves its Java when it is ended: the whole group goes.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def is_open(port: int) -> bool:
    """Whether somebody listens."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def client(code: str, directory: Path, *arguments: str) -> list[list[Any]]:
    """Run a client as its own process, which knows nothing but an address; what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", CLIENT + code, *arguments],
        env={"PATH": os.environ["PATH"], "HOME": str(directory)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    found: list[list[Any]] = json.loads(done.stdout)
    return found


def test_a_worker_dies_under_a_write_and_a_read_over_connect(spark_cluster: Cluster, tmp_path: Path) -> None:
    """Rows are written and read through Spark Connect on a cluster; a worker dies in each: every row is there once."""
    with S3Server(buckets=["bucket"]) as server:
        path = f"s3://bucket?region=us-east-1&forcePathStyle=true&endpoint={server.url}"
        spark_cluster.have_workers()
        with connect_server(spark_cluster.master, tmp_path) as address:
            kill = Run(spark_cluster.kill_worker)
            server.inject(kill, operation="PutObject", key="_control/mire-spark/*", times=1)
            client(WRITE, tmp_path, address, path, str(MODELS))
            assert not [key for key in server.keys("bucket") if key.startswith("_control/mire-spark/")]
            spark_cluster.have_workers()
            server.inject(kill, operation="GetObject", key="data/*/metadata.yaml", skip=MODELS // 2, times=1)
            found = client(READ, tmp_path, address, path, str(MODELS))
    assert found == sorted([f"vpc-{number}", 1, number, None] for number in range(MODELS))
