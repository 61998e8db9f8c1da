"""What commands share that run on Spark: their options, the session, and how far a job is.

Owns: `--master`, and the line of progress.
Must not know: what a job does.
Keeps: Spark is imported when a job runs, never for help.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mire.cli.face import settings, show_progress
from mire.model.config import SYNC_ENDLESS_MS

if TYPE_CHECKING:
    from mire.flow.datastore import Datastore

F = TypeVar("F", bound=Callable[..., Any])


def spark_options(command: F) -> F:
    """Add the options of commands that run on Spark."""
    return click.option(
        "--master",
        metavar="URL",
        help="Where Spark runs: a master, or sc://host for Spark Connect (default: embedded, local[*]).",
    )(command)


def bulk_options(command: F) -> F:
    """Add the options of commands that run on Spark when there is much to do."""
    insist = click.option(
        "--pipeline/--no-pipeline",
        "is_forced",
        default=None,
        help="With --all: run on Spark whatever there is to do, or never (default: from many files on).",
    )
    return insist(spark_options(command))


@contextmanager
def carried(ds: "Datastore", *, is_bulk: bool, is_forced: bool | None, master: str | None) -> "Iterator[Datastore]":
    """The datastore, its files moved on Spark if that is wanted and there are enough of them."""
    if not is_bulk and (is_forced is not None or master is not None):
        raise click.UsageError("--pipeline, --no-pipeline and --master go with --all.")
    if is_bulk and settings().sync_timeout_s is None:
        # Moving everything takes as long as it takes; a limit for it is one that was given for it.
        ds = replace(ds, config=replace(ds.config, sync_timeout_ms=SYNC_ENDLESS_MS))
    if not is_bulk or is_forced is False:
        yield ds
        return
    from mire.edge import process
    from mire.pipeline.carrier import SparkCarrier, worth_it
    from mire.pipeline.session import expected_cores

    enough = 1 if is_forced else worth_it(expected_cores(master, process.environ()))
    with SparkCarrier(lambda: open_spark(master, is_moving=True), worth_it=enough) as carrier:
        yield replace(ds, carrier=carrier)


@contextmanager
def open_spark(master: str | None, *, is_moving: bool = False) -> Iterator[Any]:
    """The session of this invocation, which shows on a terminal how far it is; `is_moving`: for moving files."""
    from mire.pipeline.progress import watched
    from mire.pipeline.session import MOVING, open_session

    if not logging.root.handlers:
        # The bridge to Java tells everybody's logger of a Java that is gone, which we tell in one line.
        logging.root.addHandler(logging.NullHandler())
    given = settings()
    conf = MOVING if is_moving else None
    with open_session(master, conf=conf) as spark, watched(spark, lambda text: show_progress(given, text)):
        yield spark
