"""Datastores in one line of text: addresses, the reference's forms, and what is refused without being shown."""

from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mire.errors import ConfigError
from mire.model.config import Extension, Filesystem, Target
from mire.plan.address import parse_target, shown_target

HIDDEN = "wJalrXUtnFEMI-K7MDENG"
S3, GCS, FILE = "@swamp/s3-datastore", "@swamp/gcs-datastore", "@mire/file-datastore"


def parse(text: str) -> Target:
    """A datastore's text, as a flag would bring it."""
    return parse_target(text, repo_dir="/srv/repo", environ={}, what="here")


@pytest.mark.parametrize(
    ("text", "type", "config"),
    [
        ("s3://bucket", S3, {"bucket": "bucket"}),
        ("S3://bucket", S3, {"bucket": "bucket"}),
        ("s3://bucket/", S3, {"bucket": "bucket"}),
        ("s3://bucket/a/b", S3, {"bucket": "bucket", "prefix": "a/b"}),
        ("s3://bucket/a/b/", S3, {"bucket": "bucket", "prefix": "a/b"}),
        ("s3://bucket/a%20b/%C3%BC", S3, {"bucket": "bucket", "prefix": "a b/ü"}),
        ("s3://bucket/a+b", S3, {"bucket": "bucket", "prefix": "a+b"}),
        ("s3://bucket//a", S3, {"bucket": "bucket", "prefix": "/a"}),
        ("s3://bucket?", S3, {"bucket": "bucket"}),
        (
            "s3://bucket/p?endpoint=http://127.0.0.1:9000&region=eu-1&forcePathStyle=true&profile=ops",
            S3,
            {
                "bucket": "bucket",
                "prefix": "p",
                "endpoint": "http://127.0.0.1:9000",
                "region": "eu-1",
                "forcePathStyle": True,
                "profile": "ops",
            },
        ),
        ("s3://bucket?endpoint=http%3A%2F%2Fh%3A9", S3, {"bucket": "bucket", "endpoint": "http://h:9"}),
        (
            "s3://b-1?forcePathStyle=false&pullConcurrency=7&&requestTimeoutMs=1000",
            S3,
            {"bucket": "b-1", "forcePathStyle": False, "pullConcurrency": 7, "requestTimeoutMs": 1000},
        ),
        ("s3://bucket?pullConcurrency=many", S3, {"bucket": "bucket", "pullConcurrency": "many"}),
        ("gs://bucket", GCS, {"bucket": "bucket"}),
        (
            "gs://bucket/p?apiEndpoint=http://h:1&auth=none",
            GCS,
            {"bucket": "bucket", "prefix": "p", "apiEndpoint": "http://h:1", "auth": "none"},
        ),
        ("gcs:bucket/p", GCS, {"bucket": "bucket", "prefix": "p"}),
        ("s3:bucket/p", S3, {"bucket": "bucket", "prefix": "p"}),
        ('s3:{"bucket": "b"}', S3, {"bucket": "b"}),
        ('gcs:{"bucket": "b"}', GCS, {"bucket": "b"}),
        ('@swamp/s3-datastore:{"bucket": "b"}', S3, {"bucket": "b"}),
        ('@acme/blob:{"url": "a://b"}', "@acme/blob", {"url": "a://b"}),
        ("cached:/mnt/share", FILE, {"path": "/mnt/share"}),
        ("cached:../share", FILE, {"path": "/srv/share"}),
        ('cached:{"path": "/mnt/share"}', "cached", {"path": "/mnt/share"}),
    ],
)
def test_object_stores_have_addresses(text: str, type: str, config: dict[str, Any]) -> None:
    """Bucket, prefix and options, with escapes undone and values typed."""
    assert parse(text) == Extension(type=type, config=config)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("file:///srv/data", "/srv/data"),
        ("FILE:///srv/data/", "/srv/data"),
        ("file://localhost/srv", "/srv"),
        ("file:///srv/a%20b/$HOME/~", "/srv/a b/$HOME/~"),
        ("file:///", "/"),
        ("filesystem:x", "/srv/repo/x"),
    ],
)
def test_directories_have_addresses(text: str, path: str) -> None:
    """A file address is an absolute path, taken literally."""
    assert parse(text) == Filesystem(path=path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("s3://", "names no bucket"),
        ("s3:///prefix", "names no bucket"),
        ("s3://?region=x", "names no bucket"),
        ("s3://bucket:9000/p", "is a server, not a bucket"),
        ("s3://bucket#x", "%23"),
        ("s3://bucket/100%", "%25"),
        ("s3://bucket/%zz", "%25"),
        ("s3://bucket/%ff", "not UTF-8"),
        ("s3://bucket?endpont=http://h", "did you mean 'endpoint'?"),
        ("s3://bucket?apiEndpoint=http://h", "did you mean 'endpoint'?"),
        ("gs://bucket?endpoint=http://h", "did you mean 'apiEndpoint'?"),
        ("s3://bucket?namespace=x", "has no 'namespace'"),
        ("s3://bucket?region", "must be given once, with a value"),
        ("s3://bucket?region=a&region=b", "must be given once"),
        ("s3://bucket?bucket=b", "stands before the '?'"),
        ("s3://bucket?prefix=b", "stands before the '?'"),
        ("gcs://bucket/p", "write 'gs://bucket/p'"),
        ("gcs://\x08/\n", "write 'gs://\\x08/\\n'"),
        ("s3://\x08:", "is a server, not a bucket"),
        ("gs://h:9", "?apiEndpoint="),
        ("http://bucket", "'http://' is no kind of datastore: write s3://bucket/prefix"),
        ("file://host/srv", "write file:///path"),
        ("file://srv", "write file:///path"),
        ("file:///srv?x=1", "write file:///path"),
        ("file:///a%00b", "NUL"),
        ("s3:/prefix", "names no bucket"),
        ("s3", "is not a datastore: write s3://bucket/prefix, gs://"),
    ],
)
def test_other_addresses_are_refused(text: str, says: str) -> None:
    """What is wrong is told in one line that says where it came from and what to write."""
    with pytest.raises(ConfigError, match=r"^here") as caught:
        parse(text)
    assert says in caught.value.message
    assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    "text",
    [
        f"s3://AKIA:{HIDDEN}@bucket/p",
        f"s3://{HIDDEN}@bucket/p",
        f"gs://a:{HIDDEN}@bucket?nonsense=1",
        f"http://a:{HIDDEN}@host",
        f"file://a:{HIDDEN}@host/x",
        f"s3://bucket?secretAccessKey={HIDDEN}",
        f"s3://bucket?secret_access_key={HIDDEN}&region=x",
        f"s3://bucket?sessionToken={HIDDEN}%zz",
        f"s3:{{'secretAccessKey': '{HIDDEN}'}}",
        f'@swamp/s3-datastore:{{"bucket": "b", "secretAccessKey": "{HIDDEN}"',
        f'@acme/blob:{{"pat": "{HIDDEN}"',
        f'@acme/blob:[{{"key": "{HIDDEN}"}}]',
        f"s3//AKIA:{HIDDEN}@bucket",
        f"AKIA:{HIDDEN}@bucket",
    ],
)
def test_secrets_in_an_address_are_refused_and_never_shown(text: str) -> None:
    """Wherever somebody puts a secret, it does not come back in the message."""
    with pytest.raises(ConfigError, match=r"^here") as caught:
        parse(text)
    assert HIDDEN not in caught.value.message


@given(st.text(max_size=30))
def test_any_prefix_can_be_written_as_an_address(prefix: str) -> None:
    """Escaping is undone exactly, so every prefix has an address."""
    if prefix.endswith("/") or any("\ud800" <= c <= "\udfff" for c in prefix):
        return
    target = parse(f"s3://bucket/{quote(prefix, safe='')}")
    assert target == Extension(type=S3, config={"bucket": "bucket", **({"prefix": prefix} if prefix else {})})


@given(st.text(max_size=40) | st.from_regex(r"(s3|gs|file|filesystem|@a/b):(//)?[\s\S]*", fullmatch=True))
def test_any_text_is_a_target_or_one_line(text: str) -> None:
    """No text raises anything but a readable refusal."""
    message = ""
    try:
        parse(text)
    except ConfigError as error:
        message = error.message
    assert message.isprintable()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://bucket/p", "'s3://bucket/p'"),
        ('@a/b:{"x": 1}', "'@a/b:…'"),
        ("s3://k:s@b", "'s3:…'"),
        ("s3://b?token=x", "'s3:…'"),
        ("nonsense", "'nonsense'"),
    ],
)
def test_a_target_is_shown_without_what_may_be_secret(text: str, shown: str) -> None:
    """A message shows the text, or only its kind."""
    assert shown_target(text) == shown
