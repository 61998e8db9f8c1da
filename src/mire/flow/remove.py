"""Deleting a version, or a name with all of them.

Owns: the order of a removal.
Must not know: who may delete.
Keeps: one step makes a deletion true (`latest` removed for a name, moved back for its newest version, the
metadata file removed for an older one); what it did not live to remove is swept by the next write.
"""

import os
from dataclasses import dataclass

from mire.edge import files
from mire.flow.catalog import note
from mire.flow.datastore import Datastore
from mire.flow.lock import Hold, hold_models
from mire.flow.mark import marking
from mire.flow.read import finished_numbers, look_at_name, not_found
from mire.flow.settle import settle
from mire.flow.version import forget_floor, remove_version
from mire.model.artifact import ModelRef, NameState
from mire.model.names import DataName
from mire.plan.write import Removal, plan_delete_name, plan_delete_version
from mire.wire.latest import encode_highest, encode_latest
from mire.wire.layout import HIGHEST, LATEST, name_dir


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """What a deletion removed."""

    name: DataName
    versions: tuple[int, ...]
    is_whole_name: bool


def delete(ds: Datastore, model: ModelRef, name: DataName, version: int | None = None) -> Deleted:
    """Delete one version, or the name with all of them; numbers are never given out again."""
    if not ds.is_cache:
        _check_there(ds, model, name, version, look_at_name(ds, model, name))
    with hold_models(ds, [model]) as hold:
        settle(ds, model)
        state = look_at_name(ds, model, name)
        finished = _check_there(ds, model, name, version, state)
        removal = plan_delete_name(state) if version is None else plan_delete_version(state, finished, version)
        _remove(ds, model, name, removal, hold)
        note(ds, model, name)
        gone = tuple(finished) if removal.latest is None else removal.numbers
        return Deleted(name=name, versions=gone, is_whole_name=removal.latest is None)


def _check_there(ds: Datastore, model: ModelRef, name: DataName, version: int | None, state: NameState) -> list[int]:
    finished = finished_numbers(ds, model, name, state)
    if not finished or (version is not None and version not in finished):
        raise not_found(ds, model, name, version)
    return finished


def _remove(ds: Datastore, model: ModelRef, name: DataName, removal: Removal, hold: Hold) -> None:
    directory = ds.path_of(name_dir(model, name))
    latest, highest = os.path.join(directory, LATEST), os.path.join(directory, HIGHEST)
    gone = [os.path.join(directory, str(number)) for number in removal.numbers]
    written = [highest] * (removal.highest is not None)
    if removal.latest is not None and not removal.keeps_latest:
        written.append(latest)
    with marking(ds, *written, removing=[latest, *gone] if removal.latest is None else gone):
        hold.check()
        if removal.highest is not None:
            files.write_file(highest, [encode_highest(removal.highest)])
        hold.check()
        if removal.latest is None:
            files.remove_file(latest)
        elif not removal.keeps_latest:
            files.write_file(latest, [encode_latest(removal.latest)])
        for path in gone:
            remove_version(path)
        if removal.latest is None:
            forget_floor(ds, directory)
