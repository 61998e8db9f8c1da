"""Where Spark finds the data source `mire` without being told: in a package `pyspark_…`, as `DefaultSource`.

`spark_errors` is for programs that use it: inside the block what Spark raises arrives as the error of mire that it was.
"""

from mire.pipeline.foreign import spark_errors
from mire.pipeline.source.source import MireSource as DefaultSource

__all__ = ["DefaultSource", "spark_errors"]
