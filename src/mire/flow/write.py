"""Writing artifacts: put, append, delete, rename, deletion markers.

Owns: the order of file operations, which is the whole of crash safety here.
Must not know: formats beyond their encoders, rules beyond `plan/write`.
Keeps: raw before metadata before `latest`, each durable before the next; the lock is proved ours before
each step that makes something visible; dying anywhere leaves the old or the new state.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from mire.edge import clock, files
from mire.errors import ConflictError, FormatError, MireError, NotFoundError, shown
from mire.flow.datastore import Datastore
from mire.flow.lock import Hold, hold_models
from mire.flow.read import (
    Artifact,
    artifact_of,
    current_metadata,
    finished_numbers,
    latest_metadata,
    load_metadata,
    look_at_marks,
    look_at_name,
    not_found,
    version_path,
)
from mire.model.artifact import Metadata, ModelRef, NameState, Owner
from mire.model.lifetime import INFINITE, Lifetime, VersionPolicy
from mire.model.names import DataName, RelPath, Version, parse_data_name
from mire.plan.write import (
    Removal,
    check_not_renamed,
    check_owner,
    check_rename,
    check_streaming,
    leftover_numbers,
    next_version,
    plan_delete_name,
    plan_delete_version,
    plan_deletion_content,
    plan_grown,
    plan_renamed,
    plan_tombstone,
)
from mire.wire.fields import Fields, text, whole
from mire.wire.latest import decode_latest, encode_highest, encode_latest
from mire.wire.layout import HIGHEST, LATEST, METADATA, RAW, intent_path, name_dir
from mire.wire.metadata import encode_metadata

_CLAIMS_MAX = 100
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
        version = _claim(ds, model, name)
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
        _finish(directory, metadata, hold)
        _publish(ds, model, name, version, hold)
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
        state = look_at_name(ds, model, name)
        numbers = finished_numbers(ds, model, name, state)
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
            _finish(directory, current, hold)
        hold.check()
        grown = files.grow_file(artifact.path, current.size_bytes or 0, chunks)
        metadata = plan_grown(current, grown)
        _finish(directory, metadata, hold)
        return metadata


def _latest_or_none(ds: Datastore, model: ModelRef, name: DataName) -> Metadata | None:
    try:
        return latest_metadata(ds, model, name)
    except NotFoundError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """What a deletion removed."""

    name: DataName
    versions: tuple[int, ...]
    is_whole_name: bool


def delete(ds: Datastore, model: ModelRef, name: DataName, version: int | None = None) -> Deleted:
    """Delete one version, or the name with all of them; numbers are never given out again."""
    finished = finished_numbers(ds, model, name, look_at_name(ds, model, name))
    if not finished or (version is not None and version not in finished):
        raise not_found(model, name, version)
    with hold_models(ds, [model]) as hold:
        settle(ds, model)
        state = look_at_name(ds, model, name)
        finished = finished_numbers(ds, model, name, state)
        if not finished or (version is not None and version not in finished):
            raise not_found(model, name, version)
        removal = plan_delete_name(state) if version is None else plan_delete_version(state, finished, version)
        _remove(ds, model, name, removal, hold)
        gone = tuple(finished) if removal.latest is None else removal.numbers
        return Deleted(name=name, versions=gone, is_whole_name=removal.latest is None)


def _remove(ds: Datastore, model: ModelRef, name: DataName, removal: Removal, hold: Hold) -> None:
    directory = ds.path_of(name_dir(model, name))
    hold.check()
    if removal.highest is not None:
        files.write_file(os.path.join(directory, HIGHEST), [encode_highest(removal.highest)])
    hold.check()
    if removal.latest is None:
        files.remove_file(os.path.join(directory, LATEST))
    elif not removal.keeps_latest:
        files.write_file(os.path.join(directory, LATEST), [encode_latest(removal.latest)])
    for number in removal.numbers:
        _remove_version(os.path.join(directory, str(number)))


def _remove_version(directory: str) -> None:
    # Metadata first: from then on the directory claims nothing.
    files.remove_file(os.path.join(directory, METADATA))
    files.remove_tree(directory)


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
    """What a rename did."""

    old: DataName
    new: DataName
    copied_version: int
    new_version: int
    tombstone_version: int


def rename(ds: Datastore, model: ModelRef, old: DataName, new: DataName) -> Renamed:
    """Give the latest version a new name; the old one forwards to it and keeps its history."""
    _check_renamable(ds, model, old, new)
    with hold_models(ds, [model]) as hold:
        settle(ds, model)
        source = _check_renamable(ds, model, old, new)
        artifact = artifact_of(ds, model, source)
        artifact.verify()
        version, tombstone = _claim(ds, model, new), _claim(ds, model, old)
        intent = {"old": old, "new": new, "newVersion": version, "tombstoneVersion": tombstone}
        hold.check()
        files.write_file(ds.path_of(intent_path(model)), [json.dumps(intent, ensure_ascii=False).encode()])
        now = clock.now_instant()
        copy = plan_renamed(source, new=new, version=version, id=clock.new_uuid(), now=now)
        _write_version(version_path(ds, model, new, version), artifact.chunks(), copy, hold)
        marker, content = plan_tombstone(source, version=tombstone, renamed_to=new, id=clock.new_uuid(), now=now)
        _write_version(version_path(ds, model, old, tombstone), [_compact(content)], marker, hold)
        _finish_rename(ds, model, _Intent(old=old, new=new, version=version, tombstone=tombstone), hold)
        return Renamed(
            old=old, new=new, copied_version=source.version, new_version=version, tombstone_version=tombstone
        )


def _check_renamable(ds: Datastore, model: ModelRef, old: DataName, new: DataName) -> Metadata:
    source = current_metadata(ds, model, old)
    if source is None:
        raise not_found(model, old)
    check_rename(old, new, source, current_metadata(ds, model, new))
    return source


def _write_version(directory: str, chunks: Iterable[bytes], metadata: Metadata, hold: Hold) -> None:
    files.write_file(os.path.join(directory, RAW), chunks)
    _finish(directory, metadata, hold)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Intent:
    """A rename under way: two versions that become visible together."""

    old: DataName
    new: DataName
    version: Version
    tombstone: Version


def settle(ds: Datastore, model: ModelRef) -> None:
    """Finish or undo a rename whose writer died; the caller holds the model."""
    path = ds.path_of(intent_path(model))
    data = files.read_file(path, limit=65_536)
    if data is None:
        return
    try:
        intent = _decode_intent(data)
    except FormatError:
        files.remove_file(path)  # written whole or not at all, so this one is not ours
        return
    places = (
        version_path(ds, model, intent.new, intent.version),
        version_path(ds, model, intent.old, intent.tombstone),
    )
    if all(files.is_file(os.path.join(place, METADATA)) for place in places):
        _finish_rename(ds, model, intent, Hold(()))
        return
    for place in places:
        _remove_version(place)
        files.make_dirs(place)  # an empty directory keeps the number from being given out again
    files.remove_file(path)


def settle_before_read(ds: Datastore, model: ModelRef) -> None:
    """Settle on behalf of a reader, if nobody is working on the model and we may write."""
    if ds.read_only_reason is not None or not files.is_file(ds.path_of(intent_path(model))):
        return
    try:
        with hold_models(ds, [model], wait_ms=0):
            settle(ds, model)
    except MireError:
        # The rename's writer is alive, or we cannot write here: the reader sees what is there.
        return


def _decode_intent(data: bytes) -> _Intent:
    try:
        fields = Fields(json.loads(data), "rename")
    except ValueError:
        raise FormatError("the rename under way is not JSON") from None
    return _Intent(
        old=parse_data_name(fields.take("old", text)),
        new=parse_data_name(fields.take("new", text)),
        version=Version(fields.take("newVersion", whole)),
        tombstone=Version(fields.take("tombstoneVersion", whole)),
    )


def _finish_rename(ds: Datastore, model: ModelRef, intent: _Intent, hold: Hold) -> None:
    _publish(ds, model, intent.new, intent.version, hold)
    _publish(ds, model, intent.old, intent.tombstone, hold)
    files.remove_file(ds.path_of(intent_path(model)))


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
        return put(ds, model, name, [_compact(content)], draft)


def _attributes_of(artifact: Artifact) -> object:
    if artifact.metadata.content_type != "application/json":
        return None
    try:
        return artifact.json()
    except MireError:
        return None  # a marker can be written even when the content it ends is damaged


def _claim(ds: Datastore, model: ModelRef, name: DataName) -> Version:
    """Take the next number by creating its directory; whoever creates it has it."""
    directory = ds.path_of(name_dir(model, name))
    state = look_at_marks(ds, model, name)
    if not state.marker:
        _check_place(ds.root_of(name_dir(model, name)), name_dir(model, name))
    files.make_dirs(directory)
    # The marker alone says where to start; only a name without one, or with deletions, must be listed.
    claimed = _claim_from(directory, state) if state.marker and not state.highest.number else None
    if claimed is None:
        state = look_at_name(ds, model, name)
        _sweep(directory, state)
        claimed = _claim_from(directory, state)
    if claimed is None:
        raise ConflictError(
            f"{shown(name)} of {model}: {_CLAIMS_MAX} versions were taken by others while we tried: try again",
            name=name,
        )
    return claimed


def _check_place(root: str, rel_path: RelPath) -> None:
    """Refuse a first version inside another model's data, or around it: deleting one would take the other.

    Only ids that are not UUIDs can meet so: `a/b` of model type `x` is a directory of model type `x/a` too.
    """
    parts = rel_path.split("/")
    for depth in range(2, len(parts)):
        above = os.path.join(root, *parts[:depth])
        if any(files.is_file(os.path.join(above, name)) for name in (LATEST, HIGHEST, METADATA, RAW)):
            raise _nested(rel_path, "/".join(parts[:depth]))
    for entry in files.list_dir(os.path.join(root, rel_path)):
        inner = os.path.join(root, rel_path, entry.name)
        if entry.is_dir and (not entry.name.isdigit() or any(child.is_dir for child in files.list_dir(inner))):
            raise _nested(rel_path, f"{rel_path}/{entry.name}")


def _nested(rel_path: RelPath, other: str) -> ConflictError:
    return ConflictError(
        f"{shown(rel_path)} would share a directory with other data, {shown(other)}: choose another id or name",
        kind="nested",
        path=rel_path,
    )


def _claim_from(directory: str, state: NameState) -> Version | None:
    number = next_version(state)
    for candidate in range(number, number + _CLAIMS_MAX):
        if files.claim_dir(os.path.join(directory, str(candidate))):
            return Version(candidate)
    return None


def _sweep(directory: str, state: NameState) -> None:
    """Remove what a deletion published as gone but did not live to remove."""
    for number in leftover_numbers(state):
        _remove_version(os.path.join(directory, str(number)))


def _finish(directory: str, metadata: Metadata, hold: Hold) -> None:
    """Write the metadata: from now on the version is complete."""
    hold.check()
    files.write_file(os.path.join(directory, METADATA), [encode_metadata(metadata)])


def _publish(ds: Datastore, model: ModelRef, name: DataName, version: int, hold: Hold) -> None:
    """Point `latest` at a version; never backwards, even if we were stopped and others went on."""
    directory = ds.path_of(name_dir(model, name))
    path = os.path.join(directory, LATEST)
    with files.directory_guard(directory):
        hold.check()
        marker = files.read_marker(path)
        if (decode_latest(marker or b"") or 0) < version:
            files.write_file(path, [encode_latest(version)])


def _compact(content: object) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
