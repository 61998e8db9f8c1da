"""The built-in kinds of datastore: their options, and the settings a configuration comes to.

Owns: bucket rules, prefixes, when credentials are sent, type ids.
Must not know: how a store is opened, where a configuration was written down.
Keeps: a prefix is used as it is written or refused; it is never made into another one.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from mire.errors import ConfigError, shown
from mire.model.backend import (
    CONCURRENCY_MOST,
    FILE,
    FILESYSTEM,
    GCS,
    PULL_CONCURRENCY,
    PUSH_CONCURRENCY,
    REQUEST_TIMEOUT_LEAST_MS,
    REQUEST_TIMEOUT_MOST_MS,
    REQUEST_TIMEOUT_MS,
    S3,
    SHORT_CONCURRENCY,
    Choice,
    File,
    FileSettings,
    Flag,
    GcsSettings,
    Number,
    Option,
    S3Settings,
    Schema,
    Url,
)

TIMEOUT: Final = "requestTimeoutMs"
"""The option that bounds one request; a backend of others that has it is bounded by the doctor, too."""

CONDITIONAL_DELETE: Final = "conditionalDelete"
"""The option for stores that ignore conditions of removals; setup sets it where the doctor finds one."""

_TYPE = re.compile(r"@?[a-z][a-z0-9_-]*/[a-z0-9][a-z0-9_-]*")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_GCS_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")
_REGION = re.compile(r"[A-Za-z0-9_.-]+")
_LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")


_CONCURRENCY = (
    Option(
        name="pullConcurrency",
        shape=Number(least=1, most=CONCURRENCY_MOST),
        default=PULL_CONCURRENCY,
        meaning=f"downloads at the same time; {SHORT_CONCURRENCY} of small files, if it is not given",
    ),
    Option(
        name="pushConcurrency",
        shape=Number(least=1, most=CONCURRENCY_MOST),
        default=PUSH_CONCURRENCY,
        meaning=f"uploads at the same time; {SHORT_CONCURRENCY} of small files, if it is not given",
    ),
)


def _traffic(variable: str) -> tuple[Option, ...]:
    return (
        *_CONCURRENCY,
        Option(
            name=TIMEOUT,
            shape=Number(least=REQUEST_TIMEOUT_LEAST_MS, most=REQUEST_TIMEOUT_MOST_MS),
            default=REQUEST_TIMEOUT_MS,
            variable=variable,
            meaning="how long one request may take",
        ),
    )


_BUCKET_OPTION = Option(name="bucket", is_required=True, meaning="the bucket, which must exist")
_PREFIX_OPTION = Option(name="prefix", meaning="a directory in the bucket, without slashes around it")
_CA_OPTION = Option(name="caFile", shape=File(), meaning="a PEM file of certificate authorities to trust as well")

S3_SCHEMA: Final = Schema(
    type=S3,
    aliases=("s3",),
    title="S3",
    description="Amazon S3 and stores that speak like it",
    credentials="the AWS chain (AWS_ACCESS_KEY_ID and the like, ~/.aws, a role)",
    options=(
        _BUCKET_OPTION,
        _PREFIX_OPTION,
        Option(name="region", meaning="the bucket's region (else from the AWS settings)"),
        Option(name="endpoint", shape=Url(), meaning="the address of a store that speaks S3 (else AWS)"),
        Option(
            name="forcePathStyle", shape=Flag(), default=False, meaning="put the bucket into the path, not the host"
        ),
        Option(name="profile", meaning="the profile of the AWS settings to use"),
        _CA_OPTION,
        Option(
            name=CONDITIONAL_DELETE,
            shape=Flag(),
            default=True,
            meaning="whether the store honours If-Match of DELETE; mire doctor tells",
        ),
        *_traffic("SWAMP_S3_REQUEST_TIMEOUT_MS"),
    ),
)

GCS_SCHEMA: Final = Schema(
    type=GCS,
    aliases=("gcs",),
    title="Google Cloud Storage",
    description="Google Cloud Storage",
    credentials="Google's default chain (GOOGLE_APPLICATION_CREDENTIALS, gcloud, a service account)",
    options=(
        _BUCKET_OPTION,
        _PREFIX_OPTION,
        Option(name="projectId", meaning="the project; nothing asks for it yet"),
        Option(name="apiEndpoint", shape=Url(), meaning="the address of a store that speaks GCS (else Google)"),
        Option(
            name="auth",
            shape=Choice(words=("default", "none")),
            meaning="default: send Google's credentials; none: send none, which an apiEndpoint implies",
        ),
        _CA_OPTION,
        *_traffic("SWAMP_GCS_REQUEST_TIMEOUT_MS"),
    ),
)

FILESYSTEM_SCHEMA: Final = Schema(
    type=FILESYSTEM,
    title="Directory",
    description="a directory, for example on a shared mount",
    credentials="your account",
    options=(Option(name="path", shape=File(), meaning="the directory (default: .swamp in the repository)"),),
)


STORE: Final = "store"
"""The option that names the witness of a directory; setup sets it."""

FILE_SCHEMA: Final = Schema(
    type=FILE,
    aliases=("cached",),
    title="Directory with a cache",
    description="a directory, for example on a shared mount, that is synced like a bucket",
    credentials="your account",
    options=(
        Option(name="path", shape=File(), is_required=True, meaning="the directory, which must exist"),
        Option(name=STORE, meaning="what its file _control/mire-store holds, so that nothing else is taken for it"),
        *_CONCURRENCY,
    ),
)


def is_type(text: object) -> bool:
    """Whether a text can be the type of somebody's backend: `@collective/name`, the '@' optional."""
    return isinstance(text, str) and _TYPE.fullmatch(text) is not None


def parse_filesystem(config: Mapping[str, Any]) -> str:
    """The directory from its checked configuration."""
    if config["path"] is None:
        raise ConfigError("filesystem needs 'path': the directory")
    return str(config["path"])


def parse_file(config: Mapping[str, Any]) -> FileSettings:
    """The settings of a directory used as a remote from its checked configuration."""
    return FileSettings(
        path=config["path"],
        store=config[STORE] or None,
        pull_concurrency=config["pullConcurrency"],
        push_concurrency=config["pushConcurrency"],
    )


def parse_s3(config: Mapping[str, Any]) -> S3Settings:
    """The settings of an S3 store from its checked configuration."""
    bucket, region = config["bucket"], config["region"]
    if not _BUCKET.fullmatch(bucket):
        raise ConfigError(
            f"'bucket' is {shown(bucket)}: give 3 to 63 of a-z, 0-9, '.' and '-', with a letter or digit at both ends"
        )
    if region and not _REGION.fullmatch(region):
        raise ConfigError(f"'region' is {shown(region)}: give a name such as eu-central-1")
    return S3Settings(
        bucket=bucket,
        prefix=_prefix(config["prefix"]),
        region=region or None,
        endpoint=config["endpoint"],
        force_path_style=config["forcePathStyle"],
        profile=config["profile"] or None,
        ca_file=config["caFile"],
        conditional_delete=config[CONDITIONAL_DELETE],
        pull_concurrency=config["pullConcurrency"],
        push_concurrency=config["pushConcurrency"],
        request_timeout_ms=config[TIMEOUT],
    )


def parse_gcs(config: Mapping[str, Any]) -> GcsSettings:
    """The settings of a GCS store from its checked configuration."""
    bucket, endpoint = config["bucket"], config["apiEndpoint"]
    if not _GCS_BUCKET.fullmatch(bucket) or bucket.startswith("goog") or "google" in bucket:
        raise ConfigError(
            f"'bucket' is {shown(bucket)}: give 3 to 63 of a-z, 0-9, '.', '_' and '-', with a letter or digit"
            " at both ends, not beginning with 'goog' and without 'google'"
        )
    # The reference sends no credentials to an address of its user's choice; saying `auth` decides it.
    auth: Literal["default", "none"] = config["auth"] or ("none" if endpoint else "default")
    if auth == "default" and endpoint and not _is_private(endpoint):
        raise ConfigError(
            f"'apiEndpoint' is {shown(endpoint)}: with auth: default the access token would cross the network"
            " in the clear; use https"
        )
    return GcsSettings(
        bucket=bucket,
        prefix=_prefix(config["prefix"]),
        project_id=config["projectId"] or None,
        api_endpoint=endpoint,
        auth=auth,
        ca_file=config["caFile"],
        pull_concurrency=config["pullConcurrency"],
        push_concurrency=config["pushConcurrency"],
        request_timeout_ms=config[TIMEOUT],
    )


def _is_private(endpoint: str) -> bool:
    parts = urlsplit(endpoint)
    return parts.scheme == "https" or _LOOPBACK.fullmatch(parts.hostname or "") is not None


def _prefix(prefix: str | None) -> str:
    if not prefix:
        return ""
    if any(segment in ("", ".", "..") for segment in prefix.split("/")):
        # The reference takes a prefix as it is: 'a/' gives keys 'a//…'. Making it 'a' would be another store.
        raise ConfigError(
            f"'prefix' is {shown(prefix)}: object clients cannot address keys with an empty, '.' or '..'"
            " segment, so give it without slashes around it, such as team/prod"
        )
    return prefix
