"""What Spark raises, by name: no session is needed to tell."""

import pytest
from pyspark.errors import PySparkException

from mire.errors import RemoteError
from mire.pipeline.foreign import spark_errors

JAVA = """An error occurred while calling o97.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult: {said}
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:56)
Caused by: {cause}
\t... 12 more
"""


@pytest.mark.parametrize(
    ("cause", "kind", "message"),
    [
        (
            "org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 7 cancelled as part of all jobs",
            "cancelled",
            r"^a test was cancelled in Spark: nothing was committed; run again$",
        ),
        (
            "java.io.IOException: No space left on device",
            "full",
            r"^a test found no space left on a disk, .*: nothing was committed; free some, and run again$",
        ),
        (
            "java.io.IOException: something else",
            "spark",
            r"^a test failed in Spark: java\.io\.IOException: something else; nothing was committed",
        ),
    ],
)
def test_what_java_says_gets_a_name(cause: str, kind: str, message: str) -> None:
    """A job that was cancelled, a full disk, and anything else by its last cause: one line each."""
    with pytest.raises(RemoteError, match=message) as raised, spark_errors("a test"):
        raise PySparkException(JAVA.format(said=cause, cause=cause))
    assert raised.value.kind == kind
