"""Stores for tests of the pipeline: directories that tasks can open, filled by a real client."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import mire
from mire.cli.main import main
from mire.edge.state import close_states
from sparks import ACCESS

# What it asserts is told as what tests assert.
pytest.register_assert_rewrite("job_table")

REPO_ID = "00000000-0000-4000-8000-000000000001"


@pytest.fixture
def synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., mire.Store]]:
    """Make stores whose remote is one directory, each with a cache of its own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    opened: list[mire.Store] = []

    def make(
        name: str = "one",
        *,
        index: str = "sharded",
        namespace: str = "",
        remote: Path | None = None,
        home: str | None = None,
    ) -> mire.Store:
        if home is not None:
            monkeypatch.setenv("HOME", home)
        repo = tmp_path / name
        repo.mkdir()
        path = remote or tmp_path / "remote"
        path.mkdir(exist_ok=True)
        space = f"  namespace: {namespace}\n" if namespace else ""
        (repo / ".swamp.yaml").write_text(
            f'swampVersion: "1"\nrepoId: {"00000000-0000-4000-8000-" + format(len(opened), "012d")!r}\n'
            f'datastore:\n  type: "@mire/file-datastore"\n{space}  config:\n'
            f"    path: {str(path)!r}\n    index: {index}\n"
        )
        store = mire.open(repo)
        opened.append(store)
        return store

    yield make
    for store in opened:
        base = store.datastore.base
        store.close()
        close_states(base)


@pytest.fixture
def bucket_repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Make a repository whose remote is a bucket of our S3 server."""
    for name, value in ACCESS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def make(url: str, bucket: str) -> Path:
        repo = tmp_path / "repo"
        repo.mkdir()
        (repo / ".swamp.yaml").write_text(
            f'swampVersion: "1"\nrepoId: "{REPO_ID}"\ndatastore:\n  type: "@swamp/s3-datastore"\n  config:\n'
            f'    bucket: {bucket}\n    region: us-east-1\n    forcePathStyle: true\n    endpoint: "{url}"\n'
            "    index: sharded\n"
        )
        return repo

    return make


@pytest.fixture
def aged() -> Callable[[Path], None]:
    """Make every file below a directory an hour old: nobody is at work on it any more."""

    def age(root: Path) -> None:
        before = time.time() - 3600
        for directory, _, names in os.walk(root):
            for name in names:
                os.utime(os.path.join(directory, name), (before, before))

    return age


@pytest.fixture
def run(spark: object, capsysbinary: pytest.CaptureFixture[bytes]) -> Callable[..., tuple[int, str, str]]:
    """Run a command inside this process, in the session the tests share: exit code, stdout, stderr."""

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        out, err = capsysbinary.readouterr()
        return int(ended.value.code or 0), out.decode(), err.decode()

    return call
