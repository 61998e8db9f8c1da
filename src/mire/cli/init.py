"""`mire init`: make a directory a repository."""

import click

from mire.cli.face import common_options, emit, repo_dir, settings


@click.command("init")
@click.argument("directory", required=False, metavar="[DIR]")
@common_options
def command(directory: str | None) -> None:
    """Make a directory a repository (here, or DIR).

    With --datastore filesystem:/path its data lives there, for example on a shared mount; the
    directory is created. An existing repository keeps all its settings but the one named.
    """
    import os

    from mire.flow.setup import init

    done = init(directory or (repo_dir() if settings().repo else os.getcwd()), datastore=settings().datastore)
    document = {
        "repo": done.repo_dir,
        "created": done.created,
        "changedDatastore": done.changed_datastore,
        "leftBehind": done.left_behind,
    }
    state = "Created" if done.created else "Already"
    note = f"; its datastore is {settings().datastore}" if done.changed_datastore else ""
    if done.left_behind is not None:
        note += f"\nThe data in {done.left_behind} stays there; copy its directories to bring it along"
    emit("init", document, f"{state} a repository: {done.repo_dir}{note}")
