"""Where Spark finds the data source `mire` without being told: in a package `pyspark_…`, as `DefaultSource`."""

from mire.pipeline.source.source import MireSource as DefaultSource

__all__ = ["DefaultSource"]
