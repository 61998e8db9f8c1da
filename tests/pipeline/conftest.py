"""Stores for tests of the pipeline: directories that tasks can open, filled by a real client."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import mire
from mire.edge.state import close_states


@pytest.fixture
def synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., mire.Store]]:
    """Make stores whose remote is one directory, each with a cache of its own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    opened: list[mire.Store] = []

    def make(
        name: str = "one", *, index: str = "sharded", namespace: str = "", remote: Path | None = None
    ) -> mire.Store:
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
