"""The two small text files of a name: `latest` (the published version) and `.highest` (numbers given out).

Owns: their text.
Must not know: which versions exist.
Keeps: `.highest` is written only when the directory of the highest number goes away, so an ordinary tree
has the reference's files and no others; other programs ignore it, because it is not a directory.
"""

import re

from mire.model.artifact import Highest
from mire.model.names import VERSION_MAX

_LEADING_NUMBER = re.compile(rb"\s*\+?0*(\d{1,16})(?!\d)")
_HIGHEST = re.compile(rb"(\d{1,16})(?: all (\d{1,16}))?\s*")


def decode_latest(data: bytes) -> int | None:
    """The version a marker names (also the target of a legacy symlink), or None when it names none."""
    match = _LEADING_NUMBER.match(data)
    number = int(match[1]) if match else 0
    return number if 0 < number <= VERSION_MAX else None


def encode_latest(version: int) -> bytes:
    """The marker: decimal, no newline."""
    return str(version).encode()


def decode_highest(data: bytes) -> Highest:
    """The high-water mark; damage reads as none, because version directories still speak for themselves."""
    match = _HIGHEST.fullmatch(data)
    number, floor = (int(match[1]), int(match[2] or 0)) if match else (0, 0)
    return Highest(number=number, floor=floor) if floor <= number <= VERSION_MAX else Highest(number=0)


def encode_highest(highest: Highest) -> bytes:
    """The high-water mark as text: the number, and `all N` when everything up to N was deleted."""
    return (f"{highest.number} all {highest.floor}" if highest.floor else str(highest.number)).encode()
