"""The shipped suite of sync: over every kind of store, in both forms of the index; and every planted bug is found."""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bad_remotes import ForgetfulRemote, UndyingRemote
from mire.edge.memory import MemoryRemote
from mire.edge.objectstore import open_gcs, open_local, open_memory, open_s3
from mire.edge.remote import Body
from mire.edge.wrap import Wrapper
from mire.errors import DeniedError
from mire.model.backend import GcsSettings, S3Settings
from mire.testing import conformance_fetch, conformance_phase, conformance_trip
from mire.testing.conformance import OpenRemote
from mire.testing.conformance_lock import ConformanceError
from mire.testing.conformance_sync import SYNC_CHECKS, SyncCheck, check_sync, run_sync_check
from planted_sync import PLANTED, Planted
from sync_world import fast_directory

KINDS = ("memory", "generations", "local", "s3_server", "gcs_server", "seaweedfs")


@pytest.fixture
def fast() -> Iterator[str]:
    """A directory where syncing costs nothing, if there is one."""
    with fast_directory() as path:
        yield str(path)


@pytest.fixture
def open_of(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], OpenRemote]:
    """Gives, by kind, what opens handles on one store of that kind."""

    def opener(kind: str) -> OpenRemote:
        match kind:
            case "memory" | "generations":
                memory = open_memory(content_fingerprint=kind == "memory")
                return lambda: memory
            case "local":
                return lambda: open_local(str(tmp_path / "objects"))
            case "gcs_server":
                gcs = GcsSettings(bucket="b", api_endpoint=request.getfixturevalue(kind).url, auth="none")
                return lambda: open_gcs(gcs)
        server = request.getfixturevalue(kind)
        is_ours = kind == "s3_server"
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any" if is_ours else server.access_key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any" if is_ours else server.secret_key)
        s3 = S3Settings(bucket="b" if is_ours else server.bucket(), endpoint=server.url, force_path_style=True)
        return lambda: open_s3(s3)

    return opener


@pytest.mark.parametrize("is_sharded", [False, True], ids=["v1", "v2"])
@pytest.mark.parametrize("kind", KINDS)
def test_sync_over_every_store(kind: str, open_of: Callable[[str], OpenRemote], *, is_sharded: bool) -> None:
    """Every round trip of the reference's suite holds over each kind of store, and nothing is left in it."""
    open_remote = open_of(kind)
    check_sync(open_remote, is_sharded=is_sharded)
    assert list(open_remote().list()) == []


@pytest.mark.parametrize("is_sharded", [False, True], ids=["v1", "v2"])
@pytest.mark.parametrize("planted", PLANTED, ids=lambda each: each.label.replace(" ", "-"))
def test_a_planted_bug_is_found(planted: Planted, fast: str, *, is_sharded: bool) -> None:
    """A cache with one bug fails exactly the expectation that is about it, in both forms of the index."""
    memory = MemoryRemote()
    with pytest.raises(ConformanceError, match=f"^check {planted.label}: "):
        run_sync_check(
            check_of(planted.label), lambda: memory, is_sharded=is_sharded, directory=fast, make_cache=planted.make
        )


def check_of(label: str) -> SyncCheck:
    """The check an expectation belongs to."""
    (found,) = (check for check in SYNC_CHECKS if int(label[:2]) in check.cases)
    return found


def test_every_expectation_has_a_planted_bug() -> None:
    """No expectation of the suite can rot unseen: each label in its source fails for some bug."""
    source = "".join(map(inspect.getsource, (conformance_trip, conformance_phase, conformance_fetch)))
    labels = set(re.findall(r'"(\d\d[a-e]? [a-z ]+)"', source))
    assert labels == {planted.label for planted in PLANTED}


@pytest.mark.parametrize(("wrong", "check"), [(ForgetfulRemote, "round trip"), (UndyingRemote, "pull deletes")])
def test_a_store_with_a_bug_is_found(wrong: type[Wrapper], check: str, fast: str) -> None:
    """A remote that loses bytes or keeps what was removed does not pass, though the sync over it is right."""
    remote = wrong(MemoryRemote())
    (found,) = (each for each in SYNC_CHECKS if each.name == check)
    with pytest.raises(ConformanceError):
        run_sync_check(found, lambda: remote, directory=fast)


def test_all_that_fails_is_named() -> None:
    """The whole suite goes on after a failure, and names every check that failed; errors count as failures."""

    class Broken(ForgetfulRemote):
        """A store that spoils data, and cannot be read but in pieces."""

        def get(self, key: str) -> Body:
            """Refuse data."""
            if "/data/" in key:
                raise DeniedError(f"no right to read {key}")
            return super().get(key)

    remote = Broken(MemoryRemote())
    with pytest.raises(ConformanceError) as caught:
        check_sync(lambda: remote, checks=[*SYNC_CHECKS[:3], *SYNC_CHECKS[-3:-1]])
    failed = [part.split(":")[0] for part in str(caught.value).removeprefix("check ").split("; check ")]
    assert failed == ["22 count", "23 pull", "fetch content", "fetch content error"]
