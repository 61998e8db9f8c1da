"""The contract of remotes, over every remote there is: memory, a directory, our servers and real ones."""

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mire.edge.local import LocalRemote
from mire.edge.objectstore import open_gcs, open_local, open_memory, open_s3
from mire.edge.prefixed import Prefixed
from mire.edge.remote import Absent, Matches, Refused, Remote, Removed, Stored
from mire.errors import ConfigError, InputError, NotFoundError
from mire.model.backend import GcsSettings, S3Settings
from mire.testing.conformance import REMOTE_CHECKS, OpenRemote, RemoteCheck, check_remote, run_check
from mire.testing.conformance_lock import ConformanceError
from servers import S3Endpoint

KINDS = ("memory", "generations", "local", "s3", "s3-ordered", "gcs", "seaweedfs", "ministack")


@pytest.fixture
def open_of(request: pytest.FixtureRequest, tmp_path: Path, credentials: Callable[[str, str], None]) -> Any:
    """Gives, by kind, what opens handles on one store of that kind."""

    def s3(server: S3Endpoint) -> OpenRemote:
        credentials(server.access_key, server.secret_key)
        settings = S3Settings(bucket=server.bucket(), endpoint=server.url)
        return lambda: open_s3(settings)

    def opener(kind: str) -> OpenRemote:
        match kind:
            case "memory" | "generations":
                memory = open_memory(content_fingerprint=kind == "memory")
                return lambda: memory
            case "local":
                return lambda: open_local(str(tmp_path / "objects"))
            case "s3" | "s3-ordered":
                credentials("any", "any")
                settings = S3Settings(bucket="b", endpoint=request.getfixturevalue("s3_server").url)
                return lambda: open_s3(settings, is_ordered=kind == "s3-ordered")
            case "gcs":
                url = request.getfixturevalue("gcs_server").url
                return lambda: open_gcs(GcsSettings(bucket="b", api_endpoint=url, auth="none"))
            case _:
                return s3(request.getfixturevalue(kind))

    return opener


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Sets the credentials that S3 remotes find."""

    def set_them(access_key: str, secret_key: str) -> None:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", access_key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret_key)

    return set_them


@pytest.mark.parametrize("check", REMOTE_CHECKS, ids=lambda check: check.name.replace(" ", "-"))
@pytest.mark.parametrize("kind", KINDS)
def test_every_remote_keeps_the_contract(kind: str, check: RemoteCheck, open_of: Callable[[str], OpenRemote]) -> None:
    """Each check of the shipped suite holds for each kind of remote."""
    run_check(check, open_of(kind))


@pytest.mark.parametrize("kind", ["memory", "local", "s3", "gcs"])
def test_a_part_of_a_remote_keeps_the_contract(kind: str, open_of: Callable[[str], OpenRemote]) -> None:
    """A remote seen below a prefix of any legal character is a remote like any other."""
    open_whole = open_of(kind)
    check_remote(lambda: Prefixed(open_whole(), "a b/ü+%"), checks=REMOTE_CHECKS[:8] + REMOTE_CHECKS[-5:-2])


def test_the_suite_finds_a_remote_that_ignores_conditions() -> None:
    """A store that writes whatever the condition says fails the checks of conditions, all of them by name."""

    class Careless(Prefixed):
        def put_if(self, key: str, data: bytes, condition: Any, *, token: str | None = None) -> Stored:
            del condition, token
            return self.put(key, data)

    memory = Careless(open_memory(), "x")
    with pytest.raises(ConformanceError) as caught:
        check_remote(lambda: memory)
    assert {part.partition(":")[0] for part in str(caught.value).split("; check ")} == {
        "check create only",
        "conditional put",
        "racing creators",
        "racing updaters",
    }


def test_the_suite_cleans_up(open_of: Callable[[str], OpenRemote]) -> None:
    """After the checks the store is as it was, whether they held or not."""
    remote = open_memory()
    remote.put("mine", b"x")
    check_remote(lambda: remote)
    assert [stat.key for stat in remote.list()] == ["mine"]


@pytest.mark.parametrize("kind", ["local", "s3", "gcs"])
def test_a_remote_can_be_sent_to_another_process(kind: str, open_of: Callable[[str], OpenRemote]) -> None:
    """A remote, and a part of one, is pickled as its settings and works where it arrives."""
    remote = Prefixed(open_of(kind)(), "part")
    remote.put("k", b"bytes")
    arrived: Remote = pickle.loads(pickle.dumps(remote))  # noqa: S301 - our own bytes
    assert arrived.get("k").data == b"bytes"
    assert arrived.properties == remote.properties


def test_a_part_reaches_nothing_outside() -> None:
    """No key leads out of a part, and what is outside is not listed in it."""
    whole = open_memory()
    part = Prefixed(whole, "a")
    for key in ("a-b", "ab/c", "b", "a/inside"):
        whole.put(key, key.encode())
    assert [stat.key for stat in part.list()] == ["inside"]
    assert part.list_level().prefixes == ()
    for key in ("../b", "/b", "x/../../b", ""):
        with pytest.raises(InputError):
            part.get(key)
    part.put("b", b"mine")
    part.copy("b", "c")
    assert whole.get("b").data == b"b"
    assert sorted(stat.key for stat in whole.list("a/")) == ["a/b", "a/c", "a/inside"]
    assert part.properties.name == "memory:/a"


@pytest.mark.parametrize("prefix", ["a/", "/a", "a//b", "../a", ".", "a\\b", "a\nb"])
def test_a_prefix_that_would_be_changed_is_refused(prefix: str) -> None:
    """A prefix is used as it is written or not at all."""
    with pytest.raises(ConfigError, match=r"prefix .* cannot be used") as caught:
        Prefixed(open_memory(), prefix)
    assert caught.value.kind == "bad_prefix"


def test_a_rewrite_in_the_same_tick_is_noticed(tmp_path: Path) -> None:
    """A file whose bytes change under the same name, size and times has another fingerprint."""
    remote = LocalRemote(str(tmp_path))
    fingerprint = remote.put("k", b"one").fingerprint
    path = tmp_path / "k"
    before = path.stat()
    path.write_bytes(b"two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert remote.put_if("k", b"three", Matches(fingerprint)) == Refused()
    assert remote.delete_if("k", fingerprint) == Refused()
    body = remote.get_if_changed("k", fingerprint)
    assert body is not None
    assert body.data == b"two"


def test_a_directory_holds_only_objects(tmp_path: Path) -> None:
    """Links, unfinished files, empty directories and unusable names are no objects; removing leaves no directories."""
    remote = LocalRemote(str(tmp_path))
    remote.put("a/b/c", b"x")
    (tmp_path / "empty" / "inner").mkdir(parents=True)
    (tmp_path / "_catalog.db-1.tmp").write_bytes(b"unfinished")
    (tmp_path / "line\nend").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "a" / "b" / "c")
    assert [stat.key for stat in remote.list()] == ["a/b/c"]
    assert remote.list_level().prefixes == ("a/",)
    with pytest.raises(NotFoundError):
        remote.get("link")
    with pytest.raises(NotFoundError):
        remote.get("a/b")
    with pytest.raises(InputError):
        remote.put("_catalog.db-1.tmp", b"x")
    assert remote.delete_if("a/b/c", remote.head("a/b/c").fingerprint) == Removed()
    assert not (tmp_path / "a").exists()


def test_a_directory_follows_no_link_out(tmp_path: Path) -> None:
    """A link to a directory elsewhere is neither read nor written through."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"x")
    remote = LocalRemote(str(tmp_path / "objects"))
    remote.put("k", b"x")
    (tmp_path / "objects" / "way").symlink_to(outside)
    for call in (lambda: remote.get("way/secret"), lambda: remote.put("way/new", b"x")):
        with pytest.raises(InputError):
            call()
    assert [stat.key for stat in remote.list()] == ["k"]
    assert remote.put_if("k2", b"x", Absent()) == Stored(remote.head("k2").fingerprint)
