"""The S3 operations on uploads in parts.

Owns: creating, filling, completing, aborting and listing uploads.
Must not know: connections, signatures, faults.
Keeps: an object appears when its upload completes and not before; its conditions are judged then.
"""

import hashlib
from itertools import pairwise

from mire.testing.bucket import Blob, Part, Upload
from mire.testing.httpwire import Reply
from mire.testing.objectserver import Call
from mire.testing.s3body import body_of, md5_hex
from mire.testing.s3errors import S3Error
from mire.testing.s3objects import check_key, content_type_of, copied, metadata_of, parse_range, source_of
from mire.testing.s3world import World, check_write
from mire.testing.s3xml import document, element, iso_date, parse_xml, tag_of, text_of

_PART_MAX = 10_000


def create_upload(world: World, call: Call) -> Reply:
    """CreateMultipartUpload."""
    bucket = world.bucket(call.bucket)
    check_key(call.key)
    headers = call.request.headers
    upload = Upload(
        id=f"upload-{bucket.number():08d}",
        key=call.key,
        content_type=content_type_of(headers),
        metadata=metadata_of(world, headers),
        started_s=world.now_s(),
    )
    bucket.uploads[upload.id] = upload
    names = element("Bucket", call.bucket) + element("Key", call.key)
    return document("InitiateMultipartUploadResult", names + element("UploadId", upload.id))


def _upload_of(world: World, call: Call) -> Upload:
    upload = world.bucket(call.bucket).uploads.get(call.params["uploadId"])
    if upload is None or upload.key != call.key:
        raise S3Error("NoSuchUpload", "The specified upload does not exist.", UploadId=call.params["uploadId"])
    return upload


def _part_number(call: Call) -> int:
    text = call.params.get("partNumber", "")
    if not text.isdecimal() or not 1 <= int(text) <= _PART_MAX:
        raise S3Error("InvalidArgument", f"Part number must be an integer between 1 and {_PART_MAX}, inclusive")
    return int(text)


def upload_part(world: World, call: Call) -> Reply:
    """UploadPart."""
    upload, number = _upload_of(world, call), _part_number(call)
    data, checksums = body_of(call.request)
    upload.parts[number] = part = Part(data=data, etag=md5_hex(data))
    return Reply(200, [("ETag", f'"{part.etag}"'), *checksums.items()])


def upload_part_copy(world: World, call: Call) -> Reply:
    """UploadPartCopy."""
    upload, number = _upload_of(world, call), _part_number(call)
    headers = call.request.headers
    data = source_of(world, headers).data
    if (text := headers.get("x-amz-copy-source-range")) is not None:
        span = parse_range(text, len(data))
        if span is None:
            raise S3Error("InvalidArgument", f"x-amz-copy-source-range {text!r} is not a range of bytes")
        data = data[span[0] : span[1]]
    upload.parts[number] = part = Part(data=data, etag=md5_hex(data))
    return copied("CopyPartResult", part.etag, world.now_s())


def complete_upload(world: World, call: Call) -> Reply:
    """CompleteMultipartUpload."""
    upload = _upload_of(world, call)
    parts = _chosen_parts(world, upload, call.request.body)
    bucket = world.bucket(call.bucket)
    check_write(world.dialect, call.request.headers, call.key, bucket.objects.get(call.key))
    sums = b"".join(bytes.fromhex(part.etag) for part in parts)
    blob = Blob(
        data=b"".join(part.data for part in parts),
        etag=f"{hashlib.md5(sums, usedforsecurity=False).hexdigest()}-{len(parts)}",
        modified_s=world.now_s(),
        generation=bucket.number(),
        content_type=upload.content_type,
        metadata=upload.metadata,
    )
    bucket.put(call.key, blob)
    del bucket.uploads[upload.id]
    names = element("Location", f"/{call.bucket}/{call.key}") + element("Bucket", call.bucket)
    return document(
        "CompleteMultipartUploadResult", names + element("Key", call.key) + element("ETag", f'"{blob.etag}"')
    )


def _chosen_parts(world: World, upload: Upload, body: bytes) -> list[Part]:
    nodes = [node for node in parse_xml(body) if tag_of(node) == "Part"]
    texts = [(text_of(node, "PartNumber") or "", (text_of(node, "ETag") or "").strip('"')) for node in nodes]
    wanted = [(int(number), etag) for number, etag in texts if number.isdecimal()]
    if not wanted or len(wanted) != len(nodes):
        raise S3Error("MalformedXML", "The XML you provided was not well-formed")
    if any(first >= second for (first, _), (second, _) in pairwise(wanted)):
        raise S3Error("InvalidPartOrder", "The list of parts was not in ascending order.")
    parts = []
    for number, etag in wanted:
        part = upload.parts.get(number)
        if part is None or part.etag != etag:
            raise S3Error(
                "InvalidPart", "One or more of the specified parts could not be found.", PartNumber=str(number)
            )
        parts.append(part)
    if any(len(part.data) < world.dialect.part_min_bytes for part in parts[:-1]):
        raise S3Error("EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size")
    return parts


def abort_upload(world: World, call: Call) -> Reply:
    """AbortMultipartUpload."""
    upload = _upload_of(world, call)
    del world.bucket(call.bucket).uploads[upload.id]
    return Reply(204)


def list_parts(world: World, call: Call) -> Reply:
    """ListParts, in one page."""
    upload = _upload_of(world, call)
    lines = [
        f"<Part>{element('PartNumber', number)}{element('ETag', part.etag)}{element('Size', len(part.data))}"
        f"{element('LastModified', iso_date(upload.started_s))}</Part>"
        for number, part in sorted(upload.parts.items())
    ]
    names = element("Bucket", call.bucket) + element("Key", call.key) + element("UploadId", upload.id)
    return document("ListPartsResult", names + element("IsTruncated", "false") + "".join(lines))


def list_uploads(world: World, call: Call) -> Reply:
    """ListMultipartUploads, in one page."""
    prefix = call.params.get("prefix", "")
    uploads = sorted(world.bucket(call.bucket).uploads.values(), key=lambda upload: (upload.key, upload.id))
    lines = [
        f"<Upload>{element('Key', upload.key)}{element('UploadId', upload.id)}"
        f"{element('Initiated', iso_date(upload.started_s))}</Upload>"
        for upload in uploads
        if upload.key.startswith(prefix)
    ]
    return document(
        "ListMultipartUploadsResult",
        element("Bucket", call.bucket) + element("IsTruncated", "false") + "".join(lines),
    )
