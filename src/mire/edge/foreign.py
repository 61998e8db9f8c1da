"""Errors of object stores as ours: one reading of foreign exceptions, one table of what they mean.

Owns: what is taken from a foreign error (a status, a code, a kind of failure), and the message it becomes.
Must not know: any client library; errors are told by the names of their classes and by their shape.
Keeps: nothing a server or a client library wrote is shown, except a short code: answers hold signatures and keys,
and obstore's texts hold whole answers. A mapped error has neither cause nor context.
"""

import logging
import re
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final
from urllib.parse import urlsplit

from mire.errors import DeniedError, MireError, MissingBucketError, NotFoundError, RemoteError, ThrottledError, shown


class Trouble(Enum):
    """Why there was no answer; `ANSWERED` when there was one."""

    ANSWERED = "answered"
    UNREACHABLE = "unreachable"
    NAME = "name"
    TLS = "tls"
    TIMEOUT = "timeout"
    LOST = "lost"
    REGION = "region"
    CREDENTIALS = "credentials"
    EXPIRED = "expired"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Failure:
    """A foreign error, reduced to what is safe to show and enough to decide on."""

    trouble: Trouble
    status: int = 0
    code: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a call went, as messages show it."""

    name: str
    bucket: str
    endpoint: str
    timeout_ms: int
    advice: str
    """How to get credentials that work."""


_SAFE_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
# Keys hold no line ends, so text that a key smuggles into the message cannot look like these.
_STATUS = re.compile(r"\n\s+inner: Status \{\n\s+status: (\d{3}),\n")
_HTTP_KIND = re.compile(r"HttpError \{\n\s+kind: (\w+),\n")
_CONNECTING = re.compile(r"legacy::Error\(\s+Connect,")
_CODE = re.compile(r"<Code>([^<]*)</Code>")
_TLS = re.compile(
    r"\b(InvalidCertificate|InvalidMessage|AlertReceived|PeerIncompatible|PeerMisbehaved|UnknownIssuer)\b"
)
_PROVIDER = re.compile(r'\bUnauthenticated \{\n\s+path: "External \w+ credential provider",\n')

_THROTTLED: Final = {
    "",
    "BandwidthLimitExceeded",
    "rateLimitExceeded",
    "RequestLimitExceeded",
    "RequestThrottled",
    "ServerBusy",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequests",
    "userRateLimitExceeded",
}
_EXPIRED: Final = {"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"}
_REJECTED: Final = {
    "AuthFailure",
    "authError",
    "AuthenticationRequired",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSecurity",
    "InvalidToken",
    "MissingAuthenticationToken",
    "MissingSecurityHeader",
    "NotSignedUp",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}
_REGION: Final = {
    "AuthorizationHeaderMalformed",
    "IllegalLocationConstraintException",
    "PermanentRedirect",
    "TemporaryRedirect",
}
_BUCKET: Final = {"InvalidBucket", "InvalidBucketName", "NoSuchBucket"}


def failure_of(error: BaseException) -> Failure:
    """What an error of obstore says."""
    text = str(error)
    debug = text[text.rfind("\n\nDebug source:") :]
    if _PROVIDER.search(debug):
        return Failure(Trouble.CREDENTIALS)
    if found := _STATUS.search(debug):
        return answered(int(found[1]), code_in(debug[found.end() :]))
    if "inner: BareRedirect" in debug:
        return Failure(Trouble.REGION)
    if found := _HTTP_KIND.search(debug):
        return Failure(_trouble_of(found[1], debug[found.end() :]))
    if isinstance(error, FileNotFoundError):
        return answered(404, "")
    if isinstance(error, NotImplementedError):
        return answered(501, "")
    return Failure(Trouble.OTHER, detail=type(error).__name__)


def _trouble_of(kind: str, debug: str) -> Trouble:
    if _TLS.search(debug):
        return Trouble.TLS
    if kind == "Connect" or _CONNECTING.search(debug):
        return Trouble.NAME if '"dns error"' in debug else Trouble.UNREACHABLE
    return Trouble.TIMEOUT if kind == "Timeout" else Trouble.LOST


def answered(status: int, code: str) -> Failure:
    """The failure that an HTTP answer is."""
    return Failure(Trouble.ANSWERED, status, code if _SAFE_CODE.fullmatch(code) else "")


def code_in(text: str) -> str:
    """The code in the XML of an error."""
    found = _CODE.search(text)
    return found[1] if found else ""


def keep_quiet(*libraries: str) -> None:
    """Have client libraries not write their debug texts, which show signatures and tokens.

    Who wants them asks for exactly them, by the library's name; a level for everything is not enough.
    """
    for name in libraries:
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())  # else what they warn of goes to the terminal
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.INFO)


def place_endpoint(url: str) -> str:
    """An endpoint as it may be shown: without user, password, query and fragment."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}".rstrip("/")


def error_of(failure: Failure, place: Place, key: str | None = None) -> MireError:
    """What a failure means to us: the one table of foreign errors."""
    names: dict[str, Any] = {"key": key, "bucket": place.bucket, "endpoint": place.endpoint}
    if failure.trouble is not Trouble.ANSWERED:
        return _unanswered(failure, place, key, names)
    return _by_code(failure, place, names) or _by_status(failure, place, key, names)


def _by_code(failure: Failure, place: Place, names: dict[str, Any]) -> MireError | None:
    why = f"{failure.status} {failure.code}"
    if failure.code in _EXPIRED:
        return _expired(place, why, names)
    if failure.code in _REJECTED:
        return _rejected(place, why, names)
    if failure.code == "RequestTimeTooSkewed":
        text = f"{place.endpoint} refuses us because the clock of this machine is wrong ({why}): set it"
        return DeniedError(text, kind="clock_skew", **names)
    if failure.code in _REGION:
        return _wrong_region(place, names)
    if failure.code in _BUCKET:
        return MissingBucketError(
            f"there is no bucket {shown(place.bucket)} at {place.endpoint} ({why}): create it or correct its name",
            **names,
        )
    return None


def _by_status(failure: Failure, place: Place, key: str | None, names: dict[str, Any]) -> MireError:
    status, what, why = failure.status, _what(place, key), f"{failure.status} {failure.code}".strip()
    match status:
        case 401:
            return _rejected(place, why, names)
        case 403:
            text = f"no right to use {what} ({why}): ask for the right to read, write and list there, or {place.advice}"
            return DeniedError(text, **names)
        case 404:
            return NotFoundError(f"there is no {what}", **names)
        case 408:
            return RemoteError(f"{what} took too long ({why}): try again", transient=True, kind="timeout", **names)
        case 409:
            return RemoteError(f"{what} was busy ({why}): try again", transient=True, kind="busy", **names)
        case 429:
            return _throttled(place, what, why, names)
        case 503 if failure.code in _THROTTLED:
            return _throttled(place, what, why, names)
        case 500 | 502 | 503 | 504 | 507 | 509 | 520 | 521 | 522 | 523 | 524 | 529:
            text = f"{place.endpoint} failed ({why}) at {what}: try again later"
            return RemoteError(text, transient=True, kind="server", **names)
        case 301 | 302 | 307 | 308:
            return _wrong_region(place, names)
        case _:
            text = f"{place.endpoint} refused the request ({why}) for {what}: see whether the store supports it"
            return RemoteError(text, kind="unsupported", **names)


def _throttled(place: Place, what: str, why: str, names: dict[str, Any]) -> ThrottledError:
    return ThrottledError(f"{place.endpoint} asks us to slow down ({why}) at {what}: try again later", **names)


def _rejected(place: Place, why: str, names: dict[str, Any]) -> DeniedError:
    text = f"{place.endpoint} does not accept our credentials for {place.name} ({why}): {place.advice}"
    return DeniedError(text, kind="credentials", **names)


def _what(place: Place, key: str | None) -> str:
    return f"object {shown(key)} in {place.name} at {place.endpoint}" if key else f"{place.name} at {place.endpoint}"


def _expired(place: Place, why: str, names: dict[str, Any]) -> DeniedError:
    return DeniedError(
        f"the credentials for {place.name} have expired ({why}): {place.advice}", kind="expired_token", **names
    )


def _wrong_region(place: Place, names: dict[str, Any]) -> RemoteError:
    return RemoteError(
        f"{place.name} is in another region than the one asked at {place.endpoint}: set the region",
        kind="region",
        **names,
    )


def _unanswered(failure: Failure, place: Place, key: str | None, names: dict[str, Any]) -> MireError:
    at = _what(place, key)
    match failure.trouble:
        case Trouble.EXPIRED:
            return _expired(place, failure.detail or "login", names)
        case Trouble.CREDENTIALS:
            why = f" ({failure.detail})" if failure.detail else ""
            return DeniedError(f"no credentials for {place.name}{why}: {place.advice}", kind="credentials", **names)
        case Trouble.REGION:
            return _wrong_region(place, names)
        case Trouble.TLS:
            text = f"no secure connection to {place.endpoint}: check that it speaks TLS, or name its CA certificate"
            return RemoteError(text, kind="tls", **names)
        case Trouble.NAME:
            text = f"cannot reach {place.endpoint}: its name is unknown; check the endpoint and the network"
            return RemoteError(text, transient=True, kind="unreachable", **names)
        case Trouble.UNREACHABLE:
            text = f"cannot reach {place.endpoint}: nothing answers there; check the endpoint and the network"
            return RemoteError(text, transient=True, kind="unreachable", **names)
        case Trouble.TIMEOUT:
            text = f"no answer within {place.timeout_ms} ms for {at}: try again, or allow more time"
            return RemoteError(text, transient=True, kind="timeout", **names)
        case Trouble.LOST:
            return RemoteError(f"the connection was lost at {at}: try again", transient=True, kind="lost", **names)
        case _:
            return RemoteError(f"{at} failed in a way that is not known ({failure.detail})", **names)
