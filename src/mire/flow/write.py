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
from mire.errors import ConflictError, MireError, NotFoundError, shown
from mire.flow.datastore import Datastore
from mire.flow.lock import hold_models
from mire.flow.read import (
    Artifact,
    artifact_of,
    current_metadata,
    latest_metadata,
    load_metadata,
    not_found,
    version_path,
    versions,
)
from mire.flow.rename import settle
from mire.flow.version import claim, compact_json, finish, publish
from mire.model.artifact import Metadata, ModelRef, Owner
from mire.model.lifetime import INFINITE, Lifetime, VersionPolicy
from mire.model.names import DataName
from mire.plan.write import check_not_renamed, check_owner, check_streaming, plan_deletion_content, plan_grown
from mire.wire.layout import RAW

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
    """Write a new version of a name."""
    with hold_models(ds, [model]) as hold:
        settle(ds, model)
        check_may_write(ds, model, name, draft.owner, revive=revive)
        version = claim(ds, model, name)
        directory = version_path(ds, model, name, version)
        with _or_nothing(directory):
            written = files.write_file(os.path.join(directory, RAW), chunks)
        metadata = Metadata(
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
            size_bytes=written.size_bytes,
            checksum=written.sha256,
            is_deleted=draft.is_deleted,
            extra=draft.extra,
        )
        finish(directory, metadata, hold)
        publish(ds, model, name, version, hold)
        return metadata


@contextmanager
def _or_nothing(directory: str) -> Iterator[None]:
    """A claimed version whose content could not be written leaves nothing behind."""
    try:
        yield
    except BaseException:
        with suppress(MireError):
            files.remove_tree(directory)
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
    with hold_models(ds, [model]) as hold:
        settle(ds, model)
        current = check_streaming(_latest_or_none(ds, model, name), name)
        if owner is not None:
            check_owner(current, owner)
        artifact = artifact_of(ds, model, current)
        directory = os.path.dirname(artifact.path)
        size = files.size_of(artifact.path)
        if size is None or size < (current.size_bytes or 0):
            artifact.verify()  # raises: missing or shorter than recorded
        if current.size_bytes is None:
            # Without a recorded size every byte counts at once; record it first, so that the append is one step.
            current = plan_grown(current, size or 0)
            finish(directory, current, hold)
        hold.check()
        grown = files.grow_file(artifact.path, current.size_bytes or 0, chunks)
        metadata = plan_grown(current, grown)
        finish(directory, metadata, hold)
        return metadata


def _latest_or_none(ds: Datastore, model: ModelRef, name: DataName) -> Metadata | None:
    try:
        return latest_metadata(ds, model, name)
    except NotFoundError:
        return None


def mark_deleted(ds: Datastore, model: ModelRef, name: DataName, *, method: str) -> Metadata:
    """Write a deletion marker: a version that says the thing described is gone, with its last attributes."""
    with hold_models(ds, [model]):
        current = current_metadata(ds, model, name)
        if current is None:
            raise not_found(model, name)
        if current.is_deleted:
            raise ConflictError(f"{shown(name)} of {model} is already deleted", kind="deleted", name=name)
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


def _attributes_of(artifact: Artifact) -> object:
    if artifact.metadata.content_type != "application/json":
        return None
    try:
        return artifact.json()
    except MireError:
        return None  # a marker can be written even when the content it ends is damaged
