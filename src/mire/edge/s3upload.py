"""Uploads to S3 in parts whose last step has a condition, which obstore cannot do.

Owns: beginning, filling, completing and giving up one upload.
Must not know: credentials, which condition, what it means that it does not hold.
Keeps: nothing is visible before the last step; an upload that is not completed is given up, so that its parts are
not paid for.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from html import unescape
from typing import Final, Protocol

from mire.edge import pool
from mire.edge.foreign import Failure, Trouble, answered, code_in
from mire.edge.s3request import Answer

_AT_ONCE: Final = 2
"""Parts of one object under way; several objects are, too, and all of this is in memory."""
_MEMBER: Final = re.compile(rb"<(UploadId|ETag)>([^<]+)</")
_STATUS_OF: Final = {"PreconditionFailed": 412, "ConditionalRequestConflict": 409}


class Send(Protocol):
    """Sends one signed request."""

    def __call__(
        self, method: str, key: str, *, query: Mapping[str, str], headers: Mapping[str, str] = ..., body: bytes = ...
    ) -> Answer | Failure:
        """The answer, or how it failed."""


class PartsError(Exception):
    """A failure before the last step: nothing became visible."""

    def __init__(self, failure: Failure) -> None:
        super().__init__()
        self.failure = failure


def upload_parts(
    send: Send, key: str, parts: Iterator[bytes], headers: Mapping[str, str], is_due: Callable[[], bool]
) -> str | Failure | None:
    """Store an object in parts; its ETag, or how the last step failed. None: `is_due` said no right before it."""
    upload = {"uploadId": _checked(send("POST", key, query={"uploads": ""}), "UploadId")}
    is_open = True
    try:
        tags = _send_parts(send, key, parts, upload)
        if not is_due():
            return None
        outcome = send("POST", key, query=upload, headers=headers, body=_list_of(tags))
        result = _completed(outcome)
        is_open = isinstance(result, Failure)
        return result
    finally:
        if is_open:
            send("DELETE", key, query=upload)


def _send_parts(send: Send, key: str, parts: Iterator[bytes], upload: Mapping[str, str]) -> dict[int, str]:
    def one(item: tuple[int, bytes]) -> str:
        answer = send("PUT", key, query={"partNumber": str(item[0]), **upload}, body=item[1])
        if isinstance(answer, Failure):
            raise PartsError(answer)
        return answer.headers.get("etag", "")

    return {number: tag for (number, _), tag in pool.run(one, enumerate(parts, 1), at_once=_AT_ONCE)}


def _list_of(tags: Mapping[int, str]) -> bytes:
    rows = "".join(
        f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>" for number, tag in sorted(tags.items())
    )
    return f'<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{rows}</CompleteMultipartUpload>'.encode()


def _checked(answer: Answer | Failure, member: str) -> str:
    if isinstance(answer, Failure):
        raise PartsError(answer)
    value = _member(answer.body, member)
    if value is None:
        raise PartsError(Failure(Trouble.LOST))
    return value


def _member(body: bytes, member: str) -> str | None:
    found = dict(_MEMBER.findall(body)).get(member.encode())
    return None if found is None else unescape(found.decode())


def _completed(answer: Answer | Failure) -> str | Failure:
    """The ETag of the object; S3 may begin to answer before it knows, so that a good status can carry an error."""
    if isinstance(answer, Failure):
        return answer
    if b"<Error>" in answer.body:
        code = code_in(answer.body.decode(errors="replace"))
        return answered(_STATUS_OF.get(code, 500), code)
    tag = _member(answer.body, "ETag")
    return Failure(Trouble.LOST) if tag is None else tag.strip('"')
