"""`mire append`: grow streaming data."""

import click

from mire.cli.face import common_options, emit, open_store, size_text
from mire.cli.put import content_of


@click.command("append", short_help="Add to the latest version of streaming data.")
@click.argument("model_type", metavar="TYPE")
@click.argument("model_id", metavar="ID")
@click.argument("name", metavar="NAME")
@click.argument("file", required=False, metavar="[FILE|-]")
@common_options
def command(model_type: str, model_id: str, name: str, file: str | None) -> None:
    """Add FILE, or standard input, to the latest version of streaming data."""
    from mire.wire.metadata import metadata_document

    model = open_store().model(model_type, model_id)
    metadata = model.append(name, content_of(file))
    document = {"modelType": model.type, "modelId": model.id, "metadata": metadata_document(metadata)}
    emit("append", document, f"{model.ref} {name}: version {metadata.version} is now {size_text(metadata.size_bytes)}")
