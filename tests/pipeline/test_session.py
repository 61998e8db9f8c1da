"""One way to a SparkSession: what is honoured, what is started, and what is refused."""

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from mire.errors import ConfigError, FormatError, RemoteError
from mire.pipeline import frames
from mire.pipeline.foreign import spark_errors
from mire.pipeline.frames import ENTRIES, batch_of, batches_of, frame_of, mapped, streamed
from mire.pipeline.java import find_java_home
from mire.pipeline.progress import counted, watched
from mire.pipeline.release import Release, check_release, this_release
from mire.pipeline.session import open_session
from sparkconnect import HANG_S


def test_an_embedded_session_is_quiet_and_local(spark: Any) -> None:
    """It listens on the loopback interface, has no web page, uses Arrow, and runs the Python it was started by."""
    assert spark.conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.sparkContext.uiWebUrl is None
    assert spark.conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"
    assert spark.sparkContext.pythonExec == sys.executable


def test_an_active_session_is_used_and_not_stopped(spark: Any) -> None:
    """Whoever has a session keeps it: a job runs in it and leaves it as it was."""
    with open_session() as found:
        assert found is spark
    assert spark.range(3).count() == 3


def test_a_session_of_another_thread_is_used_and_not_stopped(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is one that another thread started, or a context that has no session yet; another master is refused."""

    def opened(master: str | None = None) -> Any:
        with open_session(master) as found:
            return found.sparkContext, found.range(3).count()

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(opened).result() == (spark.sparkContext, 3)
        with pytest.raises(ConfigError, match=r"already has a Spark session, at 'local\[2,3\]', not at 'local\[1\]'"):
            thread.submit(opened, "local[1]").result()
    with monkeypatch.context() as patch, ThreadPoolExecutor(1) as thread:
        patch.setattr(SparkSession, "_instantiatedSession", None)
        assert thread.submit(opened).result() == (spark.sparkContext, 3)
    assert spark.range(3).count() == 3


def test_a_session_elsewhere_is_refused(spark: Any) -> None:
    """A master that is not that of the active session is an error, not silently another place."""
    message = r"already has a Spark session, at 'local\[2,3\]', not at 'spark://"
    with pytest.raises(ConfigError, match=message), open_session("spark://127.0.0.1:1"):
        pass


def test_rows_pass_through_a_task(spark: Any) -> None:
    """A table of the driver's is the same after a task had it, None and all."""
    rows = [[f"logs/{number}", "logs", number, "t", None, None, None, None] for number in range(5)]
    frame = frame_of(spark, rows, ENTRIES)
    assertDataFrameEqual(mapped(frame, lambda batches: batches, ENTRIES), frame)


@pytest.mark.parametrize("is_embedded", [True, False])
def test_many_rows_pass_by_in_pieces(spark: Any, monkeypatch: pytest.MonkeyPatch, *, is_embedded: bool) -> None:
    """The driver never holds all rows of a large table, and what an embedded Spark reads them from goes with it."""
    monkeypatch.setattr(frames, "BATCH", 10)
    monkeypatch.setattr(frames, "_PIECE", 20)
    monkeypatch.setattr(frames, "_is_embedded", lambda _: is_embedded)
    before, held = pa.total_allocated_bytes(), list[int]()

    def rows() -> Iterator[list[Any]]:
        for number in range(200):
            held.append(pa.total_allocated_bytes() - before)
            yield [f"{number:020000}", "logs", number, *[None] * 5]

    with ExitStack() as stack:
        frame = streamed(stack, spark, rows(), ENTRIES)
        assert max(held) < 60 * 20_000
        made = [Path(each.removeprefix("file://")) for each in frame.inputFiles()]
        assert len(made) == is_embedded
        derived = frame.select("size_bytes")
        del frame
        gc.collect()
        assert sorted(row.size_bytes for row in derived.collect()) == list(range(200))
    assert not any(path.exists() for path in made)


def test_batches_are_bounded() -> None:
    """Rows come in batches of at most the size that was asked for; no rows make no batch."""
    rows = [[f"logs/{number}", None, None, None, None, None, None, None] for number in range(5)]
    assert [batch.num_rows for batch in batches_of(rows, ENTRIES, 2)] == [2, 2, 1]
    assert list(batches_of([], ENTRIES)) == []
    assert batch_of([], ENTRIES).num_rows == 0


def test_one_sees_how_far_a_job_is(spark: Any, tmp_path: Path) -> None:
    """While a task is at work, it is told that it is not done: this one waits until that was said."""
    said, texts, wait_s = tmp_path / "said", list[str](), HANG_S

    def show(text: str) -> None:
        texts.append(text)
        said.touch()

    def work(batches: Any) -> Any:
        until = time.monotonic() + wait_s
        while not said.exists() and time.monotonic() < until:
            time.sleep(0.02)
        yield from batches

    with watched(spark, show):
        assert mapped(frame_of(spark, [["a"] + [None] * 7], ENTRIES).coalesce(1), work, ENTRIES).count() == 1
    assert "spark: 0 of 1 tasks" in texts


def test_progress_without_spark_is_told_in_files() -> None:
    """What this process does itself is counted, too."""
    told, texts = threading.Event(), list[str]()

    def show(text: str) -> None:
        texts.append(text)
        told.set()

    with watched(None, show):
        rows = counted(iter("ab"), 2)
        assert next(rows) == "a"
        assert told.wait(30)
        assert list(rows) == ["b"]
    assert texts[0] == "moved: 1 of 2 files"


def test_an_error_of_a_task_arrives_as_what_it_was(spark: Any) -> None:
    """What a task raises on purpose is raised on the driver: its class, its kind and its words."""

    def fail(_: Any) -> Any:
        raise FormatError("the shard 'x' is damaged", kind="mismatch")
        yield

    with pytest.raises(FormatError, match=r"^the shard 'x' is damaged$") as raised, spark_errors("a test"):
        mapped(frame_of(spark, [["a"] + [None] * 7], ENTRIES), fail, ENTRIES).collect()
    assert raised.value.kind == "mismatch"


def test_a_bug_of_a_task_is_told_in_one_line(spark: Any) -> None:
    """What nobody raised on purpose is one line with what Python said."""

    def fail(_: Any) -> Any:
        raise ZeroDivisionError("by zero")
        yield

    message = r"a test failed in Spark: ZeroDivisionError: by zero; nothing"
    with pytest.raises(RemoteError, match=message), spark_errors("a test"):
        mapped(frame_of(spark, [["a"] + [None] * 7], ENTRIES), fail, ENTRIES).collect()


def test_a_worker_without_the_package_is_named(spark: Any) -> None:
    """A worker that cannot import mire is told apart from any other failure, and from one that has another mire."""

    def fail(name: str) -> Any:
        def task(_: Any) -> Any:
            raise ModuleNotFoundError(f"No module named '{name}'")
            yield

        return mapped(frame_of(spark, [["a"] + [None] * 7], ENTRIES), task, ENTRIES)

    with pytest.raises(ConfigError, match=r"needs mire on every worker"), spark_errors("a test"):
        fail("mire").collect()
    with pytest.raises(ConfigError, match=r"a worker has another mire than the driver"), spark_errors("a test"):
        fail("mire.pipeline.later").collect()


def test_a_worker_of_another_release_is_refused() -> None:
    """Python, mire and the packages that move things must be the same on both sides; the error names what differs."""
    ours = this_release()
    check_release(ours)
    assert [name for name, _ in ours.packages] == ["pyspark", "pyarrow", "obstore"]
    theirs = replace(ours, packages=(*ours.packages[:2], ("obstore", "0.0.1")))
    message = r"on Python 3\.\d+ with obstore 0\.0\.1, a worker runs mire .* with obstore \d[\w.]+: install the same"
    with pytest.raises(ConfigError, match=message):
        check_release(theirs)
    with pytest.raises(ConfigError, match=r"the driver runs mire 9 on Python 2\.7, a worker runs mire"):
        check_release(Release(mire="9", python="2.7"))


def _java(home: Path, version: str | None) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\n")
    (home / "bin" / "java").chmod(0o755)
    if version is not None:
        (home / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_VERSION="{version}"\n')
    return home


def test_java_is_found_by_home_path_or_package(tmp_path: Path) -> None:
    """JAVA_HOME counts first, then a Java on the PATH that is new enough, then the one from PyPI."""
    new, old = _java(tmp_path / "new", "21.0.1"), _java(tmp_path / "old", "11.0.2")
    nowhere = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert find_java_home({"JAVA_HOME": str(new)}) == str(new)
    assert find_java_home({"PATH": str(new / "bin")}) is None
    for path in (str(tmp_path), str(old / "bin")):
        home = find_java_home({**nowhere, "PATH": path})
        assert home is not None
        assert home.startswith(str(tmp_path / "cache" / "mire" / "java-"))
    with pytest.raises(ConfigError, match=r"has no bin/java"):
        find_java_home({"JAVA_HOME": str(tmp_path)})
    with pytest.raises(ConfigError, match=r"older than Java 17"):
        find_java_home({"JAVA_HOME": str(old)})


def test_the_packaged_java_runs_without_the_module_it_lacks(tmp_path: Path) -> None:
    """What Spark asks of every Java and the one from PyPI lacks is left out; all else is passed on."""
    home = find_java_home({"PATH": "", "XDG_CACHE_HOME": str(tmp_path)})
    java = os.path.join(str(home), "bin", "java")
    done = subprocess.run(
        [java, "--add-modules=jdk.incubator.vector", "-Da=b c", "-version"], capture_output=True, text=True, check=True
    )
    assert 'openjdk version "' in done.stderr


def test_help_does_not_import_spark() -> None:
    """`mire --help`, and the help of every command, import neither Spark nor Arrow."""
    code = (
        "import sys\nfrom mire.cli.main import COMMANDS, mire\nimport click\n"
        "from click.testing import CliRunner\n"
        "for name in ('', *COMMANDS):\n"
        "    assert CliRunner().invoke(mire, [name, '--help'] if name else ['--help']).exit_code == 0, name\n"
        "found = {each.partition('.')[0] for each in sys.modules} & {'pyspark', 'pyarrow', 'pandas', 'numpy', 'py4j'}\n"
        "assert not found, found\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
