"""Changes of several names that are one step: their intents, finished or undone by whoever comes next.

Owns: the intent file of a model, what it says, and what becomes of one whose writer died.
Must not know: why versions belong together, how they are written.
Keeps: a rename is finished if both of its versions are complete, and undone otherwise; versions that were written
together are finished if that was decided for all of them, in whichever model, and undone otherwise.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from mire.edge import files
from mire.errors import FormatError, MireError
from mire.flow.catalog import note
from mire.flow.datastore import Datastore
from mire.flow.lock import Hold, hold_models
from mire.flow.mark import marking
from mire.flow.read import load_metadata, look_at_marks, version_path
from mire.flow.version import latest_path, publish, remove_version
from mire.model.artifact import ModelRef
from mire.model.names import DataName, Uuid, Version, parse_data_name, parse_uuid, parse_version
from mire.plan.write import published_number
from mire.wire.control import CONTROL
from mire.wire.fields import Fields
from mire.wire.layout import intent_path

_DECISIONS: Final = f"{CONTROL}/mire-writes"
_INTENT_BYTES_MAX: Final = 64 << 20
live_jobs: Final = set[str]()
"""What this process is writing together: who holds a lock is let in again, and must not settle its own work."""


@dataclass(frozen=True, slots=True)
class Place:
    """A version that belongs to others; its id tells it from what somebody else may have put there since."""

    name: DataName
    version: Version
    id: Uuid


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """Versions of a model that become visible together, in this order; those of a `job` with those of other models."""

    places: tuple[Place, ...]
    job: str | None = None


def leave_intent(ds: Datastore, model: ModelRef, intent: Intent) -> None:
    """Say what is about to be written, before it is."""
    files.write_file(ds.path_of(intent_path(model)), [_encode_intent(intent)])


def settle(ds: Datastore, model: ModelRef) -> None:
    """Finish or undo what a writer left that died; the caller holds the model."""
    path = ds.path_of(intent_path(model))
    data = files.read_file(path, limit=_INTENT_BYTES_MAX)
    if data is None:
        return
    intent = _decode_intent(data)
    if intent is None:
        files.remove_file(path)  # written whole or not at all, so this one is not ours
    elif intent.job in live_jobs:
        return  # this very process is at it, and reads what it has not published yet
    elif _is_due(ds, model, intent):
        with marking(ds, *(latest_path(ds, model, place.name) for place in intent.places)):
            finish_intent(ds, model, intent, Hold(()))
    else:
        undo_intent(ds, model, intent)


def _is_due(ds: Datastore, model: ModelRef, intent: Intent) -> bool:
    if intent.job is not None:
        return files.is_file(decision_path(ds, intent.job))
    return all(_id_at(ds, model, place) == place.id for place in intent.places)


def finish_intent(ds: Datastore, model: ModelRef, intent: Intent, hold: Hold) -> None:
    """Publish the versions of an intent, and forget it."""
    newest: dict[DataName, Version] = {}
    for place in intent.places:
        newest[place.name] = max(place.version, newest.get(place.name, place.version))
    for name, version in newest.items():
        publish(ds, model, name, version, hold)
    files.remove_file(ds.path_of(intent_path(model)))
    note(ds, model, *newest)


def undo_intent(ds: Datastore, model: ModelRef, intent: Intent) -> None:
    """Empty the versions of an intent, and forget it."""
    for place in intent.places:
        _undo(ds, model, place)
    files.remove_file(ds.path_of(intent_path(model)))


def _undo(ds: Datastore, model: ModelRef, place: Place) -> None:
    """Empty a version we began, unless it is published or somebody else's by now."""
    published = published_number(look_at_marks(ds, model, place.name)) or 0
    if place.version <= published or _id_at(ds, model, place) not in (None, place.id):
        return
    directory = version_path(ds, model, place.name, place.version)
    with marking(ds, removing=[directory]):
        remove_version(directory)
    files.make_dirs(directory)  # an empty directory keeps the number from being given out again


def _id_at(ds: Datastore, model: ModelRef, place: Place) -> str | None:
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
    settle_idle(ds, [model])


def settle_idle(ds: Datastore, models: Iterable[ModelRef]) -> bool:
    """Settle models that nobody is working on; whether all of them could be."""
    try:
        for model in models:
            with hold_models(ds, [model], wait_ms=0):
                settle(ds, model)
    except MireError:
        # The writer is alive, or we cannot write here: the reader sees what is there.
        return False
    return True


def decision_path(ds: Datastore, job: str) -> str:
    """The file that says that everything a job wrote counts."""
    return os.path.join(ds.tier, _DECISIONS, job)


def decisions(ds: Datastore) -> list[str]:
    """The jobs that decided, and did not live to publish everything or are at it."""
    return [entry.name for entry in files.list_dir(os.path.join(ds.tier, _DECISIONS)) if not entry.is_dir]


def _encode_intent(intent: Intent) -> bytes:
    places = [{"name": place.name, "version": place.version, "id": place.id} for place in intent.places]
    if intent.job is not None:
        return json.dumps({"job": intent.job, "places": places}, ensure_ascii=False).encode()
    return json.dumps(dict(zip(("copy", "tombstone"), places, strict=True)), ensure_ascii=False).encode()


def _decode_intent(data: bytes) -> Intent | None:
    try:
        fields = Fields(json.loads(data), "intent")
        job = fields.maybe("job", parse_uuid)
        if job is not None:
            return Intent(job=job, places=fields.take("places", _places))
        return Intent(places=(fields.take("copy", _place), fields.take("tombstone", _place)))
    except (FormatError, ValueError, RecursionError):
        return None


def _places(value: object) -> tuple[Place, ...]:
    if not isinstance(value, list):
        raise FormatError("places of an intent are no list")
    return tuple(map(_place, value))


def _place(value: object) -> Place:
    fields = Fields(value, "intent")
    return Place(
        fields.take("name", parse_data_name), fields.take("version", parse_version), fields.take("id", parse_uuid)
    )
