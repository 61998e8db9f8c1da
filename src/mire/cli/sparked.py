"""What commands share that run on Spark: their options, the session, and how far a job is.

Owns: `--master`, and the line of progress.
Must not know: what a job does.
Keeps: Spark is imported when a job runs, never for help.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mire.cli.face import settings, show_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

F = TypeVar("F", bound=Callable[..., Any])


def spark_options(command: F) -> F:
    """Add the options of commands that run on Spark."""
    return click.option(
        "--master",
        metavar="URL",
        help="Where Spark runs: a master, or sc://host for Spark Connect (default: embedded, local[*]).",
    )(command)


@contextmanager
def open_spark(master: str | None) -> "Iterator[SparkSession]":
    """The session of this invocation, which shows on a terminal how far it is."""
    from mire.pipeline.progress import watched
    from mire.pipeline.session import open_session

    given = settings()
    with open_session(master) as spark, watched(spark, lambda text: show_progress(given, text)):
        yield spark
