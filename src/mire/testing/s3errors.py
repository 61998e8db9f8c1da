"""The errors of S3: codes, statuses and their XML.

Owns: the error raised inside the server and its document.
Must not know: operations, objects.
Keeps: a code has one status, except where a fault names both.
"""

from typing import Final
from xml.sax.saxutils import escape

from mire.testing.httpwire import Reply

STATUSES: Final = {
    "AccessDenied": 403,
    "AuthenticationRequired": 401,
    "AuthorizationHeaderMalformed": 400,
    "AuthorizationQueryParametersError": 400,
    "BadDigest": 400,
    "BucketAlreadyOwnedByYou": 409,
    "BucketNotEmpty": 409,
    "ConditionalRequestConflict": 409,
    "EntityTooSmall": 400,
    "ExpiredToken": 400,
    "IncompleteBody": 400,
    "InternalError": 500,
    "InvalidAccessKeyId": 403,
    "InvalidArgument": 400,
    "InvalidBucketName": 400,
    "InvalidDigest": 400,
    "InvalidPart": 400,
    "InvalidPartOrder": 400,
    "InvalidRange": 416,
    "InvalidRequest": 400,
    "InvalidToken": 400,
    "KeyTooLongError": 400,
    "MalformedXML": 400,
    "MethodNotAllowed": 405,
    "NoSuchBucket": 404,
    "NoSuchKey": 404,
    "NoSuchUpload": 404,
    "NotImplemented": 501,
    "PreconditionFailed": 412,
    "RequestTimeTooSkewed": 403,
    "SignatureDoesNotMatch": 403,
    "SlowDown": 503,
    "XAmzContentSHA256Mismatch": 400,
}
_USUAL: Final = {
    400: "InvalidRequest",
    401: "AuthenticationRequired",
    403: "AccessDenied",
    404: "NoSuchKey",
    408: "RequestTimeout",
    409: "ConditionalRequestConflict",
    412: "PreconditionFailed",
    429: "TooManyRequests",
    500: "InternalError",
    503: "SlowDown",
}
XML_HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'


class S3Error(Exception):
    """An answer that is an error."""

    def __init__(self, code: str, message: str = "", **extra: str) -> None:
        super().__init__(code)
        self.code = code
        self.message = message or code
        self.extra = extra


def error_reply(error: S3Error, *, resource: str, method: str, request_id: str, status: int | None = None) -> Reply:
    """The reply for an error; HEAD gets no document."""
    tags = {"Code": error.code, "Message": error.message, **error.extra, "Resource": resource, "RequestId": request_id}
    body = XML_HEAD + "<Error>" + "".join(f"<{name}>{escape(text)}</{name}>" for name, text in tags.items())
    data = b"" if method == "HEAD" else (body + "</Error>").encode("utf-8", "surrogateescape")
    headers = [("Content-Type", "application/xml"), ("x-amz-request-id", request_id)]
    return Reply(status or STATUSES.get(error.code, 400), headers, data)


def usual_code(status: int) -> str:
    """The code a status usually comes with."""
    return _USUAL.get(status, "InternalError" if status >= 500 else "InvalidRequest")  # noqa: PLR2004 - HTTP
