"""The body of a lock: JSON, two-space indent, no newline, members in the reference's order.

Owns: the body and the place of its one changing member.
Must not know: when a lease is stale.
Keeps: renewing changes 24 bytes in place and nothing else, so a reader never sees a truncated body.
"""

import json
from typing import Any

from mire.model.instant import Instant
from mire.model.lease import TTL_MS, Lease

_RENEWED = b'"acquiredAt": "'


def decode_lease(data: bytes) -> Lease | None:
    """The lease, or None when the body is empty, garbled or names nobody; such a lock expires by age."""
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict) or not (isinstance(body.get("holder"), str) or body.get("nonce")):
        return None
    return Lease(
        holder=_text(body.pop("holder", None)) or "unknown",
        hostname=_text(body.pop("hostname", None)) or "",
        pid=_number(body.pop("pid", None)) or 0,
        acquired_at=Instant(_text(body.pop("acquiredAt", None)) or ""),
        ttl_ms=_number(body.pop("ttlMs", None)) or TTL_MS,
        nonce=_text(body.pop("nonce", None)),
        extra=body,
    )


def encode_lease(lease: Lease) -> bytes:
    """The body of a lock; a user or host name that is no UTF-8 must not keep anybody from locking."""
    return json.dumps(lease_document(lease), indent=2, ensure_ascii=False).encode(errors="replace")


def lease_document(lease: Lease) -> dict[str, Any]:
    """The lease under the names the body uses; also what `--json` shows."""
    return {
        "holder": lease.holder,
        "hostname": lease.hostname,
        "pid": lease.pid,
        "acquiredAt": lease.acquired_at,
        "ttlMs": lease.ttl_ms,
        **({} if lease.nonce is None else {"nonce": lease.nonce}),
        **lease.extra,
    }


def renewal_offset(body: bytes) -> int:
    """Where the time stands in an encoded body."""
    return body.index(_RENEWED) + len(_RENEWED)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 2**53:
        return None
    return int(value)
