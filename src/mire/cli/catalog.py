"""`mire catalog`: the index behind queries."""

import os

import click

from mire.cli.face import common_options, emit, facts, open_datastore, plain, progress, size_text


@click.group("catalog", no_args_is_help=True)
@common_options
def command() -> None:
    """The index behind queries. It is a cache: deleting it costs only time."""


@command.command("rebuild")
@common_options
def rebuild() -> None:
    """Throw the catalog away and read every version again."""
    from mire.flow.catalog import rebuild as rebuild_it

    done = rebuild_it(open_datastore(), workers=os.cpu_count() or 1, progress=progress)
    document = {"names": done.names, "versions": done.read, "errors": done.errors}
    lines = [f"{done.read} versions of {done.names} names", *(f"damaged: {plain(error)}" for error in done.errors)]
    emit("catalog.rebuild", document, "\n".join(lines))


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


@command.command("stats")
@common_options
def stats() -> None:
    """Show what the catalog holds."""
    from mire.flow.catalog import catalog_path, fresh

    ds = open_datastore()
    with fresh(ds, workers=os.cpu_count() or 1, progress=progress) as (catalog, _):
        versions, latest, content = catalog.one("SELECT count(*), sum(is_latest), sum(size) FROM version") or (0, 0, 0)
    path = catalog_path(ds)
    size = os.path.getsize(path) if os.path.isfile(path) else 0
    document = {"path": path, "bytes": size, "versions": versions, "names": latest or 0, "contentBytes": content or 0}
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
            ]
        ),
    )
