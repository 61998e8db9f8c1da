r"""JSON as the reference writes it, and JSON from elsewhere taken strictly.

Owns: the two spellings (compact, and two-space indent), and reading that never guesses.
Must not know: which documents exist.
Keeps: what is written is what ECMAScript's `JSON.stringify` writes: non-ASCII raw, lone surrogates as `\udxxx`.
"""

import json
import re
from collections.abc import Callable
from json.encoder import encode_basestring
from math import isinf
from typing import Any, Final

from mire.errors import FormatError, shown

_COMPACT: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_INDENTED: Final = json.JSONEncoder(ensure_ascii=False, indent=2, allow_nan=False)
_DIGITS_MAX: Final = 4000
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_TOKEN: Final = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+")|[ \t\n\r]+')


def encode_compact(value: object) -> bytes:
    """Without any white space."""
    return _encode(_COMPACT, value)


def quoted(text: str) -> str:
    """A text as a string of JSON, for who puts a document together by hand; lone surrogates are still in it."""
    return encode_basestring(text)


def encode_indented(value: object) -> bytes:
    """With two-space indent, no newline at the end."""
    return _encode(_INDENTED, value)


def _encode(encoder: json.JSONEncoder, value: object) -> bytes:
    try:
        text = encoder.encode(value)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{shown(value)} cannot be written as JSON: {error}") from None
    # Only lone surrogates cannot be encoded, and they stand inside strings, where a backslash escapes.
    return text.encode(errors="backslashreplace")


def decode_json(data: bytes, what: str) -> Any:
    """The value, which can be written again, or a `FormatError`: not UTF-8, not JSON, a number beyond all."""
    text = decode_text(data, what)
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise _not_json(what, error) from None


def decode_text(data: bytes, what: str) -> str:
    """The text, or a `FormatError`."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"{what} is not UTF-8 at byte {error.start}") from None


def scan_object(text: str, what: str, member: Callable[[str, int], int], start: int = 0) -> int:
    """Walk an object of a text without building it; `member(name, at)` reads a value and says where it ends.

    Returns the position behind the object; with `start` 0 the object must be all there is.
    """
    try:
        end = _scan_object(text, member, _space(text, start))
    except (ValueError, RecursionError) as error:
        raise _not_json(what, error) from None
    if start == 0 and _space(text, end) != len(text):
        raise FormatError(f"{what} goes on behind its end, at character {end}")
    return end


def _scan_object(text: str, member: Callable[[str, int], int], at: int) -> int:
    if text[at : at + 1] != "{":
        raise ValueError(f"no object at character {at}")
    at = _space(text, at + 1)
    if text[at : at + 1] == "}":
        return at + 1
    while True:
        if text[at : at + 1] != '"':
            raise ValueError(f"no name at character {at}")
        name, at = scan_value(text, at)
        at = _space(text, at)
        if text[at : at + 1] != ":":
            raise ValueError(f"no ':' at character {at}")
        at = _space(text, member(name, _space(text, at + 1)))
        if text[at : at + 1] == "}":
            return at + 1
        if text[at : at + 1] != ",":
            raise ValueError(f"no ',' at character {at}")
        at = _space(text, at + 1)


def scan_value(text: str, at: int) -> tuple[Any, int]:
    """The value at a position, and where it ends; for the functions that walk objects."""
    return _WALKER.raw_decode(text, at)


def squeezed(text: str) -> str:
    """Valid JSON without its white space; numbers and escapes keep their spelling."""
    return _TOKEN.sub(r"\1", text) if any(space in text for space in " \n\t\r") else text


def _space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if isinf(number):
        raise ValueError(f"{text} is beyond all numbers")
    return number


def _integer(text: str) -> int | float:
    # Python refuses to read more digits than that; a walk passes over them.
    return int(text) if len(text) < _DIGITS_MAX else float(text)


_DECODER: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse_constant)
_WALKER: Final = json.JSONDecoder(parse_int=_integer, parse_constant=_refuse_constant)


def _not_json(what: str, error: Exception) -> FormatError:
    why = "nested too deeply" if isinstance(error, RecursionError) else shown(str(error))
    return FormatError(f"{what} is not JSON: {why}")
