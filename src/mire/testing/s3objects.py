"""The S3 operations on one object: put, get, head, delete, copy; and the delete of many.

Owns: their headers, statuses and documents.
Must not know: connections, signatures, faults.
Keeps: what is stored is what was sent and checked.
"""

from typing import Final
from urllib.parse import unquote

from mire.testing.bucket import Blob, Bucket
from mire.testing.httpwire import Reply
from mire.testing.objectserver import Call
from mire.testing.s3body import body_of, md5_hex
from mire.testing.s3errors import S3Error
from mire.testing.s3world import Headers, World, check_delete, check_read, check_write, http_date
from mire.testing.s3xml import document, element, iso_date, parse_xml, tag_of, text_of

_KEY_MAX_BYTES: Final = 1024
_DELETE_MAX_KEYS: Final = 1000


def metadata_of(world: World, headers: Headers) -> dict[str, str]:
    """The user's metadata of a request, by header name."""
    begin = f"{world.prefix}meta-"
    return {name: value for name, value in headers.items() if name.startswith(begin)}


def content_type_of(headers: Headers) -> str:
    """The content type of a request, or the default."""
    return headers.get("content-type") or "binary/octet-stream"


def put_object(world: World, call: Call) -> Reply:
    """PutObject."""
    bucket = world.bucket(call.bucket)
    check_key(call.key)
    data, checksums = body_of(call.request)
    headers = call.request.headers
    check_write(world.dialect, headers, call.key, bucket.objects.get(call.key))
    blob = Blob(
        data=data,
        etag=md5_hex(data),
        modified_s=world.now_s(),
        generation=bucket.number(),
        content_type=content_type_of(headers),
        metadata=metadata_of(world, headers),
        checksums=checksums,
    )
    bucket.put(call.key, blob)
    return Reply(200, [("ETag", f'"{blob.etag}"'), *checksums.items()])


def check_key(key: str) -> None:
    """Refuse a key that is too long."""
    if len(key.encode()) > _KEY_MAX_BYTES:
        raise S3Error("KeyTooLongError", "Your key is too long")


def get_object(world: World, call: Call) -> Reply:
    """GetObject and HeadObject."""
    blob = world.blob(call.bucket, call.key)
    headers = call.request.headers
    reply = [("ETag", f'"{blob.etag}"'), ("Last-Modified", http_date(blob.modified_s))]
    if not check_read(headers, blob):
        return Reply(304, reply)
    reply += [("Content-Type", blob.content_type), ("Accept-Ranges", "bytes"), *blob.metadata.items()]
    status, data = 200, blob.data
    if (text := headers.get("range")) is not None and (span := parse_range(text, len(data))) is not None:
        start, end = span
        status, data = 206, data[start:end]
        reply.append(("Content-Range", f"bytes {start}-{end - 1}/{len(blob.data)}"))
    elif headers.get("x-amz-checksum-mode", "").upper() == "ENABLED":
        reply += blob.checksums.items()
    if call.request.method == "HEAD":
        return Reply(status, reply, b"", length=len(data))
    return Reply(status, reply, data)


def parse_range(text: str, size: int) -> tuple[int, int] | None:
    """The span of a Range header as (start, end), or None when the whole object is meant."""
    unit, _, span = text.partition("=")
    first, dash, last = span.partition("-")
    if unit.strip() != "bytes" or not dash or "," in span:
        return None
    first, last = first.strip(), last.strip()
    if not (first or last) or not (first + last).isdecimal():
        return None
    if not first:
        start, end = max(0, size - int(last)), size
        satisfiable = int(last) > 0 and size > 0
    else:
        start, end = int(first), min(int(last) + 1, size) if last else size
        satisfiable = start < size
        if last and int(last) < start:
            return None
    if not satisfiable:
        raise S3Error("InvalidRange", "The requested range is not satisfiable", ActualObjectSize=str(size))
    return start, end


def delete_object(world: World, call: Call) -> Reply:
    """DeleteObject."""
    bucket = world.bucket(call.bucket)
    check_delete(world.dialect, call.request.headers.get("if-match"), call.key, bucket.objects.get(call.key))
    bucket.remove(call.key)
    return Reply(204)


def delete_objects(world: World, call: Call) -> Reply:
    """DeleteObjects."""
    bucket = world.bucket(call.bucket)
    headers = call.request.headers
    if "content-md5" not in headers and not any(name.startswith("x-amz-checksum-") for name in headers):
        raise S3Error("InvalidRequest", "Missing required header for this request: Content-MD5 OR x-amz-checksum-*")
    root = parse_xml(body_of(call.request)[0])
    wanted = [(text_of(item, "Key") or "", text_of(item, "ETag")) for item in root if tag_of(item) == "Object"]
    if not wanted or len(wanted) > _DELETE_MAX_KEYS:
        raise S3Error("MalformedXML", "The XML you provided was not well-formed")
    quiet = (text_of(root, "Quiet") or "").lower() == "true"
    lines = [_delete_one(world, bucket, key, etag, quiet=quiet) for key, etag in wanted]
    return document("DeleteResult", "".join(lines))


def _delete_one(world: World, bucket: Bucket, key: str, etag: str | None, *, quiet: bool) -> str:
    name = element("Key", key)
    try:
        check_delete(world.dialect, etag, key, bucket.objects.get(key))
    except S3Error as error:
        return f"<Error>{name}{element('Code', error.code)}{element('Message', error.message)}</Error>"
    bucket.remove(key)
    return "" if quiet else f"<Deleted>{name}</Deleted>"


def source_of(world: World, headers: Headers) -> Blob:
    """The source of a copy, its conditions judged."""
    path = unquote(headers[f"{world.prefix}copy-source"].partition("?")[0]).removeprefix("/")
    bucket, slash, key = path.partition("/")
    if not slash or not key:
        raise S3Error("InvalidArgument", f"Copy Source must mention the source bucket and key: {path!r}")
    blob = world.blob(bucket, key)
    if not check_read(headers, blob, prefix=f"{world.prefix}copy-source-"):
        raise S3Error("PreconditionFailed", Condition=f"{world.prefix}copy-source-If-None-Match")
    return blob


def copy_object(world: World, call: Call) -> Reply:
    """CopyObject."""
    bucket = world.bucket(call.bucket)
    check_key(call.key)
    headers = call.request.headers
    source = source_of(world, headers)
    is_replaced = headers.get(f"{world.prefix}metadata-directive", "COPY").upper() == "REPLACE"
    current = bucket.objects.get(call.key)
    if current is source and not is_replaced:
        raise S3Error("InvalidRequest", "This copy request is illegal because it copies an object to itself unchanged.")
    if world.dialect.conditional_copy:
        check_write(world.dialect, headers, call.key, current)
    blob = Blob(
        data=source.data,
        etag=md5_hex(source.data),
        modified_s=world.now_s(),
        generation=bucket.number(),
        content_type=content_type_of(headers) if is_replaced else source.content_type,
        metadata=metadata_of(world, headers) if is_replaced else source.metadata,
        checksums=source.checksums,
    )
    bucket.put(call.key, blob)
    return copied("CopyObjectResult", blob.etag, blob.modified_s)


def copied(root: str, etag: str, modified_s: float) -> Reply:
    """The document that answers a copy."""
    return document(root, element("LastModified", iso_date(modified_s)) + element("ETag", f'"{etag}"'))
