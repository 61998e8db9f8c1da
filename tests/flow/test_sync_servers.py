"""The same sync over servers that speak S3 and GCS, a directory, and a real store; and through requests that fail."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mire.edge.objectstore import open_gcs, open_local, open_s3
from mire.edge.remote import Remote
from mire.edge.retrying import Patience, Retrying
from mire.model.backend import GcsSettings, S3Settings
from mire.testing import faults
from mire.testing.gcsserver import GcsServer
from mire.testing.s3server import S3Server
from servers import S3Endpoint
from sync_world import TYPE, World, check_lists, committed, data, latest

PATIENT = Patience(attempts=12, pause=lambda _: None)


def s3_at(url: str, bucket: str, prefix: str) -> Remote:
    """A bucket of a server on this machine."""
    return open_s3(S3Settings(bucket=bucket, prefix=prefix, region="us-east-1", endpoint=url, force_path_style=True))


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers of tests let everybody in who says something."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")


@pytest.fixture(params=["s3", "gcs", "file"])
def server(request: pytest.FixtureRequest, fast_path: Path) -> Iterator[tuple[Remote, S3Server | GcsServer | None]]:
    """A remote, and the server behind it that can be told to misbehave."""
    if request.param == "s3":
        found: S3Server = request.getfixturevalue("s3_server")
        yield s3_at(found.url, "b", "some/prefix"), found
    elif request.param == "gcs":
        gcs: GcsServer = request.getfixturevalue("gcs_server")
        yield open_gcs(GcsSettings(bucket="b", api_endpoint=gcs.url, auth="none")), gcs
    else:
        yield open_local(str(fast_path / "remote")), None


def check(remote: Remote, files: dict[str, bytes]) -> None:
    """The index lists exactly these files, each with its object."""
    entries = committed(remote)
    assert entries.keys() == files.keys()
    for rel, entry in entries.items():
        assert remote.get(rel).data == files[rel]
        assert entry.sha256 == hashlib.sha256(files[rel]).hexdigest()
    check_lists(remote)


def live(world: World, remote: Remote) -> None:
    """Some life of two caches: writes, changes of equal size, removals, a conflict, a look at one model."""
    one, other = world.client(remote), world.client(remote)
    for number in (1, 2, 3):
        one.version("m", number, f"v{number}")
    one.version("n", 1, "neighbour")
    one.write("logs/a", "one")
    assert one.push().is_whole
    assert other.pull().is_whole
    assert other.files() == one.files()
    other.write("logs/a", "two")
    other.remove(data("m"))
    other.version("m", 4, "v4")
    assert other.push().is_whole
    one.write("logs/a", "six")
    assert [conflict.rel for conflict in one.push().conflicts] == ["logs/a"]
    one.pull(theirs=True)
    assert one.files() == other.files()
    check(remote, one.files())
    scoped = world.client(remote)
    scoped.pull("m")
    assert scoped.files() == {rel: text for rel, text in one.files().items() if rel.startswith(f"data/{TYPE}/m/")}
    assert scoped.read(latest("m")) == b"4"
    for client in (one, other):
        assert (client.push().count, client.pull().count) == (0, 0)


@pytest.mark.parametrize("sharded", [False, True])
def test_every_kind_of_store(
    worlds: Callable[..., World], server: tuple[Remote, S3Server | GcsServer | None], *, sharded: bool
) -> None:
    """What holds in memory holds over the wire and over files."""
    live(worlds(sharded=sharded), server[0])


@pytest.mark.parametrize("sharded", [False, True])
def test_a_real_store(
    worlds: Callable[..., World], seaweedfs: S3Endpoint, monkeypatch: pytest.MonkeyPatch, *, sharded: bool
) -> None:
    """The same over SeaweedFS."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", seaweedfs.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", seaweedfs.secret_key)
    live(worlds(sharded=sharded), s3_at(seaweedfs.url, seaweedfs.bucket(), ""))


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize(
    "action",
    [faults.ApplyThenDrop(), faults.Drop(), faults.Fail(503), faults.ApplyThenFail(500)],
    ids=lambda each: type(each).__name__,
)
def test_requests_that_fail_now_and_then(
    worlds: Callable[..., World],
    server: tuple[Remote, S3Server | GcsServer | None],
    action: faults.Action,
    *,
    sharded: bool,
) -> None:
    """Lost answers and errors of every sixth request, reads and writes alike, change nothing but the time it takes."""
    remote, found = server
    if found is None:
        return
    found.inject(action, times=None, chance=0.16)
    live(worlds(sharded=sharded), Retrying(remote, PATIENT))
