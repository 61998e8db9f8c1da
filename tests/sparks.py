"""Spark for tests: one embedded session for all of them, started when a test first asks for it.

Tests that use it have `pytestmark = pytest.mark.xdist_group("spark")`: they run in one process, with one Java.
"""

import os
from collections.abc import Iterator

import pytest

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss4m"
"""Options of a Java that lives for minutes: it does not compile what it will not run again."""

ACCESS = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_EC2_METADATA_DISABLED": "true"}
"""What tasks sign with at our own server, which takes any credentials."""


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    """An embedded Spark with two cores, whose tasks are tried three times."""
    from mire.pipeline.session import open_session  # noqa: PLC0415 - most tests need no Spark

    environ = {f"spark.executorEnv.{name}": value for name, value in ACCESS.items()}
    conf = {
        "spark.driver.extraJavaOptions": QUICK,
        "spark.sql.shuffle.partitions": "2",
        # Tables of a few rows: generating and compiling code for them, or planning anew, takes longer than reading.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.warehouse.dir": os.devnull,
        **environ,
    }
    with open_session("local[2,3]", conf=conf) as session:
        yield session
