"""A carrier on Spark: the files of a bulk push or pull are moved by tasks.

Owns: from how many files on that is worth it, and the session it starts for it.
Must not know: what is moved and why, what is committed afterwards.
Keeps: few files are moved by this process, and no Spark is started for them, unless somebody insists; when the time of
a sync is up, its tasks end.
"""

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from mire.edge import clock
from mire.edge.files import Written
from mire.errors import InternalError, MireError
from mire.flow.carrier import Arrived
from mire.flow.place import Place
from mire.flow.transfer import Sent, Unpublished, are_short
from mire.model.index import Entry
from mire.model.names import RelPath
from mire.pipeline.store import spec_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_START_MS: Final = 8_000
_FILE_MS: Final = 0.52
_FILE_MS_ON_SPARK: Final = 0.59
"""What starting Spark takes, and what a small file takes of a core in one process and in a task; docs/benchmarks.md."""
_CORES_MIN: Final = 3
"""On two cores Spark was slower even with 100,000 files."""
AT_A_TIME: Final = 50_000


def worth_it(cores: int) -> int:
    """Files from which on starting Spark is made up for by the cores that one process leaves idle."""
    return sys.maxsize if cores < _CORES_MIN else round(_START_MS / (_FILE_MS - _FILE_MS_ON_SPARK / cores))


class SparkCarrier:
    """Moves files in tasks of a session that is opened when the first many of them come."""

    at_a_time = AT_A_TIME

    def __init__(self, open_spark: "Callable[[], AbstractContextManager[SparkSession]]", *, worth_it: int) -> None:
        self._open = open_spark
        self._worth_it = worth_it
        self._stack = ExitStack()
        self._spark: SparkSession | None = None
        self._end_ms = math.inf
        self._late: Callable[[], MireError] = _never

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    @property
    def is_started(self) -> bool:
        """Whether there was so much to move that Spark was started."""
        return self._spark is not None

    def limit(self, budget_ms: float, late: Callable[[], MireError]) -> None:
        """Cancel what tasks do when so much time has passed from now on."""
        self._end_ms, self._late = clock.monotonic_ms() + budget_ms, late

    def send(
        self,
        place: Place,
        replaced: Mapping[RelPath, Entry | None],
        known: Mapping[RelPath, Unpublished],
        *,
        gathered: bool,
    ) -> Iterator[tuple[RelPath, Sent | MireError]] | None:
        """Store files of the cache in tasks."""
        return self._sent(place, replaced, known, gathered=gathered) if self._is_worth_it(len(replaced)) else None

    def fetch(
        self, place: Place, wanted: Mapping[RelPath, Entry], directory: str
    ) -> Iterator[tuple[RelPath, Arrived | MireError]] | None:
        """Bring objects into a directory in tasks."""
        return self._fetched(place, wanted, directory) if self._is_worth_it(len(wanted)) else None

    def _is_worth_it(self, count: int) -> bool:
        return count > 0 and (self.is_started or count >= self._worth_it)

    def _session(self) -> "SparkSession":
        if self._spark is None:
            self._spark = self._stack.enter_context(self._open())
        return self._spark

    def _sent(
        self,
        place: Place,
        replaced: Mapping[RelPath, Entry | None],
        known: Mapping[RelPath, Unpublished],
        *,
        gathered: bool,
    ) -> Iterator[tuple[RelPath, Sent | MireError]]:
        from mire.pipeline.stages.transfer import at_once_in, error_in, sent_in, upload  # noqa: PLC0415 - with Spark only

        spec, ds, writer = spec_of(place.ds), place.ds, place.state.epoch

        concurrency = ds.sync.pushes_at_once(are_short=gathered)

        def stored(frame: "DataFrame", cores: int) -> "DataFrame":
            at_once = at_once_in(cores, concurrency, are_short=gathered)
            return upload(frame, spec, ds.tier, writer, at_once=at_once, gathered=gathered)

        # What replaces an object goes last, right before the commit: until then the index describes other bytes.
        for some in ({rel: None for rel, entry in replaced.items() if entry is None}, _described(replaced)):
            for row in self._moved(some, stored, known):
                yield RelPath(row["rel"]), error_in(row) or sent_in(row)

    def _fetched(
        self, place: Place, wanted: Mapping[RelPath, Entry], directory: str
    ) -> Iterator[tuple[RelPath, Arrived | MireError]]:
        from mire.pipeline.stages.transfer import at_once_in, download, error_in  # noqa: PLC0415 - with Spark only

        spec = spec_of(place.ds)
        gathered = are_short(sum(entry.size_bytes for entry in wanted.values()), len(wanted))

        concurrency = place.ds.sync.pulls_at_once(are_short=gathered)

        def brought(frame: "DataFrame", cores: int) -> "DataFrame":
            at_once = at_once_in(cores, concurrency, are_short=gathered)
            return download(frame, spec, directory, at_once=at_once, gathered=gathered)

        for row in self._moved(wanted, brought, {}):
            came = row["temporary"], Written(size_bytes=row["size_bytes"], sha256=row["sha256"])
            yield RelPath(row["rel"]), error_in(row) or came

    def _moved(
        self,
        entries: Mapping[RelPath, Entry | None],
        move: "Callable[[DataFrame, int], DataFrame]",
        known: Mapping[RelPath, Unpublished],
    ) -> Iterator[dict[str, Any]]:
        if not entries:
            return
        spark = self._session()
        from mire.pipeline.foreign import spark_errors  # noqa: PLC0415 - with Spark only
        from mire.pipeline.frames import TO_MOVE, frame_of, rows_of  # noqa: PLC0415
        from mire.pipeline.jobs.cores import cores_of  # noqa: PLC0415
        from mire.pipeline.limit import limited  # noqa: PLC0415
        from mire.pipeline.stages.transfer import groups_for  # noqa: PLC0415

        cores = cores_of(spark)
        left = iter(entries.items())
        # Some at a time: what they became is on record before the next ones are begun.
        while some := list(islice(left, AT_A_TIME)):
            rows = (_row(rel, entry, known.get(rel)) for rel, entry in some)
            left_s = (self._end_ms - clock.monotonic_ms()) / 1000
            with spark_errors("moving the files"), limited(spark, left_s, self._late):
                frame = frame_of(spark, rows, TO_MOVE).repartition(groups_for(len(some), cores))
                table = move(frame, cores).toArrow()
            yield from rows_of(table.to_batches())


def _row(rel: RelPath, entry: Entry | None, known: Unpublished | None) -> tuple[Any, ...]:
    from mire.pipeline.stages.shards import entry_row  # noqa: PLC0415 - with Spark only

    said = (rel, *(None,) * 7) if entry is None else entry_row(rel, None, entry)
    return (*said, None, None) if known is None else (*said, known.fingerprint, known.sha256)


def _never() -> MireError:
    return InternalError("a time that nobody limited is up")


def _described(replaced: Mapping[RelPath, Entry | None]) -> dict[RelPath, Entry | None]:
    return {rel: entry for rel, entry in replaced.items() if entry is not None}
