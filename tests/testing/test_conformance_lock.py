"""Every place of locks and every control plane passes the suites that backends run against themselves."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bad_remotes import BlindRemote
from mire.edge.lockdir import LockDir
from mire.edge.lockobject import ObjectLocks
from mire.edge.lockplace import Found, Held, Judge, LeaseText, LockPlace
from mire.edge.memory import MemoryRemote
from mire.edge.objectstore import open_gcs, open_local, open_memory, open_s3
from mire.edge.remote import Remote
from mire.edge.retrying import Retrying
from mire.errors import LockTimeoutError
from mire.model.backend import GcsSettings, S3Settings
from mire.model.lease import LockKey
from mire.model.names import SOLO, Namespace
from mire.testing.conformance_control import OpenRemote, check_control_store, check_datastore_control_store
from mire.testing.conformance_lock import (
    ConformanceError,
    check_all_locks,
    check_lock,
    check_lock_drain,
    check_lock_exclusion,
    check_lock_expiry,
)
from mire.testing.misbehaving import MisbehavingRemote
from mire.testing.s3server import S3Server

STORES = ("memory", "generations", "local", "s3_server", "gcs_server", "seaweedfs", "ministack")


def opener(request: pytest.FixtureRequest, kind: str) -> OpenRemote:
    """Handles on one fresh store of a kind; tries again as programs do."""
    match kind:
        case "memory" | "generations":
            memory = open_memory(content_fingerprint=kind == "memory")
            return lambda: memory
        case "local":
            directory = request.getfixturevalue("tmp_path")
            return lambda: open_local(str(directory / "store"))
        case "gcs_server":
            url = request.getfixturevalue(kind).url
            gcs = GcsSettings(bucket="b", api_endpoint=url, auth="none")
            return handles(lambda: Retrying(open_gcs(gcs)))
        case "s3_server":
            credentials(request, "any", "any")
            s3 = S3Settings(bucket="b", endpoint=request.getfixturevalue(kind).url, force_path_style=True)
        case _:
            endpoint = request.getfixturevalue(kind)
            credentials(request, endpoint.access_key, endpoint.secret_key)
            s3 = S3Settings(bucket=endpoint.bucket(), endpoint=endpoint.url, force_path_style=True)
    return handles(lambda: Retrying(open_s3(s3)))


def credentials(request: pytest.FixtureRequest, access_key: str, secret_key: str) -> None:
    """Have the provider's own chain find these."""
    monkeypatch = request.getfixturevalue("monkeypatch")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret_key)


def handles(open_one: OpenRemote) -> OpenRemote:
    """Three handles in turn: opening one takes long, and who has the same one is no different."""
    opened: Iterator[Remote] = itertools.cycle([open_one() for _ in range(3)])
    return lambda: next(opened)


@pytest.fixture(params=STORES)
def open_remote(request: pytest.FixtureRequest) -> OpenRemote:
    """Each kind of store."""
    return opener(request, request.param)


def test_locks_on_every_store(open_remote: OpenRemote, request: pytest.FixtureRequest) -> None:
    """Seen, free, forced, timed out, exclusive, expiring, drained: alike on all stores."""
    # Conditional writes of many to one key take seconds each on SeaweedFS.
    threads = 3 if request.node.callspec.params["open_remote"] == "seaweedfs" else 8
    check_all_locks(lambda: ObjectLocks(open_remote()), threads=threads)


def test_locks_in_a_directory(tmp_path: Path) -> None:
    """File locks pass the same suite."""
    check_all_locks(lambda: LockDir(str(tmp_path)))


def test_locks_without_conditional_removal() -> None:
    """A store that can only write conditionally passes it, too."""
    memory = MemoryRemote()
    properties = replace(memory.properties, conditional_delete=False)
    check_all_locks(lambda: ObjectLocks(MisbehavingRemote(memory, properties=properties)))


@pytest.mark.parametrize("namespace", [SOLO, Namespace("green")])
def test_control_records_on_every_store(open_remote: OpenRemote, namespace: Namespace) -> None:
    """Put, read, listed, removed, created by one of many: alike on all stores, and nothing is left."""
    check_control_store(open_remote, namespace=namespace)
    assert list(open_remote().list()) == []


def test_records_of_the_datastore_on_every_store(open_remote: OpenRemote) -> None:
    """Read at the root whatever namespace anybody is in, and nothing is left."""
    check_datastore_control_store(open_remote)
    assert list(open_remote().list()) == []


class HastyLocks(ObjectLocks):
    """Locks that can be taken over by anybody who asks."""

    def take_over(self, found: Found, text: LeaseText, judge: Judge) -> Held | None:
        """Do not ask the judge."""
        del judge
        self._remote.put(found.key, text.body)
        return super().take_over(replace(found, fingerprint=self._remote.head(found.key).fingerprint), text, _yes)


def _yes(_body: bytes, _age_ms: int) -> bool:
    return True


class HiddenLocks(ObjectLocks):
    """Locks that are not found."""

    def find(self, *_: object) -> Iterator[LockKey]:
        """Find nothing."""
        return iter(())


class StickyLocks(ObjectLocks):
    """Locks that cannot be removed."""

    def remove(self, *_: object) -> bool:
        """Say that it is done."""
        return True


@pytest.mark.parametrize(
    ("check", "place"),
    [
        (check_lock, StickyLocks),
        (check_lock_exclusion, lambda memory: ObjectLocks(BlindRemote(memory))),
        (check_lock_expiry, HastyLocks),
        (check_lock_drain, HiddenLocks),
    ],
)
def test_a_planted_bug_is_found(
    check: Callable[[Callable[[], LockPlace]], None], place: Callable[[Remote], LockPlace]
) -> None:
    """A store that ignores conditions, and locks that are not what they should be, do not pass."""
    memory = MemoryRemote()
    with pytest.raises((ConformanceError, LockTimeoutError)):
        check(lambda: place(memory))


def test_a_control_plane_that_ignores_conditions_is_found() -> None:
    """Creation that replaces is no creation."""
    memory = MemoryRemote()
    with pytest.raises(ConformanceError, match="check 47"):
        check_control_store(lambda: BlindRemote(memory))


def test_a_server_that_ignores_conditions_is_found(s3_server: S3Server, request: pytest.FixtureRequest) -> None:
    """The same on a real server: both suites refuse it."""
    s3_server.dialect = replace(s3_server.dialect, ignore_conditions=True)
    open_remote = opener(request, "s3_server")
    with pytest.raises(ConformanceError, match=r"racing|exclusion"):
        check_lock_exclusion(lambda: ObjectLocks(open_remote()))
    with pytest.raises(ConformanceError, match="check 47"):
        check_control_store(open_remote)
