"""Versions of many names, in many models, that become visible in one go.

Owns: the decision that makes them count, and the order of the steps around it.
Must not know: what is written, or why it belongs together.
Keeps: nothing is visible before the decision; who dies before it leaves nothing that ever becomes visible, who dies
after it leaves the rest to be published by whoever comes next. Readers that look while it is being published see some
names before others.
"""

import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace

from mire.edge import clock, files
from mire.errors import MireError
from mire.flow.datastore import Datastore
from mire.flow.lock import Hold
from mire.flow.read import model_ref, version_path
from mire.flow.settle import (
    Intent,
    Place,
    decision_path,
    decisions,
    finish_intent,
    leave_intent,
    live_jobs,
    settle,
    settle_idle,
    undo_intent,
)
from mire.flow.version import claim_hidden, finish
from mire.flow.write import Draft, described, staged
from mire.model.artifact import Metadata, ModelRef
from mire.model.names import DataName
from mire.wire.layout import RAW

_DECISION_BYTES_MAX = 256 << 20


class Together:
    """A batch of versions under way; the caller holds all of its models."""

    def __init__(self, ds: Datastore, hold: Hold) -> None:
        self._ds = ds
        self._hold = hold
        self.job = clock.new_uuid()
        self._intents: dict[ModelRef, Intent] = {}
        self._free: dict[tuple[ModelRef, DataName], deque[Place]] = {}

    def claim(self, counts: Mapping[ModelRef, Mapping[DataName, int]]) -> None:
        """Take a number for every version that will come, and say so in an intent of each model."""
        for model, names in counts.items():
            settle(self._ds, model)
            places: list[Place] = []
            for name, count in names.items():
                numbers = claim_hidden(self._ds, model, name, count, self._hold)
                found = [Place(name, number, clock.new_uuid()) for number in numbers]
                self._free[model, name] = deque(found)
                places += found
            intent = Intent(places=tuple(places), job=self.job)
            leave_intent(self._ds, model, intent)
            self._intents[model] = intent

    def put(self, model: ModelRef, name: DataName, chunks: Iterable[bytes], draft: Draft) -> Metadata:
        """Write the next version of a name; nobody sees it yet."""
        with staged(self._ds, model, name, chunks) as (content, written):
            place = self._free[model, name].popleft()
            found = described(draft, name, place.version, size_bytes=written.size_bytes, checksum=written.sha256)
            metadata = replace(found, id=place.id)
            directory = version_path(self._ds, model, name, place.version)
            self._hold.check()
            files.move_file(content, os.path.join(directory, RAW))
            finish(directory, metadata, self._hold)
            return metadata

    def show(self) -> None:
        """Decide, and publish everything."""
        path = decision_path(self._ds, self.job)
        files.make_dirs(os.path.dirname(path))
        self._hold.check(is_strict=True)
        models = [[model.model_type, model.model_id] for model in self._intents]
        files.write_file(path, [json.dumps(models).encode()])
        for model, intent in self._intents.items():
            finish_intent(self._ds, model, intent, self._hold)
        files.remove_file(path)

    def undo(self) -> None:
        """Leave nothing behind, unless it was decided that everything counts."""
        if files.is_file(decision_path(self._ds, self.job)):
            return
        for model, intent in self._intents.items():
            with suppress(MireError):
                undo_intent(self._ds, model, intent)


@contextmanager
def together(ds: Datastore, hold: Hold, counts: Mapping[ModelRef, Mapping[DataName, int]]) -> Iterator[Datastore]:
    """The datastore, as it is to be used for writing so many versions; they are visible when the block ends well.

    The caller holds the models. What a cache has is published by one commit in any case.
    """
    if ds.is_cache:
        yield ds
        return
    batch = Together(ds, hold)
    live_jobs.add(batch.job)
    try:
        batch.claim(counts)
        yield replace(ds, together=batch)
        batch.show()
    except BaseException:
        batch.undo()
        raise
    finally:
        live_jobs.discard(batch.job)


def finish_decided(ds: Datastore) -> None:
    """Publish what writers decided that died before they had published all of it; who lives is left alone."""
    for job in () if ds.is_cache else decisions(ds):
        path = decision_path(ds, job)
        data = files.read_file(path, limit=_DECISION_BYTES_MAX)
        try:
            models = [model_ref(kind, model_id) for kind, model_id in json.loads(data or b"[]")]
        except (ValueError, TypeError, MireError):
            continue  # none of ours
        if settle_idle(ds, models):
            files.remove_file(path)
