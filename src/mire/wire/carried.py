"""The journal of a setup: which files it copied into a cache, as they were then.

Owns: the text of one batch, a line of JSON.
Must not know: where the journal is, what is copied.
Keeps: a line that is cut off or not understood says nothing, and breaks nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from mire.errors import FormatError
from mire.model.row import FileIdentity
from mire.wire.jsontext import decode_json, encode_compact


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedFile:
    """One copied file: the original as it was, and the hash of its content; without an original it was taken back."""

    rel: str
    original: FileIdentity | None
    sha256: str


def encode_carried(batch: Iterable[CarriedFile]) -> bytes:
    """One batch as a line."""
    return encode_compact([[each.rel, each.sha256, _numbers(each.original)] for each in batch]) + b"\n"


def _numbers(original: FileIdentity | None) -> str | None:
    # As text: nanoseconds since 1970 are more than JSON's numbers hold everywhere.
    if original is None:
        return None
    return f"{original.mtime_ns} {original.ctime_ns} {original.size_bytes} {original.inode}"


def decode_carried(data: bytes) -> dict[str, CarriedFile]:
    """All batches of a journal; of a path that is in several the last one counts."""
    found: dict[str, CarriedFile] = {}
    for line in data.splitlines():
        try:
            for rel, sha256, numbers in decode_json(line, "journal"):
                original = None if numbers is None else FileIdentity(*map(int, numbers.split()))
                found[str(rel)] = CarriedFile(rel=str(rel), original=original, sha256=str(sha256))
        except (FormatError, AttributeError, TypeError, ValueError):
            continue  # the writer died in the middle of it
    return found
