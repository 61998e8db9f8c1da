"""What an S3 test server knows while it answers: its buckets, its dialect and its clock.

Owns: the options in which S3 servers differ, the conditions on reads and writes, and finding buckets and objects.
Must not know: which operation asks.
Keeps: a condition is judged and the write it guards is done without anything in between.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache
from typing import Literal

from mire.testing.bucket import Blob, Bucket
from mire.testing.s3errors import S3Error

Headers = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """In what S3 servers differ; the defaults are as AWS."""

    ignore_conditions: bool = False
    """Write, copy and delete as if there were no If-Match and If-None-Match; reads still honour them."""
    etag_dialect: Literal["any", "quoted", "unquoted"] = "any"
    """Which spelling of an ETag in If-Match of a write can match: any on AWS, unquoted only on Ceph RGW 19.2.5."""
    missing_if_match: Literal[404, 412] = 404
    """The answer to If-Match where there is no object: 404 NoSuchKey on AWS, 412 on SeaweedFS."""
    conditional_delete: bool = True
    """Whether If-Match of a DELETE is honoured, or silently ignored."""
    conditional_copy: bool = True
    """Whether conditions on the target of a copy are honoured, or silently ignored."""
    listing_delay_s: float = 0.0
    """Listings show an object only when it is this old by the server's clock."""
    part_min_bytes: int = 5 * 1024 * 1024
    """The least size of a part that is not the last."""


@dataclass(slots=True, kw_only=True)
class World:
    """What the operations work on."""

    now_s: Callable[[], float]
    dialect: Dialect = field(default_factory=Dialect)
    prefix: str = "x-amz-"
    """How the dialect's own headers begin: GCS has the same XML API with another one."""
    buckets: dict[str, Bucket] = field(default_factory=dict)

    def bucket(self, name: str) -> Bucket:
        """A bucket that must be there."""
        try:
            return self.buckets[name]
        except KeyError:
            raise S3Error("NoSuchBucket", "The specified bucket does not exist", BucketName=name) from None

    def blob(self, bucket: str, key: str) -> Blob:
        """An object that must be there."""
        try:
            return self.bucket(bucket).objects[key]
        except KeyError:
            raise no_such_key(key) from None


def no_such_key(key: str) -> S3Error:
    """The error for an object that is not there."""
    return S3Error("NoSuchKey", "The specified key does not exist.", Key=key)


def http_date(seconds: float) -> str:
    """A time as headers have it: whole seconds."""
    return _http_date(int(seconds))


@lru_cache(maxsize=1024)
def _http_date(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)


def check_write(dialect: Dialect, headers: Headers, key: str, current: Blob | None) -> None:
    """Judge the conditions of a write; raise when it must not be done."""
    absent, match = headers.get("if-none-match"), headers.get("if-match")
    if (absent is None and match is None) or dialect.ignore_conditions:
        return
    if absent is not None and (absent != "*" or match is not None):
        raise S3Error("NotImplemented", "A header you provided implies functionality that is not implemented")
    if absent is not None and current is not None:
        raise _failed("If-None-Match")
    if match is not None:
        _check_match(dialect, match, key, current)


def check_delete(dialect: Dialect, match: str | None, key: str, current: Blob | None) -> None:
    """Judge the condition of a delete; raise when it must not be done."""
    if match is not None and dialect.conditional_delete and not dialect.ignore_conditions:
        _check_match(dialect, match, key, current)


def _check_match(dialect: Dialect, match: str, key: str, current: Blob | None) -> None:
    if current is None:
        raise no_such_key(key) if dialect.missing_if_match == 404 else _failed("If-Match")  # noqa: PLR2004 - HTTP
    if not _spelled(dialect, match) or not etag_matches(match, current.etag):
        raise _failed("If-Match")


def _spelled(dialect: Dialect, match: str) -> bool:
    if dialect.etag_dialect == "any" or match == "*":
        return True
    return ('"' in match) == (dialect.etag_dialect == "quoted")


def etag_matches(header: str, etag: str) -> bool:
    """Whether a list of ETags, or '*', names this one."""
    if header == "*":
        return True
    return any(text.strip().removeprefix("W/").strip('"') == etag for text in header.split(","))


def check_read(headers: Headers, blob: Blob, *, prefix: str = "") -> bool:
    """Judge the conditions of a read: True to answer it, False for 304; raise when they fail.

    The order and who wins when ETag and date disagree are those of RFC 9110, 13.2.2. With a prefix the conditions
    are those on the source of a copy.
    """
    match, other = headers.get(prefix + "if-match"), headers.get(prefix + "if-none-match")
    since, until = headers.get(prefix + "if-modified-since"), headers.get(prefix + "if-unmodified-since")
    if match is not None:
        if not etag_matches(match, blob.etag):
            raise _failed("If-Match")
    elif until is not None and int(blob.modified_s) > _seconds(until):
        raise _failed("If-Unmodified-Since")
    if other is not None:
        return not etag_matches(other, blob.etag)
    return since is None or int(blob.modified_s) > _seconds(since)


def _seconds(text: str) -> float:
    try:
        return parsedate_to_datetime(text).timestamp()
    except ValueError:
        raise S3Error("InvalidArgument", f"The date {text!r} is not an HTTP date.") from None


def _failed(condition: str) -> S3Error:
    message = "At least one of the pre-conditions you specified did not hold"
    return S3Error("PreconditionFailed", message, Condition=condition)
