"""Renaming data: a copy under the new name and a tombstone under the old, visible together.

Owns: the intent file that makes two places one step.
Must not know: how a version is written.
Keeps: a rename whose writer died is finished if both versions are complete, and undone otherwise, by whoever
comes next.
"""

import json
from dataclasses import dataclass

from mire.edge import clock, files
from mire.errors import FormatError, MireError
from mire.flow.catalog import note
from mire.flow.datastore import Datastore
from mire.flow.lock import Hold, hold_models
from mire.flow.mark import marking
from mire.flow.read import artifact_of, current_metadata, load_metadata, look_at_marks, not_found, version_path
from mire.flow.version import claim, compact_json, latest_path, publish, remove_version, write_version
from mire.model.artifact import Metadata, ModelRef
from mire.model.names import DataName, Version, parse_data_name, parse_version
from mire.plan.write import check_rename, plan_renamed, plan_tombstone, published_number
from mire.wire.fields import Fields, text
from mire.wire.layout import intent_path


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
    if not ds.is_cache:
        _check_renamable(ds, model, old, new)
    with hold_models(ds, [model]) as hold:
        settle(ds, model)
        source = _check_renamable(ds, model, old, new)
        artifact = artifact_of(ds, model, source)
        artifact.verify()
        version, tombstone = claim(ds, model, new), claim(ds, model, old)
        now = clock.now_instant()
        copy = plan_renamed(source, new=new, version=version, id=clock.new_uuid(), now=now)
        marker, content = plan_tombstone(source, version=tombstone, renamed_to=new, id=clock.new_uuid(), now=now)
        intent = _Intent(copy=_Place(new, version, copy.id), tombstone=_Place(old, tombstone, marker.id))
        places = version_path(ds, model, old, tombstone), version_path(ds, model, new, version)
        with marking(ds, *places, latest_path(ds, model, old), latest_path(ds, model, new)):
            hold.check()
            files.write_file(ds.path_of(intent_path(model)), [_encode_intent(intent)])
            # The tombstone first: it stays invisible above `latest`. Once the copy can be seen both are complete, so
            # the rename is always finished and never taken back.
            write_version(places[0], [compact_json(content)], marker, hold)
            write_version(places[1], artifact.chunks(), copy, hold)
            _finish_rename(ds, model, intent, hold)
        return Renamed(
            old=old, new=new, copied_version=source.version, new_version=version, tombstone_version=tombstone
        )


def _check_renamable(ds: Datastore, model: ModelRef, old: DataName, new: DataName) -> Metadata:
    source = current_metadata(ds, model, old)
    if source is None:
        raise not_found(ds, model, old)
    check_rename(old, new, source, current_metadata(ds, model, new))
    return source


@dataclass(frozen=True, slots=True)
class _Place:
    """One of the two versions of a rename; its id tells it from what others may have put there since."""

    name: DataName
    version: Version
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Intent:
    """A rename under way: two versions that become visible together."""

    copy: _Place
    tombstone: _Place


def settle(ds: Datastore, model: ModelRef) -> None:
    """Finish or undo a rename whose writer died; the caller holds the model."""
    path = ds.path_of(intent_path(model))
    data = files.read_file(path, limit=65_536)
    if data is None:
        return
    intent = _decode_intent(data)
    if intent is None:
        files.remove_file(path)  # written whole or not at all, so this one is not ours
        return
    places = (intent.copy, intent.tombstone)
    if all(_id_at(ds, model, place) == place.id for place in places):
        with marking(ds, *(latest_path(ds, model, place.name) for place in places)):
            _finish_rename(ds, model, intent, Hold(()))
        return
    for place in places:
        _undo(ds, model, place)
    files.remove_file(path)


def _undo(ds: Datastore, model: ModelRef, place: _Place) -> None:
    """Empty a version we began, unless it is published or somebody else's by now."""
    published = published_number(look_at_marks(ds, model, place.name)) or 0
    if place.version <= published or _id_at(ds, model, place) not in (None, place.id):
        return
    directory = version_path(ds, model, place.name, place.version)
    with marking(ds, removing=[directory]):
        remove_version(directory)
    files.make_dirs(directory)  # an empty directory keeps the number from being given out again


def _id_at(ds: Datastore, model: ModelRef, place: _Place) -> str | None:
    """The id of the version there, None when it has no metadata; what cannot be read is not ours."""
    try:
        metadata = load_metadata(ds, model, place.name, place.version)
    except MireError:
        return ""
    return None if metadata is None else metadata.id


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


def _encode_intent(intent: _Intent) -> bytes:
    parts = {"copy": intent.copy, "tombstone": intent.tombstone}
    document = {key: {"name": p.name, "version": p.version, "id": p.id} for key, p in parts.items()}
    return json.dumps(document, ensure_ascii=False).encode()


def _decode_intent(data: bytes) -> _Intent | None:
    try:
        fields = Fields(json.loads(data), "rename")
        return _Intent(copy=fields.take("copy", _place), tombstone=fields.take("tombstone", _place))
    except (FormatError, ValueError, RecursionError):
        return None


def _place(value: object) -> _Place:
    fields = Fields(value, "rename")
    return _Place(fields.take("name", parse_data_name), fields.take("version", parse_version), fields.take("id", text))


def _finish_rename(ds: Datastore, model: ModelRef, intent: _Intent, hold: Hold) -> None:
    for place in (intent.copy, intent.tombstone):
        publish(ds, model, place.name, place.version, hold)
    files.remove_file(ds.path_of(intent_path(model)))
    note(ds, model, intent.tombstone.name, intent.copy.name)
