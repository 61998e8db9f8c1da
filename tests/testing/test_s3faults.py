"""Each fault of the test server happens to the requests it is for, and to no other."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import obstore
import obstore.exceptions
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, HTTPClientError
from obstore.store import S3Store

from mire.testing import faults
from mire.testing.s3server import S3Server
from servers import s3_client, s3_store

LOST = (EndpointConnectionError, HTTPClientError)


@pytest.fixture
def client(s3_server: S3Server) -> Iterator[Any]:
    """A boto3 client of the server."""
    client = s3_client(s3_server.url)
    yield client
    client.close()


@pytest.fixture
def store(s3_server: S3Server) -> S3Store:
    """An obstore client of the server."""
    return s3_store(s3_server.url)


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (403, "", "AccessDenied"),
        (403, "ExpiredToken", "ExpiredToken"),
        (404, "NoSuchBucket", "NoSuchBucket"),
        (409, "", "ConditionalRequestConflict"),
        (412, "", "PreconditionFailed"),
        (429, "", "TooManyRequests"),
        (500, "", "InternalError"),
        (503, "", "SlowDown"),
    ],
)
def test_fail_before_applying(client: Any, s3_server: S3Server, status: int, code: str, expected: str) -> None:
    """A failed request changes nothing; the next one is served."""
    s3_server.inject(faults.Fail(status, code), operation="PutObject", key="k")
    client.put_object(Bucket="b", Key="other", Body=b"")
    with pytest.raises(ClientError) as caught:
        client.put_object(Bucket="b", Key="k", Body=b"1")
    response = caught.value.response
    assert (response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]) == (status, expected)
    assert s3_server.get("b", "k") is None
    client.put_object(Bucket="b", Key="k", Body=b"2")
    assert [entry.status for entry in s3_server.log()] == [200, status, 200]


def test_headers_of_a_failure(client: Any, s3_server: S3Server) -> None:
    """A failure can carry headers, such as when to come back."""
    s3_server.inject(faults.Fail(503, headers=(("Retry-After", "7"),)))
    with pytest.raises(ClientError) as caught:
        client.list_buckets()
    assert caught.value.response["ResponseMetadata"]["HTTPHeaders"]["retry-after"] == "7"


def test_drop_before_applying(client: Any, s3_server: S3Server) -> None:
    """A dropped request gets no answer and changes nothing; the log shows it without a status."""
    s3_server.inject(faults.Drop(), operation="PutObject")
    with pytest.raises(LOST):
        client.put_object(Bucket="b", Key="k", Body=b"1")
    assert s3_server.get("b", "k") is None
    assert s3_server.log() == [("PutObject", "b", "k", None)]


def test_apply_then_drop(client: Any, s3_server: S3Server) -> None:
    """A write whose answer is dropped has happened."""
    s3_server.inject(faults.ApplyThenDrop(), operation="PutObject")
    with pytest.raises(LOST):
        client.put_object(Bucket="b", Key="k", Body=b"1", IfNoneMatch="*")
    assert s3_server.get("b", "k") == b"1"


def test_apply_then_fail(store: S3Store, s3_server: S3Server) -> None:
    """A write that is answered with 500 has happened all the same."""
    s3_server.inject(faults.ApplyThenFail(500), operation="PutObject")
    with pytest.raises(obstore.exceptions.GenericError):
        obstore.put(store, "k", b"1", mode="create")
    assert s3_server.get("b", "k") == b"1"


def test_truncate(store: S3Store, s3_server: S3Server) -> None:
    """A truncated body is shorter than announced, and a client notices."""
    s3_server.put("b", "k", b"0123456789")
    s3_server.inject(faults.Truncate(4), operation="GetObject")
    with pytest.raises(Exception, match=r"body|decod|incomplete|end of file"):
        obstore.get(store, "k").bytes()
    assert bytes(obstore.get(store, "k").bytes()) == b"0123456789"
    assert s3_server.traffic.tallies()["GetObject"].out_bytes == 14


def test_corrupt(store: S3Store, s3_server: S3Server) -> None:
    """A corrupted body has the announced length and one wrong byte."""
    s3_server.put("b", "k", b"0123456789")
    s3_server.inject(faults.Corrupt(3), operation="GetObject")
    assert bytes(obstore.get(store, "k").bytes()) == b"012\xcc456789"


def test_short_listing(client: Any, s3_server: S3Server) -> None:
    """A short listing leaves keys out, or ends early and calls itself complete."""
    for number in range(5):
        s3_server.put("b", f"k{number}", b"")

    def keys() -> list[str]:
        pages = client.get_paginator("list_objects_v2").paginate(Bucket="b", PaginationConfig={"PageSize": 3})
        return [item["Key"] for page in pages for item in page.get("Contents", [])]

    s3_server.inject(faults.ShortListing(omit="k[13]"), operation="ListObjectsV2", times=2)
    assert keys() == ["k0", "k2", "k4"]
    s3_server.inject(faults.ShortListing(keep=2), operation="ListObjectsV2")
    assert keys() == ["k0", "k1"]
    assert keys() == ["k0", "k1", "k2", "k3", "k4"]


def test_which_requests(store: S3Store, s3_server: S3Server) -> None:
    """A rule lets the first ones pass, hits as many as it says, and can be taken away."""
    rule = s3_server.inject(faults.Fail(503), operation="Put*", key="a/*", skip=1, times=2)
    always = s3_server.inject(faults.Fail(403), key=lambda key: key.endswith(".never"), times=None)

    def put(key: str) -> bool:
        try:
            obstore.put(store, key, b"")
        except obstore.exceptions.BaseError:
            return False
        return True

    assert [put("a/1") for _ in range(5)] == [True, False, False, True, True]
    assert [put(key) for key in ("x.never", "x", "y.never")] == [False, True, False]
    assert (rule.hits, rule.seen, always.hits) == (2, 5, 2)
    s3_server.faults.remove(always)
    assert put("x.never")


def test_chance_is_seeded() -> None:
    """Random faults are the same in each run with the same seed, and others with another."""

    def outcomes(seed: int) -> list[int | None]:
        with S3Server(["b"], seed=seed) as server:
            server.inject(faults.Fail(503), times=None, chance=0.5)
            store = s3_store(server.url)
            for _ in range(30):
                try:
                    obstore.put(store, "k", b"")
                except obstore.exceptions.GenericError:
                    continue
            return [entry.status for entry in server.log()]

    first = outcomes(1)
    assert first == outcomes(1) != outcomes(2)
    assert {200, 503} == set(first)


def test_hold_before_applying(store: S3Store, s3_server: S3Server) -> None:
    """A held request is not applied until it is released; others go on meanwhile."""
    hold = s3_server.hold(operation="PutObject", key="k")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(obstore.put, store, "k", b"late")
        assert hold.arrived.wait(10)
        assert s3_server.get("b", "k") is None
        obstore.put(store, "k", b"early", mode="create")
        hold.release()
        waiting.result(10)
    assert s3_server.get("b", "k") == b"late"
    assert s3_server.counts() == {"PutObject": 2}


def test_hold_after_applying(store: S3Store, s3_server: S3Server) -> None:
    """A request can be held between applying and answering."""
    hold = s3_server.hold(operation="PutObject", after=True)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(obstore.put, store, "k", b"done")
        assert hold.arrived.wait(10)
        assert (s3_server.get("b", "k"), waiting.done()) == (b"done", False)
        hold.release()
        waiting.result(10)


def test_stopping_lets_held_requests_go() -> None:
    """A server that stops does not wait for what it holds."""
    with ThreadPoolExecutor(1) as pool:
        with S3Server(["b"]) as server:
            hold = server.hold()
            waiting = pool.submit(obstore.put, s3_store(server.url), "k", b"")
            assert hold.arrived.wait(10)
        assert isinstance(waiting.exception(10), obstore.exceptions.GenericError)


def test_run_between_receiving_and_applying(store: S3Store, s3_server: S3Server) -> None:
    """A callback runs before the request is applied, and may itself use the server."""
    etag = obstore.put(store, "k", b"1")["e_tag"]
    s3_server.inject(faults.Run(lambda: obstore.put(store, "k", b"stolen")), operation="PutObject")
    with pytest.raises(obstore.exceptions.PreconditionError):
        obstore.put(store, "k", b"2", mode={"e_tag": etag})
    assert s3_server.get("b", "k") == b"stolen"


def test_delay(store: S3Store, s3_server: S3Server) -> None:
    """A delayed request is answered after another that came later."""
    released = threading.Event()
    s3_server.inject(faults.Run(released.wait), key="slow")
    s3_server.inject(faults.Delay(0.05), key="slow")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(obstore.put, store, "slow", b"")
        obstore.put(store, "fast", b"")
        released.set()
        waiting.result(10)
    assert [entry.key for entry in s3_server.log()] == ["fast", "slow"]


def test_errors_inside_are_raised_at_the_end() -> None:
    """What goes wrong inside the server, here in a callback, is raised when it stops."""

    def break_down() -> None:
        raise ValueError("broken")

    server = S3Server(["b"]).start()
    server.inject(faults.Run(break_down))
    obstore.put(s3_store(server.url), "k", b"")
    with pytest.raises(RuntimeError, match="broken"):
        server.stop()
