"""Every job, whatever fails: nothing counts before its commit, and running again completes it."""

import importlib
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest

import cluster_driver
import mire.pipeline
from disks import fill_up
from job_table import JOBS, Job, World, each_job
from mire.pipeline import frames
from mire.pipeline.frames import spark_schema
from sparks import Cluster
from task_faults import TWICE, WAIT_S, WAITING, faulty_tasks

Run = Callable[..., tuple[int, str, str]]
INTERRUPTED = 130


@pytest.fixture
def world(tmp_path: Path, synced: Callable[..., mire.Store], aged: Callable[[Path], None]) -> World:
    """Nothing yet."""
    return World(root=tmp_path, repos=tmp_path, synced=synced, aged=aged)


def test_every_job_is_in_the_table() -> None:
    """A module that puts stages together into a job is tried with all failures below: none can be forgotten."""
    root = Path(mire.pipeline.__file__).parent
    found = {
        str(path.relative_to(root).with_suffix("")).replace("/", ".")
        for path in root.rglob("*.py")
        if "import spark_errors" in path.read_text()
    }
    assert found == {job.module for job in JOBS}


@pytest.fixture(scope="module")
def driver(spark_cluster: Cluster) -> Iterator["Popen[str]"]:
    """A driver on a cluster of two workers, where slow tasks are run twice."""
    spark_cluster.have_workers()
    with Popen(
        [sys.executable, cluster_driver.__file__, spark_cluster.master],
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        stdin=PIPE,
        stdout=PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def on_cluster(driver: "Popen[str]", flags: Path, job: Job, *arguments: str) -> tuple[int, str, str]:
    """Run a command in the session of the cluster, its tasks disturbed."""
    asked = {
        "arguments": arguments,
        "environ": {"HOME": os.environ["HOME"]},
        "stage": job.stage,
        "slow": job.slow or job.stage,
        "flags": str(flags),
    }
    assert driver.stdin is not None
    assert driver.stdout is not None
    driver.stdin.write(json.dumps(asked) + "\n")
    driver.stdin.flush()
    said = json.loads(driver.stdout.readline())
    return said["code"], said["out"], said["err"]


@each_job()
def test_whatever_fails_a_job_counts_once(
    spark: Any, run: Run, driver: "Popen[str]", world: World, job: Job, tmp_path: Path
) -> None:
    """Nothing counts before the commit, and the run after failures is whole, whatever happens to its tasks.

    Tasks that fail for good, or a job that is cancelled, are one typed error; a driver that is interrupted right before
    its commit leaves what was, too. A dry run then says what the real one does. That runs on a cluster, where one task
    fails half-way and is killed when it is tried again, and a slow one is run twice: its result is the same.
    """
    flags = tmp_path / "flags"
    flags.mkdir()
    job.prepare(world)
    arguments, before = job.arguments(world), job.visible(world)
    code, err = aborted(spark, run, job, world)
    assert (code, err.count("\n")) == (5, 1), err
    assert ("was cancelled" if job.is_cancelled else "told to fail") in err
    assert job.visible(world) == before
    if job.commit is not None:
        with dying_before(*job.commit):
            assert run(*arguments)[0] == INTERRUPTED
        assert job.visible(world) == before
    plan = planned(run, job, world)
    if job.leaves:
        code, out, err = run(*arguments, "--json")
    else:
        code, out, err = on_cluster(driver, flags, job, *arguments, "--json")
    done = json.loads(out)
    assert (code, err) == (job.code, "")
    assert {name: done[name] for name in plan if name not in job.differs} == plan
    job.check(world, spark, done)
    if job.leaves and job.is_disturbed:
        world = world.anew()
        job.prepare(world)
        code, out, err = on_cluster(driver, flags, job, *job.arguments(world), "--json")
        assert (code, err) == (job.code, "")
        job.check(world, spark, json.loads(out))
    assert (flags / TWICE).exists() == job.is_disturbed


def planned(run: Run, job: Job, world: World) -> dict[str, Any]:
    """What a dry run says, which changes nothing, without what it cannot know."""
    if not job.has_dry_run:
        return {}
    before = job.visible(world)
    code, out, err = run(*job.arguments(world), "--dry-run", "--json")
    document = json.loads(out)
    assert (code, err, document["dryRun"]) == (0, "", True)
    assert job.visible(world) == before
    return {name: value for name, value in document.items() if name not in job.differs}


def aborted(spark: Any, run: Run, job: Job, world: World) -> tuple[int, str]:
    """Run a job that cannot succeed; its exit code and error."""
    ended = threading.Event()

    def cancel() -> None:
        for _ in range(WAIT_S * 50):
            if (world.root / WAITING).exists() or ended.wait(0.02):
                break
        spark.sparkContext.cancelAllJobs()

    thread = threading.Thread(target=cancel)
    stage = spark_schema(getattr(frames, job.stage))
    with faulty_tasks("wait" if job.is_cancelled else "fail", stage, world.root):
        if job.is_cancelled:
            thread.start()
        try:
            code, out, err = run(*job.arguments(world))
        finally:
            ended.set()
            if job.is_cancelled:
                thread.join()
    assert out == ""
    return code, err


@contextmanager
def dying_before(module: str, name: str) -> Iterator[None]:
    """Let the driver be interrupted when it calls a function."""

    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importlib.import_module(module), name, die)
        yield


@pytest.mark.parametrize(
    ("name", "place", "left_bytes"),
    [
        ("push", "remote", 64 << 10),
        ("pull", "disk", 64 << 10),
        ("migrate", "disk", 64 << 10),
        ("migrate into a directory", "disk", 64 << 10),
        ("index rebuild", "remote", 0),
        ("export", "disk", 4 << 10),
    ],
)
def test_a_full_disk_is_told_and_nothing_counts(
    spark: Any, run: Run, world: World, small_disk: Callable[[str], Path], name: str, place: str, left_bytes: int
) -> None:
    """Where there is no space for what a job makes, one typed error says so; with space it goes on."""
    job = next(each for each in JOBS if each.name == name)
    disk = small_disk(place)
    world.target, world.file_bytes = None if disk == world.remote else disk, 20_000
    job.prepare(world)
    before, filler = job.visible(world), fill_up(disk, left_bytes)
    code, out, err = run(*job.arguments(world))
    assert (code, out, err.count("\n")) == (5, "", 1), err
    assert "no space left" in err
    assert job.visible(world) == before
    filler.unlink()
    code, out, _ = run(*job.arguments(world), "--json")
    assert code == 0
    job.check(world, spark, json.loads(out))
