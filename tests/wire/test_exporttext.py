"""Rows are replaced in a published catalog without touching the others, however the text arrives."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mire.errors import FormatError
from mire.model.artifact import ModelRef
from mire.model.names import ModelId, ModelType
from mire.model.row import COLUMNS, NAMES, RowValues
from mire.testing.strategies import texts
from mire.wire.export import decode_export, encode_export, encode_export_compact, export_row
from mire.wire.exporttext import listed, name_key, rewritten, rewritten_rows, row_text

NAME = st.sampled_from(["a", "b", 'q"', "é", "\\", "x\ny", "\ud800", "}, {", "😀"])
KEYS = st.tuples(st.just("t"), st.sampled_from(["m", 'n"']), NAME)


def row(kind: str, model: str, name: str, version: int, source: str = "") -> RowValues:
    """A row of our catalog."""
    values: dict[str, Any] = {column: "" if kind_ == "TEXT" else 0 for column, kind_ in COLUMNS}
    values |= {"model_type": kind, "model_id": model, "name": name, "version": version, "tags": '{"a":"b"}'}
    values["source"] = source
    return tuple(values[column] for column in NAMES)


def key(kind: str, model: str, name: str) -> bytes:
    """The key of a name."""
    return name_key(ModelRef(model_type=ModelType(kind), model_id=ModelId(model)), name)


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    """A text as it may arrive."""
    return (data[at : at + size] for at in range(0, len(data), size))


ROWS = st.lists(st.tuples(KEYS, st.integers(1, 3), texts()), max_size=8)


@given(ROWS, st.dictionaries(KEYS, st.lists(st.integers(1, 3), max_size=2), max_size=3), st.integers(1, 40))
def test_rows_of_some_names_are_replaced_and_the_others_keep_their_place(
    rows: list[tuple[tuple[str, str, str], int, str]],
    replaced: dict[tuple[str, str, str], list[int]],
    size: int,
) -> None:
    """New rows stand where the first old one stood; those of new names at the end; in pieces of any size."""
    given_rows = [row(*name, version, source) for name, version, source in rows]
    new = {name: [row(*name, version, "new") for version in versions] for name, versions in replaced.items()}
    expected: list[RowValues] = []
    waiting = dict(new)
    for each in given_rows:
        name = (each[1], each[2], each[3])
        expected += waiting.pop(name, []) if name in new else [each]
    for added in waiting.values():
        expected += added
    data = b"".join(listed(row_text(each) for each in given_rows))
    assert data == encode_export(export_row(each) for each in given_rows)
    changes = {key(*name): [row_text(each) for each in added] for name, added in new.items()}
    found = b"".join(rewritten(pieces(data, size), changes))
    assert found == encode_export(export_row(each) for each in expected)
    compact = decode_export(encode_export_compact(export_row(each) for each in given_rows), "x")
    assert b"".join(rewritten_rows(compact, changes)) == found


@pytest.mark.parametrize(
    "text",
    [b"", b"[", b"[]", b'[{"a":1}]', b"[\n  {\n", b'[\n  {\n    "a": 1\n  }\n]', b"[\n    {\n", b"null\n", b"[]\n\n"],
)
def test_another_spelling_is_told(text: bytes) -> None:
    """What is not spelled as the reference's core spells it is not cut at all."""
    with pytest.raises(FormatError, match="spelling"):
        b"".join(rewritten(pieces(text, 3), {}))


def test_an_empty_catalog_takes_rows_and_gives_them_back() -> None:
    """From nothing to one row and back."""
    one = row("t", "m", "a", 1)
    filled = b"".join(rewritten([b"[]\n"], {key("t", "m", "a"): [row_text(one)]}))
    assert decode_export(filled, "x") == (export_row(one),)
    assert b"".join(rewritten([filled], {key("t", "m", "a"): []})) == b"[]\n"


def test_names_spelled_with_escapes_are_the_same_names() -> None:
    """A writer that escapes what needs no escape is understood."""
    data = b"".join(listed([row_text(row("t", "m", "é", 1))])).replace("é".encode(), b"\\u00e9")
    assert b"".join(rewritten([data], {key("t", "m", "é"): []})) == b"[]\n"


def test_rows_of_other_shapes_pass_through() -> None:
    """Rows that are none of a catalog stay, empty ones too."""
    rows: list[dict[str, Any]] = [{"relPath": "x", "size": 1}, {}, {"a": {"b": [{"c": 1}]}}]
    found = b"".join(rewritten_rows(rows, {key("t", "m", "a"): []}))
    assert list(decode_export(found, "x")) == rows
