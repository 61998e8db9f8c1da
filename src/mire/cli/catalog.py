"""`mire catalog`: the index behind queries."""

import os
from typing import TYPE_CHECKING

import click

from mire.cli.face import common_options, emit, facts, open_datastore, plain, progress, size_text, sync_progress, table
from mire.cli.sparked import spark_options

if TYPE_CHECKING:
    from mire.flow.imports import Imported

_NOT_IMPORTED = 5


@click.group("catalog", no_args_is_help=True)
@common_options
def command() -> None:
    """The index behind queries. It is a cache: deleting it costs only time."""


@command.command("rebuild")
@click.option("--pipeline", is_flag=True, help="Read the versions on Spark.")
@click.option(
    "--all-namespaces", "is_all", is_flag=True, help="With --pipeline: also the rows of every other namespace."
)
@click.option("--dry-run", is_flag=True, help="Read everything, and show what would be in it; the catalog stays.")
@spark_options
@common_options
def rebuild(pipeline: bool, is_all: bool, dry_run: bool, master: str | None) -> None:
    """Throw the catalog away and read every version again.

    With --all-namespaces the metadata of every other namespace of the store is read, too, whether it publishes its
    catalog or not: 'mire query --all-namespaces' answers from it. What is damaged there is told. A namespace that
    cannot be read keeps the rows that were known of it (exit 5).
    """
    from mire.flow.catalog import rebuild as rebuild_it
    from mire.flow.imports import GOOD

    others = None
    if pipeline:
        from mire.cli.sparked import open_spark

        ds = open_datastore()
        with open_spark(master) as spark:
            from mire.pipeline.jobs.catalog import rebuild_catalog
            from mire.pipeline.jobs.others import rebuild_others

            done = rebuild_catalog(spark, ds, progress=progress, dry_run=dry_run)
            others = rebuild_others(spark, ds, progress=progress, dry_run=dry_run) if is_all else None
    elif master is not None or is_all:
        raise click.UsageError(f"{'--all-namespaces' if is_all else '--master'} goes with --pipeline.")
    else:
        done = rebuild_it(open_datastore(), workers=os.cpu_count() or 1, progress=progress, dry_run=dry_run)
    read = [] if others is None else others.namespaces
    errors = done.errors if others is None else [*done.errors, *others.errors]
    document: dict[str, object] = {"dryRun": dry_run, "names": done.names, "versions": done.read, "errors": errors}
    if others is not None:
        document |= _imported_document(read)
    what = f"{done.read} versions of {done.names} names"
    lines = [f"would read {what}" if dry_run else what, *(f"damaged: {plain(error)}" for error in errors)]
    emit("catalog.rebuild", document, lambda: "\n".join([*lines, *([] if others is None else [_imported(read)])]))
    _leave(read, GOOD)


@command.command("check")
@common_options
def check() -> None:
    """Compare the catalog with every version's file, and correct it."""
    from mire.flow.catalog import opened, refresh

    ds = open_datastore()
    with opened(ds) as catalog:
        done = refresh(ds, catalog, deep=True, workers=os.cpu_count() or 1, progress=progress)
    document = {"names": done.names, "corrected": done.read, "removed": done.removed, "errors": done.errors}
    lines = [
        f"{done.names} names looked at, {done.read} versions read again, {done.removed} rows removed",
        *(f"damaged: {plain(error)}" for error in done.errors),
    ]
    emit("catalog.check", document, "\n".join(lines))


@command.command("publish")
@common_options
def publish() -> None:
    """Show this namespace's catalog to the others, whole.

    Commands that write do this by themselves: a push publishes the rows of what it sends, and in a shared directory
    every write is followed by it, unless that has become too costly to do each time. This brings everything in step
    first and writes all rows anew. With 'publishCatalog: false' in .swamp.yaml nothing is published.
    """
    from mire.cli.synced import count, leave, pushed_document, pushed_text
    from mire.flow.publishdir import Shown
    from mire.flow.publishnow import publish_now

    ds = open_datastore()
    done = publish_now(ds, watch=sync_progress())
    if isinstance(done, Shown):
        said = "published" if done.is_changed else "nothing to publish: others see"
        text = f"{said} {count(done.rows, 'row')} of {ds.config.namespace}"
        emit("catalog.publish", {"rows": done.rows, "changed": done.is_changed}, text)
        return
    emit("catalog.publish", {"push": pushed_document(ds, done)}, lambda: pushed_text(ds, done))
    leave(done)


@command.command("unpublish")
@common_options
def unpublish() -> None:
    """Take back what this namespace published, after 'publishCatalog: false' was said in .swamp.yaml.

    Others find no catalog from then on, and forget its rows with their next 'mire catalog pull'.
    """
    from mire.flow.publishnow import unpublish_now

    ds = open_datastore()
    was_there = unpublish_now(ds, watch=sync_progress())
    said = "others no longer see the catalog" if was_there else "nothing was published"
    emit("catalog.unpublish", {"withdrawn": was_there}, f"{said} of {ds.config.namespace}")


@command.command("forget")
@click.option("--namespaces", metavar="A,B", required=True, help="The namespaces whose rows to drop.")
@common_options
def forget(namespaces: str) -> None:
    """Drop the rows of other namespaces, and what is kept here of their content."""
    from mire.cli.synced import count
    from mire.flow.imports import check_others, forget_imports

    ds = open_datastore()
    rows = forget_imports(ds, check_others(ds, namespaces.split(",")))
    emit("catalog.forget", {"rows": rows}, f"forgot {count(rows, 'row')}")


@command.command("pull")
@click.option("--namespaces", metavar="A,B", help="The namespaces whose catalogs to bring.")
@click.option("--all", "is_all", is_flag=True, help="Those of every namespace in the store.")
@common_options
def pull(namespaces: str | None, is_all: bool) -> None:
    """Bring the catalogs that other namespaces publish, for queries.

    \b
    mire catalog pull --namespaces infra,web
    mire query 'ns == "infra" && tags.env == "prod"'

    Only rows come; content is fetched when a query asks for it. One request each, which brings nothing if nothing
    changed. What one of them has none of, refuses or has damaged is told (exit 5), and the others come all the same.
    """  # noqa: D301 - \b is how click keeps lines as they are
    from mire.errors import InputError
    from mire.flow.imports import GOOD, check_others, import_catalogs, others_of

    if (namespaces is None) == (not is_all):
        raise InputError("say whose catalogs: --namespaces infra,web, or --all")
    ds = open_datastore()
    chosen = others_of(ds) if namespaces is None else check_others(ds, namespaces.split(","))
    done = import_catalogs(ds, chosen)
    emit("catalog.pull", _imported_document(done), lambda: _imported(done))
    # Who asks for all of them knows that not everybody publishes.
    _leave(done, (*GOOD, "missing") if is_all else GOOD)


def _imported_document(done: "list[Imported]") -> dict[str, object]:
    return {
        "namespaces": [
            {
                "namespace": each.namespace,
                "outcome": each.outcome,
                "rows": each.rows,
                "refused": each.refused,
                "message": each.message,
            }
            for each in done
        ],
        "totalRows": sum(each.rows for each in done),
    }


def _leave(done: "list[Imported]", fine: tuple[str, ...]) -> None:
    if any(each.outcome not in fine for each in done):
        raise click.exceptions.Exit(_NOT_IMPORTED)


def _imported(done: "list[Imported]") -> str:
    if not done:
        return "no other namespace is in this store"
    lines = [table(["NAMESPACE", "OUTCOME", "ROWS"], [[each.namespace, each.outcome, each.rows] for each in done])]
    for each in done:
        if each.refused:
            lines.append(plain(f"note: {each.namespace}: {each.refused} rows are left out; the first: {each.message}"))
        elif each.message is not None:
            lines.append(plain(f"note: {each.namespace}: {each.message}"))
    return "\n".join(lines)


@command.command("stats")
@common_options
def stats() -> None:
    """Show what the catalog holds."""
    from mire.flow.catalog import catalog_path, fresh
    from mire.flow.imports import known_imports

    ds = open_datastore()
    with fresh(ds, workers=os.cpu_count() or 1, progress=progress) as (catalog, _):
        versions, latest, content = catalog.one("SELECT count(*), sum(is_latest), sum(size) FROM version") or (0, 0, 0)
    path = catalog_path(ds)
    size = os.path.getsize(path) if os.path.isfile(path) else 0
    others = {each.namespace: each.rows for each in known_imports(ds)}
    document = {"path": path, "bytes": size, "versions": versions, "names": latest or 0, "contentBytes": content or 0}
    document["otherNamespaces"] = others
    emit(
        "catalog.stats",
        document,
        lambda: facts(
            [
                ("versions", versions),
                ("names", latest or 0),
                ("content", size_text(content or 0)),
                ("catalog", size_text(size)),
                ("file", path),
                *((f"rows of {namespace}", rows) for namespace, rows in others.items()),
            ]
        ),
    )
