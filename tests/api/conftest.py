"""What the tests of the Python face share: a model, and pictures of a whole tree."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import mire


@pytest.fixture
def model(store: mire.Store) -> mire.Model:
    """A model without data."""
    return store.model("svc", "web-1")


@pytest.fixture
def place(repo: Path) -> Callable[..., Path]:
    """A path below the data of the model."""

    def of(*parts: str) -> Path:
        return repo.joinpath(".swamp/data/svc/web-1", *parts)

    return of


@pytest.fixture
def snapshot() -> Callable[[Path], dict[str, bytes | str | None]]:
    """Everything below a directory: bytes of files, targets of links, None for directories."""

    def take(root: Path) -> dict[str, bytes | str | None]:
        found: dict[str, bytes | str | None] = {}
        for directory, subdirs, names in os.walk(root):
            for name in (*subdirs, *names):
                path = os.path.join(directory, name)
                rel = os.path.relpath(path, root)
                if os.path.islink(path):
                    found[rel] = os.readlink(path)
                elif os.path.isdir(path):
                    found[rel] = None
                else:
                    found[rel] = Path(path).read_bytes()
        return found

    return take
