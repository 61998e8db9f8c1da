"""`mire prune`: remove the data of models whose definition is gone."""

import sys

import click

from mire.cli.face import common_options, emit, notices, open_datastore, settings


@click.command("prune", short_help="Remove data whose definition is gone.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed; takes no lock, changes nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@common_options
def command(dry_run: bool, yes: bool) -> None:
    """Remove the data of models that have no definition any more.

    Definitions are the YAML files below 'models', 'workflows' and the auto-definitions. In a branch that lacks
    some of them their data looks orphaned: look at --dry-run first. What 'mire hold' holds stays.
    """
    from mire.cli.retain import report_document, report_text
    from mire.errors import InputError
    from mire.flow.prune import prune

    ds = open_datastore()
    if ds.tier != ds.local and not ds.config.namespace:
        notices(
            [f"{ds.base} may be shared: data whose definition is in another repository or branch looks orphaned too"]
        )
    if not dry_run and not yes:
        if settings().is_json or sys.stdin is None or not sys.stdin.isatty():
            raise InputError(
                "pruning deletes data for good, and there is nobody to ask: look at --dry-run, then add --yes",
                kind="unconfirmed",
            )
        planned = prune(ds, dry_run=True)
        click.echo(report_text(planned))
        if not planned.decisions:
            return
        if not click.confirm("Remove this for good?"):
            click.echo("nothing was removed")
            return
    report = prune(ds, dry_run=dry_run)
    emit("prune", report_document(report), lambda: report_text(report))
