"""`.hold`: what is held of a name, as JSON in the directory of the name.

Owns: the document and the place of its file. It is synced like any file, and other programs ignore it,
because in the directory of a name they look at directories and at `latest` only.
Must not know: what a hold prevents.
Keeps: members we do not know survive a rewrite; a document that cannot be read is an error, never "no hold".

    {"holds": [{"version": 3, "reason": "audit 2026", "by": "ada@host", "at": "2026-05-17T08:30:02.417Z"}]}

Without `version` the whole name is held.
"""

import json
from typing import Any, Final

from mire.errors import FormatError, shown
from mire.model.artifact import ModelRef
from mire.model.hold import Holds, NameHold
from mire.model.instant import parse_instant
from mire.model.names import DataName, RelPath, parse_version
from mire.wire.fields import Fields, present, sequence, text
from mire.wire.layout import name_dir

HOLD: Final = ".hold"
HOLD_BYTES_MAX: Final = 1 << 20
_WHAT = "hold"


def hold_path(model: ModelRef, name: DataName) -> RelPath:
    """The holds of a name."""
    return RelPath(f"{name_dir(model, name)}/{HOLD}")


def decode_holds(data: bytes) -> Holds:
    """The holds in `data`; a `FormatError` names the member that breaks the format."""
    if len(data) > HOLD_BYTES_MAX:
        raise FormatError(f"{_WHAT} is larger than {HOLD_BYTES_MAX} bytes")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise FormatError(f"{_WHAT} {shown(data)} is not JSON") from None
    fields = Fields(document, _WHAT)
    items = tuple(map(_decode_hold, fields.take("holds", sequence)))
    if len({item.version for item in items}) != len(items):
        raise FormatError(f"{_WHAT} names a version twice")
    return Holds(items=items, extra=fields.rest())


def _decode_hold(document: object) -> NameHold:
    fields = Fields(document, f"{_WHAT}: 'holds'")
    return NameHold(
        version=fields.maybe("version", parse_version),
        reason=fields.maybe("reason", text),
        by=fields.take("by", text),
        at=fields.take("at", parse_instant),
        extra=fields.rest(),
    )


def encode_holds(holds: Holds) -> bytes:
    """The document, for people to read too; a user or host name that is no UTF-8 keeps nobody from holding."""
    document = {"holds": [hold_document(item) for item in holds.items], **holds.extra}
    return f"{json.dumps(document, ensure_ascii=False, indent=2)}\n".encode(errors="replace")


def hold_document(hold: NameHold) -> dict[str, Any]:
    """One hold under the names the document uses; also what `--json` shows."""
    known = present({"version": hold.version, "reason": hold.reason, "by": hold.by, "at": hold.at})
    return {**known, **hold.extra}
