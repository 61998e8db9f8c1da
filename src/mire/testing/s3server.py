"""An S3 server for tests, in this process or as its own: `python -m mire.testing.s3server --bucket b`.

Owns: understanding S3 requests (path style and virtual-hosted), and the face tests use.
Must not know: how an operation works, HTTP's bytes.
Keeps: its defaults answer as AWS does; every difference is an option with a name.
"""

import argparse
import contextlib
import ssl
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final
from urllib.parse import unquote

from mire.testing import s3listing, s3multipart, s3objects
from mire.testing.bucket import Bucket
from mire.testing.faults import Delay
from mire.testing.httpwire import Reply, Request
from mire.testing.objectserver import Call, params_of
from mire.testing.s3errors import S3Error, error_reply, usual_code
from mire.testing.s3signature import Credentials, check_signature
from mire.testing.s3world import Dialect, World
from mire.testing.storeserver import StoreServer

__all__ = ["Credentials", "Dialect", "S3Server", "main"]

Operation = Callable[[World, Call], Reply]

_OPERATIONS: Final[dict[str, Operation]] = {
    "AbortMultipartUpload": s3multipart.abort_upload,
    "CompleteMultipartUpload": s3multipart.complete_upload,
    "CopyObject": s3objects.copy_object,
    "CreateBucket": s3listing.create_bucket,
    "CreateMultipartUpload": s3multipart.create_upload,
    "DeleteBucket": s3listing.delete_bucket,
    "DeleteObject": s3objects.delete_object,
    "DeleteObjects": s3objects.delete_objects,
    "GetBucketLocation": s3listing.bucket_location,
    "GetBucketVersioning": s3listing.bucket_versioning,
    "GetObject": s3objects.get_object,
    "HeadBucket": s3listing.head_bucket,
    "HeadObject": s3objects.get_object,
    "ListBuckets": s3listing.list_buckets,
    "ListMultipartUploads": s3multipart.list_uploads,
    "ListObjectsV2": s3listing.list_objects,
    "ListParts": s3multipart.list_parts,
    "PutObject": s3objects.put_object,
    "UploadPart": s3multipart.upload_part,
    "UploadPartCopy": s3multipart.upload_part_copy,
}


class S3Server(StoreServer):
    """An S3 server with its buckets; see `Dialect` for how it can differ from AWS.

    With `credentials` every request must be signed with them; without, everybody is let in.
    """

    def __init__(
        self,
        buckets: Iterable[str] = (),
        *,
        credentials: Credentials | None = None,
        dialect: Dialect | None = None,
        port: int = 0,
        seed: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(World(now_s=self.now_s, dialect=dialect or Dialect()), port=port, seed=seed, tls=tls)
        self.credentials = credentials
        self._requests = 0
        for name in buckets:
            self._world.buckets[name] = Bucket(name)

    def _classify(self, request: Request) -> Call:
        params = params_of(request.query)
        host = request.headers.get("host", "").partition(":")[0]
        path = request.path
        bucket = ""
        for suffix in (".127.0.0.1", ".localhost"):
            if host.endswith(suffix):
                bucket, key = host.removesuffix(suffix), path[1:]
        if not bucket:
            bucket, _, key = path[1:].partition("/")
        bucket, key = unquote(bucket), unquote(key)
        return Call(request, _operation_of(request, bucket, key, params), bucket, key, params)

    def _apply(self, call: Call) -> Reply:
        try:
            if self.credentials is not None:
                check_signature(self.credentials, call.request, self.now_s())
            return _OPERATIONS.get(call.operation, _unknown)(self._world, call)
        except S3Error as error:
            return self._error(call, error)

    def _failure(self, call: Call, status: int, code: str) -> Reply:
        return self._error(call, S3Error(code or usual_code(status)), status)

    def _error(self, call: Call, error: S3Error, status: int | None = None) -> Reply:
        self._requests += 1
        request_id = f"{self._requests:016X}"
        request = call.request
        return error_reply(error, resource=request.path, method=request.method, request_id=request_id, status=status)


def _unknown(world: World, call: Call) -> Reply:
    del world
    raise S3Error("NotImplemented", f"{call.request.method} {call.request.path}?{call.request.query}")


def _operation_of(request: Request, bucket: str, key: str, params: dict[str, str]) -> str:
    table = _BY_KEY if key else _BY_BUCKET if bucket else _BY_ROOT
    for param, header, operation in table.get(request.method, ()):
        if (param is None or param in params) and (header is None or header in request.headers):
            return operation
    return "Unknown"


_Rows = dict[str, tuple[tuple[str | None, str | None, str], ...]]
_BY_ROOT: Final[_Rows] = {"GET": ((None, None, "ListBuckets"),)}
_BY_BUCKET: Final[_Rows] = {
    "GET": (
        ("list-type", None, "ListObjectsV2"),
        ("location", None, "GetBucketLocation"),
        ("versioning", None, "GetBucketVersioning"),
        ("uploads", None, "ListMultipartUploads"),
    ),
    "HEAD": ((None, None, "HeadBucket"),),
    "PUT": ((None, None, "CreateBucket"),),
    "DELETE": ((None, None, "DeleteBucket"),),
    "POST": (("delete", None, "DeleteObjects"),),
}
_BY_KEY: Final[_Rows] = {
    "GET": (("uploadId", None, "ListParts"), (None, None, "GetObject")),
    "HEAD": ((None, None, "HeadObject"),),
    "PUT": (
        ("uploadId", "x-amz-copy-source", "UploadPartCopy"),
        ("uploadId", None, "UploadPart"),
        (None, "x-amz-copy-source", "CopyObject"),
        (None, None, "PutObject"),
    ),
    "DELETE": (("uploadId", None, "AbortMultipartUpload"), (None, None, "DeleteObject")),
    "POST": (("uploads", None, "CreateMultipartUpload"), ("uploadId", None, "CompleteMultipartUpload")),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until interrupted; the first line of the output is the address."""
    parser = argparse.ArgumentParser(prog="python -m mire.testing.s3server", description=main.__doc__)
    parser.add_argument("--port", type=int, default=0, help="port of 127.0.0.1; 0 takes a free one")
    parser.add_argument("--bucket", action="append", default=[], help="a bucket to begin with; may be repeated")
    parser.add_argument("--access-key", help="let in only requests signed with this key")
    parser.add_argument("--secret-key", default="", help="the secret of the access key")
    parser.add_argument("--ignore-conditions", action="store_true", help="ignore If-Match and If-None-Match of writes")
    parser.add_argument("--delay-ms", type=float, default=0.0, help="answer every request so much later")
    given = parser.parse_args(arguments)
    credentials = Credentials(access_key=given.access_key, secret_key=given.secret_key) if given.access_key else None
    dialect = Dialect(ignore_conditions=given.ignore_conditions)
    with S3Server(given.bucket, credentials=credentials, dialect=dialect, port=given.port) as server:
        if given.delay_ms:
            server.inject(Delay(given.delay_ms / 1000), times=None)
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
