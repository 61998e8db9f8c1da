"""`mire spark`: the Spark that jobs start here."""

import os

import click

from mire.cli.face import common_options, emit, facts, size_text


@click.group("spark", no_args_is_help=True)
@common_options
def command() -> None:
    """The Spark that jobs start here."""


@command.command("prepare")
@common_options
def prepare() -> None:
    """Let every Spark that is started here from now on start in half the time.

    Its Java is started once, and the classes it loads are kept in a file of some 200 MB in the
    user's cache, or in the directory that MIRE_SPARK_CLASSES names. That takes a minute, and is worth
    it for whoever runs jobs often, or builds an image for them. Another Spark or Java passes the file
    over: prepare it, too. Removing the file does no harm.
    """
    from mire.edge import process
    from mire.pipeline.classes import make_classes
    from mire.pipeline.session import check_installed

    check_installed()
    path = make_classes(process.environ())
    size_bytes = os.stat(path).st_size
    emit(
        "spark.prepare",
        {"path": path, "sizeBytes": size_bytes},
        lambda: facts([("classes", path), ("size", size_text(size_bytes))]),
    )
