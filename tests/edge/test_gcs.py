"""What is special about Google Cloud Storage: generations, listings with keys of others, asking for credentials."""

from collections.abc import Iterator
from typing import Any

import pytest

from mire.edge import gcp
from mire.edge.bucket import BrokenListingError
from mire.edge.gcsrequest import pages
from mire.edge.objectstore import open_gcs
from mire.edge.remote import Absent, Level, Matches, Refused, Remote, Removed, Stored, Unknown
from mire.edge.retrying import Patience, Retrying
from mire.errors import ConfigError, InputError, RemoteError
from mire.model.backend import GcsSettings
from mire.testing import faults
from mire.testing.gcsserver import GcsServer


@pytest.fixture
def remote(gcs_server: GcsServer) -> Remote:
    """The bucket `b` of our server."""
    return open_gcs(GcsSettings(bucket="b", api_endpoint=gcs_server.url, auth="none"))


@pytest.mark.parametrize("fingerprint", ["0", "", "-1", "abc", "1.5", "٣", "0" * 32])
def test_what_is_no_generation_matches_nothing(remote: Remote, fingerprint: str) -> None:
    """To GCS zero means "no object": a condition that cannot hold is refused here and never sent."""
    assert remote.put_if("k", b"x", Matches(fingerprint)) == Refused()
    assert remote.delete_if("k", fingerprint) == Removed()
    remote.put("k", b"old")
    assert remote.put_if("k", b"x", Matches(fingerprint)) == Refused()
    assert remote.delete_if("k", fingerprint) == Refused()
    assert remote.get("k").data == b"old"


def test_an_unchanged_object_costs_one_small_request(remote: Remote, gcs_server: GcsServer) -> None:
    """Looking whether something changed brings no bytes when it did not."""
    fingerprint = remote.put("k", bytes(1000)).fingerprint
    gcs_server.reset()
    assert remote.get_if_changed("k", fingerprint) is None
    assert sum(gcs_server.counts().values()) == 1


def test_a_large_upload_is_judged_at_its_last_piece(remote: Remote, gcs_server: GcsServer) -> None:
    """Whoever is faster while it is under way is not overwritten."""

    def chunks() -> Iterator[bytes]:
        yield from [bytes(1 << 20)] * 16
        gcs_server.put("b", "k", b"theirs")
        yield b"last"

    assert remote.put_stream_if("k", chunks, Absent()) == Refused()
    assert remote.get("k").data == b"theirs"
    assert remote.put_stream_if("k", chunks, Matches("abc")) == Refused()


STRANGE = ["dir/", "a//b", "/lead", "a/./b", "a/../b", "tab\there", "back\\slash", "../up", "plain"]


def test_keys_of_others_are_listed_as_they_are(remote: Remote, gcs_server: GcsServer) -> None:
    """Folder markers and keys that we would never write neither break a listing nor look like other keys."""
    for key in STRANGE:
        gcs_server.put("b", key, b"x")
    assert [stat.key for stat in remote.list()] == sorted(STRANGE)
    assert set(remote.list_level().prefixes) == {"dir/", "a/", "/", "../"}
    for key in STRANGE[:-1]:
        with pytest.raises(InputError):
            remote.get(key)


def test_a_listing_costs_only_its_pages(remote: Remote, gcs_server: GcsServer) -> None:
    """A listing that begins late costs only the pages from there."""
    for number in range(2500):
        gcs_server.put("b", f"{number:05}", b"")
    assert len(list(remote.list(after="01999"))) == 500
    assert sum(gcs_server.counts().values()) == 1
    assert next(remote.list()).key == "00000"
    assert sum(gcs_server.counts().values()) == 2
    assert len(list(remote.list())) == 2500
    assert sum(gcs_server.counts().values()) == 5


ITEM = {"name": "k", "size": "1", "generation": "7", "updated": "2026-10-21T07:28:00.500Z"}


@pytest.mark.parametrize(
    "document",
    [
        {"items": [{**ITEM, "size": "many"}]},
        {"items": [{**ITEM, "updated": "soon"}]},
        {"items": [{"name": "k"}]},
        {"items": ["k"]},
        {"items": 7},
        {"items": [ITEM], "nextPageToken": "again"},
    ],
)
def test_a_listing_that_cannot_be_read(document: dict[str, Any]) -> None:
    """An entry without its facts, or a page that leads to itself, is an error and never an end."""
    found: list[Level] = []
    with pytest.raises(BrokenListingError):
        found.extend(pages(lambda _: document, ""))


@pytest.mark.parametrize("action", [faults.Drop(), faults.ApplyThenDrop(), faults.ApplyThenFail(503)])
def test_lost_answers_are_settled(remote: Remote, gcs_server: GcsServer, action: faults.Action) -> None:
    """A conditional write or removal whose answer is lost is unknown, and ends as ours when it is tried again."""
    gcs_server.inject(action, key="once")
    assert isinstance(remote.put_if("once", b"x", Absent()), Unknown)
    patient = Retrying(remote, Patience(pause=lambda _: None))
    gcs_server.inject(action, key="k", times=2)
    first = patient.put_if("k", b"one", Absent())
    assert first == Stored(remote.head("k").fingerprint)
    gcs_server.inject(action, key="k")
    second = patient.put_if("k", b"two", Matches(first.fingerprint))
    assert second == Stored(remote.head("k").fingerprint)
    gcs_server.inject(action, key="k")
    assert patient.delete_if("k", second.fingerprint) == Removed()
    assert "k" not in gcs_server.keys("b")


def test_half_a_listing_is_an_error(remote: Remote, gcs_server: GcsServer) -> None:
    """A listing that breaks off, or is not what it should be, may be tried again and is never taken for the whole."""
    gcs_server.put("b", "k", b"")
    for action in (faults.Truncate(10), faults.Corrupt(0)):
        gcs_server.inject(action)
        with pytest.raises(RemoteError) as caught:
            list(remote.list())
        assert caught.value.transient
    assert [stat.key for stat in remote.list()] == ["k"]


class Silence:
    """A transport of google.auth that never gets an answer."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, float]] = []
        self.session = None

    def __call__(self, url: str, *, timeout: float, **_: object) -> None:
        """Note what was asked, and fail."""
        self.asked.append((url, timeout))
        raise ConnectionError(url)


def test_asking_for_credentials_ends_soon() -> None:
    """A metadata server that does not answer is asked once, for a second; a token is waited for a few seconds."""
    silence = Silence()
    request = gcp._Bounded(silence)
    for _ in range(3):
        with pytest.raises(ConnectionError):
            request("http://169.254.169.254/computeMetadata", timeout=120)
    with pytest.raises(ConnectionError):
        request("https://oauth2.example/token", timeout=120)
    assert silence.asked == [("http://169.254.169.254/computeMetadata", 1.0), ("https://oauth2.example/token", 4.0)]


@pytest.mark.parametrize("variable", ["GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_KEY"])
def test_variables_that_break_the_client(gcs_server: GcsServer, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """A variable that only the client library knows, and cannot use, is a mistake in the settings; it is not shown."""
    monkeypatch.setenv(variable, "{very-secret")
    with pytest.raises(ConfigError) as caught:
        open_gcs(GcsSettings(bucket="b", api_endpoint=gcs_server.url, auth="none")).get("k")
    assert "very-secret" not in str(caught.value)
    assert caught.value.__context__ is None
