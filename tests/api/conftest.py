"""What the tests of the Python face share: a model, and pictures of a whole tree."""

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
