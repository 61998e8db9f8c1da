"""`mire status`: what is configured, and whether it works."""

import click

from mire.cli.face import common_options, emit, facts, open_datastore


@click.command("status", short_help="Show the settings, and whether they work.")
@common_options
def command() -> None:
    """Show the repository, its datastore, and whether it can be used (exit 5 when not)."""
    from mire.flow.lock import inspect_locks
    from mire.flow.status import check_health
    from mire.model.config import Filesystem

    ds = open_datastore(check=False)
    health = check_health(ds)
    config = ds.config
    locks = inspect_locks(ds) if health.is_healthy else []
    kind = "filesystem" if isinstance(config.target, Filesystem) else config.target.type
    document = {
        "repo": ds.repo_dir,
        "repoId": config.repo_id,
        "datastore": {"type": kind, "path": ds.base, "from": config.origin, "namespace": config.namespace},
        "directories": list(config.directories),
        "exclude": list(config.exclude),
        "lockTimeoutMs": config.lock_timeout_ms,
        "syncTimeoutMs": config.sync_timeout_ms,
        "locks": len(locks),
        "healthy": health.is_healthy,
        "message": health.message,
        "latencyMs": round(health.latency_ms, 1),
    }
    emit(
        "status",
        document,
        lambda: facts(
            [
                ("repository", ds.repo_dir),
                ("repository id", config.repo_id),
                ("datastore", f"{kind} {ds.base} (from {config.origin})"),
                ("namespace", config.namespace or None),
                ("directories", " ".join(config.directories)),
                ("exclude", " ".join(config.exclude) or None),
                ("lock timeout", f"{config.lock_timeout_ms / 1000:g} s"),
                ("sync timeout", f"{config.sync_timeout_ms / 1000:g} s"),
                ("locks", len(locks)),
                ("health", f"{'ok' if health.is_healthy else 'NOT OK'}: {health.message} ({health.latency_ms:.0f} ms)"),
            ]
        ),
    )
    if not health.is_healthy:
        raise click.exceptions.Exit(5)
