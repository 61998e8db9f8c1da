"""`mire init`: make a directory a repository."""

import click

from mire.cli.face import common_options, emit, repo_dir, settings


@click.command("init")
@click.argument("directory", required=False, metavar="[DIR]")
@click.option("--allow-untrusted", is_flag=True, help="Take a store that ignores conditions, for a single writer.")
@common_options
def command(directory: str | None, allow_untrusted: bool) -> None:
    """Make a directory a repository (here, or DIR).

    With --datastore file:///path its data lives there, for example on a shared mount; the
    directory is created. With --datastore s3://bucket/prefix or gs://bucket/prefix it is an object
    store, which is examined first as by 'mire doctor', and refused when it cannot be trusted. An
    existing repository keeps all its settings but the one named.
    """
    import os

    from mire.flow.setup import init

    done = init(
        directory or (repo_dir() if settings().repo else os.getcwd()),
        datastore=settings().datastore,
        allow_untrusted=allow_untrusted,
    )
    document = {
        "repo": done.repo_dir,
        "created": done.created,
        "changedDatastore": done.changed_datastore,
        "leftBehind": done.left_behind,
        "notes": list(done.notes),
    }
    state = "Created" if done.created else "Already"
    note = f"; its datastore is {done.datastore}" if done.changed_datastore else ""
    if done.left_behind is not None:
        note += f"\nThe data in {done.left_behind} stays there; copy its directories to bring it along"
    note += "".join(f"\nNote: {each}" for each in done.notes)
    emit("init", document, f"{state} a repository: {done.repo_dir}{note}")
