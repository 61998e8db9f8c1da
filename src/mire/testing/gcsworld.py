"""What a GCS test server knows while it answers: buckets whose writes have generations, and conditions on these.

Owns: numbering of generations, judging conditions on them, and how objects look in both APIs.
Must not know: which API or operation asks.
Keeps: each write of an object has a generation of its own, later ones greater; no object is generation 0.
"""

import base64
from datetime import UTC, datetime
from typing import Final

from mire.testing.bucket import Blob, Bucket
from mire.testing.s3body import crc32c, md5_hex
from mire.testing.s3errors import S3Error
from mire.testing.s3world import Dialect, World

PREFIX: Final = "x-goog-"


class GcsBucket(Bucket):
    """A bucket whose writes are numbered by the server's clock, in microseconds, as GCS does."""

    def __init__(self, name: str, world: World) -> None:
        super().__init__(name)
        self._world = world
        self._last = 0

    def number(self) -> int:
        """A number greater than any before."""
        self._last = max(self._last + 1, int(self._world.now_s() * 1_000_000))
        return self._last


def gcs_dialect() -> Dialect:
    """GCS's XML API as a dialect of S3: only generations are conditions of a write."""
    return Dialect(ignore_conditions=True)


def check_generation(given: dict[str, str], names: tuple[str, str], current: Blob | None) -> None:
    """Judge the conditions of a write or delete; `names` are those of match and not-match."""
    live = 0 if current is None else current.generation
    match, other = (_number(given, name) for name in names)
    if match is not None and match != live:
        raise _failed(names[0])
    if other is not None and other == live:
        raise _failed(names[1])


def check_generation_read(given: dict[str, str], names: tuple[str, str], blob: Blob) -> bool:
    """Judge the conditions of a read: True to answer it, False for 304; raise when they fail."""
    match, other = (_number(given, name) for name in names)
    if match is not None and match != blob.generation:
        raise _failed(names[0])
    return other is None or other != blob.generation


def check_is_live(params: dict[str, str], key: str, blob: Blob, name: str = "generation") -> None:
    """A request for another generation than the live one finds nothing: old ones are not kept."""
    wanted = _number(params, name)
    if wanted is not None and wanted != blob.generation:
        raise S3Error("NoSuchKey", f"No such object: {key}#{wanted}")


def _number(given: dict[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not text.isdecimal():
        raise S3Error("InvalidArgument", f"{name} is {text!r}, expected a number")
    return int(text)


def _failed(name: str) -> S3Error:
    return S3Error("PreconditionFailed", "At least one of the pre-conditions you specified did not hold.", Details=name)


def object_headers(blob: Blob) -> list[tuple[str, str]]:
    """What the XML API says of an object beyond S3's headers."""
    return [
        ("x-goog-generation", str(blob.generation)),
        ("x-goog-metageneration", "1"),
        ("x-goog-stored-content-length", str(len(blob.data))),
        ("x-goog-storage-class", "STANDARD"),
    ]


def resource_of(bucket: str, key: str, blob: Blob) -> dict[str, object]:
    """An object as the JSON API shows it."""
    modified = datetime.fromtimestamp(blob.modified_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    resource: dict[str, object] = {
        "kind": "storage#object",
        "id": f"{bucket}/{key}/{blob.generation}",
        "name": key,
        "bucket": bucket,
        "generation": str(blob.generation),
        "metageneration": "1",
        "contentType": blob.content_type,
        "storageClass": "STANDARD",
        "size": str(len(blob.data)),
        "crc32c": crc32c(blob.data),
        "etag": json_etag(blob),
        "timeCreated": modified,
        "updated": modified,
    }
    if "-" not in blob.etag:
        resource["md5Hash"] = base64.b64encode(bytes.fromhex(blob.etag)).decode()
    if blob.metadata:
        begin = len(f"{PREFIX}meta-")
        resource["metadata"] = {name[begin:]: value for name, value in blob.metadata.items()}
    return resource


def json_etag(blob: Blob) -> str:
    """The ETag of the JSON API: it changes with each generation."""
    return base64.b64encode(b"%d/1" % blob.generation).decode()


def new_blob(bucket: Bucket, now_s: float, data: bytes, content_type: str, metadata: dict[str, str]) -> Blob:
    """An object as it is stored; `metadata` by header name."""
    return Blob(
        data=data,
        etag=md5_hex(data),
        modified_s=now_s,
        generation=bucket.number(),
        content_type=content_type or "application/octet-stream",
        metadata=metadata,
    )
