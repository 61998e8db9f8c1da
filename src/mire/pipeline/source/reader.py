"""Reading in batches: the driver plans pieces, tasks make record batches of them.

Owns: what Spark calls, and which filters narrow down what is read.
Must not know: how a piece is planned or read.
Keeps: filters only leave out what they certainly exclude, and Spark still applies all of them; a worker of another
release is refused before its first row.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    In,
    InputPartition,
    StringStartsWith,
)
from pyspark.sql.types import StructType

from mire.pipeline.foreign import told
from mire.pipeline.release import check_release, this_release
from mire.pipeline.source.piece import Piece, plan_tasks
from mire.pipeline.source.place import specs_of
from mire.pipeline.source.rows import Request, rows_of
from mire.pipeline.source.table import ATTRIBUTES, Columns, columns_of
from mire.pipeline.stages.parse import Wanted
from mire.plan.source import Only, SourceOptions, Wish

if TYPE_CHECKING:
    import pyarrow as pa

_TOLD: Final = ("namespace", "model_type", "model_id", "name")
"""Columns that a path tells."""


def request_of(options: SourceOptions, columns: Columns, only: Only | None = None) -> Request:
    """What tasks are asked for."""
    wanted = Wanted(
        latest_only=options.is_latest_only,
        attributes=options.attributes != "none" and columns.has(ATTRIBUTES),
        content=options.has_content,
    )
    return Request(table=options.table, wanted=wanted, wishes=options.models, only=only or Only())


class Reader(DataSourceReader):
    """Reads a table, all of it."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._columns = columns_of(options, schema)
        self._only = Only()
        self._driver = this_release()

    @told()
    def partitions(self) -> list[InputPartition]:
        """The pieces; planned on the driver, from the index."""
        options = self._options
        wishes: tuple[Wish, ...] = options.models or self._only.wishes
        specs = specs_of(options)
        spaces = dict(self._only.values).get("namespace")
        chosen = [spec for spec in specs if spaces is None or spec.namespace in spaces]
        return list(plan_tasks(chosen, table=options.table, wishes=wishes, tasks_max=options.partitions))

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """The batches of one piece."""
        with told():
            check_release(self._driver)
            # Spark makes up another where there is nothing to read.
            if isinstance(partition, Piece):
                request = request_of(self._options, self._columns, self._only)
                yield from self._columns.batches(rows_of(partition, request))


class PushdownReader(Reader):
    """The same, for a session that hands filters down; without that setting Spark refuses a reader that has this."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take what narrows the search. All are given back: what is left out here is only what cannot match."""
        self._only = only_of(filters)
        return filters


def only_of(filters: Iterable[Filter]) -> Only:
    """What filters say about columns that a path tells."""
    values: dict[str, frozenset[str]] = {}
    prefixes: list[tuple[str, str]] = []
    for each in filters:
        match each:
            case EqualTo((column,), str(value)) | EqualNullSafe((column,), str(value)):
                found = frozenset((value,))
            case In((column,), several) if all(isinstance(value, str) for value in several):
                found = frozenset(several)
            case StringStartsWith((column,), prefix):
                if column in _TOLD:
                    prefixes.append((column, prefix))
                continue
            case _:
                continue
        if column in _TOLD:
            values[column] = values.get(column, found) & found
    return Only(values=tuple(values.items()), prefixes=tuple(prefixes))
