"""One entry of an index: the object under a rel_path, as JSON text.

Owns: the members of wire-format §2.1 and their order, and what a usable entry is.
Must not know: which index an entry stands in.
Keeps: a bad entry is a `Damaged` value, never an error for its whole index; members we do not know survive.
"""

import re
from typing import Any, Final

from mire.errors import FormatError, shown
from mire.model.index import Damaged, Entry
from mire.wire.fields import present
from mire.wire.jsontext import decode_json, encode_compact, quoted

SIZE_MAX: Final = 2**53 - 1
"""The reference reads numbers as IEEE doubles: above this they stop being exact."""

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_USUAL: Final = re.compile(
    rb'("[^"\\]*+"):\{"key":\1,"size":(0|[1-9][0-9]{0,14}+),"lastModified":"([^"\\]*+)"'
    rb'(?:,"localMtime":"([^"\\]*+)")?+(?:,"sha256":"([0-9a-f]{64}+)")?+\}'
)
_NOTHING: Final[dict[str, Any]] = {}


def encode_member(rel: str, entry: Entry) -> bytes:
    """The entry as a member of `entries`; `key` repeats the rel_path unless another one was read."""
    if not entry.extra:
        return _usual_member(rel, entry).encode(errors="backslashreplace")
    optional = present({"localMtime": entry.local_mtime, "sha256": entry.sha256})
    known = {"key": rel, "size": entry.size_bytes, "lastModified": entry.last_modified, **optional}
    return encode_compact(rel) + b":" + encode_compact({**known, **entry.extra})


def _usual_member(rel: str, entry: Entry) -> str:
    # Nearly all are like this, and there are many: putting the text together takes a tenth of encoding a dict.
    name = quoted(rel)
    mtime = "" if entry.local_mtime is None else f',"localMtime":{quoted(entry.local_mtime)}'
    sha256 = "" if entry.sha256 is None else f',"sha256":{quoted(entry.sha256)}'
    modified = quoted(entry.last_modified)
    return f'{name}:{{"key":{name},"size":{entry.size_bytes},"lastModified":{modified}{mtime}{sha256}}}'


def decode_member(rel: str, data: bytes, start: int = 0, end: int | None = None) -> Entry | Damaged:
    """The entry of a rel_path from where it stands as a member; `extra` has a `key` when it is not the rel_path."""
    stop = len(data) if end is None else end
    usual = _USUAL.fullmatch(data, start, stop)
    if usual is None:
        return _decode_unusual(rel, data[start + len(encode_compact(rel)) + 1 : stop])
    _, size, modified, mtime, sha256 = usual.groups()
    return Entry(
        size_bytes=int(size),
        last_modified=modified.decode(),
        local_mtime=None if mtime is None else mtime.decode(),
        sha256=None if sha256 is None else sha256.decode(),
        extra=_NOTHING,
    )


def _decode_unusual(rel: str, text: bytes) -> Entry | Damaged:
    try:
        document = decode_json(text, "entry")
    except FormatError as error:
        return Damaged(reason=error.message)
    if not isinstance(document, dict):
        return Damaged(reason=f"is {shown(document)}, not an object")
    size, modified = document.pop("size", None), document.pop("lastModified", None)
    mtime, sha256 = document.pop("localMtime", None), document.pop("sha256", None)
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= SIZE_MAX:
        return Damaged(reason=f"has the size {shown(size)}, not a whole number from 0 to 2^53")
    if not isinstance(modified, str):
        return Damaged(reason=f"has the last modification {shown(modified)}, not a text")
    if mtime is not None and not isinstance(mtime, str):
        return Damaged(reason=f"has the local time {shown(mtime)}, not a text")
    if sha256 is not None and not (isinstance(sha256, str) and _SHA256.fullmatch(sha256)):
        return Damaged(reason=f"has the hash {shown(sha256)}, not 64 lower-case hexadecimal digits")
    if document.get("key") == rel:
        del document["key"]
    return Entry(size_bytes=size, last_modified=modified, local_mtime=mtime, sha256=sha256, extra=document)
