"""Our S3 server and real ones answer the same to the same requests, except where we know that they differ."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from mire.testing.s3server import Dialect, S3Server
from servers import S3Endpoint, s3_client

Answer = tuple[int, str]
WRONG = '"00000000000000000000000000000000"'


def answer_of(call: Callable[..., Any], **arguments: Any) -> Answer:
    """Status and error code of a call."""
    try:
        return call(**arguments)["ResponseMetadata"]["HTTPStatusCode"], ""
    except ClientError as error:
        return error.response["ResponseMetadata"]["HTTPStatusCode"], error.response["Error"]["Code"]


def answers_of(client: Any, bucket: str) -> dict[str, Answer]:
    """What a server answers to each request of a table, in this order."""
    answers: dict[str, Answer] = {}

    def ask(name: str, call: str, key: str = "k", **arguments: Any) -> None:
        answers[name] = answer_of(getattr(client, call), Bucket=bucket, Key=key, **arguments)

    ask("create", "put_object", Body=b"1", IfNoneMatch="*")
    etag = client.head_object(Bucket=bucket, Key="k")["ETag"]
    ask("create where one is", "put_object", Body=b"2", IfNoneMatch="*")
    ask("update with a wrong ETag", "put_object", Body=b"2", IfMatch=WRONG)
    ask("update with the ETag", "put_object", Body=b"1", IfMatch=etag)
    ask("update with the unquoted ETag", "put_object", Body=b"1", IfMatch=etag.strip('"'))
    ask("update what is missing", "put_object", "missing", Body=b"2", IfMatch=etag)
    ask("update whatever is there", "put_object", Body=b"1", IfMatch="*")
    ask("get", "get_object")
    ask("get if unchanged", "get_object", IfMatch=etag)
    ask("get if unchanged, but it is", "get_object", IfMatch=WRONG)
    ask("get if changed", "get_object", IfNoneMatch=WRONG)
    ask("get if changed, but it is not", "get_object", IfNoneMatch=etag)
    ask("head if changed, but it is not", "head_object", IfNoneMatch=etag)
    ask("get what is missing", "get_object", "missing")
    ask("get what is missing if changed", "get_object", "missing", IfNoneMatch=etag)
    ask("head what is missing", "head_object", "missing")
    ask("get a range", "get_object", Range="bytes=0-0")
    ask("get a range behind the end", "get_object", Range="bytes=5-")
    ask("delete with a wrong ETag", "delete_object", IfMatch=WRONG)
    ask("delete with the ETag", "delete_object", IfMatch=etag)
    ask("delete what is missing", "delete_object")
    ask("delete what is missing with an ETag", "delete_object", IfMatch=etag)
    client.put_object(Bucket=bucket, Key="source", Body=b"s")
    source = {"Bucket": bucket, "Key": "source"}
    ask("copy", "copy_object", "copy", CopySource=source)
    ask("copy what is missing", "copy_object", "copy", CopySource={"Bucket": bucket, "Key": "missing"})
    ask("copy with a wrong ETag", "copy_object", "copy", CopySource=source, CopySourceIfMatch=WRONG)
    ask("copy where one is", "copy_object", "copy", CopySource=source, IfNoneMatch="*")
    ask("put with a wrong digest", "put_object", "digest", Body=b"x", ContentMD5="MDAwMDAwMDAwMDAwMDAwMA==")
    answers |= bucket_answers_of(client)
    return answers


def bucket_answers_of(client: Any) -> dict[str, Answer]:
    """What a server answers about a bucket that is not there."""
    missing = {"Bucket": "mire-no-such-bucket"}
    return {
        "get from no bucket": answer_of(client.get_object, **missing, Key="k"),
        "list no bucket": answer_of(client.list_objects_v2, **missing),
        "head no bucket": answer_of(client.head_bucket, **missing),
        "put into no bucket": answer_of(client.put_object, **missing, Key="k", Body=b""),
    }


def ours(dialect: Dialect) -> dict[str, Answer]:
    """What our server answers."""
    with S3Server(["b"], dialect=dialect) as server:
        client = s3_client(server.url)
        answers = answers_of(client, "b")
        client.close()
    return answers


@pytest.mark.parametrize(
    ("name", "dialect", "different"),
    [
        # Who may make buckets makes one there by putting an object into it.
        ("seaweedfs", Dialect(missing_if_match=412), {"put into no bucket": (200, "")}),
        ("ministack", Dialect(conditional_copy=False), {}),
    ],
    ids=["seaweedfs", "ministack"],
)
def test_same_answers(
    name: str, dialect: Dialect, different: dict[str, Answer], request: pytest.FixtureRequest
) -> None:
    """A real server answers as ours does in its dialect."""
    server: S3Endpoint = request.getfixturevalue(name)
    client = server.client()
    theirs = answers_of(client, server.bucket())
    client.close()
    expected = ours(dialect) | different
    assert {what: (theirs[what], expected[what]) for what in theirs if theirs[what] != expected[what]} == {}
