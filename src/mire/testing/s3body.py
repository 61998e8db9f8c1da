"""The bodies of S3 requests: the `aws-chunked` encoding, and the digests that prove them whole.

Owns: taking a body out of its encoding, and checking MD5, SHA-256 and the checksum headers.
Must not know: what the body is for, whether the request was signed by someone known.
Keeps: a body whose digest does not match is never handed on.
"""

import base64
import binascii
import hashlib
import zlib
from collections.abc import Callable
from typing import Final

from mire.testing.httpwire import Request
from mire.testing.s3errors import S3Error

_SHA256_HEX_LENGTH: Final = 64


def _crc_table(polynomial: int) -> list[int]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ polynomial if value & 1 else value >> 1
        table.append(value)
    return table


_CRC32C: Final = _crc_table(0x82F63B78)
_CRC64NVME: Final = _crc_table(0x9A6C9329AC4BC9B5)


def _crc(data: bytes, table: list[int], bits: int) -> bytes:
    mask = (1 << bits) - 1
    value = mask
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ (value >> 8)
    return (value ^ mask).to_bytes(bits // 8, "big")


def crc32c(data: bytes) -> str:
    """The CRC-32C of data, as the headers carry it."""
    return base64.b64encode(_crc(data, _CRC32C, 32)).decode()


_ALGORITHMS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "crc32": lambda data: zlib.crc32(data).to_bytes(4, "big"),
    "crc32c": lambda data: _crc(data, _CRC32C, 32),
    "crc64nvme": lambda data: _crc(data, _CRC64NVME, 64),
    "sha1": lambda data: hashlib.sha1(data, usedforsecurity=False).digest(),
    "sha256": lambda data: hashlib.sha256(data).digest(),
}
_CHECKSUM: Final = "x-amz-checksum-"


def md5_hex(data: bytes) -> str:
    """The MD5 of data: the ETag of an object that was put in one piece."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def body_of(request: Request) -> tuple[bytes, dict[str, str]]:
    """The checked body of a request, and the checksums to keep with it, by header name."""
    headers = request.headers
    data = request.body
    declared = headers.get("x-amz-content-sha256", "")
    trailer: dict[str, str] = {}
    if declared.startswith("STREAMING-") or "aws-chunked" in headers.get("content-encoding", ""):
        data, trailer = _unchunk(data)
        expected = headers.get("x-amz-decoded-content-length", str(len(data)))
        if expected != str(len(data)):
            raise S3Error("IncompleteBody", "The body is not as long as x-amz-decoded-content-length says.")
    elif len(declared) == _SHA256_HEX_LENGTH and hashlib.sha256(data).hexdigest() != declared:
        raise S3Error("XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' is not that of the body.")
    if (md5 := headers.get("content-md5")) is not None:
        _check_md5(data, md5)
    return data, _checked_sums(data, headers | trailer)


def _check_md5(data: bytes, text: str) -> None:
    try:
        wanted = base64.b64decode(text, validate=True)
    except binascii.Error:
        wanted = b""
    if len(wanted) != 16:  # noqa: PLR2004 - bytes of an MD5
        raise S3Error("InvalidDigest", "The Content-MD5 you specified was invalid.")
    if hashlib.md5(data, usedforsecurity=False).digest() != wanted:
        raise S3Error("BadDigest", "The Content-MD5 you specified did not match what we received.")


def _checked_sums(data: bytes, headers: dict[str, str]) -> dict[str, str]:
    kept: dict[str, str] = {}
    for name, value in headers.items():
        if not name.startswith(_CHECKSUM):
            continue
        compute = _ALGORITHMS.get(name.removeprefix(_CHECKSUM))
        if compute is None:
            continue
        if base64.b64encode(compute(data)).decode() != value:
            algorithm = name.removeprefix(_CHECKSUM).upper()
            raise S3Error("BadDigest", f"The {algorithm} you specified did not match the calculated checksum.")
        kept[name] = value
    return kept


def _unchunk(data: bytes) -> tuple[bytes, dict[str, str]]:
    parts: list[bytes] = []
    at = 0
    while (end := data.find(b"\r\n", at)) >= 0:
        try:
            size = int(data[at:end].partition(b";")[0], 16)
        except ValueError:
            raise S3Error("IncompleteBody", f"aws-chunked size {data[at : at + 40]!r}") from None
        at = end + 2
        if size == 0:
            lines = data[at:].decode("latin-1").split("\r\n")
            pairs = [line.partition(":") for line in lines if ":" in line]
            return b"".join(parts), {name.strip().lower(): value.strip() for name, _, value in pairs}
        parts.append(data[at : at + size])
        at += size + 2
    raise S3Error("IncompleteBody", "The aws-chunked body has no last chunk.")
