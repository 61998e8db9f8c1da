"""`mire backends`: the kinds of datastores there are."""

from typing import TYPE_CHECKING, Any

import click

from mire import __version__
from mire.cli.face import common_options, emit, facts, notices, settings, table

if TYPE_CHECKING:
    from mire.flow.backend import Broken, Installed


@click.command("backends", short_help="List the kinds of datastores.")
@click.argument("kind", required=False, metavar="[TYPE]")
@common_options
def command(kind: str | None) -> None:
    """List the kinds of datastores, built in and of installed packages, or the options of one.

    With --json each has the schema of its configuration. A package adds a kind by an entry point
    in the group mire.backends.
    """
    from mire.flow.backend import find_backend, list_backends

    if kind is not None:
        one = find_backend(kind, origin="TYPE")
        emit("backends", _document([one], []), lambda: _options(one))
        return
    found, broken = list_backends()
    columns = ("TYPE", "ALIAS", "FROM", "WHAT")
    rows = [
        (one.schema.type, " ".join(one.schema.aliases) or "-", _package(one), one.schema.description) for one in found
    ]
    emit("backends", _document(found, broken), lambda: table(columns, rows))
    if not settings().is_json:
        notices(one.message for one in broken)


def _package(one: "Installed") -> str:
    from mire.flow.backend import OURS

    return f"{OURS} {__version__}" if one.package == OURS else one.package


def _document(found: "list[Installed]", broken: "list[Broken]") -> dict[str, Any]:
    from mire.plan.option import json_schema_of

    return {
        "backends": [
            {
                "type": one.schema.type,
                "aliases": list(one.schema.aliases),
                "title": one.schema.title,
                "description": one.schema.description,
                "package": _package(one),
                "credentials": one.schema.credentials,
                "config": json_schema_of(one.schema),
            }
            for one in found
        ],
        "broken": [{"type": one.name, "package": one.package, "message": one.message} for one in broken],
    }


def _options(one: "Installed") -> str:
    head = facts(
        [
            ("type", one.schema.type),
            ("alias", " ".join(one.schema.aliases) or None),
            ("from", _package(one)),
            ("credentials", one.schema.credentials),
        ]
    )
    rows = [
        (option.name, "required" if option.is_required else _default(option.default), option.meaning)
        for option in one.schema.options
    ]
    return f"{head}\n\n{table(('OPTION', 'DEFAULT', 'MEANING'), rows)}"


def _default(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else "-" if value is None else str(value)
