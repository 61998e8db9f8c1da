"""`mire lock`: see and release locks."""

from typing import TYPE_CHECKING, Any

import click

from mire.cli.face import age_text, common_options, emit, open_datastore, table

if TYPE_CHECKING:
    from mire.flow.lock import LockReport


@click.group("lock", no_args_is_help=True)
@common_options
def command() -> None:
    """See and release locks."""


@command.command("status")
@common_options
def status() -> None:
    """List the locks that exist now."""
    from mire.flow.lock import inspect_locks

    reports = inspect_locks(open_datastore())
    emit("lock.status", {"locks": [_document(report) for report in reports]}, lambda: _text(reports))


@command.command("release")
@click.option("--model", metavar="TYPE/ID", help="A model's lock (default: the global lock).")
@click.option("--force", is_flag=True, help="Required: the holder is not asked.")
@common_options
def release(model: str | None, force: bool) -> None:
    """Remove a lock whose holder will not come back.

    A holder that is alive notices before its next step and stops.
    """
    from mire.errors import InputError
    from mire.flow.lock import parse_lock_target, release_lock

    if not force:
        raise InputError("releasing takes a lock away from its holder: look at 'mire lock status', then add --force")
    ds = open_datastore()
    released = [release_lock(ds, key) for key in parse_lock_target(ds, model)]
    emit(
        "lock.release",
        {"released": [_document(report) for report in released]},
        "\n".join(f"released {report.key}, held by {_holder(report)}" for report in released),
    )


def _document(report: "LockReport") -> dict[str, Any]:
    from mire.wire.lockfile import lease_document

    lease = None if report.lease is None else lease_document(report.lease)
    return {"key": report.key, "ageMs": report.age_ms, "stale": report.is_stale, "lease": lease}


def _holder(report: "LockReport") -> str:
    return "unknown (its body is empty or garbled)" if report.lease is None else report.lease.holder


def _text(reports: list["LockReport"]) -> str:
    if not reports:
        return "no locks"
    return table(
        ["LOCK", "HOLDER", "PID", "RENEWED", "STATE"],
        [
            [
                report.key,
                _holder(report),
                report.lease.pid if report.lease else "-",
                f"{age_text(report.age_ms)} ago",
                "stale" if report.is_stale else "held",
            ]
            for report in reports
        ],
    )
