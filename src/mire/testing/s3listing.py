"""The S3 operations on buckets: listing their objects, making and finding them.

Owns: ListObjectsV2 with its pages, and the operations on whole buckets.
Must not know: connections, signatures, what a listing is for.
Keeps: the pages of a listing together have every key once, unless a fault cut one short.
"""

import base64
import binascii
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Final
from urllib.parse import quote

from mire.testing.bucket import Bucket, Page
from mire.testing.faults import ShortListing
from mire.testing.httpwire import Reply
from mire.testing.objectserver import Call
from mire.testing.s3errors import S3Error
from mire.testing.s3world import World
from mire.testing.s3xml import document, element, iso_date

_PAGE_MAX: Final = 1000
_BUCKET_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


def list_objects(world: World, call: Call) -> Reply:
    """ListObjectsV2."""
    bucket, params = world.bucket(call.bucket), call.params
    most = _max_keys(params.get("max-keys", str(_PAGE_MAX)))
    prefix, delimiter = params.get("prefix", ""), params.get("delimiter", "")
    token = params.get("continuation-token")
    after = params.get("start-after", "") if token is None else decode_token(token)
    until_s = world.now_s() - world.dialect.listing_delay_s if world.dialect.listing_delay_s else float("inf")
    page = bucket.page(prefix, delimiter, after, most, until_s=until_s)
    if call.short is not None:
        page = shorten(page, call.short)
    is_encoded = params.get("encoding-type") == "url"
    spell = _spell_encoded if is_encoded else str
    inner = [element("Name", bucket.name), element("Prefix", spell(prefix))]
    inner += [element("Delimiter", spell(delimiter))] if delimiter else []
    inner += [element("StartAfter", spell(params["start-after"]))] if "start-after" in params else []
    inner += [element("ContinuationToken", token)] if token is not None else []
    inner += [element("EncodingType", "url")] if is_encoded else []
    inner += [element("MaxKeys", most), element("KeyCount", len(page.objects) + len(page.prefixes))]
    inner.append(element("IsTruncated", "false" if page.last is None else "true"))
    if page.last is not None:
        inner.append(element("NextContinuationToken", encode_token(page.last)))
    return document("ListBucketResult", "".join(inner) + _entries(world, page, spell))


def shorten(page: Page, short: ShortListing) -> Page:
    """A page with entries left out; cut after `keep`, it also claims to be the last."""
    objects = [(key, blob) for key, blob in page.objects if short.omit is None or not fnmatchcase(key, short.omit)]
    if short.keep is None:
        return Page(objects=objects, prefixes=page.prefixes, last=page.last)
    return Page(objects=objects[: short.keep], prefixes=page.prefixes[: short.keep], last=None)


def _max_keys(text: str) -> int:
    if not text.isdecimal():
        raise S3Error("InvalidArgument", f"max-keys is {text!r}, expected an integer from 0", ArgumentName="maxKeys")
    return min(int(text), _PAGE_MAX)


def _spell_encoded(text: str) -> str:
    return quote(text, safe="/")


def encode_token(last: str) -> str:
    """Where a listing goes on, as clients carry it."""
    return base64.urlsafe_b64encode(last.encode()).decode()


def decode_token(token: str) -> str:
    """Where a listing goes on."""
    try:
        return base64.urlsafe_b64decode(token).decode()
    except (binascii.Error, ValueError):
        raise S3Error("InvalidArgument", "The continuation token provided is incorrect") from None


def _entries(world: World, page: Page, spell: Callable[[str], str]) -> str:
    has_generations = world.prefix == "x-goog-"
    lines = [
        f"<Contents>{element('Key', spell(key))}<LastModified>{iso_date(blob.modified_s)}</LastModified>"
        f"{f'<Generation>{blob.generation}</Generation>' if has_generations else ''}"
        f"<ETag>&quot;{blob.etag}&quot;</ETag><Size>{len(blob.data)}</Size><StorageClass>STANDARD</StorageClass></Contents>"
        for key, blob in page.objects
    ]
    lines += [f"<CommonPrefixes>{element('Prefix', spell(name))}</CommonPrefixes>" for name in page.prefixes]
    return "".join(lines)


def list_buckets(world: World, call: Call) -> Reply:
    """ListBuckets."""
    del call
    started = iso_date(0)
    names = [
        f"<Bucket>{element('Name', name)}{element('CreationDate', started)}</Bucket>" for name in sorted(world.buckets)
    ]
    owner = f"<Owner>{element('ID', 'mire')}</Owner>"
    return document("ListAllMyBucketsResult", f"{owner}<Buckets>{''.join(names)}</Buckets>")


def create_bucket(world: World, call: Call) -> Reply:
    """CreateBucket."""
    if not _BUCKET_NAME.fullmatch(call.bucket):
        raise S3Error("InvalidBucketName", "The specified bucket is not valid.", BucketName=call.bucket)
    if call.bucket in world.buckets:
        raise S3Error("BucketAlreadyOwnedByYou", "You already own this bucket.", BucketName=call.bucket)
    world.buckets[call.bucket] = Bucket(call.bucket)
    return Reply(200, [("Location", f"/{call.bucket}")])


def head_bucket(world: World, call: Call) -> Reply:
    """HeadBucket."""
    world.bucket(call.bucket)
    return Reply(200, [("x-amz-bucket-region", "us-east-1")])


def delete_bucket(world: World, call: Call) -> Reply:
    """DeleteBucket."""
    if world.bucket(call.bucket).objects:
        raise S3Error("BucketNotEmpty", "The bucket you tried to delete is not empty", BucketName=call.bucket)
    del world.buckets[call.bucket]
    return Reply(204)


def bucket_location(world: World, call: Call) -> Reply:
    """GetBucketLocation: us-east-1 is spelled as nothing."""
    world.bucket(call.bucket)
    return document("LocationConstraint", "")


def bucket_versioning(world: World, call: Call) -> Reply:
    """GetBucketVersioning: never switched on."""
    world.bucket(call.bucket)
    return document("VersioningConfiguration", "")
