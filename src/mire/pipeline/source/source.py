"""The data source as Spark meets it: `spark.read.format("mire")`, `readStream`, `write`.

Owns: which reader or writer a request gets.
Must not know: how anything is read or written.
Keeps: options are checked on the driver, before anything is touched.
"""

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, DataSourceWriter
from pyspark.sql.types import StructType

from mire.pipeline.foreign import told
from mire.pipeline.source.reader import PushdownReader, Reader
from mire.pipeline.source.stream import StreamReader
from mire.pipeline.source.table import schema_of
from mire.pipeline.source.writer import Writer
from mire.plan.source import SourceOptions, Use, parse_source_options

NAME = "mire"


class MireSource(DataSource):
    """Artifacts, versions, index entries and records as tables."""

    @classmethod
    def name(cls) -> str:
        """What stands in `format(…)`."""
        return NAME

    @told()
    def schema(self) -> StructType:
        """The columns of the table that was asked for."""
        return schema_of(self._asked())

    @told()
    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of a whole table; one that takes filters only when that was asked for."""
        options = self._asked("read")
        return PushdownReader(options, schema) if options.has_pushdown else Reader(options, schema)

    @told()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """A reader of what is new."""
        return StreamReader(self._asked("stream"), schema)

    @told()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001 - Spark's signature
        """A writer of versions."""
        return Writer(self._asked("write"), schema, overwrite=overwrite)

    def _asked(self, use: Use | None = None) -> SourceOptions:
        return parse_source_options(dict(self.options), use)
