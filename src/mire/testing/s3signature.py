"""Signatures of S3 requests (AWS Signature Version 4), checked for real.

Owns: the canonical form of a request, in headers and in presigned URLs, and who is let in.
Must not know: operations, objects.
Keeps: a request is let in only when its signature was made with the secret, over what was really sent.
"""

import hashlib
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final
from urllib.parse import quote, unquote, unquote_plus

from mire.testing.httpwire import Request
from mire.testing.s3errors import S3Error

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_UNSIGNED: Final = "UNSIGNED-PAYLOAD"
_SKEW_MAX_S: Final = 15 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Who is let in; `is_expired` says so of the session token, as after its hour."""

    access_key: str
    secret_key: str
    session_token: str | None = None
    is_expired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """What a request says about its signature."""

    access_key: str
    scope: str
    signed_headers: str
    signature: str
    date: str
    token: str | None
    payload: str
    query: list[tuple[str, str]]


def check_signature(credentials: Credentials, request: Request, now_s: float) -> None:
    """Let a request in, or raise what AWS would answer."""
    query = _pairs(request.query)
    if "authorization" in request.headers:
        claim = _claim_of_headers(request, query)
        _check_skew(claim.date, now_s)
    elif any(name == "X-Amz-Signature" for name, _ in query):
        claim = _claim_of_query(query, now_s)
    else:
        raise S3Error("AccessDenied", "Access Denied")
    if claim.access_key != credentials.access_key:
        message = "The AWS Access Key Id you provided does not exist in our records."
        raise S3Error("InvalidAccessKeyId", message, AWSAccessKeyId=claim.access_key)
    if claim.token != credentials.session_token:
        raise S3Error("InvalidToken", "The provided token is malformed or otherwise invalid.")
    if credentials.is_expired:
        raise S3Error("ExpiredToken", "The provided token has expired.")
    _check_signed(request, claim)
    if not hmac.compare_digest(_signature(credentials.secret_key, request, claim), claim.signature):
        raise S3Error("SignatureDoesNotMatch", "The request signature we calculated does not match the signature.")


def _check_signed(request: Request, claim: _Claim) -> None:
    signed = claim.signed_headers.split(";")
    left_out = [name for name in request.headers if name.startswith("x-amz-") and name not in signed]
    if "host" not in signed or (left_out and claim.payload != _UNSIGNED):
        message = "There were headers present in the request which were not signed"
        raise S3Error("AccessDenied", message, HeadersNotSigned=", ".join(left_out))


def _claim_of_headers(request: Request, query: list[tuple[str, str]]) -> _Claim:
    headers = request.headers
    algorithm, _, rest = headers["authorization"].partition(" ")
    fields = {name.strip(): value.strip() for name, _, value in (part.partition("=") for part in rest.split(","))}
    if algorithm != _ALGORITHM or not {"Credential", "SignedHeaders", "Signature"} <= fields.keys():
        raise S3Error("AuthorizationHeaderMalformed", "The authorization header is malformed.")
    access_key, _, scope = fields["Credential"].partition("/")
    return _Claim(
        access_key=access_key,
        scope=scope,
        signed_headers=fields["SignedHeaders"],
        signature=fields["Signature"],
        date=headers.get("x-amz-date", ""),
        token=headers.get("x-amz-security-token"),
        payload=headers.get("x-amz-content-sha256", _UNSIGNED),
        query=query,
    )


def _claim_of_query(query: list[tuple[str, str]], now_s: float) -> _Claim:
    given = dict(query)
    access_key, _, scope = given.get("X-Amz-Credential", "").partition("/")
    date = given.get("X-Amz-Date", "")
    lifetime = given.get("X-Amz-Expires", "")
    if not lifetime.isdecimal():
        raise S3Error("AuthorizationQueryParametersError", "X-Amz-Expires must be a number")
    if now_s > _seconds_of(date) + int(lifetime):
        raise S3Error("AccessDenied", "Request has expired")
    return _Claim(
        access_key=access_key,
        scope=scope,
        signed_headers=given.get("X-Amz-SignedHeaders", ""),
        signature=given["X-Amz-Signature"],
        date=date,
        token=given.get("X-Amz-Security-Token"),
        payload=_UNSIGNED,
        query=[(name, value) for name, value in query if name != "X-Amz-Signature"],
    )


@lru_cache(maxsize=64)
def _seconds_of(date: str) -> float:
    try:
        return datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise S3Error("AccessDenied", f"X-Amz-Date must be formatted as ISO 8601, not {date!r}") from None


def _check_skew(date: str, now_s: float) -> None:
    if abs(_seconds_of(date) - now_s) > _SKEW_MAX_S:
        raise S3Error(
            "RequestTimeTooSkewed", "The difference between the request time and the current time is too large."
        )


def _pairs(query: str) -> list[tuple[str, str]]:
    items = [item.partition("=") for item in query.split("&") if item]
    return [(unquote_plus(name), unquote_plus(value)) for name, _, value in items]


def _signature(secret: str, request: Request, claim: _Claim) -> str:
    path = quote(unquote(request.path), safe="/~")
    query = "&".join(sorted(f"{quote(name, safe='~')}={quote(value, safe='~')}" for name, value in claim.query))
    names = claim.signed_headers.split(";")
    headers = "".join(f"{name}:{' '.join(request.headers.get(name, '').split())}\n" for name in names)
    canonical = f"{request.method}\n{path}\n{query}\n{headers}\n{claim.signed_headers}\n{claim.payload}"
    digest = hashlib.sha256(canonical.encode("latin-1")).hexdigest()
    text = f"{_ALGORITHM}\n{claim.date}\n{claim.scope}\n{digest}"
    return hmac.new(_signing_key(secret, claim.scope), text.encode(), "sha256").hexdigest()


@lru_cache(maxsize=64)
def _signing_key(secret: str, scope: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), "sha256").digest()
    return key
