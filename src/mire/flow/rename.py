"""Renaming data: a copy under the new name and a tombstone under the old, visible together.

Owns: the intent file that makes two places one step.
Must not know: how a version is written.
Keeps: a rename whose writer died is finished if both versions are complete, and undone otherwise, by whoever
comes next.
"""

import json
import os
from dataclasses import dataclass

from mire.edge import clock, files
from mire.errors import FormatError, MireError
from mire.flow.datastore import Datastore
from mire.flow.lock import Hold, hold_models
from mire.flow.read import artifact_of, current_metadata, not_found, version_path
from mire.flow.version import claim, compact_json, publish, remove_version, write_version
from mire.model.artifact import Metadata, ModelRef
from mire.model.names import DataName, Version, parse_data_name
from mire.plan.write import check_rename, plan_renamed, plan_tombstone
from mire.wire.fields import Fields, text, whole
from mire.wire.layout import METADATA, intent_path


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
        version, tombstone = claim(ds, model, new), claim(ds, model, old)
        intent = {"old": old, "new": new, "newVersion": version, "tombstoneVersion": tombstone}
        hold.check()
        files.write_file(ds.path_of(intent_path(model)), [json.dumps(intent, ensure_ascii=False).encode()])
        now = clock.now_instant()
        copy = plan_renamed(source, new=new, version=version, id=clock.new_uuid(), now=now)
        write_version(version_path(ds, model, new, version), artifact.chunks(), copy, hold)
        marker, content = plan_tombstone(source, version=tombstone, renamed_to=new, id=clock.new_uuid(), now=now)
        write_version(version_path(ds, model, old, tombstone), [compact_json(content)], marker, hold)
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
        remove_version(place)
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
    publish(ds, model, intent.new, intent.version, hold)
    publish(ds, model, intent.old, intent.tombstone, hold)
    files.remove_file(ds.path_of(intent_path(model)))
