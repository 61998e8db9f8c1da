"""The process that Spark's Python workers are forked from, with everything imported that tasks of the pipeline use.

A worker that Spark ends is replaced by a fork of it, not by one that first imports for half a second.
"""

import gc
import sys

# Spark puts an archive of its own Python part first. It has no compiled modules, and its table of contents is read
# again for every task; what is installed is the same.
sys.path[:] = [path for path in sys.path if not path.endswith(("/pyspark.zip", "-src.zip"))]

import pandas as pd  # noqa: E402, F401
import pyarrow as pa  # noqa: E402, F401
import pyspark.sql.pandas.serializers  # noqa: E402
import pyspark.worker  # noqa: E402, F401
from pyspark.daemon import manager  # noqa: E402

import mire.edge.local  # noqa: E402
import mire.edge.s3  # noqa: E402
import mire.pipeline.jobs.retain  # noqa: E402
import mire.pipeline.source.rows  # noqa: E402
import mire.pipeline.stages.inspect  # noqa: E402
import mire.pipeline.stages.scan  # noqa: E402
import mire.pipeline.stages.transfer  # noqa: E402, F401
from mire.pipeline.release import this_release  # noqa: E402

if __name__ == "__main__":
    this_release()
    # A worker collects garbage after each of its tasks: it does not look at what is imported.
    gc.freeze()
    manager()
