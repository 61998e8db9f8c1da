"""Spark Connect for tests: one server whose tasks run on the cluster, and a client process that does what it is told.

The server is one application for all tests: every application of its own costs three Javas.
"""

import contextlib
import json
import os
import re
import select
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

from servers import free_ports
from sparks import ACCESS, LARGE, QUICK, READY_S, Cluster

HANG_S = 240
"""Nothing takes this long; it only turns a hang into a failure."""

_CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.connect.progress.reportInterval": "200ms",
    "spark.driver.extraJavaOptions": QUICK,
    "spark.executor.extraJavaOptions": QUICK,
    "spark.executor.memory": LARGE,
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.warehouse.dir": os.devnull,
    # A task that takes far longer than the others is run a second time.
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "2s",
    **{f"spark.executorEnv.{name}": value for name, value in ACCESS.items()},
}


class Connect:
    """A Spark Connect server, and the client that talks to it."""

    def __init__(self, address: str, client: "subprocess.Popen[str]", log: Path) -> None:
        self.address = address
        self.log = log
        self._client = client
        self._answer()

    def mire(self, *arguments: str) -> dict[str, Any]:
        """Run a command, which must end well and say nothing besides; its JSON document."""
        code, out, err = self._ask(arguments=[*arguments, "--json"])
        assert (code, err) == (0, ""), err[-3000:]
        document: dict[str, Any] = json.loads(out)
        return document

    def refused(self, *arguments: str) -> dict[str, Any]:
        """Run a command that must not end well; its error."""
        code, out, err = self._ask(arguments=[*arguments, "--json"])
        assert (code > 0, out) == (True, ""), out
        document: dict[str, Any] = json.loads(err)
        return document

    def run(self, code: str) -> Any:
        """Run lines in which `spark` is the session; the JSON they print."""
        ended, out, err = self._ask(code=code)
        assert ended == 0, err[-3000:]
        return json.loads(out or "null")

    def busy_host(self) -> str | None:
        """Where the task runs that was started last, of those that have not ended."""
        said = self.log.read_text(errors="replace")
        hosts = dict(re.findall(r"Starting task \S+ in stage \S+ \(TID (\d+)\) \(([\w.]+),", said))
        ended = set(re.findall(r"(?:Finished|Lost) task \S+ in stage \S+ \(TID (\d+)\)", said))
        return next((host for task, host in reversed(hosts.items()) if task not in ended), None)

    def _ask(self, **request: Any) -> tuple[int, str, str]:
        assert self._client.stdin is not None
        environ = {name: os.environ[name] for name in ("HOME", *ACCESS) if name in os.environ}
        print(json.dumps({**request, "environ": environ}), file=self._client.stdin, flush=True)
        code, out, err = self._answer()
        return code, out, err

    def _answer(self) -> Any:
        assert self._client.stdout is not None
        ready, _, _ = select.select([self._client.stdout], [], [], HANG_S)
        assert ready, f"no answer within {HANG_S} s"
        line = self._client.stdout.readline()
        assert line, "the client ended"
        return json.loads(line)


@pytest.fixture(scope="session")
def spark_connect(spark_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connect]:
    """A server on the cluster, and its client; ask the cluster for workers."""
    directory = tmp_path_factory.mktemp("connect")
    with connect_server(spark_cluster.master, directory) as address, _client(address, directory) as client:
        yield Connect(address, client, directory / "connect.log")


@contextlib.contextmanager
def connect_server(master: str, directory: Path) -> Iterator[str]:
    """A Spark Connect server whose tasks run on a cluster; its address."""
    home = Path(pyspark.__file__).parent
    (port,) = free_ports(1)
    environ = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    environ |= {**ACCESS, "HOME": str(directory), "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_NO_DAEMONIZE": "1", "SPARK_LOG_DIR": str(directory)}
    conf = {**_CONF, "spark.connect.grpc.binding.port": str(port)}
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
        while process.poll() is None and time.monotonic() < deadline and not _is_open(port):
            time.sleep(0.1)
        assert _is_open(port), (directory / "connect.log").read_text(errors="replace")[-2000:]
        yield f"sc://127.0.0.1:{port}"
    finally:
        # The script leaves its Java when it is ended: the whole group goes.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def _client(address: str, directory: Path) -> "Iterator[subprocess.Popen[str]]":
    """A process that knows nothing but an address, and has no Java."""
    environ = {"PATH": "", "HOME": str(directory), **ACCESS, "SPARK_REMOTE": address}
    program = Path(__file__).with_name("sparkclient.py")
    with subprocess.Popen(
        [sys.executable, str(program)], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()
