"""A datastore in one line of text: an address, or the forms the reference has.

Owns: `s3://`, `gs://` and `file://` addresses, `filesystem:/path`, `cached:/path`, `@scope/type:{json}`,
`s3:bucket/prefix`.
Must not know: whether the configuration is right; only whether the text can be one.
Keeps: a text that may hold a secret is never shown.
"""

import json
import posixpath
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from mire.errors import ConfigError, shown
from mire.model.backend import FILE, FILESYSTEM, Schema
from mire.model.config import Extension, Filesystem, Target
from mire.plan.backend import GCS_SCHEMA, S3_SCHEMA
from mire.plan.option import check_name, is_secret, text_of
from mire.plan.path import expand_path

FORMS: Final = (
    "s3://bucket/prefix, gs://bucket/prefix, file:///path, filesystem:/path, cached:/path or @scope/type:{json}"
)
CACHED: Final = "cached"
"""The short name of a directory that is synced with a cache."""

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(#.*)?", re.DOTALL)
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SCHEMES = {"s3": S3_SCHEMA, "gs": GCS_SCHEMA}
_SHORT = {"s3": S3_SCHEMA, "gcs": GCS_SCHEMA}


def parse_target(text: str, *, repo_dir: str, environ: Mapping[str, str], what: str) -> Target:
    """A datastore from its text form."""
    if match := _ADDRESS.fullmatch(text):
        return _parse_address(text, match, what)
    kind, _, rest = text.partition(":")
    if not kind or not rest:
        raise ConfigError(f"{what} {shown_target(text)} is not a datastore: write {FORMS}")
    if kind == FILESYSTEM:
        return Filesystem(path=expand_path(rest, repo_dir=repo_dir, environ=environ, what=what))
    if kind == CACHED and not rest.startswith("{"):
        return cached(Filesystem(path=expand_path(rest, repo_dir=repo_dir, environ=environ, what=what)))
    if kind in _SHORT and not rest.startswith("{"):
        bucket, _, prefix = rest.partition("/")
        if not bucket:
            raise ConfigError(f"{what} {shown(text)} names no bucket: write {kind}:bucket or {kind}:bucket/prefix")
        return Extension(type=_SHORT[kind].type, config=_members(bucket, prefix))
    try:
        config = json.loads(rest)
    except (ValueError, RecursionError):
        raise ConfigError(f"{what} {shown_target(text)}: what follows the ':' is not JSON") from None
    if not isinstance(config, dict):
        raise ConfigError(f"{what} {shown_target(text)}: what follows the ':' is not a JSON object")
    return Extension(type=_SHORT[kind].type if kind in _SHORT else kind, config=config)


def cached(directory: Filesystem) -> Extension:
    """A directory as a remote with a cache, instead of the datastore itself."""
    return Extension(type=FILE, config={"path": directory.path})


def shown_target(text: str) -> str:
    """A datastore's text for a message, or its beginning when the rest may hold a secret."""
    if "{" in text or "@" in text[1:] or is_secret(text):
        return shown(text.partition(":")[0] + ":…")
    return shown(text)


def _parse_address(text: str, match: re.Match[str], what: str) -> Target:
    scheme, place, path, query, fragment = match.groups()
    scheme = scheme.lower()
    if "@" in place:
        chain = _SCHEMES[scheme].credentials if scheme in _SCHEMES else "elsewhere"
        raise ConfigError(f"{what}: an address with a user name or password is refused: credentials come from {chain}")
    if fragment is not None:
        raise ConfigError(f"{what}: the address has a '#': write it as %23")
    if scheme == "file":
        return _parse_file(text, place, path, query, what)
    if scheme not in _SCHEMES:
        near = f"write {shown(f'gs://{place}{path}')}" if scheme == "gcs" else f"write {FORMS}"
        raise ConfigError(f"{what}: {shown(f'{scheme}://')} is no kind of datastore: {near}")
    bucket = _decoded(place, what)
    if not bucket:
        raise ConfigError(f"{what} {shown_target(text)} names no bucket: write {scheme}://bucket/prefix")
    if ":" in bucket:
        option = "endpoint" if scheme == "s3" else "apiEndpoint"
        raise ConfigError(
            f"{what}: {shown(bucket)} is a server, not a bucket: write {scheme}://bucket/prefix?{option}=https://…"
        )
    # One slash at the end is how people write directories; a prefix that ends in one has another meaning.
    prefix = _decoded(path.removeprefix("/").removesuffix("/"), what)
    schema = _SCHEMES[scheme]
    return Extension(type=schema.type, config={**_members(bucket, prefix), **_parse_query(query or "", schema, what)})


def _members(bucket: str, prefix: str) -> dict[str, Any]:
    return {"bucket": bucket, **({"prefix": prefix} if prefix else {})}


def _parse_query(query: str, schema: Schema, what: str) -> dict[str, Any]:
    config: dict[str, Any] = {}
    for pair in filter(None, query.split("&")):
        name, has_value, value = pair.partition("=")
        name = _decoded(name, what)
        option = check_name(name, schema, what=what)
        if name in ("bucket", "prefix"):
            raise ConfigError(f"{what}: '{name}' stands before the '?': write s3://bucket/prefix?…")
        if not has_value or name in config:
            raise ConfigError(f"{what}: '{name}' must be given once, with a value: write {name}=…")
        config[name] = text_of(_decoded(value, what), option.shape)
    return config


def _parse_file(text: str, place: str, path: str, query: str | None, what: str) -> Filesystem:
    if place not in ("", "localhost") or query is not None or not path.startswith("/"):
        raise ConfigError(f"{what} {shown_target(text)} is no directory: write file:///path, with three slashes")
    decoded = _decoded(path, what)
    if "\0" in decoded:
        raise ConfigError(f"{what}: the path {shown(decoded)} has a NUL character")
    return Filesystem(path=posixpath.normpath(decoded))


def _decoded(text: str, what: str) -> str:
    if _BAD_ESCAPE.search(text):
        raise ConfigError(f"{what}: {shown_target(text)} has a '%' that begins no escape: write it as %25")
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise ConfigError(f"{what}: {shown_target(text)} has escapes that are not UTF-8") from None
