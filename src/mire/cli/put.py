"""`mire put`: write a new version."""

from typing import Any

import click

from mire.cli.face import common_options, emit, open_store, size_text

_DIGITS_MAX = 16


def parse_tags(texts: tuple[str, ...]) -> dict[str, str]:
    """Tags from `k=v` texts."""
    from mire.errors import InputError, shown

    tags = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InputError(f"tag {shown(text)} is not KEY=VALUE: write it like env=prod")
        tags[key] = value
    return tags


def content_of(file: str | None) -> Any:
    """What a FILE argument means: a path, or standard input."""
    import pathlib
    import sys

    from mire.errors import InputError

    if file not in (None, "-"):
        return pathlib.Path(str(file))
    if sys.stdin is None:
        raise InputError("standard input is closed: name a FILE, or pipe the content in")
    return sys.stdin.buffer


@click.command("put", short_help="Write a new version from FILE or stdin.")
@click.argument("model_type", metavar="TYPE")
@click.argument("model_id", metavar="ID")
@click.argument("name", metavar="NAME")
@click.argument("file", required=False, metavar="[FILE|-]")
@click.option("--tag", "tags", multiple=True, metavar="KEY=VALUE", help="A tag; repeat for more.")
@click.option("--content-type", metavar="MIME", help="Default: guessed from FILE's name.")
@click.option("--lifetime", default="infinite", show_default=True, help="infinite, ephemeral, job, workflow or 90d.")
@click.option("--gc", default="10", show_default=True, metavar="N|AGE", help="Versions to keep, or the age they go at.")
@click.option("--owner", metavar="TYPE:REF", help="The producer (default manual:ID).")
@click.option("--streaming", is_flag=True, help="Let the version grow by 'mire append'.")
@click.option("--revive", is_flag=True, help="Write under a name that was renamed away.")
@common_options
def command(
    model_type: str,
    model_id: str,
    name: str,
    file: str | None,
    tags: tuple[str, ...],
    content_type: str | None,
    lifetime: str,
    gc: str,
    owner: str | None,
    streaming: bool,
    revive: bool,
) -> None:
    """Write a new version of NAME from FILE, or from standard input."""
    from mire.wire.metadata import metadata_document

    model = open_store().model(model_type, model_id)
    metadata = model.put(
        name,
        content_of(file),
        tags=parse_tags(tags),
        content_type=content_type,
        lifetime=lifetime,
        version_policy=int(gc) if gc.isascii() and gc.isdigit() and len(gc) < _DIGITS_MAX else gc,
        owner=owner,
        streaming=streaming,
        revive=revive,
    )
    document = {"modelType": model.type, "modelId": model.id, "metadata": metadata_document(metadata)}
    emit("put", document, f"{model.ref} {name}: version {metadata.version}, {size_text(metadata.size_bytes)}")
