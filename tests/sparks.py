"""Spark for tests: one embedded session for all of them, started when a test first asks for it.

Tests that use it are in tests/pipeline, which conftest.py keeps together: they run in one process, with one Java.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import pyspark
import pytest

from mire.pipeline.classes import classes_option
from servers import free_ports

READY_S = 90
"""Nothing of Spark takes this long to start; it only turns a hang into a failure."""

QUICK = " ".join(
    ("-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -Xss4m", classes_option(os.environ, ""))
).strip()
"""Options of a Java that lives for minutes: it does not compile what it will not run again, nor read what is kept, and
has room for what it compiled: else it goes through that over and over to throw some away."""

LARGE, SMALL = "640m", "512m"
"""Memory of an executor: a worker has room for one of each."""

DAEMON = {"spark.python.daemon.module": "spark_daemon"}
PRELOADED = str(Path(__file__).parent / "preloaded")
"""The module that workers are forked from, and where it is: they begin with everything imported."""

ACCESS = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_EC2_METADATA_DISABLED": "true"}
"""What tasks sign with at our own server, which takes any credentials."""


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    """An embedded Spark with two cores, whose tasks are tried three times."""
    from mire.pipeline.session import open_session  # noqa: PLC0415 - most tests need no Spark

    environ = {f"spark.executorEnv.{name}": value for name, value in ACCESS.items()}
    conf = {
        "spark.driver.extraJavaOptions": QUICK,
        "spark.sql.shuffle.partitions": "2",
        # Tables of a few rows: generating and compiling code for them, or planning anew, takes longer than reading.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.warehouse.dir": os.devnull,
        **DAEMON,
        **environ,
    }
    with contextlib.ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            # The processes in which Spark plans know only what Java was started with.
            for name, value in ACCESS.items():
                patch.setenv(name, value)
            patch.setenv("PYTHONPATH", PRELOADED)
            session = stack.enter_context(open_session("local[2,3]", conf=conf))
        yield session


class Cluster:
    """A standalone cluster on the loopback interface: one master, and workers that can be killed."""

    def __init__(self, directory: Path) -> None:
        self._home = Path(pyspark.__file__).parent
        self._directory = directory
        self._stack = contextlib.ExitStack()
        self._port, self._web = free_ports(2)
        self._workers: list[tuple[str, subprocess.Popen[bytes]]] = []
        self._number = 0

    @property
    def master(self) -> str:
        """What `--master` takes."""
        return f"spark://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        main = "org.apache.spark.deploy.master.Master"
        arguments = ["--host", "127.0.0.1", "--port", str(self._port), "--webui-port", str(self._web)]
        self._started(main, arguments)
        self._wait(lambda: self._alive() is not None)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def have_workers(self, count: int = 2) -> None:
        """Start as many workers as are missing, and wait for them."""
        self._workers = [each for each in self._workers if each[1].poll() is None]
        while len(self._workers) < count:
            self._start_worker()
        self._wait(lambda: (self._alive() or 0) >= count)

    def kill_worker(self, host: str | None = None) -> None:
        """Kill the worker of a host with everything it started, as a machine that loses power.

        The oldest unless one is named: a younger one may not have begun with its first task.
        """
        place = next((place for place, (name, _) in enumerate(self._workers) if name == host), 0)
        _, worker = self._workers.pop(place)
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()

    def replace_worker(self, host: str | None = None) -> None:
        """The same, but another is on its way, while the one that is left goes on."""
        self.kill_worker(host)
        self._start_worker()

    def _start_worker(self) -> None:
        main = "org.apache.spark.deploy.worker.Worker"
        work = self._directory / f"work-{self._number}"
        # Each has memory for one executor with `LARGE` and one with `SMALL`: so no application has two at one place.
        # Two names of this machine: Spark runs no second copy of a task on the host of the first.
        taken = {name for name, _ in self._workers}
        host = next((name for name in ("127.0.0.1", "localhost") if name not in taken), "127.0.0.1")
        arguments = ["--host", host, "--cores", "2", "--memory", "1200m", "--work-dir", str(work)]
        self._workers.append((host, self._started(main, [*arguments, "--webui-port", "0", self.master])))

    def _started(self, main: str, arguments: list[str]) -> "subprocess.Popen[bytes]":
        self._number += 1
        log = self._stack.enter_context((self._directory / f"log-{self._number}").open("wb"))
        environ = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
        environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(self._home), "PYSPARK_PYTHON": sys.executable}
        environ |= {**ACCESS, "SPARK_DAEMON_JAVA_OPTS": QUICK, "SPARK_DAEMON_MEMORY": "256m"}
        # Where the system can do it, it ends with the process that started it, however that ends.
        guard = [setpriv, "--pdeathsig", "KILL", "--"] if (setpriv := shutil.which("setpriv")) else []
        process = subprocess.Popen(
            [*guard, str(self._home / "bin/spark-class"), main, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environ,
            # A group of its own: a worker and the executors it started end together.
            start_new_session=True,
        )
        self._stack.callback(_end, process)
        return process

    def _alive(self) -> int | None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._web}/json/", timeout=2) as answer:
                return int(json.load(answer)["aliveworkers"])
        except OSError:
            return None

    @staticmethod
    def _wait(is_done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + READY_S
        while not is_done():
            assert time.monotonic() < deadline, f"Spark was not ready in {READY_S} s"
            time.sleep(0.1)


def _end(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A running cluster; ask it for workers."""
    with Cluster(tmp_path_factory.mktemp("spark")) as cluster:
        yield cluster
