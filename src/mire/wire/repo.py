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
from mire.wire.layout import LOCAL_TIER
from mire.wire.yamltext import compose_yaml, decode_yaml, encode_yaml

LAYOUT_RELEASE: Final = "2026.08.12.1"
"""The reference release whose layout mire writes; goes into `swampVersion` of a new repository."""

HYDRATION: Final = "hydrationStrategy"
INDEX: Final = "index"
PUBLISH: Final = "publishCatalog"

CORE_KEYS: Final = (
    *("namespace", HYDRATION, "syncTimeoutMs", "lockTimeoutMs", "directories", "exclude"),
    *(INDEX, "dual", PUBLISH),
)
"""What is kept beside a backend's own configuration, and may stand in it: the reference's members, then ours."""


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
    publish_catalog: object = None


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
    # The reference keeps it beside the configuration; in an environment variable it can only be inside.
    strategy = fields.maybe(HYDRATION, lambda v: v)
    if strategy is not None:
        config[HYDRATION] = strategy
    return DatastoreBlock(
        type="@swamp/s3-datastore" if kind == "s3" else kind,
        path=fields.maybe("path", text),
        config={**legacy, **config},
        directories=fields.maybe("directories", _texts),
        exclude=fields.maybe("exclude", _texts),
        namespace=fields.maybe("namespace", _string) or "",
        sync_timeout_ms=_first(fields.maybe("syncTimeoutMs", lambda v: v), config.get("syncTimeoutMs")),
        lock_timeout_ms=_first(fields.maybe("lockTimeoutMs", lambda v: v), config.get("lockTimeoutMs")),
        publish_catalog=_first(fields.maybe(PUBLISH, lambda v: v), config.get(PUBLISH)),
    )


def _first(block_value: object, config_value: object) -> object:
    return config_value if block_value is None else block_value


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


def retarget_datastore(data: bytes, target: Mapping[str, Any]) -> bytes:
    """The file with its datastore pointed elsewhere; what the target does not mention is the repository's and stays."""
    decode_repo(data)
    block = (decode_yaml(data) or {}).get("datastore") or {}
    gone = ("type", "path", "config", *_S3_LEGACY, *target)
    kept = {key: value for key, value in block.items() if key not in gone}
    config = {key: value for key, value in (block.get("config") or {}).items() if key in CORE_KEYS}
    config |= target.get("config", {})
    return replace_datastore(data, {**target, **({"config": config} if config else {}), **kept})


def renamespace_datastore(data: bytes, namespace: str) -> bytes:
    """The file with another namespace, or without one when it is empty; every other byte stays."""
    decode_repo(data)
    block = dict((decode_yaml(data) or {}).get("datastore") or {"type": "filesystem", "path": LOCAL_TIER})
    block.pop("namespace", None)
    return replace_datastore(data, {**block, "namespace": namespace} if namespace else block)


def replace_datastore(data: bytes, datastore: Mapping[str, Any]) -> bytes:
    """The file with its `datastore` block replaced or added; every other byte stays."""
    decode_repo(data)
    source = data.decode()
    if source and not source.endswith("\n"):
        source += "\n"
    block = encode_yaml({"datastore": datastore}, quote='"')
    root = compose_yaml(source)
    if root is not None and not isinstance(root, yaml.MappingNode):
        raise _not_in_place(datastore)
    lines = source.splitlines(keepends=True)
    start, end = _block_lines(root, lines)
    changed = "".join([*lines[:start], block, *lines[end:]]).encode()
    # Braces, indented keys, an anchor inside the block: whatever lines cannot express shows here.
    try:
        is_exact = decode_yaml(changed) == {**(decode_yaml(data) or {}), **decode_yaml(block.encode())}
    except FormatError:
        is_exact = False
    if not is_exact:
        raise _not_in_place(datastore)
    return changed


def _not_in_place(datastore: Mapping[str, Any]) -> ConfigError:
    return ConfigError(
        ".swamp.yaml is not a block of 'key: value' lines, so its datastore cannot be changed in place:"
        f" write the block yourself: {shown(dict(datastore))}"
    )


def _block_lines(root: yaml.MappingNode | None, lines: list[str]) -> tuple[int, int]:
    """The lines [start, end) of the datastore block; both at the end of the document when there is none."""
    if root is None:
        return len(lines), len(lines)
    # A document may end before its file does, with a line "...".
    end = root.end_mark.line
    for key, _ in reversed(root.value):
        start = key.start_mark.line
        if key.value == "datastore":
            # Blank lines and comments at the left edge after the block belong to what follows it.
            while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
                end -= 1
            return start, end
        end = start
    return root.end_mark.line, root.end_mark.line


def _texts(value: object) -> tuple[str, ...]:
    return tuple(_string(item) for item in sequence(value))


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise InputError(f"{shown(value)} is not text")
    return value
