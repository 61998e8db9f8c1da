"""How many tasks run at once, and whether they are worth it.

Owns: that number, for whatever kind of session.
Must not know: what is done with it.
"""

import re
from typing import Final

from pyspark.sql import SparkSession

from mire.pipeline.carrier import CORES_MIN

_UNKNOWN: Final = 8
"""A Connect session does not say; a few pieces too many cost little."""
_HERE: Final = re.compile(r"local(\[[^,]*\])?")
"""A master whose tasks are in this machine, and tried once: who wants them to be tried again wants tasks."""


def cores_of(spark: SparkSession) -> int:
    """The tasks that run at once, as far as it is known."""
    try:
        return max(1, int(spark.sparkContext.defaultParallelism))
    except Exception:  # noqa: BLE001 - a Connect session has no context; there is no common class for saying so
        return _UNKNOWN


def are_tasks_worth_it(spark: SparkSession) -> bool:
    """Whether moving files in tasks is faster than by the process of the driver, or is elsewhere."""
    if cores_of(spark) >= CORES_MIN:
        return True
    return _HERE.fullmatch(str(spark.sparkContext.master)) is None
