"""`mire search`: find data by words."""

import os

import click

from mire.cli.face import emit, nothing, notices, open_datastore, progress, read_options, table


@click.command("search", short_help="Find data by words in types, ids, names and tags.")
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@read_options
def command(words: tuple[str, ...], limit: int) -> None:
    """Find the data whose type, id, name or tags hold every one of WORDS, newest first."""
    from mire.flow.usage import search

    ds = open_datastore()
    answer = search(ds, " ".join(words), limit, workers=os.cpu_count() or 1, progress=progress)
    notices(answer.notices)
    document = {"words": list(words), "results": answer.rows, "total": len(answer), "limited": answer.is_limited}
    cells = [[r["modelType"], r["modelId"], r["name"], r["version"], r["createdAt"]] for r in answer]
    more = "\n(more: raise --limit)" if answer.is_limited else ""
    emit(
        "search",
        document,
        lambda: (
            table(["TYPE", "ID", "NAME", "VERSION", "CREATED"], cells) + more if cells else nothing("nothing found", ds)
        ),
    )
