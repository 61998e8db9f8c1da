"""`mire pull`: bring the cache in step with the remote."""

import click

from mire.cli.face import common_options, emit, open_datastore, sync_progress
from mire.cli.sparked import bulk_options


@click.command("pull", short_help="Bring the cache in step with the remote.")
@click.option("--model", "models", multiple=True, metavar="TYPE/ID", help="Only this model; may be repeated.")
@click.option("--full", is_flag=True, help="Bring content, too, which else comes when it is read.")
@click.option("--theirs", is_flag=True, help="Where both sides changed, theirs wins; ours is kept beside the cache.")
@click.option("--dry-run", is_flag=True, help="Show what would be brought; nothing is.")
@click.option("--all", "is_bulk", is_flag=True, help="Bring everything, content too, and move many files on Spark.")
@bulk_options("With --all: run")
@common_options
def command(
    models: tuple[str, ...],
    full: bool,
    theirs: bool,
    dry_run: bool,
    is_bulk: bool,
    is_forced: bool | None,
    master: str | None,
) -> None:
    """Bring the cache in step with the remote.

    What changed here and is not published stays. What both sides changed is a conflict: it is listed (exit 4), ours
    stays in its place and theirs is put beside the cache.

    With --all content comes, too, and when there are very many files to bring, they come on Spark: --pipeline insists
    on it, --no-pipeline refuses it. What is decided is the same either way.
    """
    from mire.cli.sparked import carried
    from mire.cli.synced import leave, pulled_document, pulled_text
    from mire.flow.exchange import model_named, pull_now

    if is_bulk and models:
        raise click.UsageError("--all is everything, --model a part: --full --model TYPE/ID brings a model's content.")
    wanted = [model_named(model) for model in models]
    with carried(open_datastore(), is_bulk=is_bulk, is_forced=is_forced, master=master) as ds:
        done = pull_now(ds, models=wanted, full=full or is_bulk, theirs=theirs, dry_run=dry_run, watch=sync_progress())
    emit("pull", pulled_document(ds, done), lambda: pulled_text(ds, done))
    leave(done)
