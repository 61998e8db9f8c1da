"""Writes with a transaction: done once, wherever the driver died, in a store with an index and in a plain directory."""

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import mire
from mire.api import Store
from mire.edge.objectstore import open_local
from mire.edge.state import close_states
from mire.errors import ConfigError, DeniedError, FormatError, InputError, RemoteError
from mire.flow.pull import pull
from mire.pipeline.frames import spark_schema
from mire.pipeline.source import target
from mire.pipeline.source.commit import RECORDS, commit_rows
from mire.pipeline.source.draft import drafts_of
from mire.plan.source import parse_source_options
from mire.testing.crash import deaths
from mire.testing.faults import Fail
from mire.testing.s3server import S3Server
from mire.wire.metadatafast import TXN
from sync_world import committed, fast_directory

STEPS = 17
"""Of some hundred steps every so-manieth is died before; a run of all of them takes minutes."""
TEXT = pa.string()
GIVEN = pa.schema(
    [
        *[(name, TEXT) for name in ("model_type", "model_id", "name", "content_type")],
        ("content", pa.binary()),
        ("tags", pa.map_(TEXT, TEXT)),
    ]
)
REPO_ID = "00000000-0000-4000-8000-000000000001"
BLANK = {"version_policy": None, "owner": None, "model_name": None, "streaming": False, "lifetime": "infinite"}
ROWS = [
    {"model_type": "echo", "model_id": model, "name": name, "content": b"x", "content_type": "text/plain", "tags": []}
    for model, name in (("e", "note"), ("e", "note"), ("f", "log"))
]


def write(path: Path, app: str = "nightly", version: int = 1, where: str = "path") -> int:
    """Commit three rows as the driver of a job does; how many versions it made."""
    options = parse_source_options({where: str(path), "txnAppId": app, "txnVersion": str(version)})
    with tempfile.TemporaryDirectory() as scratch, target.open_target(options, scratch) as ds:
        return commit_rows(ds, lambda: [row | BLANK for row in ROWS], options.txn)


def numbers(path: Path, index: str) -> dict[str, list[int]]:
    """The versions that a client sees."""
    names = {"e/note": ("echo", "e", "note"), "f/log": ("echo", "f", "log")}
    if index == "none":
        with mire.open(path.parent) as store:
            return {key: store.model(kind, model).versions(name) for key, (kind, model, name) in names.items()}
    found = committed(open_local(str(path)))
    assert all(open_local(str(path)).head(rel).size_bytes == entry.size_bytes for rel, entry in found.items())
    return {
        key: [n for n in range(1, 20) if f"data/{'/'.join(parts)}/{n}/metadata.yaml" in found]
        for key, parts in names.items()
    }


@pytest.fixture
def fast_path() -> Iterator[Path]:
    """A directory where syncing costs nothing, if there is one."""
    with fast_directory() as path:
        yield path


@pytest.fixture(params=["sharded", "dual", "none"])
def begun(
    request: pytest.FixtureRequest, fast_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Path, str]]:
    """A store with one version in it: its directory, and the form of its index."""
    monkeypatch.setenv("HOME", str(fast_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(fast_path))
    repo, remote = fast_path / "repo", fast_path / "remote"
    for path in (repo, remote):
        path.mkdir()
    if request.param != "none":
        (repo / ".swamp.yaml").write_text(
            f'swampVersion: "1"\nrepoId: "{REPO_ID}"\ndatastore:\n  type: "@mire/file-datastore"\n  config:\n'
            f"    path: {str(remote)!r}\n    index: {request.param}\n"
        )
    with mire.open(repo) as store:
        store.model("echo", "e").put("note", "before")
        base = store.datastore.base
    yield (remote if request.param != "none" else Path(base)), request.param
    close_states(base)


def test_the_same_write_again_adds_nothing(begun: tuple[Path, str]) -> None:
    """A number that is not above the last of its application adds nothing; a higher one, and another's, does."""
    path, index = begun
    assert write(path) == 3
    assert numbers(path, index) == {"e/note": [1, 2, 3], "f/log": [1]}
    before = sorted(each for each in path.rglob("*") if each.is_file())
    assert (write(path), write(path, version=0)) == (0, 0)
    assert before == sorted(each for each in path.rglob("*") if each.is_file())
    assert numbers(path, index) == {"e/note": [1, 2, 3], "f/log": [1]}
    assert (write(path, version=2), write(path, app="other", version=0)) == (3, 3)
    assert numbers(path, index)["f/log"] == [1, 2, 3]


def test_a_copy_of_a_version_is_not_a_row_of_its_write(begun: tuple[Path, str]) -> None:
    """Whatever tags and owner a version was given, only what the write itself made counts as made by it."""
    path, index = begun
    assert write(path) == 3
    rows = [row | BLANK | {"tags": [(TXN, "nightly:2"), ("team", "a")]} for row in ROWS]
    (batch,) = drafts_of([pa.RecordBatch.from_pylist([given(row) for row in rows], GIVEN)], spark_schema(GIVEN), None)
    plain = parse_source_options({"path": str(path)})
    with tempfile.TemporaryDirectory() as scratch, target.open_target(plain, scratch) as ds:
        assert commit_rows(ds, lambda: batch.to_pylist(maps_as_pydicts="strict")) == 3
        found = Store(ds).model("echo", "f").get("log", 2).metadata
        assert (found.tags.get(TXN), found.tags["team"], found.extra) == (None, "a", {})
        # Some other program gives it the tag, and the owner of a version that is of a write.
        first = Store(ds).model("echo", "f").get("log", 1).metadata
        Store(ds).model("echo", "f").put("log", "y", tags={TXN: "nightly:2"}, owner=first.owner)
    assert write(path, version=2) == 3
    assert write(path, version=2) == 0
    assert [len(each) for each in numbers(path, index).values()] == [7, 4]


def given(row: dict[str, Any]) -> dict[str, Any]:
    """A row as a table has it."""
    return {name: row[name] for name in GIVEN.names}


def test_a_driver_that_dies_anywhere_and_runs_again_writes_once(
    begun: tuple[Path, str], fast_path: Path, aged: Callable[[Path], None]
) -> None:
    """Killed before any of its file operations, and run again later: every version is there once, whole."""
    path, index = begun
    root, origin = path.parent if index == "none" else path, fast_path / "origin"
    shutil.copytree(root, origin, symlinks=True)

    def again() -> None:
        shutil.rmtree(root)
        shutil.copytree(origin, root, symlinks=True)

    outcomes = set()
    for step in deaths(again, lambda: write(path), every=STEPS):
        if index != "none":
            aged(path)  # an object that nobody lists is taken for one of a live writer for a while
        outcomes.add(write(path))
        # Numbers that somebody claimed and did not live to use are not given out again.
        assert [len(each) for each in numbers(path, index).values()] == [3, 1], f"at step {step}"
    assert 3 in outcomes


def test_a_driver_that_dies_between_the_push_and_its_answer(
    synced: Callable[..., mire.Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything is published, and nobody heard of it: the same job again adds nothing."""
    store, remote = synced(), tmp_path / "remote"
    store.model("echo", "e").put("note", "before")

    def die(_: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        monkeypatch.setattr(target, "_check_published", die)
        write(remote)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert numbers(remote, "sharded") == {"e/note": [1, 2, 3], "f/log": [1]}
    assert write(remote) == 0
    assert numbers(remote, "sharded") == {"e/note": [1, 2, 3], "f/log": [1]}
    pull(store.datastore)
    record = store.model(RECORDS, "nightly").get("txn")
    assert (record.version, record.json()) == (1, {"txnVersion": 1, "versions": 3})


def test_what_the_same_application_stored_is_replaced_at_once(bucket_repo: Callable[..., Path]) -> None:
    """Objects of a write that ended before its commit are known again by their application, and only by it."""
    with S3Server(buckets=["mire-txn"]) as server:
        repo = bucket_repo(server.url, "mire-txn")
        with mire.open(repo) as store:
            store.model("echo", "e").put("note", "before")
            base = store.datastore.base
        close_states(base)
        server.inject(Fail(403, "AccessDenied"), operation="PutObject", key="_index/*", times=None)
        with pytest.raises(DeniedError):
            write(repo, where="repo")
        server.faults.clear()
        index = [server.get("mire-txn", key) for key in server.keys("mire-txn") if key.startswith("_index/")]
        with pytest.raises(RemoteError, match="the write was not published"):
            write(repo, app="other", where="repo")
        # What could be stored was not published, either: everything or nothing.
        assert index == [server.get("mire-txn", key) for key in server.keys("mire-txn") if key.startswith("_index/")]
        assert write(repo, where="repo") == 3
        assert write(repo, where="repo") == 0
        metadata = [key for key in server.keys("mire-txn") if key.startswith("data/echo/") and "metadata" in key]
        assert len(metadata) == 4
        assert write(repo, app="other", where="repo") == 3


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"txnAppId": "a"}, ConfigError, "'txnAppId' and 'txnVersion' go together"),
        ({"txnAppId": "a", "txnVersion": "-1"}, ConfigError, "'txnVersion' is '-1': give a whole number"),
        ({"txnAppId": "a/b", "txnVersion": "1"}, InputError, "'a/b'"),
    ],
)
def test_transactions_that_cannot_be_are_told(options: dict[str, str], error: type[Exception], message: str) -> None:
    """One without the other, a number below zero, and a name that no model can have, are refused."""
    with pytest.raises(error, match=message):
        parse_source_options({"path": "/nowhere", **options})


def test_a_record_that_is_none_is_told(synced: Callable[..., mire.Store], tmp_path: Path) -> None:
    """What somebody else wrote in the place of the record is no reason to write again, or not to."""
    synced().model(RECORDS, "nightly").put("txn", {"txn": 1})
    with pytest.raises(FormatError, match="no record of a transaction: delete it to begin anew"):
        write(tmp_path / "remote")
