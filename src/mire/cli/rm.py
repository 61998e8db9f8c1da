"""`mire rm`: delete a version or a name."""

import click

from mire.cli.face import common_options, emit, open_store


@click.command("rm")
@click.argument("model_type", metavar="TYPE")
@click.argument("model_id", metavar="ID")
@click.argument("name", metavar="NAME")
@click.option("--version", type=int, metavar="N", help="Only this version.")
@click.option("--mark", is_flag=True, help="Keep the history and add a version that says it is gone.")
@common_options
def command(model_type: str, model_id: str, name: str, version: int | None, mark: bool) -> None:
    """Delete NAME with all its versions, or one version.

    Numbers of deleted versions are never given out again.
    """
    from mire.errors import InputError
    from mire.wire.metadata import metadata_document

    model = open_store().model(model_type, model_id)
    about = {"modelType": model.type, "modelId": model.id, "name": name}
    if mark:
        if version is not None:
            raise InputError(f"--mark ends a name, not version {version} of it: leave out one of the two")
        metadata = model.mark_deleted(name)
        document = {**about, "metadata": metadata_document(metadata)}
        emit("rm", document, f"{model.ref} {name}: marked deleted by version {metadata.version}")
        return
    done = model.delete(name, version)
    numbers = ", ".join(map(str, done.versions))
    plural = "s" if len(done.versions) > 1 else ""
    what = f"deleted, version{plural} {numbers}" if done.is_whole_name else f"version {numbers} deleted"
    emit(
        "rm",
        {**about, "versions": list(done.versions), "wholeName": done.is_whole_name},
        f"{model.ref} {name}: {what}",
    )
