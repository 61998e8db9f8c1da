"""`mire kept`: versions that are kept beside the cache after a conflict."""

from typing import TYPE_CHECKING, Any

import click

from mire.cli.face import age_text, common_options, emit, open_datastore, plain, size_text, table

if TYPE_CHECKING:
    from mire.flow.kept import KeptVersion


@click.command("kept", short_help="List or remove versions kept after conflicts.")
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--remove", is_flag=True, help="Remove those of PATH, or of everything below it.")
@click.option("--all", "is_all", is_flag=True, help="With --remove: remove all.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed; nothing is.")
@common_options
def command(paths: tuple[str, ...], remove: bool, is_all: bool, dry_run: bool) -> None:
    """List the versions that a conflict left beside the cache, or remove them.

    When two sides changed a path, the version that is not in its place is kept as a file. It stays until it is removed
    here: after 'mire push --ours' or 'mire pull --theirs' it may be the only copy.
    """
    from mire.errors import InputError
    from mire.flow.kept import list_kept, remove_kept
    from mire.flow.place import view_of

    if remove and bool(paths) == is_all:
        raise InputError("say what to remove: PATH, as 'mire kept' shows it, or --all", kind="usage")
    if not remove and (paths or is_all or dry_run):
        raise InputError("'mire kept' alone lists; PATH, --all and --dry-run go with --remove", kind="usage")
    ds = open_datastore()
    view_of(ds)
    if not remove:
        found = list_kept(ds)
        emit("kept", {"kept": [_document(each) for each in found]}, lambda: _text(found))
        return
    gone = remove_kept(ds, [""] if is_all else [path.strip("/") for path in paths], dry_run=dry_run)
    document = {"dryRun": dry_run, "removed": [_document(each) for each in gone]}
    verb = "would remove" if dry_run else "removed"
    emit("kept.remove", document, lambda: "\n".join(plain(f"{verb} {each.path}") for each in gone) or "nothing is kept")


def _document(each: "KeptVersion") -> dict[str, Any]:
    return {"path": each.rel, "file": each.path, "bytes": each.size_bytes, "keptMs": each.kept_ns // 1_000_000}


def _text(found: "list[KeptVersion]") -> str:
    from mire.edge.clock import now_ns

    if not found:
        return "nothing is kept"
    now = now_ns()
    rows = [[each.rel, size_text(each.size_bytes), age_text((now - each.kept_ns) / 1e6), each.path] for each in found]
    return table(["PATH", "SIZE", "SINCE", "FILE"], rows)
