"""`mire get`: content of a version, as raw bytes."""

from typing import TYPE_CHECKING, Any

import click

from mire.cli.face import emit, open_store, read_options, settings, size_text, write_out

if TYPE_CHECKING:
    from mire.flow.read import Artifact


@click.command("get")
@click.argument("model_type", metavar="TYPE")
@click.argument("model_id", metavar="ID")
@click.argument("name", metavar="NAME")
@click.option("--version", type=int, metavar="N", help="A version by number (default: the latest).")
@click.option("-o", "--output", metavar="FILE", help="Write to FILE (replaced as a whole) instead of stdout.")
@read_options
def command(model_type: str, model_id: str, name: str, version: int | None, output: str | None) -> None:
    """Print the content of NAME, byte for byte.

    It is compared with its recorded checksum before the first byte is printed. With --json the
    content is part of the document: parsed, as text, or in base64.
    """
    import os

    from mire.wire.metadata import metadata_document

    artifact = open_store().model(model_type, model_id).get(name, version)
    about: dict[str, Any] = {
        "modelType": artifact.model.model_type,
        "modelId": artifact.model.model_id,
        "metadata": metadata_document(artifact.metadata),
    }
    if output is not None and output != "-":
        size = _write(os.path.abspath(output), artifact)
        emit("get", {**about, "path": output}, f"{output}: {size_text(size)}")
    elif settings().is_json:
        emit("get", {**about, **_inline(artifact)}, "")
    else:
        artifact.verify()
        write_out(artifact.chunks())


def _write(path: str, artifact: "Artifact") -> int:
    import os

    from mire.edge import files
    from mire.errors import InputError, NotFoundError, shown

    if os.path.isdir(path):
        raise InputError(f"{shown(path)} is a directory: name a file to write")
    if not os.path.isdir(os.path.dirname(path)):
        raise NotFoundError(f"there is no directory to hold {shown(path)}: create it, or name another file")
    if os.path.exists(path) and not os.path.isfile(path):
        # A device or a pipe is written to, not replaced.
        artifact.verify()
        return files.write_through(path, artifact.chunks())
    return files.write_file(path, artifact.chunks()).size_bytes


def _inline(artifact: "Artifact") -> dict[str, Any]:
    import base64
    import json

    data = artifact.bytes()
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"encoding": "base64", "content": base64.b64encode(data).decode()}
    if artifact.metadata.content_type == "application/json":
        try:
            parsed = json.loads(text)
            json.dumps(parsed, ensure_ascii=False, allow_nan=False).encode()
        except (ValueError, RecursionError):
            return {"encoding": "utf-8", "content": text}
        return {"encoding": "json", "content": parsed}
    return {"encoding": "utf-8", "content": text}
