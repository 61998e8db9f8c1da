"""Two spellings of ETags: the one a store understands is found, and nothing is risked on the way."""

import pickle
from collections.abc import Iterator

import pytest

from mire.edge.etags import EitherEtags
from mire.edge.objectstore import open_s3
from mire.edge.remote import Matches, Refused, Removed, Stored
from mire.errors import RemoteError
from mire.model.backend import S3Settings
from mire.testing.faults import ApplyThenFail, Fail
from mire.testing.s3server import Dialect, S3Server


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials that a server of ours accepts."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")


@pytest.fixture
def server() -> Iterator[S3Server]:
    """Our S3 server."""
    with S3Server(["bucket"]) as running:
        yield running


def probe_key(asked: str) -> str:
    """A key that no test uses, in the part of the store that the one is of which raised the question."""
    return f"probe of {asked}"


@pytest.fixture
def remote(server: S3Server) -> EitherEtags:
    """Both spellings of the server's bucket."""
    settings = S3Settings(bucket="bucket", endpoint=server.url, region="us-east-1")
    return EitherEtags(open_s3(settings), open_s3(settings, quote_etags=False), probe_key)


@pytest.mark.parametrize("spelling", ["any", "quoted", "unquoted"])
def test_an_informed_write_goes_through_in_any_spelling(server: S3Server, remote: EitherEtags, spelling: str) -> None:
    """Whatever the store wants, the right fingerprint replaces and removes, and a stale one does not."""
    server.dialect = Dialect(etag_dialect=spelling)  # type: ignore[arg-type]
    first = remote.put("k", b"1")
    second = remote.put_if("k", b"2", Matches(first.fingerprint))
    assert isinstance(second, Stored)
    assert isinstance(remote.put_if("k", b"3", Matches(first.fingerprint)), Refused)
    assert isinstance(remote.delete_if("k", first.fingerprint), Refused)
    assert remote.get("k").data == b"2"
    assert remote.get_if_changed("k", second.fingerprint) is None
    assert isinstance(remote.delete_if("k", second.fingerprint), Removed)
    assert server.keys("bucket") == []


def test_a_store_that_understands_costs_nothing(server: S3Server, remote: EitherEtags) -> None:
    """After one success a refusal is a refusal: no further request is made."""
    first = remote.put("k", b"1")
    assert isinstance(remote.put_if("k", b"2", Matches(first.fingerprint)), Stored)
    server.reset()
    assert isinstance(remote.put_if("k", b"3", Matches(first.fingerprint)), Refused)
    assert server.counts() == {"PutObject": 1}


def test_a_lost_race_is_no_misunderstanding(server: S3Server, remote: EitherEtags) -> None:
    """A refusal by a moved object is taken as it is, for one look."""
    first = remote.put("k", b"1")
    server.put("bucket", "k", b"somebody else's")
    server.reset()
    assert isinstance(remote.put_if("k", b"2", Matches(first.fingerprint)), Refused)
    assert server.counts() == {"PutObject": 1, "HeadObject": 1}
    assert server.get("bucket", "k") == b"somebody else's"


def test_a_race_that_came_back_is_no_misunderstanding(server: S3Server, remote: EitherEtags) -> None:
    """An object that was changed and changed back was refused rightly: the probe shows that quotes are understood."""
    first = remote.put("k", b"1")
    server.inject(Fail(412), operation="PutObject", key="k")
    assert isinstance(remote.put_if("k", b"2", Matches(first.fingerprint)), Refused)
    assert isinstance(remote.put_if("k", b"2", Matches(first.fingerprint)), Stored)


def test_a_store_that_refuses_everything_is_told(server: S3Server, remote: EitherEtags) -> None:
    """Where neither spelling gets through the error says so, and the object is untouched."""
    first = remote.put("k", b"1")
    server.inject(Fail(412), operation="PutObject", key="k", times=None)
    server.inject(Fail(412), operation="PutObject", key="probe of k", skip=1)
    server.inject(Fail(412), operation="PutObject", key="probe of k", skip=4, times=2)
    with pytest.raises(RemoteError) as caught:
        remote.put_if("k", b"2", Matches(first.fingerprint))
    assert caught.value.kind == "conditions_unsupported"
    assert server.keys("bucket") == ["k"]


def test_a_spelling_that_is_ignored_is_never_used(server: S3Server, remote: EitherEtags) -> None:
    """A store that refuses quotes and ignores ETags without them must not be written to."""
    first = remote.put("k", b"1")
    server.inject(Fail(412), operation="PutObject", key="k")
    server.inject(Fail(412), operation="PutObject", key="probe of k", skip=1, times=2)
    server.dialect = Dialect(ignore_conditions=True)
    with pytest.raises(RemoteError, match="mire doctor"):
        remote.put_if("k", b"2", Matches(first.fingerprint))
    assert server.get("bucket", "k") == b"1"


def test_an_unclear_probe_decides_nothing(server: S3Server, remote: EitherEtags) -> None:
    """When the probe's answer is lost the error is passed on, and the next call asks again."""
    server.dialect = Dialect(etag_dialect="unquoted")
    first = remote.put("k", b"1")
    server.inject(ApplyThenFail(500), operation="PutObject", key="probe of k", skip=1)
    with pytest.raises(RemoteError) as caught:
        remote.put_if("k", b"2", Matches(first.fingerprint))
    assert caught.value.transient
    assert isinstance(remote.put_if("k", b"2", Matches(first.fingerprint)), Stored)


def test_whether_removals_are_conditional_can_be_declared(remote: EitherEtags) -> None:
    """What a user knows about his store is what the remote says."""
    assert remote.properties.conditional_delete
    declared = EitherEtags(remote.quoted, remote.unquoted, probe_key, conditional_delete=False)
    assert not declared.properties.conditional_delete
    assert declared.properties.name == remote.properties.name


def test_it_can_be_sent_to_another_process(remote: EitherEtags) -> None:
    """Pickled, it opens its stores again."""
    copy = pickle.loads(pickle.dumps(remote))  # noqa: S301 - our own
    copy.put("k", b"1")
    assert remote.get("k").data == b"1"
