"""The tables of the data source: their columns, all of them or those that were asked for.

Owns: which schema a table has, and how rows become batches of some of its columns.
Must not know: where rows come from.
Keeps: a batch never holds more than so many rows, and more than so many bytes of content only if a single row has
them; a value that no column can hold is damage of its row, never a failed job.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType, VariantType, VariantVal

from mire.errors import FormatError, InputError, shown
from mire.pipeline.frames import ARTIFACTS, BATCH, FILES, OUTPUTS, RUNS, VERSIONS, spark_schema
from mire.plan.source import SourceOptions, check_column

SCHEMAS: Final = {"artifacts": ARTIFACTS, "versions": VERSIONS, "files": FILES, "runs": RUNS, "outputs": OUTPUTS}
ERROR: Final = "_error"
ATTRIBUTES: Final = "attributes"
CONTENT: Final = "content"
_LARGE: Final = (ATTRIBUTES, CONTENT, "document")
"""Columns that may be large."""
_BATCH_BYTES: Final = 32 << 20
_UNFIT: Final = (ValueError, TypeError, ArithmeticError, RecursionError, pa.ArrowCapacityError)
"""What is raised for a value that a column cannot hold: a number that is too large, half of a surrogate pair."""

Row = tuple[Any, ...]
"""The values of a row, in the order of its table's schema."""


def schema_of(options: SourceOptions) -> StructType:
    """The columns of the table that was asked for."""
    schema = spark_schema(SCHEMAS[options.table])
    if options.table == "artifacts" and options.attributes == "variant":
        return StructType([_as_variant(field) if field.name == ATTRIBUTES else field for field in schema])
    return schema


def _as_variant(field: StructField) -> StructField:
    return StructField(field.name, VariantType(), field.nullable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns to hand out, by their places in the table's schema."""

    table: str
    schema: pa.Schema
    """As Spark will check it."""
    is_variant: bool
    mode: str

    def has(self, name: str) -> bool:
        """Whether a column is wanted."""
        return name in self.schema.names

    def batches(self, rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
        """Rows as batches; what becomes of damaged ones is decided here."""
        large = [SCHEMAS[self.table].get_field_index(name) for name in _LARGE if name in SCHEMAS[self.table].names]
        chunk: list[Row] = []
        size = 0
        for row in rows:
            if not self._is_taken(row):
                continue
            chunk.append(row)
            for place in large:
                if row[place] is not None:
                    size += len(row[place])
            if len(chunk) >= BATCH or size >= _BATCH_BYTES:
                yield self._batch(chunk)
                chunk, size = [], 0
        if chunk:
            yield self._batch(chunk)

    def _is_taken(self, row: Row) -> bool:
        """Whether a row is handed out: one that is damaged as the mode says."""
        error = row[SCHEMAS[self.table].get_field_index(ERROR)]
        if error is not None and self.mode == "FAILFAST":
            raise FormatError(f"{error}; mode=PERMISSIVE reads the rest")
        return error is None or self.mode == "PERMISSIVE"

    def _batch(self, rows: Sequence[Row]) -> pa.RecordBatch:
        try:
            return self._made(rows)
        except _UNFIT:
            return self._made([row for row in map(self._fitted, rows) if self._is_taken(row)])

    def _made(self, rows: Sequence[Row]) -> pa.RecordBatch:
        arrays = [self._array(field, [row[place] for row in rows]) for place, field in self._places()]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _places(self) -> Iterator[tuple[int, pa.Field]]:
        return ((SCHEMAS[self.table].get_field_index(field.name), field) for field in self.schema)

    def _array(self, field: pa.Field, values: list[Any]) -> pa.Array:
        if self.is_variant and field.name == ATTRIBUTES:
            values = [_variant(value) for value in values]
        return pa.array(values, field.type)

    def _fitted(self, row: Row) -> Row:
        """A row without the values that its columns cannot hold; it says so."""
        values = list(row)
        error = SCHEMAS[self.table].get_field_index(ERROR)
        for place, field in self._places():
            try:
                self._array(field, [row[place]])
            except _UNFIT:
                values[place] = None
                values[error] = values[error] or f"the column '{field.name}' cannot hold {shown(row[place])}"
        return tuple(values)


def _variant(text: str | None) -> dict[str, bytes] | None:
    if text is None:
        return None
    value = VariantVal.parseJson(text)
    return {"value": value.value, "metadata": value.metadata}


def columns_of(options: SourceOptions, schema: StructType) -> Columns:
    """The columns that Spark wants: all, or those of a schema that the user gave."""
    full = schema_of(options)
    known = {field.name: field.dataType for field in full}
    for field in schema:
        check_column(field.name, known, what=f"the table '{options.table}'")
        if field.dataType != known[field.name]:
            raise InputError(
                f"the column '{field.name}' is {known[field.name].simpleString()}, not"
                f" {field.dataType.simpleString()}: leave the schema out, or cast it",
                kind="bad_column",
            )
    is_variant = isinstance(known.get(ATTRIBUTES), VariantType)
    arrow = to_arrow_schema(schema, timezone="UTC")
    return Columns(table=options.table, schema=arrow, is_variant=is_variant, mode=options.mode)
