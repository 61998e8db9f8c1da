"""The ways in which S3 servers differ, and who is let in."""

import base64
import http.client
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import obstore
import obstore.exceptions
import pytest
from botocore.exceptions import ClientError

from mire.testing.s3server import Credentials, Dialect, S3Server
from servers import s3_client, s3_store

ACCESS, SECRET = "access", "hidden"


def status_of(call: Any, **arguments: Any) -> int:
    """The status with which a call is answered."""
    try:
        return int(call(**arguments)["ResponseMetadata"]["HTTPStatusCode"])
    except ClientError as error:
        return int(error.response["ResponseMetadata"]["HTTPStatusCode"])


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        # create again, update with the right quoted and unquoted and a wrong ETag, update and delete what is missing,
        # delete with a wrong ETag
        (Dialect(), [412, 200, 200, 412, 404, 404, 412]),
        (Dialect(missing_if_match=412), [412, 200, 200, 412, 412, 412, 412]),
        (Dialect(ignore_conditions=True), [200, 200, 200, 200, 200, 204, 204]),
        (Dialect(etag_dialect="unquoted"), [412, 412, 200, 412, 404, 404, 412]),
        (Dialect(etag_dialect="quoted"), [412, 200, 412, 412, 404, 404, 412]),
        (Dialect(conditional_delete=False), [412, 200, 200, 412, 404, 204, 204]),
    ],
    ids=["aws", "missing-412", "ignored", "unquoted", "quoted", "no-conditional-delete"],
)
def test_dialects_of_conditions(dialect: Dialect, expected: list[int]) -> None:
    """Each dialect answers conditional requests in its own way."""
    with S3Server(["b"], dialect=dialect) as server:
        client = s3_client(server.url)
        etag = server.put("b", "k", b"same")
        put, delete = client.put_object, client.delete_object
        same = {"Bucket": "b", "Key": "k", "Body": b"same"}
        answers = [
            status_of(put, **same, IfNoneMatch="*"),
            status_of(put, **same, IfMatch=f'"{etag}"'),
            status_of(put, **same, IfMatch=etag),
            status_of(put, **same, IfMatch='"0123"' if dialect.etag_dialect != "unquoted" else "0123"),
            status_of(put, Bucket="b", Key="missing", Body=b"", IfMatch=etag),
            status_of(delete, Bucket="b", Key="absent", IfMatch=etag),
            status_of(delete, Bucket="b", Key="k", IfMatch='"0123"'),
        ]
        assert answers == expected
        client.close()


def test_copy_without_conditions(s3_server: S3Server) -> None:
    """A dialect may ignore conditions on the target of a copy alone."""
    client = s3_client(s3_server.url)
    s3_server.put("b", "s", b"1")
    s3_server.put("b", "t", b"2")
    copy = {"Bucket": "b", "Key": "t", "CopySource": "b/s", "IfNoneMatch": "*"}
    assert status_of(client.copy_object, **copy) == 412
    s3_server.dialect = Dialect(conditional_copy=False)
    assert status_of(client.copy_object, **copy) == 200
    client.close()


def test_late_listing(s3_server: S3Server) -> None:
    """Where listings lag, a new object can be read but is not listed until it is old enough."""
    s3_server.dialect = Dialect(listing_delay_s=60)
    client = s3_client(s3_server.url)
    client.put_object(Bucket="b", Key="a/k", Body=b"x")
    assert client.get_object(Bucket="b", Key="a/k")["Body"].read() == b"x"
    for arguments in ({}, {"Delimiter": "/"}):
        assert client.list_objects_v2(Bucket="b", **arguments)["KeyCount"] == 0
    s3_server.age("b", "a/k", 61)
    assert client.list_objects_v2(Bucket="b")["KeyCount"] == 1
    client.close()


@pytest.fixture
def guarded() -> Iterator[S3Server]:
    """A server that lets one key in."""
    with S3Server(["b"], credentials=Credentials(access_key=ACCESS, secret_key=SECRET)) as server:
        yield server


def refusal(call: Any, **arguments: Any) -> tuple[int, str]:
    """The status and code with which a call is refused."""
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    response = caught.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]


def test_signatures_of_both_clients(guarded: S3Server) -> None:
    """Requests of both clients are let in, whatever characters keys, parameters and metadata have."""
    client = s3_client(guarded.url, ACCESS, SECRET)
    store = s3_store(guarded.url, access_key=ACCESS, secret_key=SECRET)
    for key in ("plain", "ü 漢字+&=%20/~'()!*", "a//b?c#d"):
        client.put_object(Bucket="b", Key=key, Body=b"x", Metadata={"spaced": "a  b"})
        assert client.get_object(Bucket="b", Key=key, Range="bytes=0-0")["Body"].read() == b"x"
        client.list_objects_v2(Bucket="b", Prefix=key, Delimiter="+", StartAfter=" &")
        client.delete_objects(Bucket="b", Delete={"Objects": [{"Key": key}]})
    for path in ("plain", "ü 漢字+&=/~'()!*"):
        obstore.put(store, path, b"x", attributes={"spaced": "a  b"})
        assert bytes(obstore.get(store, path).bytes()) == b"x"
        assert len(obstore.list(store, prefix=None, offset=" ").collect()) == 1
        obstore.delete(store, path)
    assert {entry.status for entry in guarded.log()} <= {200, 204, 206}
    client.close()


def test_refusals(guarded: S3Server) -> None:
    """A wrong key, a wrong secret, no signature, a token nobody gave and an expired one are told apart."""
    wrong_key = s3_client(guarded.url, "stranger", SECRET)
    assert refusal(wrong_key.list_buckets) == (403, "InvalidAccessKeyId")
    wrong_secret = s3_client(guarded.url, ACCESS, "wrong")
    assert refusal(wrong_secret.list_buckets) == (403, "SignatureDoesNotMatch")
    assert refusal(wrong_secret.head_bucket, Bucket="b") == (403, "403")
    with pytest.raises(obstore.exceptions.PermissionDeniedError):
        obstore.put(s3_store(guarded.url, skip_signature=True), "k", b"")
    client = s3_client(guarded.url, ACCESS, SECRET)
    guarded.credentials = Credentials(access_key=ACCESS, secret_key=SECRET, session_token="t1")  # noqa: S106
    assert refusal(client.list_buckets) == (400, "InvalidToken")
    with_token = s3_store(guarded.url, access_key=ACCESS, secret_key=SECRET, session_token="t1")  # noqa: S106
    obstore.put(with_token, "k", b"")
    guarded.credentials = Credentials(access_key=ACCESS, secret_key=SECRET, is_expired=True)
    assert refusal(client.list_buckets) == (400, "ExpiredToken")
    for each in (wrong_key, wrong_secret, client):
        each.close()
    assert guarded.keys("b") == ["k"]


def test_skewed_clock_is_refused(guarded: S3Server) -> None:
    """A signature that is a quarter of an hour off by the server's clock is not accepted."""
    client = s3_client(guarded.url, ACCESS, SECRET)
    guarded.clock_offset_s = -16 * 60
    assert refusal(client.list_objects_v2, Bucket="b") == (403, "RequestTimeTooSkewed")
    guarded.clock_offset_s = 14 * 60
    client.list_objects_v2(Bucket="b")
    client.close()


def ask(server: S3Server, method: str, target: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
    """A request without any client library."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request(method, target, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    result = answer.status, answer.read()
    connection.close()
    return result


def test_presigned_urls(guarded: S3Server) -> None:
    """A presigned URL lets its bearer do that one thing until it expires."""
    guarded.put("b", "a k", b"hello")
    client = s3_client(guarded.url, ACCESS, SECRET, signature_version="s3v4")
    parameters = {"Bucket": "b", "Key": "a k"}
    parts = urlsplit(client.generate_presigned_url("get_object", Params=parameters, ExpiresIn=60))
    target = f"{parts.path}?{parts.query}"
    assert ask(guarded, "GET", target) == (200, b"hello")
    assert ask(guarded, "DELETE", target)[0] == 403
    assert ask(guarded, "GET", target.replace("a%20k", "other"))[0] == 403
    guarded.clock_offset_s = 120
    status, body = ask(guarded, "GET", target)
    assert status == 403
    assert b"Request has expired" in body
    client.close()


def test_tampered_body(guarded: S3Server) -> None:
    """A body other than the signed one is refused, and so is one with a wrong digest."""
    declared = "x_amz_content_sha256"
    assert ask(guarded, "PUT", "/b/k", b"x")[0] == 403
    guarded.credentials = None
    status, body = ask(guarded, "PUT", "/b/k", b"x", **{declared: "0" * 64})
    assert (status, b"XAmzContentSHA256Mismatch" in body) == (400, True)
    assert guarded.keys("b") == []


@pytest.mark.parametrize(
    ("header", "value", "code"),
    [
        ("content-md5", base64.b64encode(b"0" * 16).decode(), "BadDigest"),
        ("content-md5", "nonsense", "InvalidDigest"),
        ("x-amz-checksum-crc32", "AAAAAA==", "BadDigest"),
        ("x-amz-checksum-crc32c", "AAAAAA==", "BadDigest"),
        ("x-amz-checksum-crc64nvme", "AAAAAAAAAAA=", "BadDigest"),
        ("x-amz-checksum-sha1", "AAAA", "BadDigest"),
        ("x-amz-checksum-sha256", "AAAA", "BadDigest"),
    ],
)
def test_wrong_digests(s3_server: S3Server, header: str, value: str, code: str) -> None:
    """A body that does not have the announced digest is not stored."""
    status, body = ask(s3_server, "PUT", "/b/k", b"123456789", **{header: value})
    assert (status, code in body.decode()) == (400, True)
    assert s3_server.keys("b") == []


@pytest.mark.parametrize(
    ("header", "value"),
    [
        # The check values of these sums, those of "123456789", are in their definitions.
        ("x-amz-checksum-crc32", (0xCBF43926).to_bytes(4, "big")),
        ("x-amz-checksum-crc32c", (0xE3069283).to_bytes(4, "big")),
        ("x-amz-checksum-crc64nvme", (0xAE8B14860A799888).to_bytes(8, "big")),
    ],
)
def test_right_digests(s3_server: S3Server, header: str, value: bytes) -> None:
    """The sums are the ones their names stand for, and are given back to who asks."""
    text = base64.b64encode(value).decode()
    assert ask(s3_server, "PUT", "/b/k", b"123456789", **{header: text})[0] == 200
    client = s3_client(s3_server.url)
    got = client.head_object(Bucket="b", Key="k", ChecksumMode="ENABLED")
    assert got["ResponseMetadata"]["HTTPHeaders"][header] == text
    client.close()
