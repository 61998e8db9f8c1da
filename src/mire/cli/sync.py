"""`mire sync`: pull, then push."""

import click

from mire.cli.face import common_options, emit, open_datastore, sync_progress


@click.command("sync", short_help="Pull, then push.")
@click.option("--model", "models", multiple=True, metavar="TYPE/ID", help="Pull only this model; may be repeated.")
@click.option("--full", is_flag=True, help="Bring content, too, and look at every file here.")
@click.option("--dry-run", is_flag=True, help="Show what would be brought and sent; nothing is.")
@common_options
def command(models: tuple[str, ...], full: bool, dry_run: bool) -> None:
    """Bring the cache in step with the remote, then publish what changed here.

    Everything that is marked is pushed, whatever --model says.
    """
    from mire.cli.synced import leave, pulled_document, pulled_text, pushed_document, pushed_text
    from mire.flow.exchange import model_named, pull_now, push_now

    wanted = [model_named(model) for model in models]
    ds = open_datastore()
    watch = sync_progress()
    pulled = pull_now(ds, models=wanted, full=full, dry_run=dry_run, watch=watch)
    pushed = push_now(ds, full=full, dry_run=dry_run, watch=watch)
    emit(
        "sync",
        {"dryRun": dry_run, "pull": pulled_document(ds, pulled), "push": pushed_document(ds, pushed)},
        lambda: f"{pulled_text(ds, pulled)}\n{pushed_text(ds, pushed, told=pulled.conflicts)}",
    )
    leave(pulled, pushed)
