"""`mire ls`: models, or the data names of one."""

from typing import TYPE_CHECKING, Any

import click

from mire.cli.face import emit, nothing, open_store, read_options, size_text, table

if TYPE_CHECKING:
    from mire.flow.read import Row


@click.command("ls", short_help="List models, or the data names of one.")
@click.argument("model_type", required=False, metavar="[TYPE")
@click.argument("model_id", required=False, metavar="[ID]]")
@click.option("--all", "show_all", is_flag=True, help="Also names that were deleted or renamed away.")
@read_options
def command(model_type: str | None, model_id: str | None, show_all: bool) -> None:
    """List models (of TYPE and the types below it), or the data names of one model."""
    store = open_store()
    if model_type is not None and model_id is not None:
        model = store.model(model_type, model_id)
        rows = [row for row in model.names() if show_all or row.metadata is None or row.metadata.is_active]
        document = {"modelType": model.type, "modelId": model.id, "items": [_item(row) for row in rows]}
        none = f"{model.ref} has no data"
        emit("ls", document, lambda: _names(rows) if rows else nothing(none, store.datastore))
        return
    models = [
        {
            "modelType": m.type,
            "modelId": m.id,
            "names": sum(row.metadata is None or row.metadata.is_active for row in m.names()),
        }
        for m in store.models(model_type)
    ]
    emit(
        "ls",
        {"models": models},
        lambda: (
            table(["TYPE", "ID", "NAMES"], [list(m.values()) for m in models])
            if models
            else nothing("no models yet", store.datastore)
        ),
    )


def _item(row: "Row") -> dict[str, Any]:
    found = row.metadata
    if found is None:
        return {"name": row.name, "version": row.version, "error": row.error}
    return {
        "name": row.name,
        "version": found.version,
        "contentType": found.content_type,
        "type": found.tags["type"],
        "size": found.size_bytes,
        "createdAt": found.created_at,
        "streaming": found.streaming,
        "lifecycle": "deleted" if found.is_deleted else "active",
        **({} if found.renamed_to is None else {"renamedTo": found.renamed_to}),
    }


def _names(rows: list["Row"]) -> str:
    return table(["NAME", "VERSION", "SIZE", "CONTENT TYPE", "CREATED", "STATE"], map(_line, rows))


def _line(row: "Row") -> list[object]:
    found = row.metadata
    if found is None:
        return [row.name, row.version, "-", "-", "-", f"damaged: {row.error}"]
    state = f"renamed to {found.renamed_to}" if found.renamed_to else "deleted" if found.is_deleted else ""
    return [row.name, found.version, size_text(found.size_bytes), found.content_type, found.created_at, state]
