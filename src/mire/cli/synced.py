"""How pushes and pulls are shown, by the commands that do them.

Owns: words, members and exit codes of a report.
Must not know: how anything is synced.
Keeps: a dry run shows the numbers of the real one, in the same words.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from mire.cli.face import plain

if TYPE_CHECKING:
    from mire.flow.datastore import Datastore
    from mire.flow.pull import Conflict, Pulled
    from mire.flow.push import Pushed

_SHOWN_MAX = 20
_CONFLICT = 4
_NOT_SYNCED = 5


def count(number: int, what: str, several: str | None = None) -> str:
    """A number with its noun."""
    return f"{number} {what if number == 1 else several or f'{what}s'}"


def pushed_document(ds: "Datastore", done: "Pushed") -> dict[str, Any]:
    """A push under the names `--json` uses."""
    return {
        "dryRun": done.is_dry_run,
        "sent": list(done.uploaded),
        "removed": list(done.removed),
        "conflicts": conflicts_document(ds, done.conflicts),
        "resolved": conflicts_document(ds, done.resolved),
        "findings": list(done.findings),
    }


def pulled_document(ds: "Datastore", done: "Pulled") -> dict[str, Any]:
    """A pull under the names `--json` uses."""
    return {
        "dryRun": done.is_dry_run,
        "brought": list(done.written),
        "removed": list(done.removed),
        "leftOut": done.left_out,
        "conflicts": conflicts_document(ds, done.conflicts),
        "resolved": conflicts_document(ds, done.resolved),
        "repeated": conflicts_document(ds, done.repeated),
        "findings": list(done.findings),
    }


def conflicts_document(ds: "Datastore", conflicts: "Sequence[Conflict]") -> list[dict[str, Any]]:
    """Conflicts with the places of both versions."""
    return [
        {"path": each.rel, "why": each.why, "ours": each.ours or _file(ds, each.rel), "theirs": _theirs(ds, each)}
        for each in conflicts
    ]


def pushed_text(ds: "Datastore", done: "Pushed", *, told: "Sequence[Conflict]" = ()) -> str:
    """A push for people; conflicts that were told before are only counted."""
    verbs = ("would send", "would remove") if done.is_dry_run else ("sent", "removed")
    head = f"{verbs[0]} {count(len(done.uploaded), 'file')}, {verbs[1]} {len(done.removed)}"
    if not done.count and not done.conflicts and not done.findings:
        head = "nothing to push"
    shown = [*_paths("send", done.uploaded), *_paths("remove", done.removed)] if done.is_dry_run else []
    for each in done.resolved if not done.is_dry_run else ():
        kept = [] if each.theirs is None else [plain(f"  theirs is kept in  {each.theirs}")]
        shown += [plain(f"ours won: {each.rel}"), *kept]
    known = {each.rel for each in told}
    again = [each for each in done.conflicts if each.rel in known]
    if again:
        head += f"; {len(again)} of the conflicts above not sent"
    new = [each for each in done.conflicts if each.rel not in known]
    return "\n".join([*shown, head, *_troubles(ds, new, done.findings)])


def pulled_text(ds: "Datastore", done: "Pulled") -> str:
    """A pull for people."""
    verbs = ("would bring", "would remove") if done.is_dry_run else ("brought", "removed")
    head = f"{verbs[0]} {count(len(done.written), 'file')}, {verbs[1]} {len(done.removed)}"
    if not done.count and not done.left_out and not done.conflicts and not done.findings and not done.repeated:
        head = "nothing to pull"
    if done.left_out:
        head += f"; content of {count(done.left_out, 'version')} stays there until it is read"
    shown = [*_paths("bring", done.written), *_paths("remove", done.removed)] if done.is_dry_run else []
    for each in done.resolved:
        kept = [] if each.ours is None else [plain(f"  ours is kept in  {each.ours}")]
        shown += [plain(f"theirs won: {each.rel}"), *kept]
    for each in done.repeated:
        shown += [plain(f"came back: {each.rel} {each.why}"), plain(f"  its bytes are kept in  {each.theirs}")]
    return "\n".join([*shown, head, *_troubles(ds, done.conflicts, done.findings)])


def leave(done: "Pushed | Pulled", *more: "Pushed | Pulled") -> None:
    """End the command with the code that its reports ask for."""
    reports = (done, *more)
    if any(each.conflicts for each in reports):
        raise click.exceptions.Exit(_CONFLICT)
    if any(each.findings for each in reports):
        raise click.exceptions.Exit(_NOT_SYNCED)


def conflict_lines(ds: "Datastore", conflicts: "Sequence[Conflict]") -> list[str]:
    """Conflicts for people: what happened, and where both versions are."""
    lines: list[str] = []
    for each in conflicts:
        lines += [
            plain(f"conflict: {each.rel}: {each.why}"),
            plain(f"  ours    {each.ours or _file(ds, each.rel)}"),
            plain(f"  theirs  {_theirs(ds, each)}"),
        ]
    return lines


def _troubles(ds: "Datastore", conflicts: "Sequence[Conflict]", findings: Sequence[str]) -> list[str]:
    lines = conflict_lines(ds, conflicts)
    if conflicts:
        lines.append("nothing was overwritten: 'mire push --ours' or 'mire pull --theirs' decides")
    return [*lines, *(plain(f"note: {finding}") for finding in findings)]


def _paths(verb: str, paths: Sequence[str]) -> list[str]:
    lines = [plain(f"{verb} {path}") for path in paths[:_SHOWN_MAX]]
    return [*lines, f"{verb} {len(paths) - _SHOWN_MAX} more"] if len(paths) > _SHOWN_MAX else lines


def _file(ds: "Datastore", rel: str) -> str:
    return f"{ds.tier}/{rel}"


def _theirs(ds: "Datastore", conflict: "Conflict") -> str:
    if conflict.theirs is not None:
        return conflict.theirs
    name = "" if ds.remote is None else ds.remote.properties.name
    namespace = f"/{ds.config.namespace}" if ds.config.namespace else ""
    return f"{name}{namespace}/{conflict.rel}"
