"""The XML API of GCS: S3's operations with generations as conditions.

Owns: what the XML API adds to S3's operations and what it answers otherwise.
Must not know: connections, tokens, the JSON API.
Keeps: a condition is judged and the write it guards is done without anything in between.
"""

from typing import Final

from mire.testing import s3multipart, s3objects
from mire.testing.gcsworld import check_generation, check_generation_read, check_is_live, object_headers
from mire.testing.httpwire import Reply
from mire.testing.objectserver import Call
from mire.testing.s3errors import S3Error
from mire.testing.s3world import World

_NAMES: Final = ("x-goog-if-generation-match", "x-goog-if-generation-not-match")
_SOURCE_NAMES: Final = ("x-goog-copy-source-if-generation-match", "x-goog-copy-source-if-generation-not-match")


def put_object(world: World, call: Call) -> Reply:
    """Put an object."""
    check_generation(call.request.headers, _NAMES, world.bucket(call.bucket).objects.get(call.key))
    return _with_headers(world, call, s3objects.put_object(world, call))


def copy_object(world: World, call: Call) -> Reply:
    """Copy an object inside the server; a copy onto itself is a new generation."""
    headers = call.request.headers
    source = s3objects.source_of(world, headers)
    if not check_generation_read(headers, _SOURCE_NAMES, source):
        raise S3Error("PreconditionFailed", Details=_SOURCE_NAMES[1])
    check_generation(headers, _NAMES, world.bucket(call.bucket).objects.get(call.key))
    # GCS has no rule against copying an object to itself; with the metadata named, S3's rule does not apply.
    if world.bucket(call.bucket).objects.get(call.key) is source:
        headers["x-goog-metadata-directive"] = "REPLACE"
        headers.update(source.metadata)
        headers["content-type"] = source.content_type
    return _with_headers(world, call, s3objects.copy_object(world, call))


def get_object(world: World, call: Call) -> Reply:
    """Get an object, or its head."""
    blob = world.blob(call.bucket, call.key)
    check_is_live(call.params, call.key, blob)
    if not check_generation_read(call.request.headers, _NAMES, blob):
        return Reply(304, object_headers(blob))
    reply = s3objects.get_object(world, call)
    reply.headers += object_headers(blob)
    return reply


def delete_object(world: World, call: Call) -> Reply:
    """Delete an object; one that is not there is an error, unlike in S3."""
    blob = world.blob(call.bucket, call.key)
    check_is_live(call.params, call.key, blob)
    check_generation(call.request.headers, _NAMES, blob)
    world.bucket(call.bucket).remove(call.key)
    return Reply(204)


def complete_upload(world: World, call: Call) -> Reply:
    """Complete an upload in parts; GCS takes no conditions here."""
    if any(name in call.request.headers for name in _NAMES):
        raise S3Error("NotImplemented", "Preconditions are not supported for multipart uploads.")
    return _with_headers(world, call, s3multipart.complete_upload(world, call))


def _with_headers(world: World, call: Call, reply: Reply) -> Reply:
    reply.headers += object_headers(world.blob(call.bucket, call.key))
    return reply
