"""Keys: which texts every remote can carry unchanged, so that a store can be copied to any other.

Owns: the rule of keys and of listing prefixes.
Must not know: any store.
Keeps: a key that some store would change on the way (an empty or '.' segment, a control character) is refused
before anything is sent, never normalized: SeaweedFS, for one, makes a slash of a backslash.
"""

import re
from typing import Final

from mire.errors import InputError, shown

KEY_BYTES_MAX: Final = 1024
"""What S3 and GCS both accept."""

_SEGMENT = r"(?!\.\.?(?:/|\Z))[^\x00-\x1f\x7f\\/]+"
_PLAIN = re.compile(rf"{_SEGMENT}(?:/{_SEGMENT})*")
"""What nothing is wrong with, if it is short and ASCII, as nearly all are: one look instead of a loop."""

# obstore refuses these, and XML cannot express most of them.
_UNUSABLE = re.compile("[\x00-\x1f\x7f]")


def check_key(key: str) -> str:
    """The key itself, when every remote can carry it."""
    if key.isascii() and len(key) <= KEY_BYTES_MAX and _PLAIN.fullmatch(key):
        return key
    if not key:
        raise InputError("the key is empty: name an object", kind="bad_key", key=key)
    try:
        length = len(key.encode())
    except UnicodeEncodeError:
        raise _refuse(key, "is not valid UTF-8: use characters that can be encoded") from None
    if length > KEY_BYTES_MAX:
        raise _refuse(key, f"is longer than {KEY_BYTES_MAX} bytes: shorten it")
    if _UNUSABLE.search(key):
        raise _refuse(key, "has a control character: remove it")
    if "\\" in key:
        raise _refuse(key, "has a backslash, which some stores take for '/': use another character")
    if any(segment in ("", ".", "..") for segment in key.split("/")):
        raise _refuse(key, "has an empty, '.' or '..' segment (or begins or ends with '/'): object clients drop those")
    return key


def check_prefix(prefix: str) -> str:
    """The prefix itself, when a listing can be asked for it: empty, or a key and a final '/'."""
    if prefix and not prefix.endswith("/"):
        raise _refuse(prefix, "is not a prefix: end it with '/'")
    if prefix:
        check_key(prefix[:-1])
    return prefix


def is_key(key: str) -> bool:
    """Whether `check_key` would accept it."""
    try:
        check_key(key)
    except InputError:
        return False
    return True


def _refuse(key: str, why: str) -> InputError:
    return InputError(f"key {shown(key)} {why}", kind="bad_key", key=shown(key))
