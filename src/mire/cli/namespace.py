"""`mire namespace`: our own part of a store that many repositories share."""

from typing import TYPE_CHECKING, Any

import click

from mire.cli.face import common_options, emit, facts, flags, notices, plain, repo_dir, size_text, sync_progress, table

if TYPE_CHECKING:
    from mire.flow.contamination import Contamination
    from mire.flow.namespace import Shown
    from mire.flow.namespace_migrate import Migration

_NOT_CLEAN = 7


@click.group("namespace", no_args_is_help=True, short_help="Share a store without collisions.")
@common_options
def command() -> None:
    """Our own part of a store that many repositories share."""


@command.command("set")
@click.argument("name")
@common_options
def set_(name: str) -> None:
    """Claim NAME and use it: 1-64 of a-z, 0-9 and inner '-', not the name of a datastore directory.

    No data is moved: what the repository has at the root stays there, unseen, until 'mire namespace migrate'.
    """
    from mire.flow.namespace import set_namespace

    done = set_namespace(repo_dir(), name, flags=flags())
    emit("namespace.set", _shown_document(done), lambda: _set_text(done))


@command.command("unset")
@click.option("--keep", is_flag=True, help="Leave the data in the namespace, and the name claimed.")
@common_options
def unset(keep: bool) -> None:
    """Use no namespace, and give the name back.

    Refused while the namespace has data: 'mire namespace migrate --reverse' moves it to the root and leaves.
    """
    from mire.flow.namespace import unset_namespace

    former = unset_namespace(repo_dir(), keep=keep, flags=flags())
    emit("namespace.unset", {"former": former, "kept": keep}, lambda: f"the repository has left the namespace {former}")


@command.command("show")
@common_options
def show() -> None:
    """Show the repository's namespace, and whether it is registered."""
    from mire.flow.namespace import show_namespace

    found = show_namespace(repo_dir(), flags=flags())
    emit("namespace.show", _shown_document(found), lambda: _shown_text(found))


@command.command("list")
@common_options
def list_() -> None:
    """List the namespaces of the store, and which repository has each."""
    from mire.cli.face import open_datastore
    from mire.flow.registry import list_namespaces

    found = list_namespaces(open_datastore())
    document = [
        {
            "namespace": each.namespace,
            "repoId": each.repo_id,
            "registeredAt": each.registered_at,
            "current": each.is_ours,
            "trouble": each.trouble,
        }
        for each in found
    ]
    rows = [
        (each.namespace + (" *" if each.is_ours else ""), each.repo_id or "?", each.registered_at or each.trouble)
        for each in found
    ]
    emit("namespace.list", {"namespaces": document}, lambda: _list_text(rows))


@command.command("migrate")
@click.option("--reverse", is_flag=True, help="From the namespace to the root; then the namespace is left.")
@click.option("--dry-run", is_flag=True, help="Show what would be moved; takes no lock, changes nothing.")
@click.option("--adopt", is_flag=True, help="Take what is at the root of a shared store for this repository's.")
@common_options
def migrate(reverse: bool, dry_run: bool, adopt: bool) -> None:
    """Move the repository's data from the root of its store into its namespace.

    It holds the global locks of both, and moves nothing if any two files collide. Interrupted, it goes on when it is
    run again; until then nothing is written.
    """
    from mire.flow.namespace_migrate import migrate_namespace

    try:
        done = migrate_namespace(
            repo_dir(), reverse=reverse, dry_run=dry_run, adopt=adopt, flags=flags(), watch=sync_progress()
        )
    except KeyboardInterrupt:
        if not dry_run:
            notices(["interrupted: the same command goes on where it was; until then nothing is written"])
        raise
    emit("namespace.migrate", _migration_document(done), lambda: _migration_text(done))


@command.command("doctor")
@click.option("--repair", is_flag=True, help="Move out what does not belong here; nothing is deleted but duplicates.")
@click.option("--root", is_flag=True, help="Also look for copies of our files at the root: one request for each.")
@common_options
def doctor(repair: bool, root: bool) -> None:
    """Look for what other programs mixed up: doubled prefixes, files of other namespaces, copies at the root."""
    from mire.cli.face import open_datastore
    from mire.flow.contamination import examine_namespace

    found = examine_namespace(open_datastore(), repair=repair, root=root, watch=sync_progress())
    emit("namespace.doctor", _doctor_document(found), lambda: _doctor_text(found))
    if found.left:
        raise click.exceptions.Exit(_NOT_CLEAN)


def _set_text(done: "Shown") -> str:
    lines = [f"the repository has the namespace {done.namespace} now"]
    if done.has_root_data:
        lines.append("what is at the root stays there, unseen from here: 'mire namespace migrate' moves it")
    return "\n".join(lines)


def _list_text(rows: list[tuple[str, str, str | None]]) -> str:
    return table(("NAMESPACE", "REPOSITORY", "SINCE"), rows) if rows else "no namespaces"


def _shown_document(found: "Shown") -> dict[str, Any]:
    return {
        "namespace": found.namespace or None,
        "store": found.store,
        "registered": found.claim is not None,
        "repoId": found.claim.repo_id if found.claim else None,
        "registeredAt": found.claim.registered_at if found.claim else None,
        "rootData": found.has_root_data,
        "unfinishedMigration": found.unfinished,
    }


def _shown_text(found: "Shown") -> str:
    claim = found.claim
    again = "mire namespace migrate" + (" --reverse" if found.unfinished == "reverse" else "")
    since = None if claim is None else f"by {claim.repo_id} since {claim.registered_at}"
    return facts(
        [
            ("namespace", found.namespace or "none"),
            ("store", found.store),
            ("registered", since or ("no" if found.namespace else None)),
            ("at the root", "data of this repository: 'mire namespace migrate'" if found.has_root_data else None),
            ("migration", f"not finished: '{again}' goes on" if found.unfinished else None),
        ]
    )


def _migration_document(done: "Migration") -> dict[str, Any]:
    return {
        "namespace": done.namespace,
        "reverse": done.is_reverse,
        "dryRun": done.is_dry_run,
        "resumed": done.is_resumed,
        "directories": [
            {"directory": top, "files": share.files, "bytes": share.size_bytes} for top, share in done.shares.items()
        ],
        "files": done.files,
        "bytes": done.size_bytes,
        "duplicates": done.duplicates,
        "findings": list(done.findings),
    }


def _migration_text(done: "Migration") -> str:
    from mire.cli.synced import count

    way = f"from {done.namespace} to the root" if done.is_reverse else f"from the root to {done.namespace}"
    lines = [plain(f"{top}: {count(s.files, 'file')}, {size_text(s.size_bytes)}") for top, s in done.shares.items()]
    verb = "would move" if done.is_dry_run else "moved"
    what = f"{count(done.files, 'file')}, {size_text(done.size_bytes)}"
    lines.append(f"{verb} {what} {way}" if done.files else f"nothing to move {way}")
    if done.duplicates:
        lines.append(f"{done.duplicates} of them with a copy there already")
    lines += [plain(f"note: {finding}") for finding in done.findings]
    if done.is_reverse and not done.is_dry_run:
        lines.append(f"the repository has left the namespace {done.namespace}")
    return "\n".join(lines)


def _doctor_document(found: "Contamination") -> dict[str, Any]:
    return {
        "namespace": found.namespace or None,
        "repaired": found.is_repaired,
        "findings": [
            {
                "kind": each.kind,
                "key": each.key,
                "belongsTo": each.home,
                "action": each.action,
                "movedTo": each.moved_to,
                "message": each.message,
            }
            for each in found.findings
        ],
        "left": found.left,
    }


def _doctor_text(found: "Contamination") -> str:
    from mire.cli.synced import count

    lines = [plain(f"{each.kind}: {each.key}: {each.message}") for each in found.findings]
    if not lines:
        return "nothing is mixed up"
    movable = sum(each.action == "found" for each in found.findings)
    if movable and not found.is_repaired:
        lines.append(f"{count(movable, 'finding')}; 'mire namespace doctor --repair' moves them out")
    elif found.left:
        lines.append(f"{count(found.left, 'finding')} left as they are")
    return "\n".join(lines)
