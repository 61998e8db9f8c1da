"""What all tests share: Hypothesis profiles, a clean environment, a store in a temporary directory."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import mire

settings.register_profile("quick", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", max_examples=5_000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("MIRE_HYPOTHESIS", "quick"))


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference's variables of the machine do not reach the tests."""
    for name in list(os.environ):
        if name.startswith(("SWAMP_", "MIRE_")) and name != "MIRE_HYPOTHESIS":
            monkeypatch.delenv(name)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """An empty directory to be a repository."""
    path = tmp_path / "repo"
    path.mkdir()
    return path


@pytest.fixture
def store(repo: Path) -> Iterator[mire.Store]:
    """An open store in an empty repository."""
    with mire.open(repo) as opened:
        yield opened


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
