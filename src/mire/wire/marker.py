"""The format marker of a datastore: which format it has, and which one a reader must know.

Owns: the document of newest §1.1.
Must not know: where it is kept.
Keeps: a marker that cannot be understood is an error, never "no marker".
"""

import json
import re
from typing import Final

from mire.errors import FormatError, shown

FORMAT: Final = 2
"""The format this mire reads and writes; a store without a marker has it."""

BYTES_MAX: Final = 65_536
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_WRITER_MAX = 64


def check_format(data: bytes | None) -> None:
    """Refuse a datastore whose marker asks for more than we know; None is a store without a marker."""
    if data is None:
        return
    if len(data) > BYTES_MAX:
        raise _invalid(f"is larger than {BYTES_MAX} bytes")
    try:
        document = json.loads(data.decode())
    except (ValueError, RecursionError):
        raise _invalid("is not JSON") from None
    if not isinstance(document, dict):
        raise _invalid(f"is {shown(document)}, not an object")
    written = _format(document.get("format"))
    needed = _format(document["minReaderFormat"]) if document.get("minReaderFormat") is not None else written
    if needed > FORMAT:
        writer = document.get("writtenBy")
        by = f" (written by {shown(_CONTROL.sub('', writer)[:_WRITER_MAX])})" if isinstance(writer, str) else ""
        raise FormatError(
            f"the datastore has format {needed}{by}, this mire knows format {FORMAT}:"
            " upgrade mire; never delete the marker",
            kind="datastore_format_unsupported",
            format=needed,
        )


def _format(value: object) -> int:
    number = int(value) if isinstance(value, float) and value.is_integer() else value
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number < 2**53:
        raise _invalid(f"has the format {shown(value)}, not a whole number from 1")
    return number


def _invalid(why: str) -> FormatError:
    return FormatError(
        f"the datastore's format marker {why}: upgrade mire or restore the marker; never delete it",
        kind="datastore_format_marker_invalid",
    )
