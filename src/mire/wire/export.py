"""The published catalog of a namespace, `.catalog-export.json`: its rows for other namespaces to read.

Owns: the file's place and both its spellings, and our rows under the reference's column names.
Must not know: how rows are stored, how a file is rewritten in part.
Keeps: rows of others are passed on as they are; a row that is taken in belongs to the namespace it was found in, and
names no path outside of it.
"""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from mire.errors import FormatError, InputError, shown
from mire.model.names import Namespace, parse_data_name, parse_model_id, parse_model_type
from mire.model.row import COLUMNS, NAMES, RowValues
from mire.wire.jsontext import decode_json, encode_compact, encode_indented

EXPORT: Final = ".catalog-export.json"

_RENAMED: Final = {"type_normalized": "model_type", "data_name": "name"}
EXPORT_COLUMNS: Final = (
    "namespace",
    "type_normalized",
    "model_id",
    "data_name",
    "id",
    "version",
    "is_latest",
    "model_name",
    "spec_name",
    "data_type",
    "content_type",
    "lifetime",
    "owner_type",
    "streaming",
    "size",
    "created_at",
    "tags",
    "owner_ref",
    "workflow_run_id",
    "workflow_name",
    "job_name",
    "step_name",
    "source",
)
"""The columns of the reference's catalog, in the order it writes them."""
_PLACES: Final = tuple((column, NAMES.index(_RENAMED.get(column, column))) for column in EXPORT_COLUMNS)
_TAKEN: Final = tuple((column, place, COLUMNS[place][1]) for column, place in _PLACES)
_BLANK: Final = tuple("active" if name == "lifecycle" else "" if kind == "TEXT" else 0 for name, kind in COLUMNS)
_TAGS: Final = NAMES.index("tags")
_FLAGS: Final = ("is_latest", "streaming")
_INTEGER_END: Final = 2**63


def export_key(namespace: Namespace) -> str:
    """Where a namespace publishes its catalog; solo stores have none."""
    return f"{namespace}/{EXPORT}"


def export_row(row: RowValues) -> dict[str, str | int]:
    """A row of our catalog as the reference's catalog has it."""
    return {column: row[place] for column, place in _PLACES}


def decode_export(data: bytes, key: str) -> tuple[Mapping[str, Any], ...]:
    """The rows, whatever members they have; a `FormatError` names the key."""
    what = f"catalog export {shown(key)}"
    rows = decode_json(data, what)
    if not isinstance(rows, list):
        raise FormatError(f"{what} is {shown(rows)}, not a list")
    for row in rows:
        if not isinstance(row, dict):
            raise FormatError(f"{what} has the row {shown(row)}, not an object")
    return tuple(rows)


def encode_export(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """The file, as the reference itself writes it: two-space indent and a newline."""
    return encode_indented(list(rows)) + b"\n"


def encode_export_compact(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """The object, as the extensions of the reference write it, and take the hash of."""
    return encode_compact(list(rows))


def import_row(row: Mapping[str, Any], namespace: Namespace) -> RowValues:
    """A row of another namespace's catalog as ours has it; a `FormatError` says why it cannot be one."""
    found = [*_BLANK]
    for column, place, kind in _TAKEN:
        found[place] = _value(row, column, kind)
    if row["namespace"] != namespace:
        raise FormatError(f"a row of the namespace {shown(row['namespace'])} is no row of {namespace}")
    _check_place(row["type_normalized"], row["model_id"], row["data_name"])
    if row["version"] < 1:
        raise FormatError(f"version is {shown(row['version'])}")
    found[_TAGS] = _tags(row["tags"])
    return tuple(found)


@lru_cache(maxsize=4096)
def _check_place(kind: str, model_id: str, name: str) -> None:
    """Refuse names that are not those of a directory in the namespace; the versions of a name come together."""
    try:
        if parse_model_type(kind) != kind:
            raise FormatError(f"model type {shown(kind)} is not in its normal form")
        parse_model_id(model_id)
        parse_data_name(name)
    except InputError as error:
        raise FormatError(error.message) from None


def _value(row: Mapping[str, Any], column: str, kind: str) -> str | int:
    try:
        value = row[column]
    except KeyError:
        raise FormatError(f"a row without {shown(column)} is none of a catalog") from None
    if kind == "TEXT" and isinstance(value, str) and (value.isascii() or _is_encodable(value)):
        return value
    if column in _FLAGS:
        if type(value) in (int, bool) and value in (0, 1):
            return int(value)
        raise FormatError(f"{column} is {shown(value)}, not 0 or 1")
    if kind == "INTEGER" and type(value) is int and 0 <= value < _INTEGER_END:
        return value
    raise FormatError(f"{column} is {shown(value)}, which no catalog has")


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@lru_cache(maxsize=4096)
def _tags(text: str) -> str:
    tags = decode_json(text.encode(), "tags")
    if not isinstance(tags, dict) or not all(isinstance(value, str) for value in tags.values()):
        raise FormatError(f"tags are {shown(text)}, not names with texts")
    return tags_text(tags)


def tags_text(tags: Mapping[str, str]) -> str:
    """Tags as the catalog keeps them. SQLite's JSON functions end a text at a NUL, which nobody means to have."""
    return json.dumps(dict(tags), ensure_ascii=False, separators=(",", ":")).replace("\\u0000", "\ufffd")
