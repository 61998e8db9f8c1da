"""A published catalog as text: rows replaced in it while every other row passes through untouched, in pieces.

Owns: where a row begins and ends in the spelling that the reference's core writes, and which name it is of.
Must not know: where the text comes from or goes to, what the rows mean.
Keeps: untouched rows keep their bytes and their order; of a name that is replaced all rows go, and its new ones stand
where the first of them stood. A text in another spelling is told apart, never cut in the wrong place.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from json.encoder import encode_basestring
from typing import Any, Final

from mire.errors import FormatError
from mire.model.artifact import ModelRef
from mire.model.row import RowValues
from mire.wire.export import EXPORT_COLUMNS, export_row
from mire.wire.jsontext import encode_indented

NameKey = bytes
"""What tells the rows of one name: three members as they are spelled in the text."""

_OPEN: Final = b"[\n  {\n"
_JOINT: Final = b"\n  },\n  {\n"
_CLOSE: Final = b"\n  }\n]\n"
_EMPTY: Final = b"[]\n"
_AT_ONCE: Final = 2000
_KEY_COLUMNS: Final = EXPORT_COLUMNS[1:4]
_STARTS: Final = tuple(f'    "{column}": '.encode() for column in EXPORT_COLUMNS[:4])


def name_key(model: ModelRef, name: str) -> NameKey:
    """The key of a name's rows."""
    return _key((model.model_type, model.model_id, name))


def row_text(row: RowValues) -> bytes:
    """A row of our catalog as it stands in the list, without the braces around it."""
    lines = (
        f'    "{column}": {encode_basestring(value) if isinstance(value, str) else value}'
        for column, value in export_row(row).items()
    )
    return ",\n".join(lines).encode(errors="backslashreplace")


def rewritten(chunks: Iterable[bytes], replaced: Mapping[NameKey, Sequence[bytes]]) -> Iterator[bytes]:
    """The text with the rows of some names replaced (none: removed); names that it did not have come at its end.

    A `FormatError` says that the text is spelled otherwise: then read it whole, and write it from its rows.
    """
    return listed(_replaced(_rows_in(chunks), replaced))


def rewritten_rows(rows: Iterable[Mapping[str, Any]], replaced: Mapping[NameKey, Sequence[bytes]]) -> Iterator[bytes]:
    """The same for rows that were read from a text of any spelling."""
    return listed(_replaced((_text_of(row) for row in rows), replaced))


def listed(rows: Iterable[bytes]) -> Iterator[bytes]:
    """A whole text from the texts of its rows, in pieces."""
    batch: list[bytes] = []
    lead = _OPEN
    for row in rows:
        batch.append(row)
        if len(batch) >= _AT_ONCE:
            yield lead + _JOINT.join(batch)
            lead, batch = _JOINT, []
    if batch:
        yield lead + _JOINT.join(batch)
        lead = _JOINT
    yield _EMPTY if lead is _OPEN else _CLOSE


def _replaced(rows: Iterable[bytes], replaced: Mapping[NameKey, Sequence[bytes]]) -> Iterator[bytes]:
    waiting = dict(replaced)
    for row in rows:
        key = _key_of(row)
        if key is None or key not in replaced:
            yield row
        else:
            yield from waiting.pop(key, ())
    for texts in waiting.values():
        yield from texts


def _rows_in(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The texts of the rows; memory does not grow with the text."""
    left, is_begun = b"", False
    for chunk in chunks:
        left += chunk
        if not is_begun:
            if len(left) < len(_OPEN):
                continue
            if not left.startswith(_OPEN):
                raise _otherwise()
            left, is_begun = left[len(_OPEN) :], True
        *rows, left = left.split(_JOINT)
        yield from rows
    if not is_begun and left == _EMPTY:
        return
    if not is_begun or not left.endswith(_CLOSE):
        raise _otherwise()
    yield left[: -len(_CLOSE)]


def _key_of(row: bytes) -> NameKey | None:
    """The name a row is of; None when it is none of a catalog."""
    lines = row.split(b"\n", len(_STARTS))[: len(_STARTS)]
    if len(lines) < len(_STARTS) or not all(map(bytes.startswith, lines, _STARTS)):
        return _slow_key_of(row)
    key = b"\n".join(lines[1:])
    return _slow_key_of(row) if b"\\" in key else key


def _slow_key_of(row: bytes) -> NameKey | None:
    try:
        members = json.loads(b"{" + row + b"}")
        return _key(tuple(members[column] for column in _KEY_COLUMNS))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _key(values: Iterable[str]) -> NameKey:
    lines = (f'    "{column}": {encode_basestring(value)},' for column, value in zip(_KEY_COLUMNS, values, strict=True))
    return "\n".join(lines).encode(errors="backslashreplace")


def _text_of(row: Mapping[str, Any]) -> bytes:
    if not row:
        return b""
    return encode_indented([row]).removeprefix(_OPEN).removesuffix(_CLOSE[:-1])


def _otherwise() -> FormatError:
    return FormatError("the published catalog is not in the spelling of the reference's core", kind="other_spelling")
