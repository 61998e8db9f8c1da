"""`mire push`: publish what changed here."""

import click

from mire.cli.face import common_options, emit, open_datastore, sync_progress
from mire.cli.sparked import bulk_options


@click.command("push", short_help="Publish what changed here.")
@click.option("--full", is_flag=True, help="Look at every file, not only at what is marked.")
@click.option("--ours", is_flag=True, help="Where both sides changed, ours wins.")
@click.option("--dry-run", is_flag=True, help="Show what would be sent; nothing is.")
@click.option("--all", "is_bulk", is_flag=True, help="Look at every file, and move many of them on Spark.")
@bulk_options("With --all: run")
@common_options
def command(full: bool, ours: bool, dry_run: bool, is_bulk: bool, is_forced: bool | None, master: str | None) -> None:
    """Publish what changed here and is not at the remote yet.

    Commands that write do this by themselves; after a time without the remote this makes up for it. What both sides
    changed is a conflict: it is listed (exit 4) and nothing is overwritten.

    With --all every file is looked at, and when there are very many to send, they are sent on Spark: --pipeline insists
    on it, --no-pipeline refuses it. What is decided and what is committed is the same either way.
    """
    from mire.cli.sparked import carried
    from mire.cli.synced import leave, pushed_document, pushed_text
    from mire.flow.exchange import push_now

    with carried(open_datastore(), is_bulk=is_bulk, is_forced=is_forced, master=master) as ds:
        done = push_now(ds, full=full or is_bulk, ours=ours, dry_run=dry_run, watch=sync_progress())
    emit("push", pushed_document(ds, done), lambda: pushed_text(ds, done))
    leave(done)
