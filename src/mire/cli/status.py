"""`mire status`: what is configured, and whether it works."""

from typing import TYPE_CHECKING

import click

from mire.cli.face import common_options, emit, facts, flags, open_datastore, repo_dir

if TYPE_CHECKING:
    from mire.flow.datastore import Located
    from mire.flow.status import Health


@click.command("status", short_help="Show the settings, and whether they work.")
@common_options
def command() -> None:
    """Show the repository, its datastore, and whether it can be used (exit 5 when not)."""
    from mire.flow.datastore import locate
    from mire.flow.status import check_remote_health
    from mire.model.config import Extension

    found = locate(repo_dir(), flags=flags())
    target = found.config.target
    if isinstance(target, Extension):
        name, health = check_remote_health(found, target)
        _show(found, kind=target.type, place={"name": name}, health=health, locks=None)
    else:
        health, locks = _look()
        _show(found, kind="filesystem", place={"path": target.path}, health=health, locks=locks)
    if not health.is_healthy:
        raise click.exceptions.Exit(5)


def _look() -> tuple["Health", int]:
    from mire.flow.lock import inspect_locks
    from mire.flow.status import check_health

    ds = open_datastore(check=False)
    health = check_health(ds)
    return health, len(inspect_locks(ds)) if health.is_healthy else 0


def _show(found: "Located", *, kind: str, place: dict[str, str], health: "Health", locks: int | None) -> None:
    config = found.config
    document = {
        "repo": found.repo_dir,
        "repoId": config.repo_id,
        "datastore": {"type": kind, **place, "from": config.origin, "namespace": config.namespace},
        "directories": list(config.directories),
        "exclude": list(config.exclude),
        "lockTimeoutMs": config.lock_timeout_ms,
        "syncTimeoutMs": config.sync_timeout_ms,
        "locks": locks,
        "healthy": health.is_healthy,
        "message": health.message,
        "latencyMs": round(health.latency_ms, 1),
    }
    emit(
        "status",
        document,
        lambda: facts(
            [
                ("repository", found.repo_dir),
                ("repository id", config.repo_id),
                ("datastore", f"{kind} {next(iter(place.values()))} (from {config.origin})"),
                ("namespace", config.namespace or None),
                ("directories", " ".join(config.directories)),
                ("exclude", " ".join(config.exclude) or None),
                ("lock timeout", f"{config.lock_timeout_ms / 1000:g} s"),
                ("sync timeout", f"{config.sync_timeout_ms / 1000:g} s"),
                ("locks", locks),
                ("health", f"{'ok' if health.is_healthy else 'NOT OK'}: {health.message} ({health.latency_ms:.0f} ms)"),
            ]
        ),
    )
