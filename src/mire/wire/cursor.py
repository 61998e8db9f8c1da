"""A cursor: where a page of an answer ended, as text that a caller hands back to go on.

Owns: its spelling.
Must not know: what the values are columns of.
Keeps: a text that is no cursor is a typed error, never a wrong page.
"""

import base64
import binascii
import json

from mire.errors import InputError, shown

Value = str | int


def encode_cursor(order: str, values: tuple[Value, ...]) -> str:
    """The position after a row, in one order; safe in a shell and in an address."""
    text = json.dumps([order, *values], ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode(errors="surrogatepass")).decode().rstrip("=")


def decode_cursor(cursor: str, order: str, count: int) -> tuple[Value, ...]:
    """The values of the row a page ended with; the order must be the one the cursor was made in."""
    try:
        document = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        document = None
    if not isinstance(document, list) or len(document) != count + 1 or not all(map(_is_value, document)):
        raise InputError(f"cursor {shown(cursor)} is none of ours: give back the one that came with the last page")
    if document[0] != order:
        raise InputError(f"cursor {shown(cursor)} belongs to another order: ask with the same --order-by as before")
    return tuple(document[1:])


def _is_value(value: object) -> bool:
    return type(value) in (str, int)
