"""`mire setup`: move a repository to a remote."""

import sys
from typing import TYPE_CHECKING, Any

import click

from mire.cli.face import common_options, emit, notices, plain, repo_dir, settings, size_text, sync_progress

if TYPE_CHECKING:
    from mire.flow.prospect import Prospect
    from mire.flow.setup_remote import SetUp

_CONFLICT = 4
_NOT_SYNCED = 5


@click.command("setup", short_help="Sync the repository with a bucket or share.")
@click.argument("url")
@click.option("--index", type=click.Choice(["dual", "sharded"]), help="The form of a new store's index (default dual).")
@click.option("--hydrate", type=click.Choice(["lazy", "full"]), help="When content comes (default lazy: when read).")
@click.option("--namespace", metavar="NS", help="Our own part of the store.")
@click.option("--cached", "is_cached", is_flag=True, help="Sync a directory (file:///path) with a local cache.")
@click.option("--ours", is_flag=True, help="Where both stores have a path with different content, ours wins.")
@click.option("--theirs", is_flag=True, help="The same, theirs wins; ours is kept beside the cache.")
@click.option("--allow-untrusted", is_flag=True, help="Take a store that ignores conditions, for a single writer.")
@click.option("--dry-run", is_flag=True, help="Prove the store and show what is there and here; nothing is changed.")
@click.option("--yes", is_flag=True, help="Do not ask before joining a store that has data.")
@common_options
def command(
    url: str,
    index: str | None,
    hydrate: str | None,
    namespace: str | None,
    is_cached: bool,
    ours: bool,
    theirs: bool,
    allow_untrusted: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Sync the repository with URL, such as s3://bucket/prefix, gs://bucket/prefix or file:///path --cached.

    The store is proved as by 'mire doctor'. The data of the repository is copied into a local cache and published,
    what is there is fetched, and only then the settings are switched; the old data stays where it is. Interrupted, it
    goes on when it is run again. A repository that syncs with another remote is moved in the same way, after everything
    of it was brought here.
    """
    from mire.errors import InputError
    from mire.flow.prospect import Wish, examine
    from mire.flow.setup_remote import set_up

    if settings().datastore is not None:
        raise InputError("setup takes the new datastore as its argument: leave out --datastore")
    wish = Wish(
        url=url,
        index=index,
        hydrate=hydrate,
        namespace=namespace,
        is_cached=is_cached,
        allow_untrusted=allow_untrusted,
        timeout_s=settings().sync_timeout_s,
    )
    found = examine(repo_dir(), wish)
    notices(found.notes)
    if dry_run:
        emit("setup", {"dryRun": True, **_found_document(found)}, lambda: _found_text(found))
        return
    if found.is_joining and not yes and not _is_confirmed(found):
        return
    done = set_up(found, ours=ours, theirs=theirs, watch=sync_progress())
    head = "" if found.is_joining and not yes else f"{_found_text(found)}\n"
    emit("setup", {"dryRun": False, **_found_document(found), **_document(done)}, lambda: head + _text(found, done))
    if done.conflicts:
        raise click.exceptions.Exit(_CONFLICT)
    if done.findings:
        raise click.exceptions.Exit(_NOT_SYNCED)


def _is_confirmed(found: "Prospect") -> bool:
    from mire.errors import InputError

    if settings().is_json or sys.stdin is None or not sys.stdin.isatty():
        raise InputError(
            f"{found.name} has data already ({found.index.entries} files), and there is nobody to ask: look at"
            " --dry-run, then add --yes to join it",
            kind="unconfirmed",
        )
    click.echo(_found_text(found))
    if not click.confirm("Join it?"):
        click.echo("nothing was changed")
        return False
    return True


def _found_document(found: "Prospect") -> dict[str, Any]:
    from mire.cli.index import index_document

    return {
        "remote": found.name,
        "namespace": found.located.config.namespace,
        "there": index_document(found.index),
        "here": {"files": found.files_here, "bytes": found.bytes_here},
        "resumed": found.is_resumed,
        "notes": list(found.notes),
    }


def _found_text(found: "Prospect") -> str:
    from mire.cli.synced import count

    there = found.index
    what = f"{there.form} index, {count(there.entries, 'file')}, {size_text(there.size_bytes)}"
    return "\n".join(
        [
            f"there: {plain(found.name)}: {'nothing yet' if there.form == 'none' else what}",
            f"here:  {count(found.files_here, 'file')}, {size_text(found.bytes_here)}",
        ]
    )


def _document(done: "SetUp") -> dict[str, Any]:
    from mire.cli.synced import conflicts_document, pulled_document, pushed_document

    return {
        "switched": done.is_switched,
        "cache": done.ds.base,
        "oldCache": done.old_cache,
        "copied": done.carried.copied,
        "copiedBytes": done.carried.size_bytes,
        "push": pushed_document(done.ds, done.pushed),
        "pull": pulled_document(done.ds, done.pulled),
        "conflicts": conflicts_document(done.ds, done.conflicts),
        "findings": done.findings,
    }


def _text(found: "Prospect", done: "SetUp") -> str:
    from mire.cli.synced import conflict_lines, count
    from mire.model.config import Filesystem

    lines = []
    moved = f"copied {count(done.carried.copied, 'file')} into {done.ds.base}"
    if done.is_switched:
        moved += f", sent {len(done.pushed.uploaded)}, brought {len(done.pulled.written)}"
        if done.pulled.left_out:
            moved += f"; content of {count(done.pulled.left_out, 'version')} stays there until it is read"
    lines.append(plain(moved))
    lines += conflict_lines(done.ds, done.conflicts)
    lines += [plain(f"note: {finding}") for finding in done.findings]
    if not done.is_switched:
        lines.append("NOT switched: the repository uses the datastore it had; deal with the above and run this again")
        if done.conflicts:
            lines.append("(--ours or --theirs decides for all of them)")
        return "\n".join(lines)
    lines.append(plain(f"the repository uses {found.name} now"))
    if done.old_cache is not None:
        lines.append(plain(f"the old remote and its cache stay ({done.old_cache}): remove them when you are sure"))
    target = found.former.target
    if isinstance(target, Filesystem) and found.files_here:
        lines.append(plain(f"the old data stays in {target.path}: remove it when you are sure"))
    return "\n".join(lines)
