"""A driver of its own, with the Spark that the command starts itself: what it is started with, and how it dies."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import mire
from mire.pipeline.java import find_java_home
from mire.testing.faults import Run
from mire.testing.s3server import S3Server
from sparkconnect import HANG_S
from sparks import ACCESS

BUCKET = "mire-driver"
FILES = 12
THEIRS = "-Dmire.test=theirs -Xss4m -XX:TieredStopAtLevel=1 -XX:+UseParallelGC"
"""What a user wants of his Java: a collector of his own, too, of which a Java takes one only."""


class Started:
    """A `mire` that is installed below a path with a blank, with a Java that says how it was started."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._installed = directory / "of mine, here"
        shutil.copytree(Path(mire.__file__).parent, self._installed / "mire")
        (directory / "conf").mkdir()
        (directory / "conf/spark-defaults.conf").write_text(f"spark.driver.extraJavaOptions {THEIRS}\n")
        real = Path(find_java_home({"PATH": "", "XDG_CACHE_HOME": str(directory)}) or "") / "bin/java"
        java = directory / "java/bin/java"
        java.parent.mkdir(parents=True)
        java.write_text(f'#!/bin/sh\nprintf "%s\\n" $$ "$@" > {directory}/said.$$\nexec {real} "$@"\n')
        java.chmod(0o755)
        self.process: subprocess.Popen[str] | None = None

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command to its end, whatever that is."""
        for said in self._directory.glob("said.*"):
            said.unlink()
        environ = {name: os.environ[name] for name in ("PATH", "TMPDIR", "HOME") if name in os.environ}
        environ |= {**ACCESS, "PYTHONPATH": str(self._installed), "JAVA_HOME": str(self._directory / "java")}
        environ |= {"SPARK_CONF_DIR": str(self._directory / "conf")}
        with subprocess.Popen(
            [sys.executable, "-m", "mire", *arguments, "--json"],
            env=environ,
            cwd=self._directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as self.process:
            out, err = self.process.communicate(timeout=HANG_S)
            return self.process.returncode, out, err

    def java(self) -> tuple[int, list[str]]:
        """The process of Spark's Java, and what it was started with."""
        # Before that one another is run, which only tells how to start it.
        (found,) = (each for each in map(Path.read_text, self._directory.glob("said.*")) if "launcher.Main" not in each)
        number, *arguments = found.splitlines()
        return int(number), arguments

    def kill_java(self) -> None:
        """Kill it, as a system does that is short of memory."""
        os.kill(self.java()[0], signal.SIGKILL)

    def kill(self) -> None:
        """Kill the command itself."""
        assert self.process is not None
        self.process.kill()


def commits(server: S3Server) -> int:
    """How often the index was committed."""
    return int(json.loads(server.get(BUCKET, "_index/_meta.json") or b'{"commitSeq": 0}')["commitSeq"])


def test_a_driver_that_dies_commits_nothing(
    bucket_repo: Callable[..., Path], run: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    """A push that is killed says nothing, and the next one is whole; a verification whose Java is killed is told so.

    Spark starts below whatever path, says nothing, and has the options of the user's own settings.
    """
    with S3Server(buckets=[BUCKET]) as server:
        repo = bucket_repo(server.url, BUCKET)
        logs = tmp_path / "home/.swamp/repos/00000000-0000-4000-8000-000000000001/logs"
        logs.mkdir(parents=True)
        for number in range(FILES):
            (logs / f"{number}").write_text(f"content {number}")
        on_spark = "--repo", str(repo), "--pipeline", "--master", "local[1]"
        started = Started(tmp_path)
        server.inject(Run(started.kill), operation="PutObject", key="logs/*", skip=FILES // 2, times=1)
        assert started.run("push", "--all", *on_spark) == (-signal.SIGKILL, "", "")
        assert commits(server) == 0
        code, out, err = run("push", "--all", "--no-pipeline", "--json", "--repo", str(repo))
        assert (code, len(json.loads(out)["sent"]), err) == (0, FILES, "")
        assert commits(server) == 1
        assert len([key for key in server.keys(BUCKET) if key.startswith("logs/")]) == FILES

        server.inject(Run(started.kill_java), operation="GetObject", key="logs/*", times=1)
        code, out, err = started.run("verify", "--deep", *on_spark)
        told = json.loads(err)
        assert (code, out, told["kind"]) == (5, "", "spark")
        assert "the verification: the Java that Spark runs in has ended" in told["message"]
        assert {"-Dmire.test=theirs", "-XX:+UseParallelGC"} <= set(started.java()[1])
