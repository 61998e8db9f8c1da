"""Writing artifacts: put, append, deletion markers.

Owns: what a new version says about itself.
Must not know: formats, and rules beyond `plan/write`.
Keeps: dying anywhere leaves the old or the new state.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from mire.edge import clock, files
from mire.errors import ConflictError, FormatError, InputError, MireError, NotFoundError, shown
from mire.flow.catalog import note
from mire.flow.datastore import Datastore
from mire.flow.lock import hold_models
from mire.flow.mark import marking
from mire.flow.read import (
    METADATA_BYTES_MAX,
    Artifact,
    artifact_of,
    current_metadata,
    latest_metadata,
    load_metadata,
    look_at_marks,
    not_found,
    version_path,
    versions,
)
from mire.flow.settle import settle
from mire.flow.setup import ensure_initialized
from mire.flow.version import claim, compact_json, finish, latest_path, publish, remove_version
from mire.model.artifact import Metadata, ModelRef, Owner
from mire.model.lifetime import INFINITE, Lifetime, VersionPolicy
from mire.model.names import DataName, Version
from mire.plan.write import (
    check_not_renamed,
    check_owner,
    check_streaming,
    plan_deletion_content,
    plan_grown,
    published_number,
)
from mire.wire.layout import DATA, RAW, name_dir
from mire.wire.metadata import decode_metadata, encode_metadata

_ROOM = 1_024
"""What the true size and checksum may add to metadata that was written on trial."""

_STAGED_S = 86_400.0
"""Staged content this old belongs to a writer that died; no put waits a day between writing and moving it."""

VERSIONS_KEPT = 10
"""The usual `garbageCollection`: how many versions a retention run keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a writer says about a new version."""

    content_type: str
    owner: Owner
    tags: Mapping[str, str]
    lifetime: Lifetime = INFINITE
    version_policy: VersionPolicy = VERSIONS_KEPT
    streaming: bool = False
    is_deleted: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)


def put(
    ds: Datastore,
    model: ModelRef,
    name: DataName,
    chunks: Iterable[bytes],
    draft: Draft,
    *,
    revive: bool = False,
) -> Metadata:
    """Write a new version of a name; its content is on disk before anybody is kept waiting by a lock."""
    check_draft(name, draft)
    ds.path_of(name_dir(model, name))
    if ds.together is not None:
        return ds.together.put(model, name, chunks, draft)
    with staged(ds, model, name, chunks) as (content, written), hold_models(ds, [model]) as hold:
        settle(ds, model)
        check_may_write(ds, model, name, draft.owner, revive=revive)
        version = claim(ds, model, name)
        metadata = described(draft, name, version, size_bytes=written.size_bytes, checksum=written.sha256)
        directory = version_path(ds, model, name, version)
        with marking(ds, directory, latest_path(ds, model, name)), _or_nothing(ds, model, metadata):
            hold.check()
            files.move_file(content, os.path.join(directory, RAW))
            finish(directory, metadata, hold)
            publish(ds, model, name, version, hold)
        note(ds, model, name)
        return metadata


@contextmanager
def staged(
    ds: Datastore, model: ModelRef, name: DataName, chunks: Iterable[bytes]
) -> Iterator[tuple[str, files.Written]]:
    """Content on disk, beside its place, before anybody is kept waiting for it."""
    ds.check_writable()
    ensure_initialized(ds)
    directory = os.path.join(ds.root_of(name_dir(model, name)), DATA)
    with files.staged(directory, chunks, sweep_s=_STAGED_S) as staged:
        yield staged


def check_draft(name: DataName, draft: Draft) -> None:
    """Refuse what could not be read back, before anything is touched: by writing and reading it in memory."""
    metadata = described(draft, name, Version(1), size_bytes=0, checksum="0")
    try:
        data = encode_metadata(metadata)
        if len(data) > METADATA_BYTES_MAX - _ROOM:
            raise InputError(f"{len(data)} bytes of metadata are too many: keep tags below {METADATA_BYTES_MAX} bytes")
        decode_metadata(data)
    except (FormatError, AttributeError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"this cannot be written: {error}", kind="bad_metadata") from None


def described(draft: Draft, name: DataName, version: Version, *, size_bytes: int, checksum: str) -> Metadata:
    """The metadata of a version to be."""
    return Metadata(
        id=clock.new_uuid(),
        name=name,
        version=version,
        content_type=draft.content_type,
        lifetime=draft.lifetime,
        version_policy=draft.version_policy,
        streaming=draft.streaming,
        tags=draft.tags,
        owner=draft.owner,
        created_at=clock.now_instant(),
        size_bytes=size_bytes,
        checksum=checksum,
        is_deleted=draft.is_deleted,
        extra=draft.extra,
    )


@contextmanager
def _or_nothing(ds: Datastore, model: ModelRef, metadata: Metadata) -> Iterator[None]:
    """A version that could not be completed and published leaves nothing behind."""
    try:
        yield
    except BaseException:
        with suppress(MireError):
            if published_number(look_at_marks(ds, model, metadata.name)) != metadata.version:
                remove_version(version_path(ds, model, metadata.name, metadata.version))
        raise


def check_may_write(ds: Datastore, model: ModelRef, name: DataName, owner: Owner, *, revive: bool) -> None:
    """Refuse a write by another owner, or under a name that forwards elsewhere."""
    try:
        current = current_metadata(ds, model, name)
    except NotFoundError:
        # `latest` points to a version that is not here: whoever owns the newest one that is may write.
        numbers = versions(ds, model, name)
        current = load_metadata(ds, model, name, numbers[-1]) if numbers else None
    check_not_renamed(current, revive=revive)
    check_owner(current, owner)


def append(
    ds: Datastore, model: ModelRef, name: DataName, chunks: Iterable[bytes], owner: Owner | None = None
) -> Metadata:
    """Add bytes to the latest version of streaming data; its recorded size is what makes them count."""
    if not ds.is_cache:
        check_streaming(_latest_or_none(ds, model, name), name)
    with staged(ds, model, name, chunks) as (content, _), hold_models(ds, [model]) as hold:
        settle(ds, model)
        current = check_streaming(_latest_or_none(ds, model, name), name)
        if owner is not None:
            check_owner(current, owner)
        artifact = artifact_of(ds, model, current)
        directory = os.path.dirname(artifact.path)
        size = files.size_of(artifact.path)
        if current.checksum is not None or size is None or size < (current.size_bytes or 0):
            # An append drops the checksum, so damage must be found before it would become the good content.
            artifact.verify()
        with marking(ds, directory):
            if current.size_bytes is None:
                # Without a recorded size every byte counts at once; record it first: then the append is one step.
                current = plan_grown(current, size or 0)
                finish(directory, current, hold)
            hold.check()
            grown = files.grow_file(artifact.path, current.size_bytes or 0, files.chunks_of(content))
            metadata = plan_grown(current, grown)
            finish(directory, metadata, hold)
        note(ds, model, current.name)
        return metadata


def _latest_or_none(ds: Datastore, model: ModelRef, name: DataName) -> Metadata | None:
    try:
        return latest_metadata(ds, model, name)
    except NotFoundError:
        return None


def mark_deleted(ds: Datastore, model: ModelRef, name: DataName, *, method: str) -> Metadata:
    """Write a deletion marker: a version that says the thing described is gone, with its last attributes."""
    if not ds.is_cache:
        _check_markable(ds, model, name)
    with hold_models(ds, [model]):
        current = _check_markable(ds, model, name)
        content = plan_deletion_content(
            _attributes_of(artifact_of(ds, model, current)), now=clock.now_instant(), method=method
        )
        draft = Draft(
            content_type="application/json",
            owner=current.owner,
            tags=current.tags,
            lifetime=current.lifetime,
            version_policy=current.version_policy,
            is_deleted=True,
            extra=current.extra,
        )
        return put(ds, model, name, [compact_json(content)], draft)


def _check_markable(ds: Datastore, model: ModelRef, name: DataName) -> Metadata:
    current = current_metadata(ds, model, name)
    if current is None:
        raise not_found(ds, model, name)
    if current.is_deleted:
        raise ConflictError(f"{shown(name)} of {model} is already deleted", kind="already_deleted", name=name)
    return current


def _attributes_of(artifact: Artifact) -> object:
    if artifact.metadata.content_type != "application/json":
        return None
    try:
        return artifact.json()
    except MireError:
        return None  # a marker can be written even when the content it ends is damaged
