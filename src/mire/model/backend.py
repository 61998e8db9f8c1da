"""Backends as values: what it takes to open an object store, and what its configuration may say.

Owns: the settings of each built-in object store, checked and complete; what one member of a configuration is.
Must not know: how a configuration is checked, and no secret: credentials come from the provider's own chain.
"""

from dataclasses import dataclass
from typing import Final, Literal

PULL_CONCURRENCY: Final = 50
PUSH_CONCURRENCY: Final = 25
SHORT_CONCURRENCY: Final = 128
"""Of small files more are moved at the same time, unless the settings say how many: most of their time is waiting, and
a store does many at once with less work for each; docs/benchmarks.md."""
REQUEST_TIMEOUT_MS: Final = 30_000
REQUEST_TIMEOUT_LEAST_MS: Final = 1_000
REQUEST_TIMEOUT_MOST_MS: Final = 600_000
CONCURRENCY_MOST: Final = 1_000

FILESYSTEM: Final = "filesystem"
S3: Final = "@swamp/s3-datastore"
GCS: Final = "@swamp/gcs-datastore"
"""The type ids the reference knows the built-in kinds by."""

FILE: Final = "@mire/file-datastore"
"""A directory that is synced with a cache, like a bucket; the reference has no such kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSettings:
    """A directory used as a remote; `store` is what its witness holds: an empty mount point is not taken for it."""

    path: str
    store: str | None = None
    pull_concurrency: int = PULL_CONCURRENCY
    push_concurrency: int = PUSH_CONCURRENCY


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
    conditional_delete: bool = True
    """Whether the store honours conditions of removals; some ignore them."""
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


@dataclass(frozen=True, slots=True)
class Text:
    """Any text without control characters."""


@dataclass(frozen=True, slots=True)
class Url:
    """An address that begins with `http://` or `https://`."""


@dataclass(frozen=True, slots=True)
class File:
    """A path: `~` and variables are filled in, a relative one starts at the repository."""


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A whole number within bounds."""

    least: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One of some words."""

    words: tuple[str, ...]


Shape = Text | Url | File | Flag | Number | Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One member of a backend's configuration, under the name it has in the settings file."""

    name: str
    meaning: str
    shape: Shape = Text()
    is_required: bool = False
    default: str | int | bool | None = None
    variable: str | None = None
    """An environment variable that wins over the configuration when it has a usable value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A kind of datastore: what it is called, and what its configuration may say."""

    type: str
    """`@collective/name`: lower case, digits, '-' and '_'."""
    title: str
    description: str
    options: tuple[Option, ...] = ()
    aliases: tuple[str, ...] = ()
    credentials: str = "the provider's own settings"
    """Where credentials come from, as messages say it."""
