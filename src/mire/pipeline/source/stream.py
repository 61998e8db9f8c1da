"""Reading as a stream: new versions as they are committed.

Owns: what Spark calls, what an offset is, and how much a batch takes.
Must not know: how the index is read, where state is kept.
Keeps: every version is in exactly one batch, and a batch that is read again is the same, whenever the query died; the
offset is as small for a million names as for one.
"""

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from mire.edge import clock
from mire.errors import FormatError, InputError
from mire.model.names import Namespace
from mire.pipeline.release import check_release, this_release
from mire.pipeline.source.ledger import Batch, Ledger, Seen, open_location
from mire.pipeline.source.piece import Piece, plan_names
from mire.pipeline.source.place import has_plain_data, open_checked, spec_for, specs_of
from mire.pipeline.source.reader import request_of
from mire.pipeline.source.rows import rows_of
from mire.pipeline.source.table import columns_of
from mire.pipeline.source.watch import Watch
from mire.plan.source import SourceOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

_STATE_EVERY: Final = 16
"""Batches between two records of everything that was read: a restart reads one of them, and the batches since."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads versions that are new."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        if options.table != "artifacts":
            raise InputError(f"a stream reads the table 'artifacts', not '{options.table}': read that in batches")
        self._options = options
        self._columns = columns_of(options, schema)
        self._driver = this_release()
        self._watches: list[Watch] | None = None
        self._ledger: Ledger | None = None
        self._seen: Seen = {}
        self._at: tuple[str, int] | None = None
        self._recorded = 0
        self._committed = 0
        self._is_bounded = self._has_looked = False

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's names, here and below
        """Where a new stream begins: before everything, or after what is there."""
        stream = clock.new_uuid()
        if self._options.starts_latest:
            seen: Seen = {}
            for watch in self._look():
                for directory, _, numbers in watch.arrived(lambda _: 0):
                    seen[watch.spec.namespace, directory] = numbers[-1]
            Ledger(open_location(self._options.state_location), stream).save_state(0, seen)
        return {"stream": stream, "batch": 0, "commit": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """How much a batch takes unless Spark says otherwise."""
        return ReadAllAvailable() if self._options.rows_max is None else ReadMaxRows(self._options.rows_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """From now on only what is there now counts."""
        self._is_bounded, self._has_looked = True, False

    def latestOffset(  # noqa: N802
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """Plan the next batch and put it on record; `start` itself when nothing came."""
        begin = start if start is not None else self.initialOffset()
        self._catch_up(begin)
        watches = self._watches if self._is_bounded and self._has_looked and self._watches else self._look()
        self._has_looked = True
        batch = self._plan(watches, _rows_max(limit))
        if not batch.items and not batch.damage:
            return begin
        assert self._ledger is not None  # noqa: S101 - by catching up
        number = begin["batch"] + 1
        self._ledger.save_batch(number, batch)
        return {"stream": begin["stream"], "batch": number, "commit": max(watch.commit_seq for watch in watches)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The pieces of the batches between two offsets, from the record."""
        ledger = Ledger(open_location(self._options.state_location), end["stream"])
        first = start["batch"] + 1 if start["stream"] == end["stream"] else 1
        store = spec_for(self._options).to_read()
        names: dict[str, list[tuple[Any, ...]]] = {}
        for number in range(first, end["batch"] + 1):
            batch = ledger.load_batch(number)
            for space, directory, latest, numbers in batch.items:
                names.setdefault(space, []).append((directory, latest, tuple(numbers)))
            for space, partition, why in batch.damage:
                names.setdefault(space, []).append((None, partition, why))
        pieces: list[InputPartition] = []
        for space, found in names.items():
            pieces += plan_names(store.within(Namespace(space)), found, tasks_max=self._options.partitions)
        return pieces

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """The batches of one piece."""
        check_release(self._driver)
        if not isinstance(partition, Piece):
            return iter(())
        return self._columns.batches(rows_of(partition, request_of(self._options, self._columns)))

    def commit(self, end: dict[str, Any]) -> None:
        """Spark is done with everything up to here."""
        self._committed = end["batch"]

    def _look(self) -> list[Watch]:
        if self._watches is None or self._options.is_every_namespace:
            self._watches = [*(self._watches or ()), *self._new_watches(self._watches or ())]
        for watch in self._watches:
            watch.look()
            if not watch.has_index and has_plain_data(watch.spec):
                raise InputError(
                    "a stream needs an index to tell what is new, and this directory has none: read it in batches, or"
                    " make it a remote with 'mire setup --cached'",
                    kind="no_index",
                )
        return self._watches

    def _new_watches(self, known: Collection[Watch]) -> list[Watch]:
        """Watches of the namespaces that have none: those that were named, or that came since."""
        request, spaces = request_of(self._options, self._columns), {watch.spec.namespace for watch in known}
        specs = [spec for spec in specs_of(self._options, spaces) if spec.namespace not in spaces]
        return [Watch(spec, open_checked(spec), request.takes) for spec in specs]

    def _catch_up(self, start: dict[str, Any]) -> None:
        """Know what was read up to an offset: from memory, or from the record."""
        at = (start["stream"], start["batch"])
        if self._at != at:
            self._ledger = Ledger(open_location(self._options.state_location), start["stream"])
            if self._at == (start["stream"], start["batch"] - 1):
                self._ledger.load_batch(start["batch"]).apply(self._seen)
            else:
                self._seen, self._recorded = self._ledger.load_state(start["batch"])
            self._at = at
        if self._ledger is not None and start["batch"] - self._recorded >= _STATE_EVERY:
            self._ledger.save_state(start["batch"], self._seen)
            self._recorded = start["batch"]
            self._ledger.trim(self._committed)

    def _plan(self, watches: list[Watch], rows_max: int | None) -> Batch:
        batch, left = Batch(), rows_max
        for watch in watches:
            space = watch.spec.namespace
            self._tell(watch, batch)
            if watch.is_whole():
                names = watch.names()
                gone = [name for (of, name) in self._seen if of == space and name not in names]
                batch.gone.extend((space, name) for name in gone)
                for name in gone:
                    del self._seen[space, name]
            for directory, latest, numbers in watch.arrived(partial(self._mark_of, space)):
                if left is not None and left <= 0:
                    return batch
                wanted = numbers[-1:] if self._options.is_latest_only else numbers
                taken = wanted if left is None else wanted[:left]
                batch.items.append((space, directory, latest, taken))
                left = None if left is None else left - len(taken)
        return batch

    def _mark_of(self, space: str, directory: str) -> int:
        return self._seen.get((space, directory), 0)

    def _tell(self, watch: Watch, batch: Batch) -> None:
        damage, watch.damage = watch.damage, []
        if damage and self._options.mode == "FAILFAST":
            raise FormatError(
                f"the shard {damage[0][0]!r} of the index: {damage[0][1]}; mode=PERMISSIVE reads the rest"
            )
        if self._options.mode == "PERMISSIVE":
            batch.damage.extend((watch.spec.namespace, name, why) for name, why in damage)


def _rows_max(limit: ReadLimit | None) -> int | None:
    match limit:
        case ReadMaxRows():
            return int(limit.max_rows)
        case ReadMaxFiles():
            return int(limit.max_files)
        case _:
            return None
