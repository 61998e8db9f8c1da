"""The published catalog of a namespace, `.catalog-export.json`: its rows for other namespaces to read.

Owns: the file's place and both its spellings, and our rows under the reference's column names.
Must not know: how rows are stored, what another namespace's rows mean.
Keeps: rows of others are passed on as they are.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from mire.errors import FormatError, shown
from mire.model.names import Namespace
from mire.model.row import NAMES, RowValues
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
