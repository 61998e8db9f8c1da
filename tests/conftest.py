"""What all tests share: Hypothesis profiles, a clean environment, a store in a temporary directory."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

import mire

settings.register_profile("quick", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", max_examples=5_000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("MIRE_HYPOTHESIS", "quick"))

# A background job of a shell ignores Ctrl-C, and so would every process that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_MEMORY = "/dev/shm"  # noqa: S108 - a place that is fast, not one that is trusted
_MEMORY_BYTES = 4 << 30


def _is_roomy_memory() -> bool:
    """Whether a directory in memory is there that can stand in for a disk: large enough, and programs run from it."""
    try:
        found = os.statvfs(_MEMORY)
    except OSError:
        return False
    is_large = found.f_bavail * found.f_frsize >= _MEMORY_BYTES
    return is_large and not found.f_flag & os.ST_NOEXEC and os.access(_MEMORY, os.W_OK)


# What tests write is gone with them, and no test cuts the power: waiting for a disk at every sync shows nothing. Who
# names a place, by --basetemp or in this variable, gets it.
if _is_roomy_memory():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", _MEMORY)

pytest_plugins = ["disks", "forked_mire", "servers", "sparks", "sparkconnect", "sparkwheels"]

_WITH_SPARK = "tests/pipeline/"


class _OneSpark(LoadScopeScheduling):
    """Tests with Spark run in one process, with one Java and one cluster; any other goes to whoever is free."""

    def _split_scope(self, nodeid: str) -> str:
        return _WITH_SPARK if nodeid.startswith(_WITH_SPARK) else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _OneSpark:
    """What runs where."""
    return _OneSpark(config, log)


_FOREIGN = ("SWAMP_", "MIRE_", "AWS_", "GOOGLE_", "GCLOUD_", "GCE_", "CLOUDSDK_", "STORAGE_EMULATOR_", "OBJECT_STORE_")
_OURS = ("MIRE_HYPOTHESIS", "MIRE_SPARK_CLASSES")
_PROXIES = tuple(f"{kind}_proxy" for kind in ("http", "https", "all"))


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings, credentials and proxies of the machine do not reach the tests, nor do the clouds' metadata servers."""
    for name in list(os.environ):
        if (name.startswith(_FOREIGN) and name not in _OURS) or name.lower() in _PROXIES:
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    # The official GCS client else asks for the bucket behind our backs, which counts of requests would show.
    monkeypatch.setenv("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/nonexistent/mire-tests")


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
