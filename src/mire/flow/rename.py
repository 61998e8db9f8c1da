"""Renaming data: a copy under the new name and a tombstone under the old, visible together.

Owns: the order of the steps of a rename.
Must not know: how a version is written, what becomes of a rename whose writer died.
Keeps: an intent is there before the first of both versions, and goes when both are published.
"""

from dataclasses import dataclass

from mire.edge import clock
from mire.flow.datastore import Datastore
from mire.flow.lock import hold_models
from mire.flow.mark import marking
from mire.flow.read import artifact_of, current_metadata, not_found, version_path
from mire.flow.settle import Intent, Place, finish_intent, leave_intent, settle
from mire.flow.version import claim, compact_json, latest_path, write_version
from mire.model.artifact import Metadata, ModelRef
from mire.model.names import DataName
from mire.plan.write import check_rename, plan_renamed, plan_tombstone


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
        intent = Intent(places=(Place(new, version, copy.id), Place(old, tombstone, marker.id)))
        places = version_path(ds, model, old, tombstone), version_path(ds, model, new, version)
        with marking(ds, *places, latest_path(ds, model, old), latest_path(ds, model, new)):
            hold.check()
            leave_intent(ds, model, intent)
            # The tombstone first: it stays invisible above `latest`. Once the copy can be seen both are complete, so
            # the rename is always finished and never taken back.
            write_version(places[0], [compact_json(content)], marker, hold)
            write_version(places[1], artifact.chunks(), copy, hold)
            finish_intent(ds, model, intent, hold)
        return Renamed(
            old=old, new=new, copied_version=source.version, new_version=version, tombstone_version=tombstone
        )


def _check_renamable(ds: Datastore, model: ModelRef, old: DataName, new: DataName) -> Metadata:
    source = current_metadata(ds, model, old)
    if source is None:
        raise not_found(ds, model, old)
    check_rename(old, new, source, current_metadata(ds, model, new))
    return source
