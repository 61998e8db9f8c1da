"""The published catalog: others' rows pass through, ours have the reference's shape."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mire.errors import FormatError
from mire.model.names import Namespace
from mire.model.row import NAMES
from mire.testing.strategies import documents, texts
from mire.wire.export import (
    EXPORT_COLUMNS,
    decode_export,
    encode_export,
    encode_export_compact,
    export_key,
    export_row,
    import_row,
)

GOLDEN = Path(__file__).parent.parent / "golden" / "namespaced" / "bucket" / "swamp"


def test_the_export_of_the_reference_comes_back() -> None:
    """Its rows are passed on as they are, in the same bytes."""
    data = (GOLDEN / export_key(Namespace("team-a"))).read_bytes()
    rows = decode_export(data, "export")
    assert [row["size"] for row in rows] == [446, 143, 446, 143, 446]
    assert encode_export_compact(rows) == data
    assert decode_export(encode_export(rows), "export") == rows


@given(st.lists(st.dictionaries(texts(), texts() | st.integers(), max_size=3), max_size=3))
def test_round_trip(rows: list[dict[str, str | int]]) -> None:
    """Both spellings hold any rows in their order."""
    assert decode_export(encode_export(rows), "export") == decode_export(encode_export_compact(rows), "export")
    assert list(decode_export(encode_export(rows), "export")) == rows


def test_the_file_is_spelled_as_the_reference_spells_it() -> None:
    """Two-space indent and a newline; non-ASCII as it is."""
    assert encode_export([{"a": "ä"}]).decode() == '[\n  {\n    "a": "ä"\n  }\n]\n'
    assert encode_export([]) == b"[]\n"


def test_our_rows_have_the_columns_of_the_reference() -> None:
    """The 23 columns in their order, each with the value of the column that means the same."""
    row = export_row(tuple(NAMES))
    renamed = {"type_normalized": "model_type", "data_name": "name"}
    assert row == {column: renamed.get(column, column) for column in EXPORT_COLUMNS}
    assert list(row) == [
        *("namespace", "type_normalized", "model_id", "data_name", "id", "version", "is_latest", "model_name"),
        *("spec_name", "data_type", "content_type", "lifetime", "owner_type", "streaming", "size", "created_at"),
        *("tags", "owner_ref", "workflow_run_id", "workflow_name", "job_name", "step_name", "source"),
    ]


@pytest.mark.parametrize("text", [b"", b"{}", b"null", b"[1]", b"[{}, null]", b"[", b'["\xff"]', b"[NaN]"])
def test_what_is_no_export_is_an_error(text: bytes) -> None:
    """The message names the object; nothing is taken for an empty catalog."""
    with pytest.raises(FormatError, match="green/x"):
        decode_export(text, "green/x")


@given(st.lists(documents(), max_size=2))
def test_rows_of_any_shape_survive(rows: list[dict[str, object]]) -> None:
    """Rows are opaque."""
    try:
        data = encode_export(rows)
    except FormatError:
        assert "Infinity" in json.dumps(rows)
    else:
        assert list(decode_export(data, "export")) == rows


GOOD: dict[str, str | int] = dict.fromkeys(EXPORT_COLUMNS, "") | {
    "namespace": "infra",
    "type_normalized": "net/router",
    "model_id": "r-1",
    "data_name": "state",
    "id": "u",
    "version": 2,
    "is_latest": 1,
    "streaming": 0,
    "size": 7,
    "created_at": "2026-01-01T00:00:00.000Z",
    "tags": '{"env": "prod"}',
}


def test_a_row_that_is_taken_in_has_the_values_of_its_columns() -> None:
    """What the published form does not say is empty; what we export comes back as it was."""
    row = import_row(GOOD, Namespace("infra"))
    assert export_row(row) == {**GOOD, "tags": '{"env":"prod"}'}
    assert row[NAMES.index("lifecycle")] == "active"
    assert row[NAMES.index("checksum")] == ""


@pytest.mark.parametrize(
    "change",
    [
        {"namespace": "web"},
        {"namespace": ""},
        {"type_normalized": "../secrets"},
        {"type_normalized": "Net::Router"},
        {"model_id": "a/b"},
        {"model_id": ".."},
        {"data_name": "../x"},
        {"data_name": "latest"},
        {"version": 0},
        {"version": "1"},
        {"version": True},
        {"version": 2**63},
        {"size": -1},
        {"is_latest": 2},
        {"streaming": "yes"},
        {"source": None},
        {"source": "\ud800"},
        {"tags": "[]"},
        {"tags": '{"a": 1}'},
        {"tags": "{"},
        {"tags": {}},
    ],
    ids=str,
)
def test_a_row_that_names_something_else_is_refused(change: dict[str, object]) -> None:
    """Rows of another namespace, names that lead elsewhere, and values no catalog has."""
    with pytest.raises(FormatError):
        import_row({**GOOD, **change}, Namespace("infra"))


@pytest.mark.parametrize("column", EXPORT_COLUMNS)
def test_a_row_without_a_column_is_refused(column: str) -> None:
    """The reference writes all of them."""
    with pytest.raises(FormatError, match=column):
        import_row({key: value for key, value in GOOD.items() if key != column}, Namespace("infra"))
