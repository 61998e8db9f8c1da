"""Backends as values: what it takes to open an object store.

Owns: the settings of each built-in object store, checked and complete.
Must not know: how they are spelt in a settings file or an address, and no secret: credentials come from the
provider's own chain.
"""

from dataclasses import dataclass
from typing import Final, Literal

PULL_CONCURRENCY: Final = 50
PUSH_CONCURRENCY: Final = 25
REQUEST_TIMEOUT_MS: Final = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Settings:
    """A bucket of S3 or of a store that speaks like it."""

    bucket: str
    prefix: str = ""
    region: str | None = None
    endpoint: str | None = None
    force_path_style: bool = False
    profile: str | None = None
    ca_file: str | None = None
    pull_concurrency: int = PULL_CONCURRENCY
    push_concurrency: int = PUSH_CONCURRENCY
    request_timeout_ms: int = REQUEST_TIMEOUT_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class GcsSettings:
    """A bucket of Google Cloud Storage; `auth` is `none` only for public buckets and local servers."""

    bucket: str
    prefix: str = ""
    project_id: str | None = None
    api_endpoint: str | None = None
    auth: Literal["default", "none"] = "default"
    ca_file: str | None = None
    pull_concurrency: int = PULL_CONCURRENCY
    push_concurrency: int = PUSH_CONCURRENCY
    request_timeout_ms: int = REQUEST_TIMEOUT_MS
