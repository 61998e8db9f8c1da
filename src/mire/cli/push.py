"""`mire push`: publish what changed here."""

import click

from mire.cli.face import common_options, emit, open_datastore, sync_progress


@click.command("push", short_help="Publish what changed here.")
@click.option("--full", is_flag=True, help="Look at every file, not only at what is marked.")
@click.option("--ours", is_flag=True, help="Where both sides changed, ours wins.")
@click.option("--dry-run", is_flag=True, help="Show what would be sent; nothing is.")
@common_options
def command(full: bool, ours: bool, dry_run: bool) -> None:
    """Publish what changed here and is not at the remote yet.

    Commands that write do this by themselves; after a time without the remote this makes up for it. What both sides
    changed is a conflict: it is listed (exit 4) and nothing is overwritten.
    """
    from mire.cli.synced import leave, pushed_document, pushed_text
    from mire.flow.exchange import push_now

    ds = open_datastore()
    done = push_now(ds, full=full, ours=ours, dry_run=dry_run, watch=sync_progress())
    emit("push", pushed_document(ds, done), lambda: pushed_text(ds, done))
    leave(done)
