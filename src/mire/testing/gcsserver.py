"""A GCS server for tests: both APIs, generations, tokens. `python -m mire.testing.gcsserver --bucket b`.

Owns: understanding GCS requests, and the face tests use.
Must not know: how an operation works, HTTP's bytes.
Keeps: an operation has one name in both APIs, so that counts and faults do not depend on the client.
"""

import argparse
import contextlib
import ssl
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final
from urllib.parse import unquote

from mire.testing import gcsjson, gcsxml, s3listing, s3multipart
from mire.testing.gcsauth import Guard, ServiceAccount
from mire.testing.gcsworld import PREFIX, GcsBucket, gcs_dialect
from mire.testing.httpwire import Reply, Request
from mire.testing.objectserver import Call, params_of
from mire.testing.s3errors import S3Error, error_reply, usual_code
from mire.testing.s3world import World
from mire.testing.storeserver import StoreServer

__all__ = ["GcsServer", "ServiceAccount", "main"]

Operation = Callable[[World, Call], Reply]

_XML: Final[dict[str, Operation]] = {
    "AbortMultipartUpload": s3multipart.abort_upload,
    "CompleteMultipartUpload": gcsxml.complete_upload,
    "CopyObject": gcsxml.copy_object,
    "CreateMultipartUpload": s3multipart.create_upload,
    "DeleteObject": gcsxml.delete_object,
    "GetBucket": s3listing.head_bucket,
    "GetObject": gcsxml.get_object,
    "HeadObject": gcsxml.get_object,
    "ListObjects": s3listing.list_objects,
    "ListParts": s3multipart.list_parts,
    "PutObject": gcsxml.put_object,
    "UploadPart": s3multipart.upload_part,
}
_JSON: Final[dict[str, Operation]] = {
    "BeginResumableUpload": gcsjson.begin_resumable,
    "ContinueResumableUpload": gcsjson.continue_resumable,
    "CopyObject": gcsjson.rewrite_object,
    "CreateBucket": gcsjson.create_bucket,
    "DeleteObject": gcsjson.delete_object,
    "GetBucket": gcsjson.get_bucket,
    "GetObject": gcsjson.get_media,
    "HeadObject": gcsjson.get_metadata,
    "ListBuckets": gcsjson.list_buckets,
    "ListObjects": gcsjson.list_objects,
    "PutObject": gcsjson.insert_object,
}
_METADATA: Final = "/computeMetadata/v1/instance/service-accounts/default/"


class GcsServer(StoreServer):
    """A GCS server with its buckets.

    With a `token` or a `service_account` requests must carry that token, one from `POST /token`, or one signed by the
    account; without both everybody is let in. `/computeMetadata` answers as an instance's metadata server does.
    """

    def __init__(
        self,
        buckets: Iterable[str] = (),
        *,
        token: str | None = None,
        service_account: ServiceAccount | None = None,
        port: int = 0,
        seed: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        world = World(now_s=self.now_s, dialect=gcs_dialect(), prefix=PREFIX)
        super().__init__(world, port=port, seed=seed, tls=tls)
        self._guard = Guard(token, service_account)
        for name in buckets:
            self._world.buckets[name] = GcsBucket(name, self._world)

    def revoke_tokens(self) -> None:
        """Make every token that was issued invalid from now on."""
        with self._state:
            self._guard.revoke()

    def _classify(self, request: Request) -> Call:
        params, path = params_of(request.query), request.path
        if path == "/token":
            return Call(request, "ExchangeToken")
        if path.startswith("/computeMetadata/") or (path == "/" and "metadata-flavor" in request.headers):
            return Call(request, "GetInstanceMetadata", key=path)
        if _is_json(path):
            return _classify_json(request, params)
        bucket, _, key = path[1:].partition("/")
        bucket, key = unquote(bucket), unquote(key)
        return Call(request, _xml_operation(request, key, params), bucket, key, params)

    def _apply(self, call: Call) -> Reply:
        try:
            if call.operation == "ExchangeToken":
                return self._guard.exchange(call.request, self.now_s())
            if call.operation == "GetInstanceMetadata":
                return self._metadata(call)
            self._guard.check(call.request, self.now_s())
            table = _JSON if _is_json(call.request.path) else _XML
            return table.get(call.operation, _unknown)(self._world, call)
        except S3Error as error:
            return self._error(call, error)

    def _metadata(self, call: Call) -> Reply:
        headers = [("Metadata-Flavor", "Google"), ("Content-Type", "application/text")]
        match call.key.removeprefix(_METADATA):
            case "token":
                reply = self._guard.issue(self.now_s())
                reply.headers.append(headers[0])
                return reply
            case "email":
                return Reply(200, headers, b"instance@mire.invalid")
            case "/":
                return Reply(200, headers)
        return Reply(404, headers)

    def _failure(self, call: Call, status: int, code: str) -> Reply:
        return self._error(call, S3Error(code or usual_code(status)), status)

    def _error(self, call: Call, error: S3Error, status: int | None = None) -> Reply:
        request = call.request
        if _is_json(request.path):
            return gcsjson.json_error(error, status)
        return error_reply(error, resource=request.path, method=request.method, request_id="0", status=status)


def _is_json(path: str) -> bool:
    return path.startswith(("/storage/v1/", "/upload/storage/v1/", "/download/storage/v1/"))


def _unknown(world: World, call: Call) -> Reply:
    del world
    raise S3Error("NotImplemented", f"{call.request.method} {call.request.path}?{call.request.query}")


def _xml_operation(request: Request, key: str, params: dict[str, str]) -> str:
    match request.method:
        case "GET" if not key:
            return "ListObjects"
        case "HEAD" if not key:
            return "GetBucket"
        case "GET":
            return "ListParts" if "uploadId" in params else "GetObject"
        case "HEAD":
            return "HeadObject"
        case "PUT" if key and "uploadId" in params:
            return "UploadPart"
        case "PUT" if key:
            return "CopyObject" if f"{PREFIX}copy-source" in request.headers else "PutObject"
        case "POST" if "uploads" in params:
            return "CreateMultipartUpload"
        case "POST" if "uploadId" in params:
            return "CompleteMultipartUpload"
        case "DELETE" if key:
            return "AbortMultipartUpload" if "uploadId" in params else "DeleteObject"
    return "Unknown"


def _classify_json(request: Request, params: dict[str, str]) -> Call:
    method = request.method
    is_upload = request.path.startswith("/upload/")
    match gcsjson.segments_of(request.path):
        case ["b"]:
            return Call(request, {"GET": "ListBuckets", "POST": "CreateBucket"}.get(method, "Unknown"))
        case ["b", bucket]:
            return Call(request, "GetBucket" if method == "GET" else "Unknown", bucket, "", params)
        case ["b", bucket, "o"] if is_upload:
            return Call(request, _upload_operation(method, params), bucket, _upload_name(request, params), params)
        case ["b", bucket, "o"] if method == "GET":
            return Call(request, "ListObjects", bucket, "", params)
        case ["b", bucket, "o", key] if method == "GET":
            return Call(request, "GetObject" if params.get("alt") == "media" else "HeadObject", bucket, key, params)
        case ["b", bucket, "o", key] if method == "DELETE":
            return Call(request, "DeleteObject", bucket, key, params)
        case ["b", _, "o", _, "rewriteTo" | "copyTo", "b", bucket, "o", key] if method == "POST":
            return Call(request, "CopyObject", bucket, key, params)
    return Call(request, "Unknown", params=params)


def _upload_operation(method: str, params: dict[str, str]) -> str:
    match params.get("uploadType"):
        case "media" | "multipart" if method == "POST":
            return "PutObject"
        case "resumable" if "upload_id" in params:
            return "ContinueResumableUpload"
        case "resumable" if method == "POST":
            return "BeginResumableUpload"
    return "Unknown"


def _upload_name(request: Request, params: dict[str, str]) -> str:
    if "name" in params or "upload_id" in params:
        return params.get("name", "")
    return gcsjson.name_in(request)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until interrupted; the first line of the output is the address."""
    parser = argparse.ArgumentParser(prog="python -m mire.testing.gcsserver", description=main.__doc__)
    parser.add_argument("--port", type=int, default=0, help="port of 127.0.0.1; 0 takes a free one")
    parser.add_argument("--bucket", action="append", default=[], help="a bucket to begin with; may be repeated")
    given = parser.parse_args(arguments)
    with GcsServer(given.bucket, port=given.port) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
