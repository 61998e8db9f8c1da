"""`mire search`: find data by words."""

import os

import click

from mire.cli.face import common_options, emit, notices, open_datastore, progress, table


@click.command("search", short_help="Find data by words in types, ids, names and tags.")
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@common_options
def command(words: tuple[str, ...], limit: int) -> None:
    """Find the data whose type, id, name or tags hold every one of WORDS, newest first."""
    from mire.flow.usage import search

    answer = search(open_datastore(), " ".join(words), limit, workers=os.cpu_count() or 1, progress=progress)
    notices(answer.notices)
    document = {"words": list(words), "results": answer.rows, "total": len(answer), "limited": answer.is_limited}
    cells = [[r["modelType"], r["modelId"], r["name"], r["version"], r["createdAt"]] for r in answer]
    more = "\n(more: raise --limit)" if answer.is_limited else ""
    emit(
        "search",
        document,
        lambda: table(["TYPE", "ID", "NAME", "VERSION", "CREATED"], cells) + more if cells else "nothing found",
    )
