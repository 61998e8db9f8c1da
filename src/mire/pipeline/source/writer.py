"""Writing: tasks check and stage their rows, the driver makes versions of them and publishes all of them at once.

Owns: what Spark calls, and the commit.
Must not know: how a version is written, how the index is.
Keeps: nothing is visible before the commit, and all of it after; a task that is tried again, or twice at once, adds
nothing; whatever cannot be written is found before the first version is made.
"""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from mire.api import Model, Store
from mire.edge import clock
from mire.errors import InputError, MireError
from mire.flow import remove
from mire.flow.datastore import Datastore
from mire.flow.lock import hold_global, hold_models
from mire.flow.write import VERSIONS_KEPT, check_may_write
from mire.model.artifact import Metadata, ModelRef, Owner, parse_owner
from mire.model.names import DataName, ModelId, ModelType
from mire.pipeline.release import check_release, this_release
from mire.pipeline.source.draft import DRAFTS, check_columns, drafts_of, policy_of
from mire.pipeline.source.place import open_checked, spec_for
from mire.pipeline.source.staging import Staged, bring, clear, stage, staged_batches
from mire.pipeline.source.target import check_target, open_target
from mire.plan.source import SourceOptions

_LOCKS_MAX: Final = 200
"""Models that are locked one by one; of more, the whole namespace is held: one lock instead of so many requests."""


class Writer(DataSourceArrowWriter):
    """Makes versions of rows."""

    def __init__(self, options: SourceOptions, schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise InputError(
                'versions are never overwritten: write with mode("append"), which adds a version', kind="overwrite"
            )
        check_columns(schema)
        check_target(options)
        self._options = options
        self._schema = schema
        self._spec = spec_for(options)
        self._job = clock.new_uuid()
        self._driver = this_release()
        open_checked(self._spec)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Check and stage the rows of one task."""
        check_release(self._driver)
        return stage(self._spec, self._job, drafts_of(iterator, self._schema, self._options.owner), DRAFTS)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Publish what all tasks staged, in the order of their partitions."""
        staged = [each for each in messages if isinstance(each, Staged)]
        try:
            with tempfile.TemporaryDirectory() as scratch:
                paths = bring(self._spec, staged, scratch)
                if paths:
                    with open_target(self._options, scratch) as ds:
                        commit_rows(ds, paths)
        finally:
            clear(self._spec, self._job)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove what tasks staged."""
        del messages
        clear(self._spec, self._job)


def _rows(paths: Iterable[str]) -> Iterator[dict[str, Any]]:
    for path in paths:
        for batch in staged_batches(path):
            yield from batch.to_pylist(maps_as_pydicts="strict")


def commit_rows(ds: Datastore, paths: list[str]) -> int:
    """Write all rows as versions and publish them together; how many there were."""
    names = {(_model(row), DataName(row["name"]), row["owner"]) for row in _rows(paths)}
    models = {model for model, _, _ in names}
    held = hold_models(ds, models) if len(models) <= _LOCKS_MAX else hold_global(ds)
    store, count = Store(ds), 0
    with held:
        for model, name, owner in names:
            check_may_write(ds, model, name, _owner(model, owner), revive=False)
        with _all_or_none(ds) as made:
            for row in _rows(paths):
                made.append((_model(row), _put(store, row)))
                count += 1
    return count


@contextmanager
def _all_or_none(ds: Datastore) -> Iterator[list[tuple[ModelRef, Metadata]]]:
    """In a directory every version is there at once: when one cannot be written, those before it go again."""
    made: list[tuple[ModelRef, Metadata]] = []
    try:
        yield made
    except BaseException:
        for model, metadata in reversed(made) if not ds.is_cache else ():
            with suppress(MireError):
                remove.delete(ds, model, metadata.name, metadata.version)
        raise


def _put(store: Store, row: dict[str, Any]) -> Metadata:
    policy = row["version_policy"]
    model: Model = store.model(row["model_type"], row["model_id"], name=row["model_name"])
    return model.put(
        row["name"],
        row["content"],
        tags=dict(row["tags"]),
        content_type=row["content_type"],
        lifetime=row["lifetime"],
        version_policy=VERSIONS_KEPT if policy is None else policy_of(policy),
        streaming=row["streaming"],
        owner=row["owner"],
    )


def _model(row: dict[str, Any]) -> ModelRef:
    return ModelRef(model_type=ModelType(row["model_type"]), model_id=ModelId(row["model_id"]))


def _owner(model: ModelRef, text: str | None) -> Owner:
    return Owner(owner_type="manual", owner_ref=model.model_id) if text is None else parse_owner(text)
