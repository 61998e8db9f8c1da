"""An index in any other JSON, brought into the usual text.

Owns: reading what nobody writes today: white space, escapes, other orders, nested members, names given twice.
Must not know: which object the text comes from, beyond its name for messages.
Keeps: no entry and no member is lost, numbers keep their spelling; what breaks the format is an error that says where.
"""

from typing import Any, NamedTuple

from mire.errors import FormatError, shown
from mire.wire.canonical import Frame, place_of
from mire.wire.jsontext import decode_text, encode_compact, scan_object, scan_value, squeezed

_VERSION = 1


class Rewritten(NamedTuple):
    """The usual text, apart from nested members, and where every member stands."""

    data: bytes
    frame: Frame
    places: dict[str, int]


def rewrite_index(data: bytes, what: str) -> Rewritten:
    """The index in `data`; a `FormatError` when it is none of ours."""
    head, members = _scan(decode_text(data, what), what)
    at, places = len(head), {}
    for name, member in members.items():
        places[name] = place_of(at, at + len(member))
        at += len(member) + 1
    close = max(at - 1, len(head))
    return Rewritten(b"".join([head, b",".join(members.values()), b"}}"]), Frame(len(head), close), places)


def _scan(text: str, what: str) -> tuple[bytes, dict[str, bytes]]:
    """The text up to the entries, and the members of the entries by name; of a name given twice the last one."""
    top: dict[str, Any] = {}
    raw: dict[str, bytes] = {}
    members: dict[str, bytes] = {}

    def entry(name: str, at: int) -> int:
        end = scan_value(text, at)[1]
        members[name] = b"%b:%b" % (encode_compact(name), squeezed(text[at:end]).encode())
        return end

    def member(name: str, at: int) -> int:
        if name == "entries" and text.startswith("{", at):
            members.clear()
            top[name] = members
            return scan_object(text, what, entry, at)
        top[name], end = scan_value(text, at)
        raw[name] = squeezed(text[at:end]).encode()
        return end

    scan_object(text, what, member)
    _check(top, what, is_read=top.get("entries") is members)
    return _head(top, raw), members


def _check(top: dict[str, Any], what: str, *, is_read: bool) -> None:
    version = top.get("version")
    if version != _VERSION or isinstance(version, bool):
        raise FormatError(f"{what} has the version {shown(version)}, this mire knows {_VERSION}: upgrade mire")
    if not is_read:
        raise FormatError(f"{what} has the entries {shown(top.get('entries'))}, not an object")


def _head(top: dict[str, Any], raw: dict[str, bytes]) -> bytes:
    # A time of the wrong type says nothing to anyone; all else is kept.
    pulled = [b'"lastPulled":' + raw["lastPulled"]] if isinstance(top.get("lastPulled"), str) else []
    others = [
        encode_compact(name) + b":" + value
        for name, value in raw.items()
        if name not in ("version", "lastPulled", "entries")
    ]
    return b",".join([b'{"version":1', *pulled, *others, b'"entries":{'])
