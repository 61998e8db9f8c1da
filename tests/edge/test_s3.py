"""What is special about S3: addresses, spellings of ETags, listings with keys of others, dialects of servers."""

from collections.abc import Mapping
from typing import Any

import pytest

from mire.edge.bucket import BrokenListingError
from mire.edge.foreign import Failure, Trouble, answered
from mire.edge.objectstore import open_s3
from mire.edge.remote import Absent, Level, Matches, Refused, Removed, Stat, Stored
from mire.edge.s3 import S3Remote
from mire.edge.s3address import Address, address_of
from mire.edge.s3list import pages, read_page
from mire.edge.s3request import Answer
from mire.edge.s3upload import upload_parts
from mire.errors import ConfigError, InputError, RemoteError
from mire.model.backend import S3Settings
from mire.testing import faults
from mire.testing.s3server import S3Server
from mire.testing.s3world import Dialect


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")


def address(
    settings: S3Settings, environ: Mapping[str, str] | None = None, profile: Mapping[str, str] | None = None
) -> Address:
    """The address of some settings."""
    profile = profile or {}
    return address_of(
        settings, environ=environ or {}, profile=profile.get, profile_region=profile.get("region"), advice="ask"
    )


@pytest.mark.parametrize(
    ("settings", "url", "is_virtual"),
    [
        (S3Settings(bucket="b", region="eu-west-1"), "https://b.s3.eu-west-1.amazonaws.com", True),
        (S3Settings(bucket="b"), "https://b.s3.us-east-1.amazonaws.com", True),
        (S3Settings(bucket="b", region="cn-north-1"), "https://b.s3.cn-north-1.amazonaws.com.cn", True),
        (S3Settings(bucket="b", force_path_style=True), "https://s3.us-east-1.amazonaws.com", False),
        (S3Settings(bucket="a.b"), "https://s3.us-east-1.amazonaws.com", False),
        (S3Settings(bucket="b", endpoint="https://minio.example:9000"), "https://b.minio.example:9000", True),
        (
            S3Settings(bucket="b", endpoint="https://minio.example/", force_path_style=True),
            "https://minio.example",
            False,
        ),
        (S3Settings(bucket="a.b", endpoint="http://minio.example"), "http://a.b.minio.example", True),
        (S3Settings(bucket="b", endpoint="http://127.0.0.1:9000"), "http://127.0.0.1:9000", False),
        (S3Settings(bucket="b", endpoint="http://[::1]:9000"), "http://[::1]:9000", False),
        (S3Settings(bucket="b", endpoint="http://localhost:9000"), "http://localhost:9000", False),
    ],
)
def test_where_a_bucket_is(settings: S3Settings, url: str, *, is_virtual: bool) -> None:
    """A bucket is part of the host's name where that works, and of the path elsewhere."""
    found = address(settings)
    assert (found.bucket_url, found.is_virtual) == (url, is_virtual)
    assert found.is_ordered == ("amazonaws.com" in url)


def test_settings_win_over_environment_and_profile() -> None:
    """What is configured is used; then the environment, then the profile."""
    environ = {"AWS_ENDPOINT_URL_S3": "http://env-s3", "AWS_ENDPOINT_URL": "http://env", "AWS_CA_BUNDLE": "/env.pem"}
    profile = {"endpoint_url": "http://profile", "ca_bundle": "/profile.pem", "region": "eu-central-1"}
    settings = S3Settings(bucket="b", endpoint="http://settings", ca_file="/settings.pem", region="eu-west-1")
    found = address(settings, environ, profile)
    assert (found.endpoint, found.ca_file, found.region) == ("http://settings", "/settings.pem", "eu-west-1")
    found = address(S3Settings(bucket="b"), environ, profile)
    assert (found.endpoint, found.ca_file, found.region) == ("http://env-s3", "/env.pem", "eu-central-1")
    found = address(S3Settings(bucket="b"), {"AWS_ENDPOINT_URL": "http://env"}, profile)
    assert (found.endpoint, found.ca_file) == ("http://env", "/profile.pem")
    assert address(S3Settings(bucket="b"), {}, profile).endpoint == "http://profile"


def test_directory_buckets_are_not_ordered() -> None:
    """AWS promises the order of listings except for directory buckets."""
    assert not address(S3Settings(bucket="b--use1-az4--x-s3")).is_ordered


@pytest.mark.parametrize("endpoint", ["minio", "ftp://minio", "http://", "//minio"])
def test_an_endpoint_that_is_no_address(endpoint: str) -> None:
    """An endpoint without scheme or host is a mistake in the settings."""
    with pytest.raises(ConfigError, match="is not an address"):
        address(S3Settings(bucket="b", endpoint=endpoint))


@pytest.mark.parametrize(
    ("dialect", "quote_etags", "works"),
    [
        ("any", True, True),
        ("any", False, True),
        ("quoted", True, True),
        ("quoted", False, False),
        ("unquoted", True, False),
        ("unquoted", False, True),
    ],
)
def test_etags_are_sent_in_the_spelling_that_was_asked_for(
    s3_server: S3Server, *, dialect: str, quote_etags: bool, works: bool
) -> None:
    """A store that knows only one spelling honours conditions in that one; fingerprints look the same in both."""
    s3_server.dialect = Dialect(etag_dialect=dialect)  # type: ignore[arg-type]
    remote = open_s3(S3Settings(bucket="b", endpoint=s3_server.url), quote_etags=quote_etags)
    fingerprint = remote.put("k", b"one").fingerprint
    assert '"' not in fingerprint
    outcome = remote.put_if("k", b"two", Matches(fingerprint))
    assert isinstance(outcome, Stored if works else Refused)
    assert remote.put_if("k", b"three", Matches("0" * 32)) == Refused()
    assert remote.delete_if("k", remote.head("k").fingerprint) == (Removed() if works else Refused())


@pytest.mark.parametrize("missing_if_match", [404, 412])
def test_a_missing_object_is_removed_already(s3_server: S3Server, missing_if_match: int) -> None:
    """Whatever a server says to a conditional delete of nothing, there is nothing."""
    s3_server.dialect = Dialect(missing_if_match=missing_if_match)  # type: ignore[arg-type]
    remote = open_s3(S3Settings(bucket="b", endpoint=s3_server.url))
    assert remote.delete_if("k", "0" * 32) == Removed()
    assert remote.put_if("k", b"", Matches("0" * 32)) == Refused()


def test_the_last_step_of_a_large_upload_is_judged_by_the_store(s3_server: S3Server) -> None:
    """Whoever is faster by a moment is not overwritten, and what was sent in vain is given up."""

    class Late(S3Remote):
        def head(self, key: str) -> Stat:
            try:
                return super().head(key)
            finally:
                s3_server.put("b", key, b"theirs")

    remote = Late(S3Settings(bucket="b", endpoint=s3_server.url))
    outcome = remote.put_stream_if("k", lambda: [bytes(1 << 20)] * 17, Absent())
    assert outcome == Refused()
    counts = s3_server.counts()
    assert (counts["UploadPart"], counts["CompleteMultipartUpload"], counts["AbortMultipartUpload"]) == (3, 1, 1)
    assert s3_server.get("b", "k") == b"theirs"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"<R><ETag>&quot;abc-2&quot;</ETag></R>", "abc-2"),
        (b"<Error><Code>PreconditionFailed</Code></Error>", answered(412, "PreconditionFailed")),
        (b"<Error><Code>InternalError</Code></Error>", answered(500, "InternalError")),
        (b"", Failure(Trouble.LOST)),
    ],
)
def test_a_good_status_is_not_believed_alone(body: bytes, expected: object) -> None:
    """S3 begins to answer the last step before it knows how it ends; what does not end well is given up."""
    asked: list[str] = []

    def send(method: str, key: str, **options: Any) -> Answer:
        asked.append(f"{method} {key} {sorted(options['query'])}")
        if "uploads" in options["query"]:
            return Answer(200, b"<R><UploadId>u</UploadId></R>")
        return Answer(200, body if method == "POST" else b"", {"etag": '"1"'})

    assert upload_parts(send, "k", iter([b"1", b"2"]), {}, lambda: True) == expected
    assert asked[1:3] == ["PUT k ['partNumber', 'uploadId']"] * 2
    assert ("DELETE k ['uploadId']" in asked) == (expected != "abc-2")


STRANGE = [
    "dir/",
    "a//b",
    "/lead",
    "a/./b",
    "a/../b",
    "tab\there",
    "bell\x07",
    "back\\slash",
    "../up",
    "x" * 1024,
    "plain",
]


@pytest.mark.parametrize("is_ordered", [True, False])
def test_keys_of_others_are_listed_as_they_are(s3_server: S3Server, *, is_ordered: bool) -> None:
    """Folder markers and keys that we would never write neither break a listing nor look like other keys."""
    for key in STRANGE:
        s3_server.put("b", key, b"x")
    remote = open_s3(S3Settings(bucket="b", endpoint=s3_server.url), is_ordered=is_ordered)
    assert [stat.key for stat in remote.list()] == sorted(STRANGE)
    level = remote.list_level()
    assert "plain" in [stat.key for stat in level.objects]
    assert {"dir/", "a/", "/", "../"} == set(level.prefixes)
    for key in STRANGE[:9]:
        with pytest.raises(InputError):
            remote.get(key)


def test_a_prefix_lists_the_keys_of_others_below_it(s3_server: S3Server) -> None:
    """Below a prefix such keys are listed without it, and nothing from outside is."""
    for key in STRANGE:
        s3_server.put("b", f"p/{key}", b"x")
        s3_server.put("b", key, b"x")
    remote = open_s3(S3Settings(bucket="b", endpoint=s3_server.url, prefix="p"))
    assert [stat.key for stat in remote.list()] == sorted(STRANGE)
    assert remote.properties.name == "s3://b/p"


def test_only_what_comes_after_is_asked_for(s3_server: S3Server) -> None:
    """Where the order is known, a listing that begins late costs only the pages from there."""
    for number in range(2500):
        s3_server.put("b", f"{number:05}", b"")
    ordered = open_s3(S3Settings(bucket="b", endpoint=s3_server.url), is_ordered=True)
    assert len(list(ordered.list(after="01999"))) == 500
    assert s3_server.counts() == {"ListObjectsV2": 1}
    assert next(ordered.list()).key == "00000"
    assert s3_server.counts() == {"ListObjectsV2": 2}
    sorted_here = open_s3(S3Settings(bucket="b", endpoint=s3_server.url))
    assert len(list(sorted_here.list(after="01999"))) == 500
    assert s3_server.counts() == {"ListObjectsV2": 5}


PAGE = b"""<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
<IsTruncated>%s</IsTruncated>%s<EncodingType>url</EncodingType>
<Contents><Key>a+b%%2Bc</Key><LastModified>2026-10-21T07:28:00.500Z</LastModified><ETag>"e"</ETag><Size>3</Size></Contents>
<CommonPrefixes><Prefix>p%%2Fq/</Prefix></CommonPrefixes></ListBucketResult>"""


def test_a_page_is_read() -> None:
    """Keys are decoded only when the server says that they are encoded."""
    page = read_page(PAGE % (b"false", b""))
    assert [(stat.key, stat.size_bytes, stat.fingerprint, stat.modified_ms) for stat in page.level.objects] == [
        ("a b+c", 3, "e", 1792567680500)
    ]
    assert (page.level.prefixes, page.following) == (("p/q/",), None)
    plain = read_page((PAGE % (b"false", b"")).replace(b"<EncodingType>url</EncodingType>", b""))
    assert plain.level.objects[0].key == "a+b%2Bc"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not XML",
        PAGE[:200],
        PAGE % (b"true", b""),
        (PAGE % (b"false", b"")).replace(b"<Size>3</Size>", b""),
        (PAGE % (b"false", b"")).replace(b"<Size>3", b"<Size>many"),
        (PAGE % (b"false", b"")).replace(b"2026-10", b"soon"),
    ],
)
def test_a_page_that_is_not_one(body: bytes) -> None:
    """A page that cannot be read, or says there is more but not how to get it, is an error and never an end."""
    with pytest.raises(BrokenListingError):
        read_page(body)


def test_a_listing_that_goes_in_circles() -> None:
    """A server that gives the same page again and again is noticed."""
    body = PAGE % (b"true", b"<NextContinuationToken>again</NextContinuationToken>")
    found: list[Level] = []
    with pytest.raises(BrokenListingError):
        found.extend(pages(lambda _: body, ""))


def test_a_broken_listing_is_an_error_of_the_store(s3_server: S3Server) -> None:
    """A listing whose bytes were changed on the way is an error that says which listing, and may be tried again."""
    s3_server.put("b", "p/k", b"")
    s3_server.inject(faults.Corrupt(0), operation="ListObjectsV2")
    remote = open_s3(S3Settings(bucket="b", endpoint=s3_server.url))
    with pytest.raises(RemoteError) as caught:
        list(remote.list("p/"))
    assert caught.value.transient
    assert len(list(remote.list("p/"))) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_CONDITIONAL_PUT", "disabled"),
        ("AWS_SKIP_SIGNATURE", "true"),
        ("AWS_S3_EXPRESS", "true"),
        ("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "true"),
        ("AWS_ENDPOINT", "http://127.0.0.1:1"),
        ("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1"),
        ("AWS_BUCKET", "other"),
    ],
)
def test_variables_do_not_change_a_bucket(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """What the settings say is not changed by variables that the client library has of its own."""
    monkeypatch.setenv(name, value)
    bucket = open_s3(S3Settings(bucket="b", endpoint=s3_server.url))
    assert isinstance(bucket.put_if("k", b"x", Absent()), Stored)
    assert bucket.put_if("k", b"x", Absent()) == Refused()
    assert [stat.key for stat in bucket.list()] == s3_server.keys("b") == ["k"]
