"""`mire mv`: rename data."""

import click

from mire.cli.face import common_options, emit, open_store


@click.command("mv", short_help="Rename data; the old name forwards.")
@click.argument("model_type", metavar="TYPE")
@click.argument("model_id", metavar="ID")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@common_options
def command(model_type: str, model_id: str, old: str, new: str) -> None:
    """Give the latest version of OLD the name NEW; OLD forwards to it and keeps its history."""
    model = open_store().model(model_type, model_id)
    done = model.rename(old, new)
    document = {
        "modelType": model.type,
        "modelId": model.id,
        "oldName": old,
        "newName": new,
        "copiedVersion": done.copied_version,
        "newVersion": done.new_version,
        "tombstoneVersion": done.tombstone_version,
    }
    emit("mv", document, f"{model.ref} {old} is now {new} (version {done.new_version}); the old name forwards to it")
