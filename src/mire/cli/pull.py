"""`mire pull`: bring the cache in step with the remote."""

import click

from mire.cli.face import common_options, emit, open_datastore, sync_progress


@click.command("pull", short_help="Bring the cache in step with the remote.")
@click.option("--model", "models", multiple=True, metavar="TYPE/ID", help="Only this model; may be repeated.")
@click.option("--full", is_flag=True, help="Bring content, too, which else comes when it is read.")
@click.option("--theirs", is_flag=True, help="Where both sides changed, theirs wins; ours is kept beside the cache.")
@click.option("--dry-run", is_flag=True, help="Show what would be brought; nothing is.")
@common_options
def command(models: tuple[str, ...], full: bool, theirs: bool, dry_run: bool) -> None:
    """Bring the cache in step with the remote.

    What changed here and is not published stays. What both sides changed is a conflict: it is listed (exit 4), ours
    stays in its place and theirs is put beside the cache.
    """
    from mire.cli.synced import leave, pulled_document, pulled_text
    from mire.flow.exchange import model_named, pull_now

    wanted = [model_named(model) for model in models]
    ds = open_datastore()
    done = pull_now(ds, models=wanted, full=full, theirs=theirs, dry_run=dry_run, watch=sync_progress())
    emit("pull", pulled_document(ds, done), lambda: pulled_text(ds, done))
    leave(done)
