"""`.swamp.yaml`: the marker and settings of a repository, shared with the reference.

Owns: reading the members mire uses, and changing one block while every other byte stays.
Must not know: environment variables, flags, defaults.
Keeps: what we do not know, comments included, is never rewritten.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from mire.errors import ConfigError, FormatError, InputError, shown
from mire.model.instant import Instant
from mire.model.names import Uuid
from mire.wire.fields import Fields, mapping, sequence, text
from mire.wire.yamltext import decode_yaml, encode_yaml

LAYOUT_RELEASE: Final = "2026.08.12.1"
"""The reference release whose layout mire writes; goes into `swampVersion` of a new repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatastoreBlock:
    """The `datastore` member, as written; None where the file says nothing."""

    type: str
    path: str | None
    config: Mapping[str, Any]
    directories: tuple[str, ...] | None
    exclude: tuple[str, ...] | None
    namespace: str
    sync_timeout_ms: object
    lock_timeout_ms: object


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoFile:
    """The members of `.swamp.yaml` that mire uses."""

    repo_id: str | None
    datastore: DatastoreBlock | None


def decode_repo(data: bytes) -> RepoFile:
    """The settings in `.swamp.yaml`; a `ConfigError` names what is wrong."""
    try:
        document = decode_yaml(data, ".swamp.yaml")
        fields = Fields({} if document is None else document, ".swamp.yaml")
        block = fields.maybe("datastore", mapping)
        return RepoFile(
            repo_id=fields.maybe("repoId", text),
            datastore=None if block is None else _decode_block(block),
        )
    except FormatError as error:
        raise ConfigError(error.message) from None


_S3_LEGACY = ("bucket", "prefix", "region", "endpoint", "forcePathStyle")


def _decode_block(block: Mapping[str, Any]) -> DatastoreBlock:
    fields = Fields(block, ".swamp.yaml: 'datastore'")
    kind = fields.take("type", text)
    legacy = {key: value for key in _S3_LEGACY if (value := fields.maybe(key, lambda v: v)) is not None}
    config = dict(fields.maybe("config", mapping) or {})
    return DatastoreBlock(
        type="@swamp/s3-datastore" if kind == "s3" else kind,
        path=fields.maybe("path", text),
        config={**legacy, **config},
        directories=fields.maybe("directories", _texts),
        exclude=fields.maybe("exclude", _texts),
        namespace=fields.maybe("namespace", _string) or "",
        sync_timeout_ms=fields.maybe("syncTimeoutMs", lambda v: v) or config.get("syncTimeoutMs"),
        lock_timeout_ms=fields.maybe("lockTimeoutMs", lambda v: v) or config.get("lockTimeoutMs"),
    )


def encode_new_repo(repo_id: Uuid, initialized_at: Instant, datastore: Mapping[str, Any] | None) -> bytes:
    """The file of a new repository, in the reference's double-quoted style."""
    document: dict[str, Any] = {
        "swampVersion": LAYOUT_RELEASE,
        "initializedAt": initialized_at,
        "repoId": repo_id,
    }
    if datastore:
        document["datastore"] = datastore
    return encode_yaml(document, quote='"').encode()


def replace_datastore(data: bytes, datastore: Mapping[str, Any]) -> bytes:
    """The file with its `datastore` block replaced or added; every other byte stays."""
    decode_repo(data)
    source = data.decode()
    block = encode_yaml({"datastore": datastore}, quote='"')
    root = yaml.compose(source, Loader=yaml.SafeLoader)
    if root is not None and (not isinstance(root, yaml.MappingNode) or root.flow_style):
        raise ConfigError(
            ".swamp.yaml is not a block of 'key: value' lines, so its datastore cannot be changed in place:"
            f" write the block yourself: {shown(dict(datastore))}"
        )
    lines = source.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    keys = [] if root is None else [(key.value, key.start_mark.line) for key, _ in root.value]
    start, end = _block_lines(keys, lines)
    return "".join([*lines[:start], block, *lines[end:]]).encode()


def _block_lines(keys: list[tuple[str, int]], lines: list[str]) -> tuple[int, int]:
    """The lines [start, end) of the datastore block; both at the end of the file when there is none."""
    for index, (key, start) in enumerate(keys):
        if key == "datastore":
            end = keys[index + 1][1] if index + 1 < len(keys) else len(lines)
            # Blank lines and comments at the left edge after the block belong to what follows it.
            while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
                end -= 1
            return start, end
    return len(lines), len(lines)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(text(item) for item in sequence(value))


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise InputError(f"{shown(value)} is not text")
    return value
