"""Writing: tasks check and stage their rows, the driver makes versions of them and publishes all of them at once.

Owns: what Spark calls.
Must not know: how a version is written, how rows are committed.
Keeps: nothing is visible before the commit, and all of it after; a task that is tried again, or twice at once, adds
nothing.
"""

import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from mire.edge import clock
from mire.errors import InputError
from mire.pipeline.foreign import told
from mire.pipeline.release import check_release, this_release
from mire.pipeline.source.commit import commit_rows
from mire.pipeline.source.draft import DRAFTS, check_columns, drafts_of
from mire.pipeline.source.place import open_checked, spec_for
from mire.pipeline.source.staging import Staged, bring, clear, stage, staged_batches
from mire.pipeline.source.target import check_target, open_target
from mire.plan.source import SourceOptions


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

    @told()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Check and stage the rows of one task."""
        check_release(self._driver)
        return stage(self._spec, self._job, drafts_of(iterator, self._schema, self._options.owner), DRAFTS)

    @told()
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Publish what all tasks staged, in the order of their partitions."""
        staged = [each for each in messages if isinstance(each, Staged)]
        try:
            with tempfile.TemporaryDirectory() as scratch:
                paths = bring(self._spec, staged, scratch)
                if paths:
                    with open_target(self._options, scratch) as ds:
                        commit_rows(ds, partial(_rows, paths), self._options.txn)
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
