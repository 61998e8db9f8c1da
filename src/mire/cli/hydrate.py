"""`mire hydrate`: bring content that is still at the remote."""

from typing import TYPE_CHECKING

import click

from mire.cli.face import common_options, emit, open_datastore, size_text, sync_progress

if TYPE_CHECKING:
    from mire.flow.datastore import Datastore
    from mire.model.names import RelPath


@click.command("hydrate", short_help="Bring content that is still at the remote.")
@click.argument("model_type", required=False, metavar="[TYPE")
@click.argument("model_id", required=False, metavar="ID")
@click.argument("name", required=False, metavar="NAME]")
@click.option("--version", type=int, metavar="N", help="A version by number (default: the latest).")
@click.option("--model", "models", multiple=True, metavar="TYPE/ID", help="Everything of this model; may be repeated.")
@click.option("--all", "is_all", is_flag=True, help="Everything.")
@click.option("--dry-run", is_flag=True, help="Show how much would come; nothing does.")
@common_options
def command(
    model_type: str | None,
    model_id: str | None,
    name: str | None,
    version: int | None,
    models: tuple[str, ...],
    is_all: bool,
    dry_run: bool,
) -> None:
    """Bring the content of NAME, of a model or of everything, so that it can be read without the remote.

    A pull leaves content at the remote until it is read, unless the repository was set up with --hydrate full. What was
    here and is lost comes back, too.
    """
    from mire.cli.synced import count, leave
    from mire.errors import InputError
    from mire.flow.exchange import bring, model_named, not_here

    named = [given for given in (model_type, model_id, name) if given is not None]
    if len(named) not in (0, 3) or sum(map(bool, (named, models, is_all))) != 1:
        raise InputError("name what to bring, one of TYPE ID NAME, --model TYPE/ID or --all")
    wanted = [model_named(model) for model in models]
    ds = open_datastore()
    if model_type and model_id and name:
        sizes = _missing_of(ds, model_type, model_id, name, version)
    else:
        sizes = dict(not_here(ds, wanted))
    done = bring(ds, list(sizes), dry_run=dry_run, watch=sync_progress())
    brought = sum(sizes[rel] for rel in done.written)
    document = {"dryRun": dry_run, "brought": list(done.written), "bytes": brought, "findings": list(done.findings)}
    verb = "would bring" if dry_run else "brought"
    said = f"{verb} {count(len(done.written), 'file')}, {size_text(brought)}" if sizes else "everything is here"
    emit("hydrate", document, "\n".join([said, *(f"note: {finding}" for finding in done.findings)]))
    leave(done)


def _missing_of(
    ds: "Datastore", model_type: str, model_id: str, name: str, version: int | None
) -> "dict[RelPath, int]":
    import os

    from mire.api import Store
    from mire.flow.exchange import not_here

    artifact = Store(ds).model(model_type, model_id).get(name, version)
    wanted = os.path.relpath(artifact.path, ds.tier)
    return {rel: size for rel, size in not_here(ds, [artifact.model]) if rel == wanted}
