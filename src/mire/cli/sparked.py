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
    from mire.pipeline.rounds import OpenRound
    from mire.pipeline.sides import Side

F = TypeVar("F", bound=Callable[..., Any])


def spark_options(command: F) -> F:
    """Add the options of commands that run on Spark."""
    return click.option(
        "--master",
        metavar="URL",
        help="Where Spark runs: a master, or sc://host for Spark Connect (default: embedded, local[*]).",
    )(command)


def bulk_options(when: str) -> Callable[[F], F]:
    """Add the options of commands that run on Spark when there is much to do."""
    insist = click.option(
        "--pipeline/--no-pipeline",
        "is_forced",
        default=None,
        help=f"{when} on Spark whatever there is to do, or never (default: from many files on).",
    )
    return lambda command: insist(spark_options(command))


@contextmanager
def carried(ds: "Datastore", *, is_bulk: bool, is_forced: bool | None, master: str | None) -> "Iterator[Datastore]":
    """The datastore, its files moved on Spark if that is wanted and there are enough of them."""
    if not is_bulk and (is_forced is not None or master is not None):
        raise click.UsageError("--pipeline, --no-pipeline and --master go with --all.")
    if is_bulk and settings().sync_timeout_s is None:
        # Moving everything takes as long as it takes; a limit for it is one that was given for it.
        ds = replace(ds, config=replace(ds.config, sync_timeout_ms=SYNC_ENDLESS_MS))
    _check_master(master, is_forced)
    if not is_bulk or is_forced is False:
        yield ds
        return
    from mire.pipeline.carrier import SparkCarrier

    enough = 1 if is_forced else _enough(master)
    with SparkCarrier(lambda: open_spark(master, is_moving=True), worth_it=enough) as carrier:
        yield replace(ds, carrier=carrier)


@contextmanager
def rounds_of(source: "Side", *, is_forced: bool | None, master: str | None) -> "Iterator[OpenRound]":
    """Where a migration is done: on Spark if that is wanted, or there is so much of it."""
    from mire.pipeline.session import check_installed

    _check_master(master, is_forced)
    check_installed()
    from mire.pipeline.progress import watched
    from mire.pipeline.round_here import has_more, round_here

    if is_forced or (is_forced is None and has_more(source.spec, _enough(master))):
        with open_spark(master, is_moving=True) as spark:
            from mire.pipeline.round_spark import round_on_spark

            yield lambda: round_on_spark(spark)
    else:
        given = settings()
        with watched(None, lambda text: show_progress(given, text)):
            yield round_here


def _check_master(master: str | None, is_forced: bool | None) -> None:
    if master is not None and is_forced is False:
        raise click.UsageError("--master does not go with --no-pipeline.")


def _enough(master: str | None) -> int:
    """From how many files on Spark is worth it where it would run."""
    from mire.edge import process
    from mire.pipeline.carrier import worth_it
    from mire.pipeline.session import expected_cores

    return worth_it(expected_cores(master, process.environ()))


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
