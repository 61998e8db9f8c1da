"""`mire show`: metadata of a version."""

import click

from mire.cli.face import emit, facts, open_store, read_options, size_text


@click.command("show")
@click.argument("model_type", metavar="TYPE")
@click.argument("model_id", metavar="ID")
@click.argument("name", metavar="NAME")
@click.option("--version", type=int, metavar="N", help="A version by number (default: the latest).")
@read_options
def command(model_type: str, model_id: str, name: str, version: int | None) -> None:
    """Show what is known about NAME."""
    from mire.wire.metadata import metadata_document

    artifact = open_store().model(model_type, model_id).get(name, version)
    found = artifact.metadata
    document = {
        "modelType": artifact.model.model_type,
        "modelId": artifact.model.model_id,
        "path": artifact.path,
        "metadata": metadata_document(found),
    }
    emit(
        "show",
        document,
        lambda: facts(
            [
                ("model", artifact.model),
                ("name", found.name if found.name == name else f"{found.name} (renamed from {name})"),
                ("version", found.version),
                ("created", found.created_at),
                ("size", size_text(found.size_bytes)),
                ("content type", found.content_type),
                ("sha-256", found.checksum),
                ("lifetime", found.lifetime),
                ("versions kept", found.version_policy),
                ("streaming", "yes" if found.streaming else None),
                ("state", "deleted" if found.is_deleted else None),
                ("renamed to", found.renamed_to),
                ("owner", found.owner),
                ("workflow", found.owner.workflow_name),
                ("tags", "  ".join(f"{key}={value}" for key, value in found.tags.items())),
                ("file", artifact.path),
            ]
        ),
    )
