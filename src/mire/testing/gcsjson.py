"""The JSON API of GCS: objects as resources, with generations as conditions.

Owns: its operations and documents, and the errors with their reasons.
Must not know: connections, tokens, the XML API.
Keeps: a condition is judged and the write it guards is done without anything in between.
"""

import base64
import binascii
import json
from typing import Any, Final
from urllib.parse import unquote

from mire.testing.bucket import Blob, Bucket, Part, Upload
from mire.testing.gcsworld import (
    PREFIX,
    GcsBucket,
    check_generation,
    check_generation_read,
    check_is_live,
    json_etag,
    new_blob,
    object_headers,
    resource_of,
)
from mire.testing.httpwire import Reply, Request
from mire.testing.objectserver import Call
from mire.testing.s3body import crc32c, md5_hex
from mire.testing.s3errors import STATUSES, S3Error
from mire.testing.s3listing import decode_token, encode_token, shorten
from mire.testing.s3objects import parse_range
from mire.testing.s3world import World, etag_matches

_NAMES: Final = ("ifGenerationMatch", "ifGenerationNotMatch")
_SOURCE_NAMES: Final = ("ifSourceGenerationMatch", "ifSourceGenerationNotMatch")
_PAGE_MAX: Final = 1000
_REASONS: Final = {
    400: "invalid",
    401: "authError",
    403: "forbidden",
    404: "notFound",
    409: "conflict",
    412: "conditionNotMet",
    416: "requestedRangeNotSatisfiable",
    429: "rateLimitExceeded",
    501: "notImplemented",
}


def segments_of(path: str) -> list[str]:
    """What a path of the JSON API names: `b`, the bucket, `o`, the object and so on, decoded."""
    return [unquote(part) for part in path.partition("/storage/v1/")[2].split("/")]


def json_reply(document: object, status: int = 200) -> Reply:
    """A reply with a document."""
    return Reply(status, [("Content-Type", "application/json; charset=UTF-8")], json.dumps(document).encode())


def json_error(error: S3Error, status: int | None = None) -> Reply:
    """The reply for an error."""
    code = status or STATUSES.get(error.code, 400)
    item = {"message": error.message, "domain": "global", "reason": _REASONS.get(code, "backendError")}
    return json_reply({"error": {"code": code, "message": error.message, "errors": [item]}}, code)


def get_metadata(world: World, call: Call) -> Reply:
    """objects.get without the media."""
    blob = _readable(world, call)
    return Reply(304) if blob is None else json_reply(resource_of(call.bucket, call.key, blob))


def get_media(world: World, call: Call) -> Reply:
    """objects.get with `alt=media`."""
    blob = _readable(world, call)
    if blob is None:
        return Reply(304)
    headers = [("Content-Type", blob.content_type), ("ETag", json_etag(blob)), *object_headers(blob)]
    headers.append(("X-Goog-Hash", f"crc32c={crc32c(blob.data)}"))
    text = call.request.headers.get("range")
    span = None if text is None else parse_range(text, len(blob.data))
    if span is None:
        return Reply(200, headers, blob.data)
    headers.append(("Content-Range", f"bytes {span[0]}-{span[1] - 1}/{len(blob.data)}"))
    return Reply(206, headers, blob.data[span[0] : span[1]])


def _readable(world: World, call: Call) -> Blob | None:
    blob = world.blob(call.bucket, call.key)
    check_is_live(call.params, call.key, blob)
    if not check_generation_read(call.params, _NAMES, blob):
        return None
    other = call.request.headers.get("if-none-match")
    return None if other is not None and etag_matches(other, json_etag(blob)) else blob


def delete_object(world: World, call: Call) -> Reply:
    """objects.delete."""
    blob = world.blob(call.bucket, call.key)
    check_is_live(call.params, call.key, blob)
    check_generation(call.params, _NAMES, blob)
    world.bucket(call.bucket).remove(call.key)
    return Reply(204)


def insert_object(world: World, call: Call) -> Reply:
    """objects.insert, with the media alone or together with the metadata."""
    bucket = world.bucket(call.bucket)
    metadata, data, content_type = _uploaded(call)
    return _store(world, bucket, call, metadata, data, content_type)


def name_in(request: Request) -> str:
    """The name of an object that is uploaded, where it is in the metadata in the body."""
    try:
        if request.headers.get("content-type", "").startswith("multipart/"):
            resource = _parts_of(request)[0][1]
        else:
            resource = request.body
        return str(_document_of(resource).get("name", ""))
    except S3Error:
        # The operation itself says what is wrong with the body.
        return ""


def _store(world: World, bucket: Bucket, call: Call, metadata: dict[str, Any], data: bytes, content_type: str) -> Reply:
    check_generation(call.params, _NAMES, bucket.objects.get(call.key))
    _check_sums(metadata, data)
    users = {f"{PREFIX}meta-{name}": str(value) for name, value in (metadata.get("metadata") or {}).items()}
    blob = new_blob(bucket, world.now_s(), data, metadata.get("contentType") or content_type, users)
    bucket.put(call.key, blob)
    return json_reply(resource_of(call.bucket, call.key, blob))


def _uploaded(call: Call) -> tuple[dict[str, Any], bytes, str]:
    request = call.request
    if call.params.get("uploadType") == "media":
        return {}, request.body, request.headers.get("content-type", "")
    (_, resource), (content_type, data) = _parts_of(request)
    return _document_of(resource), data, content_type


def _document_of(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data or b"{}")
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise S3Error("InvalidArgument", "Parse Error: the metadata is not a JSON object")
    return document


def _parts_of(request: Request) -> tuple[tuple[str, bytes], tuple[str, bytes]]:
    """The metadata and the media of a multipart upload, each with its type.

    By hand: the parser of the standard library would change line ends inside the media.
    """
    boundary = request.headers.get("content-type", "").partition("boundary=")[2].partition(";")[0].strip(' "')
    parts = request.body.split(b"--" + boundary.encode())[1:-1] if boundary else []
    try:
        first, second = parts
    except ValueError:
        raise S3Error("InvalidArgument", f"A multipart upload has 2 parts, this one has {len(parts)}") from None
    return _part_of(first), _part_of(second)


def _part_of(part: bytes) -> tuple[str, bytes]:
    head, _, body = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
    lines = head.decode("latin-1").lower().split("\r\n")
    content_type = next((line.partition(":")[2].strip() for line in lines if line.startswith("content-type:")), "")
    return content_type, body.removesuffix(b"\r\n")


def _check_sums(metadata: dict[str, Any], data: bytes) -> None:
    if (text := metadata.get("md5Hash")) is not None:
        try:
            matches = base64.b64decode(text).hex() == md5_hex(data)
        except binascii.Error:
            matches = False
        if not matches:
            raise S3Error("BadDigest", f"Provided MD5 hash {text!r} doesn't match calculated MD5 hash")
    if (text := metadata.get("crc32c")) is not None and text != crc32c(data):
        raise S3Error("BadDigest", f"Provided CRC32C {text!r} doesn't match calculated CRC32C")


def begin_resumable(world: World, call: Call) -> Reply:
    """objects.insert in steps: the first one; its conditions are judged at the last."""
    bucket = world.bucket(call.bucket)
    upload_id = f"resumable-{bucket.number()}"
    resource = _document_of(call.request.body)
    bucket.uploads[upload_id] = Upload(
        id=upload_id,
        key=call.key,
        content_type=call.request.headers.get("x-upload-content-type", ""),
        metadata={"resource": json.dumps(resource), "params": json.dumps(call.params)},
        started_s=world.now_s(),
    )
    host = call.request.headers.get("host", "")
    location = f"http://{host}/upload/storage/v1/b/{call.bucket}/o?uploadType=resumable&upload_id={upload_id}"
    return Reply(200, [("Location", location), ("X-GUploader-UploadID", upload_id)])


def continue_resumable(world: World, call: Call) -> Reply:
    """objects.insert in steps: one more piece; 308 until the last."""
    bucket = world.bucket(call.bucket)
    upload = bucket.uploads.get(call.params["upload_id"])
    if upload is None:
        raise S3Error("NoSuchUpload", "No such resumable upload")
    upload.parts[len(upload.parts)] = Part(data=call.request.body, etag="")
    size = sum(len(part.data) for part in upload.parts.values())
    total = call.request.headers.get("content-range", "/*").rpartition("/")[2]
    if not total.isdecimal() or size < int(total):
        return Reply(308, [("Range", f"bytes=0-{size - 1}")] if size else [])
    del bucket.uploads[upload.id]
    first = Call(call.request, call.operation, call.bucket, upload.key, json.loads(upload.metadata["params"]))
    data = b"".join(part.data for part in upload.parts.values())
    return _store(world, bucket, first, json.loads(upload.metadata["resource"]), data, upload.content_type)


def rewrite_object(world: World, call: Call) -> Reply:
    """objects.rewrite, always in one step, and objects.copy."""
    segments = segments_of(call.request.path)
    source = world.blob(segments[1], segments[3])
    if not check_generation_read(call.params, _SOURCE_NAMES, source):
        raise S3Error("PreconditionFailed", Details=_SOURCE_NAMES[1])
    check_is_live(call.params, call.key, source, "sourceGeneration")
    bucket = world.bucket(call.bucket)
    check_generation(call.params, _NAMES, bucket.objects.get(call.key))
    blob = new_blob(bucket, world.now_s(), source.data, source.content_type, source.metadata)
    bucket.put(call.key, blob)
    resource = resource_of(call.bucket, call.key, blob)
    if "copyTo" in segments:
        return json_reply(resource)
    size = str(len(source.data))
    done = {"kind": "storage#rewriteResponse", "done": True, "totalBytesRewritten": size, "objectSize": size}
    return json_reply(done | {"resource": resource})


def list_objects(world: World, call: Call) -> Reply:
    """objects.list."""
    bucket, params = world.bucket(call.bucket), call.params
    text = params.get("maxResults", "")
    most = min(int(text), _PAGE_MAX) if text.isdecimal() and int(text) else _PAGE_MAX
    after = decode_token(params["pageToken"]) if "pageToken" in params else ""
    since = params.get("startOffset", "")
    page = bucket.page(params.get("prefix", ""), params.get("delimiter", ""), after, most, since=since)
    if call.short is not None:
        page = shorten(page, call.short)
    document: dict[str, object] = {"kind": "storage#objects"}
    if page.objects:
        document["items"] = [resource_of(call.bucket, key, blob) for key, blob in page.objects]
    if page.prefixes:
        document["prefixes"] = page.prefixes
    if page.last is not None:
        document["nextPageToken"] = encode_token(page.last)
    return json_reply(document)


def get_bucket(world: World, call: Call) -> Reply:
    """buckets.get."""
    return json_reply(_bucket_resource(world.bucket(call.bucket).name))


def list_buckets(world: World, call: Call) -> Reply:
    """buckets.list."""
    del call
    return json_reply({"kind": "storage#buckets", "items": [_bucket_resource(name) for name in sorted(world.buckets)]})


def create_bucket(world: World, call: Call) -> Reply:
    """buckets.insert."""
    name = str(_document_of(call.request.body).get("name", ""))
    if name in world.buckets:
        raise S3Error("BucketAlreadyOwnedByYou", "Your previous request to create the named bucket succeeded")
    world.buckets[name] = GcsBucket(name, world)
    return json_reply(_bucket_resource(name))


def _bucket_resource(name: str) -> dict[str, object]:
    return {"kind": "storage#bucket", "id": name, "name": name, "location": "US", "storageClass": "STANDARD"}
