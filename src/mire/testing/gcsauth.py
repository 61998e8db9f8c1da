"""Who is let in by a GCS test server: bearer tokens, and service accounts that prove themselves.

Owns: issuing and checking tokens, and the signatures (RS256) of service accounts.
Must not know: objects, operations.
Keeps: a token is accepted only when it was issued here and has not expired, was configured, or is signed by the
service account itself.
"""

import base64
import binascii
import hashlib
import itertools
import json
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs

from mire.testing.gcsjson import json_reply
from mire.testing.httpwire import Reply, Request
from mire.testing.s3errors import S3Error

_LIFETIME_S: Final = 3600
_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_SHA256_INFO: Final = bytes.fromhex("3031300d060960864801650304020105000420")
"""What stands before the digest in a signature (RFC 8017, 9.2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAccount:
    """A service account and the public half of its RSA key."""

    email: str
    modulus: int
    exponent: int = 65537


class Guard:
    """The door of a server: with neither token nor account everybody is let in."""

    def __init__(self, token: str | None, account: ServiceAccount | None) -> None:
        self._token = token
        self._account = account
        self._issued: dict[str, float] = {}
        self._numbers = itertools.count(1)

    def check(self, request: Request, now_s: float) -> None:
        """Let a request in or raise."""
        if self._token is None and self._account is None:
            return
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind != "Bearer" or not token:
            raise S3Error("AuthenticationRequired", "Anonymous caller does not have storage access.")
        is_known = token == self._token or self._issued.get(token, 0.0) > now_s
        if not is_known and self._flaw_of(token, now_s) is not None:
            raise S3Error("AuthenticationRequired", "Invalid Credentials")

    def revoke(self) -> None:
        """Forget every token that was issued."""
        self._issued.clear()

    def issue(self, now_s: float) -> Reply:
        """A new token, for an hour."""
        token = f"issued-{next(self._numbers)}"
        self._issued[token] = now_s + _LIFETIME_S
        return json_reply({"access_token": token, "expires_in": _LIFETIME_S, "token_type": "Bearer"})

    def exchange(self, request: Request, now_s: float) -> Reply:
        """The token endpoint: an assertion of the service account for a token."""
        form = {name: values[0] for name, values in parse_qs(request.body.decode("latin-1")).items()}
        if form.get("grant_type") != _GRANT:
            return json_reply({"error": "unsupported_grant_type"}, 400)
        flaw = self._flaw_of(form.get("assertion", ""), now_s)
        if flaw is not None:
            return json_reply({"error": "invalid_grant", "error_description": flaw}, 400)
        return self.issue(now_s)

    def _flaw_of(self, token: str, now_s: float) -> str | None:
        """Why a signed token is not from the service account; None when it is."""
        if self._account is None:
            return "Invalid grant: account not found"
        try:
            message, _, signature = token.rpartition(".")
            claims: dict[str, Any] = json.loads(_decode(message.partition(".")[2]))
            is_signed = _is_signed(self._account, message.encode(), _decode(signature))
        except (binascii.Error, ValueError):
            return "Bad Request"
        if claims.get("iss") != self._account.email:
            return "Invalid grant: account not found"
        if not is_signed:
            return "Invalid JWT Signature."
        return None if claims.get("exp", 0) > now_s else "Invalid JWT: Token must be a short-lived token"


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _is_signed(account: ServiceAccount, message: bytes, signature: bytes) -> bool:
    size = (account.modulus.bit_length() + 7) // 8
    if len(signature) != size:
        return False
    opened = pow(int.from_bytes(signature, "big"), account.exponent, account.modulus).to_bytes(size, "big")
    info = _SHA256_INFO + hashlib.sha256(message).digest()
    return opened == b"\x00\x01" + b"\xff" * (size - 3 - len(info)) + b"\x00" + info
