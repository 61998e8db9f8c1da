"""`mire versions`: the history of a name."""

from typing import TYPE_CHECKING

import click

from mire.cli.face import emit, open_store, read_options, size_text, table

if TYPE_CHECKING:
    from mire.model.artifact import Metadata


@click.command("versions")
@click.argument("model_type", metavar="TYPE")
@click.argument("model_id", metavar="ID")
@click.argument("name", metavar="NAME")
@read_options
def command(model_type: str, model_id: str, name: str) -> None:
    """List the versions of NAME, newest first."""
    model = open_store().model(model_type, model_id)
    rows = model.history(name)[::-1]
    items = [
        {"version": row.version, "isLatest": row is rows[0], "error": row.error}
        if row.metadata is None
        else {
            "version": row.version,
            "isLatest": row is rows[0],
            "createdAt": row.metadata.created_at,
            "size": row.metadata.size_bytes,
            "checksum": row.metadata.checksum,
            "lifecycle": "deleted" if row.metadata.is_deleted else "active",
        }
        for row in rows
    ]
    lines = [
        [row.version, "-", "-", f"damaged: {row.error}"]
        if row.metadata is None
        else [
            row.version,
            size_text(row.metadata.size_bytes),
            row.metadata.created_at,
            _state(row.metadata, is_latest=row is rows[0]),
        ]
        for row in rows
    ]
    emit(
        "versions",
        {"modelType": model.type, "modelId": model.id, "name": name, "versions": items},
        lambda: table(["VERSION", "SIZE", "CREATED", "STATE"], lines),
    )


def _state(metadata: "Metadata", *, is_latest: bool) -> str:
    if metadata.renamed_to is not None:
        return f"renamed to {metadata.renamed_to}"
    return "deleted" if metadata.is_deleted else "latest" if is_latest else ""
