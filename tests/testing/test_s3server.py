"""Our S3 server answers two independent clients, boto3 and obstore, as S3 does: each operation."""

import gc
import hashlib
import http.client
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import obstore
import obstore.exceptions
import pytest
from botocore.exceptions import ClientError

from mire.testing.s3server import S3Server
from servers import s3_client, s3_store

PART = b"p" * (5 * 1024 * 1024)


@pytest.fixture
def client(s3_server: S3Server) -> Iterator[Any]:
    """A boto3 client of the server."""
    client = s3_client(s3_server.url)
    yield client
    client.close()


def code_of(call: Callable[..., object], **arguments: object) -> tuple[int, str]:
    """The status and code with which a call fails."""
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    response = caught.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]


def md5(data: bytes) -> str:
    """The ETag of an object put in one piece."""
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'


def test_put_get_head_delete(client: Any, s3_server: S3Server) -> None:
    """An object comes back as it was stored, with its metadata, and is gone after its deletion."""
    put = client.put_object(Bucket="b", Key="a/k", Body=b"hello", Metadata={"token": "t1"}, ContentType="text/plain")
    assert put["ETag"] == md5(b"hello")
    got = client.get_object(Bucket="b", Key="a/k")
    assert (got["Body"].read(), got["ETag"], got["ContentType"]) == (b"hello", md5(b"hello"), "text/plain")
    assert got["Metadata"] == {"token": "t1"}
    head = client.head_object(Bucket="b", Key="a/k")
    assert (head["ContentLength"], head["ETag"], head["Metadata"]) == (5, md5(b"hello"), {"token": "t1"})
    assert abs(head["LastModified"].timestamp() - s3_server.now_s()) < 60
    client.delete_object(Bucket="b", Key="a/k")
    client.delete_object(Bucket="b", Key="a/k")
    assert code_of(client.get_object, Bucket="b", Key="a/k") == (404, "NoSuchKey")
    assert code_of(client.head_object, Bucket="b", Key="a/k") == (404, "404")


@pytest.mark.parametrize(
    "key", ["ü/漢字", "a b+c&d=e%20", "~tilde'(paren)!*", "\U0001f600", "a//b", "/lead", "?q#f", "x" * 1024]
)
def test_keys_round_trip(client: Any, s3_server: S3Server, key: str) -> None:
    """Keys of any characters are stored, listed, copied and deleted under their own name."""
    client.put_object(Bucket="b", Key=key, Body=b"x")
    assert s3_server.keys("b") == [key]
    assert [item["Key"] for item in client.list_objects_v2(Bucket="b")["Contents"]] == [key]
    assert client.get_object(Bucket="b", Key=key)["Body"].read() == b"x"
    client.copy_object(Bucket="b", Key="copy", CopySource={"Bucket": "b", "Key": key})
    assert s3_server.get("b", "copy") == b"x"
    client.delete_objects(Bucket="b", Delete={"Objects": [{"Key": key}, {"Key": "copy"}]})
    assert s3_server.keys("b") == []


def test_key_too_long(client: Any) -> None:
    """A key of more than 1024 bytes is refused."""
    assert code_of(client.put_object, Bucket="b", Key="x" * 1025, Body=b"") == (400, "KeyTooLongError")


@pytest.mark.parametrize(
    ("text", "data"),
    [("bytes=0-0", b"0"), ("bytes=2-4", b"234"), ("bytes=7-", b"789"), ("bytes=-3", b"789"), ("bytes=5-99", b"56789")],
)
def test_ranges(client: Any, s3_server: S3Server, text: str, data: bytes) -> None:
    """A range of an object is that range, and says of how much."""
    s3_server.put("b", "k", b"0123456789")
    got = client.get_object(Bucket="b", Key="k", Range=text)
    assert (got["Body"].read(), got["ResponseMetadata"]["HTTPStatusCode"]) == (data, 206)
    assert got["ContentRange"].endswith("/10")


def test_range_beyond_the_end(client: Any, s3_server: S3Server) -> None:
    """A range that begins behind the end is 416."""
    s3_server.put("b", "k", b"0123456789")
    assert code_of(client.get_object, Bucket="b", Key="k", Range="bytes=10-") == (416, "InvalidRange")


def test_conditional_reads(client: Any, s3_server: S3Server) -> None:
    """If-Match, If-None-Match and the dates decide between 200, 304 and 412."""
    etag = s3_server.put("b", "k", b"x")
    s3_server.age("b", "k", 3600)
    modified = client.head_object(Bucket="b", Key="k", IfMatch=f'"{etag}"')["LastModified"]
    assert client.get_object(Bucket="b", Key="k", IfNoneMatch='"other"')["Body"].read() == b"x"
    assert code_of(client.get_object, Bucket="b", Key="k", IfNoneMatch=f'"{etag}"') == (304, "304")
    assert code_of(client.head_object, Bucket="b", Key="k", IfNoneMatch=etag) == (304, "304")
    assert code_of(client.get_object, Bucket="b", Key="k", IfMatch='"other"') == (412, "PreconditionFailed")
    assert code_of(client.get_object, Bucket="b", Key="k", IfModifiedSince=modified) == (304, "304")
    assert client.get_object(Bucket="b", Key="k", IfUnmodifiedSince=modified)["Body"].read() == b"x"


def test_conditional_puts(client: Any, s3_server: S3Server) -> None:
    """Create-only and if-unchanged writes are applied or refused as a whole."""
    first = client.put_object(Bucket="b", Key="k", Body=b"1", IfNoneMatch="*")["ETag"]
    assert code_of(client.put_object, Bucket="b", Key="k", Body=b"2", IfNoneMatch="*") == (412, "PreconditionFailed")
    client.put_object(Bucket="b", Key="k", Body=b"3", IfMatch=first)
    assert code_of(client.put_object, Bucket="b", Key="k", Body=b"4", IfMatch=first) == (412, "PreconditionFailed")
    assert code_of(client.put_object, Bucket="b", Key="new", Body=b"5", IfMatch=first) == (404, "NoSuchKey")
    assert (s3_server.get("b", "k"), s3_server.get("b", "new")) == (b"3", None)


def test_conditional_deletes(client: Any, s3_server: S3Server) -> None:
    """A delete with If-Match removes that object only."""
    etag = s3_server.put("b", "k", b"x")
    assert code_of(client.delete_object, Bucket="b", Key="k", IfMatch='"other"') == (412, "PreconditionFailed")
    assert s3_server.get("b", "k") == b"x"
    client.delete_object(Bucket="b", Key="k", IfMatch=f'"{etag}"')
    assert s3_server.get("b", "k") is None
    assert code_of(client.delete_object, Bucket="b", Key="k", IfMatch=f'"{etag}"') == (404, "NoSuchKey")


def test_delete_many(client: Any, s3_server: S3Server) -> None:
    """DeleteObjects removes what it can and names what it could not."""
    for key in ("a", "b&<", "c"):
        s3_server.put("b", key, b"x")
    wanted = [{"Key": "a"}, {"Key": "b&<"}, {"Key": "missing"}, {"Key": "c", "ETag": "other"}]
    answer = client.delete_objects(Bucket="b", Delete={"Objects": wanted})
    assert [item["Key"] for item in answer["Deleted"]] == ["a", "b&<", "missing"]
    assert [(item["Key"], item["Code"]) for item in answer["Errors"]] == [("c", "PreconditionFailed")]
    assert s3_server.keys("b") == ["c"]


def test_copy(client: Any, s3_server: S3Server) -> None:
    """A copy keeps bytes and metadata, or replaces the metadata, and honours conditions on both ends."""
    client.put_object(Bucket="b", Key="s p", Body=b"x", Metadata={"m": "1"})
    client.copy_object(Bucket="b", Key="t", CopySource="b/s p")
    assert client.head_object(Bucket="b", Key="t")["Metadata"] == {"m": "1"}
    source = {"Bucket": "b", "Key": "s p"}
    client.copy_object(Bucket="b", Key="t", CopySource=source, MetadataDirective="REPLACE", Metadata={"m": "2"})
    assert client.head_object(Bucket="b", Key="t")["Metadata"] == {"m": "2"}
    refused = {"Bucket": "b", "Key": "t", "CopySource": source}
    assert code_of(client.copy_object, **refused, IfNoneMatch="*") == (412, "PreconditionFailed")
    assert code_of(client.copy_object, **refused, CopySourceIfMatch='"other"') == (412, "PreconditionFailed")
    assert code_of(client.copy_object, Bucket="b", Key="s p", CopySource=source) == (400, "InvalidRequest")
    assert code_of(client.copy_object, Bucket="b", Key="t", CopySource="b/missing") == (404, "NoSuchKey")


def test_multipart(client: Any, s3_server: S3Server) -> None:
    """An upload in parts appears whole when completed, with the ETag of its parts."""
    upload = {"Bucket": "b", "Key": "k"}
    upload["UploadId"] = client.create_multipart_upload(**upload, Metadata={"m": "1"})["UploadId"]
    s3_server.put("b", "source", b"0123456789")
    parts = [client.upload_part(**upload, PartNumber=1, Body=PART)["ETag"]]
    copy = client.upload_part_copy(**upload, PartNumber=2, CopySource="b/source", CopySourceRange="bytes=3-5")
    parts.append(copy["CopyPartResult"]["ETag"])
    assert s3_server.get("b", "k") is None
    assert [part["Size"] for part in client.list_parts(**upload)["Parts"]] == [len(PART), 3]
    assert [item["Key"] for item in client.list_multipart_uploads(Bucket="b")["Uploads"]] == ["k"]
    chosen = {"Parts": [{"PartNumber": number, "ETag": etag} for number, etag in enumerate(parts, 1)]}
    etag = client.complete_multipart_upload(**upload, MultipartUpload=chosen, IfNoneMatch="*")["ETag"]
    sums = bytes.fromhex("".join(part.strip('"') for part in parts))
    assert etag == md5(sums)[:-1] + '-2"'
    assert s3_server.get("b", "k") == PART + b"345"
    assert client.head_object(Bucket="b", Key="k")["Metadata"] == {"m": "1"}
    assert s3_server.uploads("b") == []


def test_multipart_refusals(client: Any, s3_server: S3Server) -> None:
    """Bad parts, a small part, a lost condition and an unknown upload are told apart; the upload stays."""
    upload = {"Bucket": "b", "Key": "k"}
    upload["UploadId"] = client.create_multipart_upload(**upload)["UploadId"]
    etags = [client.upload_part(**upload, PartNumber=number, Body=b"small")["ETag"] for number in (1, 2)]
    first, second = ({"PartNumber": number, "ETag": etag} for number, etag in enumerate(etags, 1))
    complete = client.complete_multipart_upload
    assert code_of(complete, **upload, MultipartUpload={"Parts": [second, first]}) == (400, "InvalidPartOrder")
    assert code_of(complete, **upload, MultipartUpload={"Parts": [first, second]}) == (400, "EntityTooSmall")
    bad = {"PartNumber": 1, "ETag": '"0"'}
    assert code_of(complete, **upload, MultipartUpload={"Parts": [bad]}) == (400, "InvalidPart")
    s3_server.put("b", "k", b"there")
    refused = code_of(complete, **upload, MultipartUpload={"Parts": [first]}, IfNoneMatch="*")
    assert refused == (412, "PreconditionFailed")
    assert s3_server.uploads("b") == ["k"]
    client.abort_multipart_upload(**upload)
    assert code_of(client.abort_multipart_upload, **upload) == (404, "NoSuchUpload")
    assert (s3_server.uploads("b"), s3_server.get("b", "k")) == ([], b"there")


def test_buckets(client: Any) -> None:
    """Buckets are made, found, listed and removed; one that is missing is not a missing key."""
    client.create_bucket(Bucket="second")
    assert code_of(client.create_bucket, Bucket="second") == (409, "BucketAlreadyOwnedByYou")
    assert code_of(client.create_bucket, Bucket="Bad_Name") == (400, "InvalidBucketName")
    assert [item["Name"] for item in client.list_buckets()["Buckets"]] == ["b", "second"]
    client.head_bucket(Bucket="second")
    client.put_object(Bucket="second", Key="k", Body=b"")
    assert code_of(client.delete_bucket, Bucket="second") == (409, "BucketNotEmpty")
    client.delete_object(Bucket="second", Key="k")
    client.delete_bucket(Bucket="second")
    assert code_of(client.head_bucket, Bucket="second") == (404, "404")
    assert code_of(client.get_object, Bucket="second", Key="k") == (404, "NoSuchBucket")
    assert code_of(client.list_objects_v2, Bucket="second") == (404, "NoSuchBucket")


def listed(client: Any, **arguments: object) -> tuple[list[str], list[str], int]:
    """Keys, prefixes and pages of a whole listing."""
    pages = list(client.get_paginator("list_objects_v2").paginate(Bucket="b", **arguments))
    keys = [item["Key"] for page in pages for item in page.get("Contents", [])]
    return keys, [item["Prefix"] for page in pages for item in page.get("CommonPrefixes", [])], len(pages)


def test_listing(client: Any, s3_server: S3Server) -> None:
    """A listing has each key once, by ascending bytes, whatever prefix, delimiter, start and page size are."""
    keys = ["a", "a/1", "a/2/x", "a/2/y", "a/3", "a0", "b/1", "b/2/x", "é", "\uffee", "\U0001f600"]
    for key in reversed(keys):
        s3_server.put("b", key, b"x")
    for size in (1, 2, 3, 1000):
        page = {"PaginationConfig": {"PageSize": size}}
        assert listed(client, **page)[0] == keys
        assert listed(client, Prefix="a/", **page)[0] == keys[1:5]
        assert listed(client, StartAfter="a/2/x", **page)[0] == keys[3:]
        assert listed(client, Prefix="a/", StartAfter="a/2", **page)[0] == keys[2:5]
        top = listed(client, Delimiter="/", **page)
        assert top[:2] == (["a", "a0", "é", "\uffee", "\U0001f600"], ["a/", "b/"])
        assert listed(client, Prefix="a/", Delimiter="/", **page)[:2] == (["a/1", "a/3"], ["a/2/"])
        # A group of which some keys come after the start is listed.
        assert listed(client, Delimiter="/", StartAfter="a/2/x", **page)[1] == ["a/", "b/"]
    assert listed(client, PaginationConfig={"PageSize": 3})[2] == 4
    assert client.list_objects_v2(Bucket="b", MaxKeys=0)["KeyCount"] == 0
    assert listed(client, Prefix="none")[0] == []


def test_obstore_round_trip(s3_server: S3Server) -> None:
    """The other client stores, reads, lists, copies and deletes, too, with its own spelling of requests."""
    store = s3_store(s3_server.url, copy_if_not_exists="multipart")
    etag = obstore.put(store, "a/k", b"hello", mode="create")["e_tag"]
    with pytest.raises(obstore.exceptions.AlreadyExistsError):
        obstore.put(store, "a/k", b"again", mode="create")
    obstore.put(store, "a/k", b"second", mode={"e_tag": etag})
    with pytest.raises(obstore.exceptions.PreconditionError):
        obstore.put(store, "a/k", b"third", mode={"e_tag": etag})
    got = obstore.get(store, "a/k")
    assert (bytes(got.bytes()), got.meta["e_tag"]) == (b"second", md5(b"second"))
    with pytest.raises(obstore.exceptions.NotModifiedError):
        obstore.get(store, "a/k", options={"if_none_match": got.meta["e_tag"]})
    assert bytes(obstore.get_range(store, "a/k", start=1, end=3)) == b"ec"
    obstore.copy(store, "a/k", "a/copy")
    with pytest.raises(obstore.exceptions.AlreadyExistsError):
        obstore.copy(store, "a/k", "a/copy", overwrite=False)
    assert [item["path"] for chunk in obstore.list(store, "a") for item in chunk] == ["a/copy", "a/k"]
    obstore.delete(store, ["a/k", "a/copy"])
    with pytest.raises(FileNotFoundError):
        obstore.head(store, "a/k")


def test_obstore_streams(s3_server: S3Server) -> None:
    """A stream arrives in parts and is one object; nothing of the upload is left."""
    store = s3_store(s3_server.url)
    pieces = [b"1" * 3_000_000, b"2" * 3_000_000, b"3" * 3_000_000]
    obstore.put(store, "k", iter(pieces), chunk_size=5 * 1024 * 1024)
    assert s3_server.get("b", "k") == b"".join(pieces)
    assert s3_server.uploads("b") == []
    assert s3_server.counts() == {"CreateMultipartUpload": 1, "UploadPart": 2, "CompleteMultipartUpload": 1}


def test_virtual_hosted_style(s3_server: S3Server) -> None:
    """The bucket may be in the host name."""
    s3_server.put("b", "a/k", b"hello")
    for host in (f"b.127.0.0.1:{s3_server.port}", "b.localhost"):
        connection = http.client.HTTPConnection("127.0.0.1", s3_server.port)
        connection.request("GET", "/a/k", headers={"Host": host})
        assert connection.getresponse().read() == b"hello"
        connection.close()


def test_one_winner_of_fifty(s3_server: S3Server) -> None:
    """Of fifty creates at once exactly one succeeds, twenty times over; so it is with updates."""
    store = s3_store(s3_server.url)

    def try_put(key: str, number: int, mode: Any) -> bool:
        try:
            obstore.put(store, key, b"%d" % number, mode=mode)
        except (obstore.exceptions.AlreadyExistsError, obstore.exceptions.PreconditionError):
            return False
        return True

    with ThreadPoolExecutor(50) as pool:
        for turn in range(20):
            key = f"k{turn}"
            won = list(pool.map(lambda number, key=key: try_put(key, number, "create"), range(50)))
            assert won.count(True) == 1
            assert s3_server.get("b", key) == b"%d" % won.index(True)
            mode = {"e_tag": obstore.head(store, key)["e_tag"]}
            won = list(pool.map(lambda number, key=key, mode=mode: try_put(key, number, mode), range(100, 150)))
            assert won.count(True) == 1
    assert s3_server.counts() == {"PutObject": 2000, "HeadObject": 20}


def test_counts_are_exact(client: Any, s3_server: S3Server) -> None:
    """Requests, bytes and the log are exactly what a client did; a reset begins again."""
    client.put_object(Bucket="b", Key="k", Body=b"x" * 100)
    for _ in range(3):
        client.get_object(Bucket="b", Key="k")["Body"].read()
    code_of(client.get_object, Bucket="b", Key="missing")
    assert s3_server.counts() == {"PutObject": 1, "GetObject": 4}
    tallies = s3_server.traffic.tallies()
    assert (tallies["PutObject"].in_bytes, tallies["PutObject"].out_bytes) == (100, 0)
    assert tallies["GetObject"].out_bytes > 300
    log = s3_server.log()
    assert log[0] == ("PutObject", "b", "k", 200)
    assert log[-1] == ("GetObject", "b", "missing", 404)
    s3_server.reset()
    assert (s3_server.counts(), s3_server.log()) == ({}, [])
    s3_server.put("b", "unseen", b"")
    assert s3_server.counts() == {}


def test_clock(client: Any, s3_server: S3Server) -> None:
    """The server's clock can be wrong, in `Date` and in the times of objects; an object can be made older."""
    s3_server.clock_offset_s = 3 * 3600
    client.put_object(Bucket="b", Key="k", Body=b"")
    head = client.head_object(Bucket="b", Key="k")
    now_s = s3_server.now_s()
    assert abs(head["LastModified"].timestamp() - now_s) < 60
    assert head["LastModified"].microsecond == 0
    s3_server.age("b", "k", 600)
    aged = client.head_object(Bucket="b", Key="k")["LastModified"]
    assert (head["LastModified"] - aged).total_seconds() == 600
    assert client.list_objects_v2(Bucket="b")["Contents"][0]["LastModified"] == aged


def test_unknown_operations(client: Any) -> None:
    """What the server does not know it says so, and never guesses."""
    assert code_of(client.get_object_tagging, Bucket="b", Key="k")[1] in ("NotImplemented", "NoSuchKey")
    assert code_of(client.get_bucket_policy, Bucket="b") == (501, "NotImplemented")


def test_who_connects_while_a_server_stops_is_dropped() -> None:
    """A connection that was accepted and not yet served is closed, too: nothing of it is left to be collected."""
    for _ in range(20):
        with S3Server(buckets=["b"]) as server:
            clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(4)]
        for client in clients:
            client.close()
        gc.collect()


def test_restart_keeps_objects(s3_server: S3Server) -> None:
    """A server that stops refuses connections, and comes back on its port with its objects."""
    store = s3_store(s3_server.url)
    obstore.put(store, "k", b"x")
    s3_server.stop()
    with pytest.raises(obstore.exceptions.GenericError):
        obstore.get(store, "k")
    s3_server.start()
    assert bytes(obstore.get(store, "k").bytes()) == b"x"
