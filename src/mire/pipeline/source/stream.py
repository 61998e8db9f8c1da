"""Reading as a stream: new versions as they are committed.

Owns: what Spark calls, what an offset is, and how much a batch takes.
Must not know: how the index is read, where state is kept.
Keeps: every version is in exactly one batch, and a batch that is read again is the same, whenever the query died; the
offset is as small for a million names as for one.
"""

from collections.abc import Collection
from dataclasses import dataclass
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

from mire.edge import clock, pool
from mire.errors import FormatError, InputError
from mire.flow.reading import AT_ONCE
from mire.flow.scan import key_of
from mire.model.names import Namespace
from mire.pipeline.foreign import told
from mire.pipeline.frames import ARTIFACTS
from mire.pipeline.release import check_release, this_release
from mire.pipeline.source.ledger import Batch, Damage, Ledger, Point, Seen, open_location
from mire.pipeline.source.piece import Piece, plan_names
from mire.pipeline.source.place import has_plain_data, open_checked, spec_for, specs_of
from mire.pipeline.source.reader import request_of
from mire.pipeline.source.rows import rows_of
from mire.pipeline.source.table import Row, columns_of
from mire.pipeline.source.watch import Watch
from mire.pipeline.stages.parse import failed_row
from mire.plan.source import SourceOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

_STATE_EVERY: Final = 16
"""Batches between two records of everything that was read: a restart reads one of them, and the batches since."""
_PLAN: Final = 8
"""Characters that tell plans of one batch apart: there are as many of them as drivers that are alive."""


@dataclass(frozen=True, kw_only=True)
class Told(InputPartition):
    """Damage that the driver found, to be rows."""

    damage: tuple[Damage, ...]

    def rows(self) -> "Iterator[Row]":
        """A row each: of a name, or of nothing but its namespace."""
        for space, directory, message in self.damage:
            key = None if directory is None else key_of(directory, Namespace(space))
            if key is None:
                yield (space, *(None,) * (len(ARTIFACTS) - 2), message)
            else:
                yield failed_row(key, None, message, is_latest=None)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads versions that are new."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        if options.table != "artifacts":
            raise InputError(f"a stream reads the table 'artifacts', not '{options.table}': read that in batches")
        self._options = options
        self._columns = columns_of(options, schema)
        self._driver = this_release()
        self._watches: list[Watch] | None = None
        self._seen = Seen()
        self._at: tuple[str, int] | None = None
        self._planned: tuple[str, int] | None = None
        self._recorded = 0
        self._committed = 0
        self._is_bounded = self._has_looked = False

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's names, here and below
        """Where a new stream begins. Spark asks again until a batch is logged: nothing is kept of it before."""
        return {"stream": clock.new_uuid(), "batch": 0, "plan": "", "commit": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """How much a batch takes unless Spark says otherwise."""
        return ReadAllAvailable() if self._options.rows_max is None else ReadMaxRows(self._options.rows_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """From now on only what is there now counts."""
        self._is_bounded, self._has_looked = True, False

    @told()
    def latestOffset(  # noqa: N802
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """Plan the next batch and put it on record; `start` itself when nothing came."""
        begin = start if start is not None else self.initialOffset()
        ledger = self._catch_up(begin)
        if self._planned == self._at:
            self._watches = None  # that plan failed, or its offset was not logged: what it saw is to be seen again
        self._planned = self._at
        watches = self._watches if self._is_bounded and self._has_looked and self._watches else self._look()
        self._has_looked = True
        is_first = begin["batch"] == 0 and self._options.starts_latest
        batch = self._pass_over(watches) if is_first else self._plan(watches, _rows_max(limit))
        if not batch and not is_first:
            self._planned = None
            return begin
        point = Point(begin["batch"] + 1, clock.new_token()[:_PLAN])
        ledger.save_batch(point, batch, after=begin["plan"])
        commit = max(watch.commit_seq for watch in watches)
        return {"stream": begin["stream"], "batch": point.batch, "plan": point.plan, "commit": commit}

    @told()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The pieces of the batches between two offsets, from the record."""
        ledger = Ledger(open_location(self._options.state_location), end["stream"])
        first = start["batch"] if start["stream"] == end["stream"] else 0
        store = spec_for(self._options).to_read()
        names: dict[str, list[tuple[Any, ...]]] = {}
        damage: list[Damage] = []
        for batch in ledger.load_batches(first, _point(end)):
            for space, directory, latest, numbers in batch.items:
                names.setdefault(space, []).append((directory, latest, tuple(numbers)))
            damage += batch.damage
        spaces = [(store.within(Namespace(space)), found) for space, found in names.items()]
        pieces: list[InputPartition] = list(plan_names(spaces, tasks_max=self._options.partitions))
        return [*pieces, Told(damage=tuple(damage))] if damage else pieces

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """The batches of one piece."""
        with told():
            check_release(self._driver)
            if isinstance(partition, Told):
                yield from self._columns.batches(partition.rows())
            elif isinstance(partition, Piece):
                yield from self._columns.batches(rows_of(partition, request_of(self._options, self._columns)))

    def commit(self, end: dict[str, Any]) -> None:
        """Spark is done with everything up to here."""
        self._committed = end["batch"]

    def _look(self) -> list[Watch]:
        if self._watches is None or self._options.is_every_namespace:
            self._watches = [*(self._watches or ()), *self._new_watches(self._watches or ())]
        # Each look may fetch many shards at once, too.
        at_once = max(1, AT_ONCE // (len(self._watches) or 1))
        for watch, _ in pool.run(lambda each: each.look(at_once), self._watches, at_once=AT_ONCE):
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
        return [Watch(spec, open_checked(spec), request.takes, request.wishes) for spec in specs]

    def _catch_up(self, start: dict[str, Any]) -> Ledger:
        """Know what was read up to an offset: from memory, or from the record."""
        ledger, point = Ledger(open_location(self._options.state_location), start["stream"]), _point(start)
        if self._at == (start["stream"], point.batch - 1):
            for batch in ledger.load_batches(point.batch - 1, point):
                batch.apply(self._seen)
        elif self._at != (start["stream"], point.batch):
            seen, self._recorded = ledger.load_state(point)
            if seen != self._seen:
                # Names at rest were so by other marks.
                self._seen, self._watches = seen, None
        self._at = (start["stream"], point.batch)
        if point.batch - self._recorded >= _STATE_EVERY:
            ledger.save_state(point.batch, self._seen)
            self._recorded = point.batch
            ledger.trim(self._committed)
        return ledger

    def _plan(self, watches: list[Watch], rows_max: int | None) -> Batch:
        batch, left = Batch(), rows_max
        for watch in watches:
            space = watch.spec.namespace
            batch.gone.extend((space, name) for name in watch.gone(self._seen.of(space)))
            for directory, latest, numbers in watch.arrived(partial(self._seen.mark_of, space)):
                wanted = numbers[-1:] if self._options.is_latest_only else numbers
                taken = wanted if left is None else wanted[:left]
                batch.items.append((space, directory, latest, taken))
                left = None if left is None else left - len(taken)
                if left == 0:
                    break
            self._tell(watch, batch)
            if left == 0:
                break
        return batch

    def _pass_over(self, watches: list[Watch]) -> Batch:
        """The batch that a stream of what comes begins with: it reads nothing, and notes what is there."""
        batch = Batch()
        for watch in watches:
            space = watch.spec.namespace
            batch.passed.extend((space, directory, numbers[-1]) for directory, _, numbers in watch.arrived(lambda _: 0))
            for _, message in watch.damage:
                # Later it would pass for new, all of it.
                raise FormatError(f"{message}; repair it, or begin with startingFrom=earliest")
        return batch

    def _tell(self, watch: Watch, batch: Batch) -> None:
        damage, watch.damage = watch.damage, []
        if damage and self._options.mode == "FAILFAST":
            raise FormatError(f"{damage[0][1]}; mode=PERMISSIVE reads the rest")
        if self._options.mode == "PERMISSIVE":
            batch.damage.extend((watch.spec.namespace, directory, message) for directory, message in damage)


def _point(offset: dict[str, Any]) -> Point:
    return Point(offset["batch"], offset.get("plan", ""))


def _rows_max(limit: ReadLimit | None) -> int | None:
    match limit:
        case ReadMaxRows():
            return int(limit.max_rows)
        case ReadMaxFiles():
            return int(limit.max_files)
        case _:
            return None
