"""`mire diff`: what changed between two versions."""

import click

from mire.cli.face import emit, open_store, plain, read_options


@click.command("diff")
@click.argument("model_type", metavar="TYPE")
@click.argument("model_id", metavar="ID")
@click.argument("name", metavar="NAME")
@click.argument("old", type=int, metavar="V1")
@click.argument("new", type=int, metavar="V2")
@read_options
def command(model_type: str, model_id: str, name: str, old: int, new: int) -> None:
    """Show what changed between two versions: by member for JSON, by line for text."""
    import difflib
    import json

    from mire.errors import FormatError
    from mire.plan.diff import diff_json

    model = open_store().model(model_type, model_id)
    before, after = model.get(name, old), model.get(name, new)
    about = {"modelType": model.type, "modelId": model.id, "name": name, "from": old, "to": new}
    try:
        changes = list(diff_json(before.json(), after.json()))
    except FormatError as error:
        if error.kind not in ("not_json", "not_text"):
            raise
    else:
        items = [{"kind": c.kind, "path": c.path, "old": c.old, "new": c.new} for c in changes]
        signs = {"added": "+", "removed": "-", "changed": "~"}
        lines = []
        for change in changes:
            values = [change.old] if change.kind == "removed" else [change.new]
            values = [change.old, change.new] if change.kind == "changed" else values
            shown = " -> ".join(json.dumps(value, ensure_ascii=False) for value in values)
            lines.append(f"{signs[change.kind]} {change.path or '/'}  {shown}")
        emit("diff", {**about, "changes": items}, "\n".join(lines) or "no differences")
        return
    try:
        old_lines, new_lines = before.text().splitlines(), after.text().splitlines()
    except FormatError:
        is_same = before.bytes() == after.bytes()
        text = (
            "no differences"
            if is_same
            else f"binary contents differ ({before.metadata.size_bytes} and {after.metadata.size_bytes} bytes)"
        )
        emit("diff", {**about, "same": is_same}, text)
        return
    found = list(difflib.unified_diff(old_lines, new_lines, f"version {old}", f"version {new}", lineterm=""))
    emit("diff", {**about, "lines": found}, lambda: "\n".join(map(plain, found)) or "no differences")
