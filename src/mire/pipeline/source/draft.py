"""Rows that are to become versions: which columns say what, checked where the rows are.

Owns: the columns of a write, and the form in which a task hands its rows to the driver.
Must not know: stores, who commits.
Keeps: a row that could not be written is an error of its task, before anything is committed.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructType,
    VariantType,
    VariantVal,
)

from mire.errors import InputError, shown
from mire.flow.version import compact_json
from mire.model.artifact import parse_owner
from mire.model.lifetime import INFINITE, parse_lifetime
from mire.model.names import parse_data_name, parse_model_id, parse_model_type
from mire.plan.source import check_column, policy_of
from mire.wire.metadatafast import TXN

JSON: Final = "application/json"
DRAFTS: Final = pa.schema(
    [
        ("model_type", pa.string()),
        ("model_id", pa.string()),
        ("name", pa.string()),
        ("content", pa.large_binary()),
        ("content_type", pa.string()),
        ("tags", pa.map_(pa.string(), pa.string())),
        ("lifetime", pa.string()),
        ("version_policy", pa.string()),
        ("owner", pa.string()),
        ("model_name", pa.string()),
        ("streaming", pa.bool_()),
    ]
)
"""Versions to be, as tasks stage them."""

_NEEDED: Final = ("model_type", "model_id", "name")
_TEXT: Final = (StringType,)
_COLUMNS: Final[dict[str, tuple[type[DataType], ...]]] = {
    "model_type": _TEXT,
    "model_id": _TEXT,
    "name": _TEXT,
    "content": (BinaryType, StringType),
    "attributes": (StringType, VariantType, StructType, MapType),
    "content_type": _TEXT,
    "tags": (MapType,),
    "lifetime": _TEXT,
    "version_policy": (StringType, IntegerType, LongType),
    "owner": _TEXT,
    "model_name": _TEXT,
    "streaming": (BooleanType,),
}
_WHOLE: Final = (ByteType, ShortType, IntegerType, LongType)
_JSON_LEAVES: Final = (StringType, BooleanType, *_WHOLE, FloatType, DoubleType, NullType)
"""What JSON has. It has no dates, no decimals, no bytes: how those are to be written only their owner can say."""
_GIVEN: Final = (
    *("namespace", "version", "is_latest", "id", "data_type", "lifecycle", "renamed_to", "size_bytes", "checksum"),
    *("created_at", "owner_type", "owner_ref", "_error"),
)
"""Columns of a read that a write decides itself."""


def check_columns(schema: StructType) -> None:
    """Refuse a table that no versions can be made of."""
    what = "what is written"
    for field in schema:
        if field.name in _GIVEN:
            raise InputError(
                f"the column '{field.name}' is decided by the store when a version is written: drop it, as in"
                f" df.drop('{field.name}')",
                kind="bad_column",
            )
        check_column(field.name, _COLUMNS, what=what)
        if not isinstance(field.dataType, _COLUMNS[field.name]):
            wanted = " or ".join(each.typeName() for each in _COLUMNS[field.name])
            raise _bad_column(field.name, field.dataType, wanted)
        _check_inside(field.name, field.dataType)
    names = schema.fieldNames()
    missing = [name for name in _NEEDED if name not in names]
    if missing or not {"content", "attributes"}.intersection(names):
        raise InputError(
            f"{what} has the columns {', '.join(names)}: a version needs model_type, model_id, name, and content or"
            " attributes",
            kind="bad_column",
        )


def _check_inside(name: str, kind: DataType) -> None:
    """Refuse what cannot stand inside the columns that have something inside."""
    if name == "tags" and isinstance(kind, MapType):
        is_text = [isinstance(each, StringType) for each in (kind.keyType, kind.valueType)]
        if not all(is_text):
            raise _bad_column(name, kind, "map<string,string>, as in df.tags.cast('map<string,string>')")
    if name == "attributes" and isinstance(kind, (StructType, MapType)):
        odd = _no_json(kind)
        if odd is not None:
            raise _bad_column(
                name, kind, f"something without {odd.simpleString()}, which JSON has not, or text: to_json(attributes)"
            )


def _no_json(kind: DataType) -> DataType | None:
    """The first type inside another that JSON does not have."""
    match kind:
        case StructType():
            inside: list[DataType] = [field.dataType for field in kind.fields]
        case MapType():
            if not isinstance(kind.keyType, (StringType, *_WHOLE)):
                return kind.keyType
            inside = [kind.valueType]
        case ArrayType():
            inside = [kind.elementType]
        case _:
            return None if isinstance(kind, _JSON_LEAVES) else kind
    return next((odd for each in inside if (odd := _no_json(each)) is not None), None)


def _bad_column(name: str, kind: DataType, wanted: str) -> InputError:
    return InputError(f"the column '{name}' is {kind.simpleString()}: give {wanted}", kind="bad_column")


def drafts_of(batches: Iterable[pa.RecordBatch], schema: StructType, owner: str | None) -> Iterator[pa.RecordBatch]:
    """Rows as the driver takes them, each checked."""
    is_variant = "attributes" in schema.names and isinstance(schema["attributes"].dataType, VariantType)
    for batch in batches:
        rows = batch.to_pylist(maps_as_pydicts="strict")
        if rows:
            yield pa.RecordBatch.from_pylist([_draft(row, owner, is_variant=is_variant) for row in rows], DRAFTS)


def _draft(row: dict[str, Any], owner: str | None, *, is_variant: bool) -> dict[str, Any]:
    content, kind = _content(row, is_variant=is_variant)
    policy, tags = row.get("version_policy"), dict(row.get("tags") or {})
    # A row that was read brings the tag of the write that made it; this one is another.
    tags.pop(TXN, None)
    if policy is not None:
        policy_of(str(policy))
    if row.get("owner") or owner:
        parse_owner(row.get("owner") or owner or "")
    for key, value in tags.items():
        if value is None:
            raise InputError(f"the tag {shown(key)} of {shown(row['name'])} has no value: give text", kind="bad_tag")
    return {
        "model_type": parse_model_type(row["model_type"]),
        "model_id": parse_model_id(row["model_id"]),
        "name": parse_data_name(row["name"]),
        "content": content,
        "content_type": row.get("content_type") or kind,
        "tags": list(tags.items()),
        "lifetime": parse_lifetime(row.get("lifetime") or INFINITE),
        "version_policy": None if policy is None else str(policy),
        "owner": row.get("owner") or owner,
        "model_name": row.get("model_name"),
        "streaming": bool(row.get("streaming")),
    }


def _content(row: dict[str, Any], *, is_variant: bool) -> tuple[bytes, str]:
    """The bytes of a version, and what they are unless the row says so."""
    content: Any = row.get("content")
    attributes: Any = row.get("attributes")
    if (content is None) == (attributes is None):
        raise InputError(
            f"{shown(row['name'])} of {shown(row['model_id'])} needs either content or attributes, the other one null",
            kind="no_content",
        )
    if attributes is None:
        is_text = isinstance(content, str)
        return (
            content.encode() if is_text else bytes(content)
        ), "text/plain" if is_text else "application/octet-stream"
    if is_variant:
        attributes = VariantVal(attributes["value"], attributes["metadata"]).toJson()
    try:
        if not isinstance(attributes, str):
            return compact_json(attributes), JSON
        json.loads(attributes, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"the attributes of {shown(row['name'])} are not JSON ({error}): {shown(attributes)}", kind="not_json"
        ) from None
    return attributes.encode(), JSON


def _no_number(text: str) -> None:
    """Python takes these for numbers; JSON does not."""
    raise ValueError(f"{text} is no number")
