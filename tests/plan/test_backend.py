"""The built-in object stores: which configurations are settings, with the reference's rules."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mire.errors import ConfigError
from mire.model.backend import FileSettings, GcsSettings, S3Settings, Schema
from mire.plan.backend import (
    FILE_SCHEMA,
    FILESYSTEM_SCHEMA,
    GCS_SCHEMA,
    S3_SCHEMA,
    is_type,
    parse_file,
    parse_filesystem,
    parse_gcs,
    parse_s3,
)
from mire.plan.option import check_config


def checked(schema: Schema, config: dict[str, Any], environ: dict[str, str] | None = None) -> dict[str, Any]:
    """A configuration as the parsers get it."""
    return check_config(config, schema, repo_dir="/srv/repo", environ=environ or {}, what="here")


def s3(environ: dict[str, str] | None = None, /, **config: Any) -> S3Settings:
    """The settings of an S3 configuration."""
    return parse_s3(checked(S3_SCHEMA, {"bucket": "bucket", **config}, environ))


def gcs(environ: dict[str, str] | None = None, /, **config: Any) -> GcsSettings:
    """The settings of a GCS configuration."""
    return parse_gcs(checked(GCS_SCHEMA, {"bucket": "bucket", **config}, environ))


def test_a_bucket_is_enough() -> None:
    """Everything else has the reference's defaults."""
    assert s3() == S3Settings(bucket="bucket")
    assert gcs() == GcsSettings(bucket="bucket")
    assert (s3().pull_concurrency, s3().push_concurrency, s3().request_timeout_ms) == (50, 25, 30_000)


def test_every_member_arrives() -> None:
    """What is said is what the store is opened with."""
    traffic = {"pullConcurrency": 1, "pushConcurrency": 1000, "requestTimeoutMs": 600_000}
    assert s3(
        prefix="team/prod",
        region="eu-central-1",
        endpoint="http://127.0.0.1:9000",
        forcePathStyle=True,
        profile="ops",
        caFile="ca.pem",
        conditionalDelete=False,
        **traffic,
    ) == S3Settings(
        bucket="bucket",
        prefix="team/prod",
        region="eu-central-1",
        endpoint="http://127.0.0.1:9000",
        force_path_style=True,
        profile="ops",
        ca_file="/srv/repo/ca.pem",
        conditional_delete=False,
        pull_concurrency=1,
        push_concurrency=1000,
        request_timeout_ms=600_000,
    )
    assert gcs(
        prefix="p",
        projectId="lab-7",
        apiEndpoint="https://gcs.example.com",
        auth="default",
        caFile="/ca.pem",
        **traffic,
    ) == GcsSettings(
        bucket="bucket",
        prefix="p",
        project_id="lab-7",
        api_endpoint="https://gcs.example.com",
        auth="default",
        ca_file="/ca.pem",
        pull_concurrency=1,
        push_concurrency=1000,
        request_timeout_ms=600_000,
    )


BUCKETS = ["abc", "a" * 63, "my.bucket-1", "0ab", "a-b", "a.b"]
BAD_BUCKETS = ["", "ab", "a" * 64, "Bucket", "my bucket", "-ab", "ab-", ".ab", "ab.", "a/b", "bücket", "abc\n", "a:b"]


@pytest.mark.parametrize("bucket", BUCKETS)
def test_bucket_names(bucket: str) -> None:
    """3 to 63 of lower case, digits, dots and dashes, alphanumeric at both ends."""
    assert s3(bucket=bucket).bucket == gcs(bucket=bucket).bucket == bucket


@pytest.mark.parametrize("bucket", BAD_BUCKETS, ids=ascii)
@pytest.mark.parametrize("parse", [s3, gcs])
def test_bad_bucket_names(parse: Any, bucket: str) -> None:
    """Anything else is refused in one line that shows it."""
    with pytest.raises(ConfigError, match="'bucket' is") as caught:
        parse(bucket=bucket)
    assert repr(bucket)[:40] in caught.value.message


def test_buckets_of_gcs_have_their_own_rule() -> None:
    """Underscores are allowed inside, the provider's own name is not."""
    assert gcs(bucket="my_bucket").bucket == "my_bucket"
    for bucket in ("goog-x", "my-google-x", "_ab", "ab_"):
        with pytest.raises(ConfigError, match="'bucket' is"):
            gcs(bucket=bucket)
    assert s3(bucket="goog-x").bucket == "goog-x"
    with pytest.raises(ConfigError, match="'bucket' is"):
        s3(bucket="my_bucket")


@pytest.mark.parametrize("prefix", ["a", "team/prod", "a b", "ü/漢字", "a.b", "...", "a%2Fb", "~"])
@pytest.mark.parametrize("parse", [s3, gcs])
def test_a_prefix_is_used_as_it_is(parse: Any, prefix: str) -> None:
    """Nothing is trimmed, escaped or normalized."""
    assert parse(prefix=prefix).prefix == prefix


@pytest.mark.parametrize("prefix", ["/", "/a", "a/", "a//b", ".", "..", "a/./b", "../a", "//"])
@pytest.mark.parametrize("parse", [s3, gcs])
def test_a_prefix_no_client_can_address_is_refused(parse: Any, prefix: str) -> None:
    """The reference would use it as it is; making it another prefix would be another store."""
    with pytest.raises(ConfigError, match=r"'prefix' is .* segment") as caught:
        parse(prefix=prefix)
    assert repr(prefix) in caught.value.message


@given(st.text())
def test_any_prefix_is_kept_or_refused(prefix: str) -> None:
    """There is no third way."""
    kept, message = prefix, ""
    try:
        kept = s3(prefix=prefix).prefix
    except ConfigError as error:
        message = error.message
    assert kept == prefix
    assert message.isprintable()


@pytest.mark.parametrize("region", ["eu west", "a/b", "a\n", "x#y", "é"])
def test_bad_regions(region: str) -> None:
    """A region becomes part of a host name, so it must be able to."""
    with pytest.raises(ConfigError, match="'region'"):
        s3(region=region)
    assert s3(region="").region is None


@pytest.mark.parametrize("name", ["pullConcurrency", "pushConcurrency"])
@pytest.mark.parametrize("parse", [s3, gcs])
def test_concurrency_is_1_to_1000(parse: Any, name: str) -> None:
    """The reference's bounds hold."""
    for good in (1, 1000):
        parse(**{name: good})
    for bad in (0, 1001, -1, 2.5, "50", True):
        with pytest.raises(ConfigError, match=f"'{name}' is .* from 1 to 1000"):
            parse(**{name: bad})


@pytest.mark.parametrize(("parse", "kind"), [(s3, "S3"), (gcs, "GCS")])
def test_the_request_timeout_has_a_variable(parse: Any, kind: str) -> None:
    """SWAMP_<KIND>_REQUEST_TIMEOUT_MS wins when it is a number within bounds, and is ignored when not."""
    variable = f"SWAMP_{kind}_REQUEST_TIMEOUT_MS"
    assert parse({variable: "5000"}, requestTimeoutMs=7000).request_timeout_ms == 5000
    for useless in ("999", "600001", "x", ""):
        assert parse({variable: useless}, requestTimeoutMs=7000).request_timeout_ms == 7000
        assert parse({variable: useless}).request_timeout_ms == 30_000
    for bad in (999, 600_001):
        with pytest.raises(ConfigError, match=r"'requestTimeoutMs' is .* from 1000 to 600000"):
            parse(requestTimeoutMs=bad)


@pytest.mark.parametrize(
    ("config", "auth"),
    [
        ({}, "default"),
        ({"auth": "none"}, "none"),
        ({"apiEndpoint": "http://store.example.com"}, "none"),
        ({"apiEndpoint": "https://store.example.com"}, "none"),
        ({"apiEndpoint": "https://store.example.com", "auth": "default"}, "default"),
        ({"apiEndpoint": "http://127.0.0.1:9", "auth": "default"}, "default"),
        ({"apiEndpoint": "http://localhost:9", "auth": "default"}, "default"),
        ({"apiEndpoint": "http://[::1]:9", "auth": "default"}, "default"),
    ],
)
def test_a_custom_endpoint_gets_credentials_only_when_told(config: dict[str, Any], auth: str) -> None:
    """As the reference: an endpoint of one's own means no credentials, unless `auth` says otherwise."""
    assert gcs(**config).auth == auth


def test_a_token_never_crosses_the_network_in_the_clear() -> None:
    """Credentials for a plain http endpoint elsewhere are refused."""
    with pytest.raises(ConfigError, match="use https"):
        gcs(apiEndpoint="http://store.example.com", auth="default")


def test_a_directory_has_a_path() -> None:
    """The filesystem kind needs nothing but where it is."""
    assert parse_filesystem(checked(FILESYSTEM_SCHEMA, {"path": "x"})) == "/srv/repo/x"
    with pytest.raises(ConfigError, match="'path'"):
        parse_filesystem(checked(FILESYSTEM_SCHEMA, {}))


@pytest.mark.parametrize("text", ["@acme/blob", "acme/blob", "@a/0", "@swamp/s3-datastore", "@a_b/c-d_e"])
def test_types(text: str) -> None:
    """A type is `@collective/name`."""
    assert is_type(text)


@pytest.mark.parametrize(
    "text", ["", "s3", "@acme", "@Acme/blob", "@acme/", "/blob", "@acme/blob/x", "@0a/b", "@acme/blob\n", 7, None]
)
def test_other_texts_are_no_types(text: object) -> None:
    """Anything else is not."""
    assert not is_type(text)


def test_the_built_in_types_are_the_reference_s() -> None:
    """Both programs read one settings file."""
    assert [(schema.type, schema.aliases) for schema in (FILESYSTEM_SCHEMA, S3_SCHEMA, GCS_SCHEMA)] == [
        ("filesystem", ()),
        ("@swamp/s3-datastore", ("s3",)),
        ("@swamp/gcs-datastore", ("gcs",)),
    ]


def test_a_directory_with_a_cache() -> None:
    """Its path is made absolute; the witness is there only when it is known."""
    assert parse_file(checked(FILE_SCHEMA, {"path": "../share"})) == FileSettings(path="/srv/share")
    told = {"path": "/mnt/share", "store": "id-1", "pullConcurrency": 2, "pushConcurrency": 3}
    assert parse_file(checked(FILE_SCHEMA, told)) == FileSettings(
        path="/mnt/share", store="id-1", pull_concurrency=2, push_concurrency=3
    )
    with pytest.raises(ConfigError, match="needs 'path'"):
        checked(FILE_SCHEMA, {})
