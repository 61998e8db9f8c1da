"""`mire query`: records by a CEL predicate."""

import os
from typing import TYPE_CHECKING, Any

import click

from mire.cli.face import emit, facts, nothing, notices, open_datastore, plain, progress, read_options, size_text, table

if TYPE_CHECKING:
    from mire.flow.datastore import Datastore


@click.command("query", short_help="Find versions by a CEL predicate.")
@click.argument("predicate")
@click.option("--select", metavar="EXPR", help="Print this CEL expression of each record instead of the record.")
@click.option("--order-by", metavar="FIELDS", help="E.g. 'size desc, name' (default: createdAt desc).")
@click.option("--limit", type=int, default=100, show_default=True, help="At most so many.")
@click.option("--offset", type=int, default=0, help="Skip so many.")
@click.option("--cursor", metavar="TEXT", help="Go on after the page that came with this cursor.")
@click.option("--history", is_flag=True, help="All versions, not only the latest of each name.")
@click.option("--all-namespaces", is_flag=True, help="Rows of other namespaces, too, as far as they were pulled.")
@click.option("--no-hydrate", is_flag=True, help="Content that is not here is null instead of being fetched.")
@click.option("--strict", is_flag=True, help="A missing tag or attribute is an error instead of no match.")
@click.option("--fresh", is_flag=True, help="Look at the files first, however large the store.")
@click.option("--explain", is_flag=True, help="Show what goes to SQL and what is evaluated, and do nothing.")
@read_options
def command(
    predicate: str,
    select: str | None,
    order_by: str | None,
    limit: int,
    offset: int,
    cursor: str | None,
    history: bool,
    all_namespaces: bool,
    no_hydrate: bool,
    strict: bool,
    fresh: bool,
    explain: bool,
) -> None:
    """Find versions by a CEL predicate, newest first.

    \b
    mire query 'modelType == "aws/ec2/vpc" && tags.env == "prod"'
    mire query 'attributes.cidr.startsWith("10.")' --select 'modelId + " " + attributes.cidr'
    mire query 'size > 1000000' --history --order-by 'size desc' --limit 10

    Only the latest version of each name is looked at, unless the predicate mentions version or
    isLatest, or --history is given. Rows of other namespaces ('mire catalog pull') are looked at
    only if the predicate mentions ns, or with --all-namespaces.
    """  # noqa: D301 - \b is how click keeps lines as they are
    from mire.flow.query import Query, query
    from mire.flow.query import explain as explain_it

    asked = Query(
        predicate=predicate,
        select=select,
        order_by=order_by,
        limit=limit,
        offset=offset,
        cursor=cursor,
        history=history,
        hydrate=not no_hydrate,
        strict=strict,
        all_namespaces=all_namespaces,
    )
    if explain:
        found = explain_it(asked)
        emit("query", {"explain": found}, lambda: _explained(found))
        return
    ds = open_datastore()
    answer = query(ds, asked, force=fresh, workers=os.cpu_count() or 1, progress=progress)
    notices([*answer.notices, *(f"not judged: {problem}" for problem in answer.problems)])
    document = {
        "predicate": predicate,
        "results": answer.rows,
        "total": len(answer.rows),
        "limited": answer.is_limited,
        "cursor": answer.cursor,
        "problems": answer.problems,
    }
    is_spanning = bool(explain_it(asked)["allNamespaces"])

    def text() -> str:
        shown = _text(answer.rows, is_selected=select is not None, is_spanning=is_spanning)
        return shown or nothing(_nothing_found(ds, is_spanning=is_spanning), ds)

    emit("query", document, text)
    if answer.cursor is not None:
        notices([f"more: raise --limit, or go on with --cursor {answer.cursor}"])


def _nothing_found(ds: "Datastore", *, is_spanning: bool) -> str:
    """Who asks for others before their rows were brought is told that nobody is known."""
    from mire.flow.imports import known_imports

    if not is_spanning or known_imports(ds):
        return "nothing found"
    return "nothing found; of other namespaces nothing is known: 'mire catalog pull --all' brings their rows"


def _explained(found: dict[str, Any]) -> str:
    steps = [(step["decidedBy"], step["part"]) for step in found["steps"]]
    where = [("where", found["where"]), ("parameters", found["parameters"]), ("order by", found["orderBy"])]
    return facts([*steps, *where, ("latest only", "yes" if found["latestOnly"] else "no")])


def _text(rows: list[Any], *, is_selected: bool, is_spanning: bool) -> str:
    import json

    if not rows:
        return ""
    if is_selected:
        lines = [plain(row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)) for row in rows]
    else:
        columns = ["TYPE", "ID", "NAME", "VERSION", "SIZE", "CREATED"]
        cells = [
            [r["modelType"], r["modelId"], r["name"], r["version"], size_text(r["size"]), r["createdAt"]] for r in rows
        ]
        if is_spanning:
            columns.insert(0, "NAMESPACE")
            cells = [[row["namespace"] or "-", *line] for row, line in zip(rows, cells, strict=True)]
        lines = [table(columns, cells)]
    return "\n".join(lines)
