"""Bulk push and pull: moved by tasks, decided and committed as always."""

import json
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mire
from mire.edge.objectstore import open_local
from mire.edge.state import close_states
from mire.errors import RemoteError
from mire.flow.exchange import push_now
from mire.flow.mark import mark_all
from mire.flow.pull import pull
from mire.flow.push import push
from mire.model.config import SYNC_ENDLESS_MS as ENDLESS
from mire.pipeline.carrier import SparkCarrier, worth_it
from mire.pipeline.session import cores_at, expected_cores
from mire.testing.faults import Delay, Fail
from mire.testing.s3server import S3Server
from mire.wire.relpath import is_internal
from sync_world import committed

FILES = 60


def scribble(store: mire.Store, text: str, files: int = FILES) -> None:
    """Files that nobody marked by name."""
    for number in range(files):
        path = Path(store.datastore.tier) / f"logs/{number % 7}/{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text} {number}")
    mark_all(store.datastore)


def objects(remote: Path) -> dict[str, bytes]:
    """What is stored."""
    local = open_local(str(remote))
    return {stat.key: local.get(stat.key).data for stat in local.list() if not is_internal(stat.key)}


def files_of(store: mire.Store) -> dict[str, bytes]:
    """What is in a cache."""
    tier = Path(store.datastore.tier)
    found = {str(path.relative_to(tier)): path.read_bytes() for path in tier.rglob("*") if path.is_file()}
    return {rel: data for rel, data in found.items() if not is_internal(rel)}


def on_spark(store: mire.Store, spark: Any, worth_it: int = 1) -> Any:
    """The datastore of a store, its files moved by tasks."""
    return replace(store.datastore, carrier=SparkCarrier(lambda: nullcontext(spark), worth_it=worth_it))


@pytest.mark.parametrize("index", ["sharded", "dual"])
def test_bulk_push_and_pull_agree_with_the_interactive_ones(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path, index: str
) -> None:
    """New, changed and removed files: what tasks move is what this process would have, entries and base included."""
    one, other = synced("one", index=index), synced("other", index=index)
    scribble(one, "first")
    assert len(push(on_spark(one, spark), full=True).uploaded) == FILES
    assert objects(tmp_path / "remote") == files_of(one)
    assert len(pull(on_spark(other, spark), full=True).written) == FILES
    assert files_of(other) == files_of(one)
    scribble(one, "second", 20)
    done = push(on_spark(one, spark), full=True)
    assert (len(done.uploaded), done.removed, done.is_whole) == (20, [], True)
    assert len(pull(other.datastore, full=True).written) == 20
    index_of = committed(open_local(str(tmp_path / "remote")))
    assert all(entry.sha256 and entry.local_mtime for entry in index_of.values())
    assert push(one.datastore, full=True).count == 0


def test_what_one_file_does_not_let_happen_is_told(spark: Any, synced: Callable[..., mire.Store]) -> None:
    """An object that is gone leaves its path as it was, and everything else comes."""
    one, other = synced("one"), synced("other")
    scribble(one, "text")
    push(one.datastore, full=True)
    (Path(one.datastore.config.target.config["path"]) / "logs/1/1").unlink()  # type: ignore[union-attr]
    done = pull(on_spark(other, spark), full=True)
    assert len(done.written) == FILES - 1
    assert done.findings == [
        "'logs/1/1' is in the index, but its object is not there: 'mire verify' shows what can be done"
    ]


@pytest.mark.parametrize(("cores", "files"), [(1, sys.maxsize), (2, sys.maxsize), (4, 21_477), (64, 15_662)])
def test_spark_is_started_for_what_its_start_is_worth(cores: int, files: int) -> None:
    """The fewer cores one process leaves idle, the more files it takes; with two it does not pay."""
    assert worth_it(cores) == files


@pytest.mark.parametrize(
    ("master", "environ", "cores"),
    [
        (None, {}, os.cpu_count()),
        (None, {"SPARK_REMOTE": ""}, os.cpu_count()),
        (None, {"SPARK_REMOTE": "sc://host"}, 16),
        (None, {"PYSPARK_GATEWAY_PORT": "1"}, 16),
        ("local", {}, 1),
        ("local[3]", {"SPARK_REMOTE": "sc://host"}, 3),
        ("local[4,2]", {}, 4),
        ("local[*]", {}, os.cpu_count()),
        ("spark://host:7077", {}, 16),
    ],
)
def test_the_cores_are_those_of_where_it_would_run(master: str | None, environ: dict[str, str], cores: int) -> None:
    """Before a session is there: those of this machine, of the master, or what a cluster is taken to have."""
    assert cores_at(master, environ) == cores


def test_the_cores_of_a_session_are_its_own(spark: Any) -> None:
    """Whoever has a session runs in it: what it has counts, whatever this machine or the environment has."""
    assert expected_cores(None, {"SPARK_REMOTE": "sc://host"}) == 2


def test_few_files_start_no_spark(synced: Callable[..., mire.Store]) -> None:
    """Below the number from which on it is worth it, this process moves the files, and nothing is started."""
    store = synced()
    scribble(store, "text", 3)

    def never() -> Any:
        raise AssertionError("Spark was started")

    carrier = SparkCarrier(never, worth_it=4)
    assert len(push(replace(store.datastore, carrier=carrier), full=True).uploaded) == 3
    assert not carrier.is_started


def test_a_store_that_fails_ends_the_push_and_keeps_the_marks(
    spark: Any, synced: Callable[..., mire.Store], tmp_path: Path
) -> None:
    """What is wrong with the store, and not with one file, is one typed error; nothing is committed, a push goes on."""
    store, remote = synced(), tmp_path / "remote"
    scribble(store, "text")

    def vanish() -> Any:
        remote.rename(tmp_path / "elsewhere")
        return nullcontext(spark)

    with pytest.raises(RemoteError, match=r"remote"):
        push(replace(store.datastore, carrier=SparkCarrier(vanish, worth_it=1)), full=True)
    (tmp_path / "elsewhere").rename(remote)
    assert committed(open_local(str(remote))) == {}
    assert len(push(on_spark(store, spark)).uploaded) == FILES


def test_moving_everything_is_not_bound_by_the_time_of_a_sync(
    run: Callable[..., tuple[int, str, str]], synced: Callable[..., mire.Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings' limit of a sync ends a push, not one of everything, of which one sees how far it is."""
    store = synced()
    scribble(store, "text", 3)
    monkeypatch.setenv("SWAMP_DATASTORE_SYNC_TIMEOUT_MS", "1")
    repo = store.datastore.repo_dir
    code, _, err = run("push", "--repo", repo)
    assert (code, "took longer than 0.001 s" in err) == (5, True)
    assert run("push", "--all", "--repo", repo)[:2] == (0, "sent 3 files, removed 0\n")
    scribble(store, "other", 2)
    seen: list[int] = []
    carrier = SparkCarrier(nullcontext, worth_it=sys.maxsize)
    endless = replace(store.datastore, carrier=carrier, config=replace(store.datastore.config, sync_timeout_ms=ENDLESS))
    assert len(push_now(endless, full=True, watch=seen.append).uploaded) == 2
    assert len(seen) >= 2


@pytest.mark.parametrize("how", ["on Spark", "here"])
def test_a_time_that_is_given_ends_moving_everything(
    run: Callable[..., tuple[int, str, str]], bucket_repo: Callable[..., Path], tmp_path: Path, how: str
) -> None:
    """With --timeout a push of everything ends, though its tasks hang; nothing is committed, and the next goes on."""
    with S3Server(buckets=["mire-bulk"]) as server:
        push = "push", "--all", "--repo", str(bucket_repo(server.url, "mire-bulk"))
        logs = tmp_path / "home/.swamp/repos/00000000-0000-4000-8000-000000000001/logs"
        logs.mkdir(parents=True)
        (logs / "one").write_text("text")
        if how == "on Spark":
            server.hold(operation="PutObject", key="logs/*", times=None)
        else:
            # What this process asked for is waited for; the commit comes after it.
            server.inject(Delay(0.6), operation="PutObject", times=None)
        code, _, err = run(*push, "--timeout", "1", *(("--pipeline",) if how == "on Spark" else ()))
        assert (code, "took longer than 1 s" in err, err.count("\n")) == (5, True, 1), err
        assert server.get("mire-bulk", "_index/_meta.json") is None
        server.faults.clear()
        assert run(*push, "--no-pipeline")[:2] == (0, "sent 1 file, removed 0\n")


def test_bulk_commands(
    run: Callable[..., tuple[int, str, str]], synced: Callable[..., mire.Store], tmp_path: Path
) -> None:
    """A dry run says the number the run then has; the flags insist, refuse, and go with --all only."""
    one, other = synced("one"), synced("other")
    scribble(one, "text", 30)
    repo = one.datastore.repo_dir
    _, planned, _ = run("push", "--all", "--pipeline", "--dry-run", "--repo", repo)
    assert planned.splitlines()[-1] == "would send 30 files, removed 0".replace("removed", "would remove")
    assert run("push", "--all", "--pipeline", "--repo", repo) == (0, "sent 30 files, removed 0\n", "")
    assert run("pull", "--all", "--pipeline", "--repo", other.datastore.repo_dir)[1] == "brought 30 files, removed 0\n"
    assert files_of(other) == files_of(one)
    assert run("push", "--all", "--no-pipeline", "--repo", repo) == (0, "nothing to push\n", "")
    code, _, err = run("pull", "--pipeline", "--repo", repo)
    assert (code, "go with --all" in err) == (2, True)
    code, _, err = run("pull", "--all", "--model", "echo/e", "--repo", repo)
    assert (code, "--all is everything, --model a part" in err) == (2, True)


def test_a_task_that_fails_is_run_again(spark: Any, bucket_repo: Callable[..., Path]) -> None:
    """A task that dies half-way is run once more over what it stored already; everything is committed, once."""
    with S3Server(buckets=["mire-bulk"]) as server, mire.open(bucket_repo(server.url, "mire-bulk")) as store:
        scribble(store, "text")
        server.inject(Fail(403, "AccessDenied"), operation="PutObject", key="logs/*", skip=20, times=1)
        done = push(on_spark(store, spark), full=True)
        assert (len(done.uploaded), done.is_whole) == (FILES, True)
        puts = [each.key for each in server.log() if each.operation == "PutObject" and each.key.startswith("logs/")]
        assert len(puts) > FILES
        assert json.loads(server.get("mire-bulk", "_index/_meta.json") or b"")["commitSeq"] == 1
        assert len([key for key in server.keys("mire-bulk") if key.startswith("logs/")]) == FILES
        close_states(store.datastore.base)
