"""`mire usage`: bytes and versions."""

import os

import click

from mire.cli.face import emit, nothing, open_datastore, progress, read_options, size_text, table


@click.command("usage")
@click.option("--by", type=click.Choice(["type", "model", "name"]), default="type", show_default=True)
@read_options
def command(by: str) -> None:
    """Show how many bytes and versions there are, by type, model or name, largest first."""
    from mire.flow.usage import usage

    ds = open_datastore()
    lines = usage(ds, by, workers=os.cpu_count() or 1, progress=progress)
    labels = ("modelType", "modelId", "name")
    document = {
        "by": by,
        "usage": [
            {
                **dict(zip(labels, line.key, strict=False)),
                "names": line.names,
                "versions": line.versions,
                "bytes": line.size_bytes,
            }
            for line in lines
        ],
        "bytes": sum(line.size_bytes for line in lines),
        "versions": sum(line.versions for line in lines),
    }
    columns = [*("TYPE", "ID", "NAME")[: len(lines[0].key) if lines else 1], "NAMES", "VERSIONS", "SIZE"]
    cells = [[*line.key, line.names, line.versions, size_text(line.size_bytes)] for line in lines]
    emit("usage", document, lambda: table(columns, cells) if cells else nothing("no data yet", ds))
