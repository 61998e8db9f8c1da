"""How many tasks run at once.

Owns: that number, for whatever kind of session.
Must not know: what is done with it.
"""

from typing import Final

from pyspark.sql import SparkSession

_UNKNOWN: Final = 8
"""A Connect session does not say; a few pieces too many cost little."""


def cores_of(spark: SparkSession) -> int:
    """The tasks that run at once, as far as it is known."""
    try:
        return max(1, int(spark.sparkContext.defaultParallelism))
    except Exception:  # noqa: BLE001 - a Connect session has no context; there is no common class for saying so
        return _UNKNOWN
