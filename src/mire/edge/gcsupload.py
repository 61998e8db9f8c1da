"""Uploads to GCS in pieces whose last step has a condition, which obstore cannot do.

Owns: beginning, filling and giving up one resumable upload.
Must not know: credentials, which condition, what it means that it does not hold.
Keeps: nothing is visible before the last piece; an upload that is not completed is given up.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from mire.edge.foreign import Failure, Trouble

_GOING_ON: Final = 308
Ask = Callable[..., Any]
"""Sends one request (method, address, query, headers, body): the response, or a `Failure`."""


def upload_pieces(
    ask: Ask,
    url: str,
    parts: Iterator[bytes],
    query: Mapping[str, str],
    read: Callable[[Any], dict[str, Any] | Failure],
) -> dict[str, Any] | Failure:
    """Store an object in pieces; the document that describes it, or how that failed."""
    begun = ask("POST", url, query=query, headers={"Content-Type": "application/json"}, body=b"{}")
    if isinstance(begun, Failure):
        return begun
    session = begun.headers.get("Location")
    if session is None:
        failed = read(begun)
        return failed if isinstance(failed, Failure) else Failure(Trouble.LOST)
    outcome: dict[str, Any] | Failure = Failure(Trouble.LOST)
    try:
        outcome = _send_pieces(ask, session, parts, read)
        return outcome
    finally:
        if isinstance(outcome, Failure):
            ask("DELETE", session)


def _send_pieces(
    ask: Ask, session: str, parts: Iterator[bytes], read: Callable[[Any], dict[str, Any] | Failure]
) -> dict[str, Any] | Failure:
    start, part = 0, next(parts)
    while True:
        following = next(parts, None)
        end = start + len(part)
        whole = str(end) if following is None else "*"
        response = ask("PUT", session, headers={"Content-Range": f"bytes {start}-{end - 1}/{whole}"}, body=part)
        if isinstance(response, Failure):
            return response
        if following is None or response.status_code != _GOING_ON:
            return read(response)
        if response.headers.get("Range") != f"bytes=0-{end - 1}":
            return Failure(Trouble.LOST)  # it did not keep all of it
        start, part = end, following
