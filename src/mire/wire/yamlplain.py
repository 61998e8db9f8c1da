"""The plain core of YAML that nearly every stored document is in, read about ten times faster.

Owns: block mappings of scalars, one level of nesting, single-quoted or unmistakable plain text.
Must not know: any schema.
Keeps: whatever is not certainly the same in full YAML is declined, and the full reader decides: this one never
guesses and never raises.
"""

import re
from functools import cache
from typing import Any, Final

# Printable characters without white space other than the space, line breaks of any kind, or the byte order mark.
_WIDE = "\u00a1-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff"
_PLAIN = rf"[A-Za-z0-9_/+.{_WIDE}](?:[A-Za-z0-9_/+.=@%&~()$^{_WIDE} -]*[A-Za-z0-9_/+.=@%&~()$^{_WIDE}-])?"
_QUOTED = rf"'(?:[ -&(-~{_WIDE}]|'')*'"
_KEY = rf"[A-Za-z][A-Za-z0-9_-]*|{_QUOTED}"
_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,14}")
_BASES: Final = ("0x", "0b")
_WORDS: Final = frozenset(("true", "false", "null", "~"))
_KEY_MAX: Final = 1000


# Expressions with so many characters take some milliseconds each to compile: only who uses them waits.
@cache
def _document() -> re.Pattern[str]:
    return re.compile(rf"(?:(?:  )?(?:{_KEY}):(?: (?:{_QUOTED}|{_PLAIN}))?\n)+")


@cache
def _lines() -> re.Pattern[str]:
    return re.compile(rf"(  )?({_KEY}):(?: ({_QUOTED}|{_PLAIN}))?\n")


@cache
def _no_number() -> re.Pattern[str]:
    # No decimal number has a letter but the one of its exponent, two points, or a minus anywhere else.
    return re.compile(rf"[a-df-zA-DF-Z/=@%&~()$^ {_WIDE}]|\..*\.|[^eE]-")


def decode_plain(text: str) -> dict[str, Any] | None:
    """The mapping in `text`, or None when it takes the full reader to be sure."""
    if not _document().fullmatch(text):
        return None
    result: dict[str, Any] = {}
    inner: dict[str, Any] | None = None
    for indent, key, value in _lines().findall(text):
        name = _key(key)
        into = result if not indent else inner
        if name is None or into is None or name in into:
            return None
        if value:
            found = _scalar(value)
            if found is None:
                return None
            into[name] = found
            inner = inner if indent else None
        elif indent:
            return None
        else:
            inner = result[name] = {}
    # A key with nothing below it means null, not an empty mapping.
    return None if {} in result.values() else result


def _key(text: str) -> str | None:
    if text[0] == "'":
        text = text[1:-1].replace("''", "'")
        return text if len(text) < _KEY_MAX else None
    return None if text.lower() in _WORDS or len(text) >= _KEY_MAX else text


def _scalar(text: str) -> str | int | bool | None:
    first = text[0]
    if first == "'":
        return text[1:-1].replace("''", "'")
    if first in "0123456789":
        if _NUMBER.fullmatch(text):
            return int(text)
        return text if _no_number().search(text) and text[:2] not in _BASES else None
    if first in "+.":
        return None
    if text == "true" or text == "false":  # noqa: PLR1714 - the faster form
        return text == "true"
    return None if text.lower() in _WORDS else text
