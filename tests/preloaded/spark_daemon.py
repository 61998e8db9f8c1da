"""The process that Spark's Python workers are forked from, with everything imported that tasks of the pipeline use.

A worker that Spark ends is replaced by a fork of it, not by one that first imports for half a second.
"""

import pandas as pd  # noqa: F401
import pyarrow as pa  # noqa: F401
import pyspark.sql.pandas.serializers
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import mire.edge.local
import mire.edge.s3
import mire.pipeline.jobs.retain
import mire.pipeline.source.rows
import mire.pipeline.stages.inspect
import mire.pipeline.stages.scan
import mire.pipeline.stages.transfer  # noqa: F401

if __name__ == "__main__":
    manager()
