"""`mire status`: what is configured, whether it works, and what waits to be synced."""

from typing import TYPE_CHECKING, Any

import click

from mire.cli.face import age_text, emit, facts, flags, open_datastore, plain, read_options, repo_dir, size_text

if TYPE_CHECKING:
    from mire.flow.cachestatus import CacheStatus, RemoteStatus
    from mire.flow.datastore import Located
    from mire.flow.status import Health
    from mire.model.config import Extension

Facts = list[tuple[str, object]]

_PATHS_SHOWN = 5


@click.command("status", short_help="Show the settings, and whether they work.")
@click.option("--remote", "asks_remote", is_flag=True, help="Also ask the remote: health, ahead, behind, locks.")
@read_options
def command(asks_remote: bool) -> None:
    """Show the repository and its datastore, and whether it can be used (exit 5 when not).

    Of a datastore that is synced it shows what waits to be pushed, what is not here and when everything was last
    pulled; without --remote that takes no network.
    """
    from mire.flow.datastore import locate
    from mire.model.config import Extension

    found = locate(repo_dir(), flags=flags())
    target = found.config.target
    if isinstance(target, Extension):
        health = _show_synced(found, target, asks_remote=asks_remote)
    else:
        health = _show_directory(found, target.path)
    if health is not None and not health.is_healthy:
        raise click.exceptions.Exit(5)


def _show_directory(found: "Located", path: str) -> "Health":
    from mire.flow.lock import inspect_locks
    from mire.flow.publishnow import is_waiting
    from mire.flow.status import check_health

    ds = open_datastore(check=False)
    health = check_health(ds)
    locks = len(inspect_locks(ds)) if health.is_healthy else 0
    waits = is_waiting(ds) if health.is_healthy else None
    _show(found, kind="filesystem", place={"path": path}, health=health, locks=locks, waits=waits)
    return health


def _show_synced(found: "Located", target: "Extension", *, asks_remote: bool) -> "Health | None":
    from mire.flow.cachestatus import look_at_cache, look_at_remote
    from mire.flow.publishnow import is_waiting
    from mire.flow.status import check_remote_health

    # A directory that is no repository has no cache either.
    ds = open_datastore(check=False) if found.is_initialized else None
    name, health = check_remote_health(found, target) if asks_remote or ds is None else (None, None)
    there = look_at_remote(ds) if ds is not None and health is not None and health.is_healthy else None
    cache = None if ds is None else look_at_cache(ds)
    name = name or (ds.remote.properties.name if ds is not None and ds.remote is not None else "")
    locks = None if there is None else there.locks
    document = {} if cache is None else {"cache": _cache_document(cache, there)}
    more = [] if cache is None else _cache_facts(cache, there)
    waits = None if ds is None else is_waiting(ds)
    _show(
        found,
        kind=target.type,
        place={"name": name},
        health=health,
        locks=locks,
        waits=waits,
        document=document,
        more=more,
    )
    return health


def _cache_document(cache: "CacheStatus", there: "RemoteStatus | None") -> dict[str, Any]:
    return {
        "path": cache.path,
        "files": cache.files,
        "bytes": cache.size_bytes,
        "dirty": list(cache.dirty),
        "everythingDirty": cache.is_bulk,
        "unhydrated": cache.unhydrated,
        "unhydratedBytes": cache.unhydrated_bytes,
        "kept": list(cache.kept),
        "generation": cache.generation,
        "commitSeq": cache.commit_seq,
        "pulledMs": cache.pulled_ms,
        "ahead": None if there is None else there.ahead,
        "behind": None if there is None else there.behind,
        "conflicts": None if there is None else there.conflicts,
    }


def _cache_facts(cache: "CacheStatus", there: "RemoteStatus | None") -> Facts:
    from mire.cli.synced import count
    from mire.edge.clock import now_ns

    age = None if cache.pulled_ms is None else f"{age_text(now_ns() / 1e6 - cache.pulled_ms)} ago"
    index = None if cache.generation is None else f"v{cache.generation}"
    if cache.commit_seq is not None:
        index = f"{index}, commit {cache.commit_seq}"
    shown: Facts = [
        ("cache", f"{cache.path} ({count(cache.files, 'file')}, {size_text(cache.size_bytes)})"),
        ("last pull", age or "never: run 'mire pull'"),
        ("index", index),
        ("not pushed", _dirty_text(cache)),
        ("content at the remote", f"{count(cache.unhydrated, 'file')}, {size_text(cache.unhydrated_bytes)}"),
        ("kept versions", f"{len(cache.kept)} of conflicts: 'mire kept' lists them" if cache.kept else None),
    ]
    if there is not None:
        shown += [("ahead", there.ahead), ("behind", there.behind), ("in conflict", there.conflicts)]
    return shown


def _dirty_text(cache: "CacheStatus") -> str:
    if not cache.dirty:
        return "everything has to be looked at" if cache.is_bulk else "nothing"
    shown = ", ".join(plain(path) for path in cache.dirty[:_PATHS_SHOWN])
    more = len(cache.dirty) - _PATHS_SHOWN
    bulk = ", and everything has to be looked at" if cache.is_bulk else ""
    return f"{len(cache.dirty)} marked: {shown}{f' and {more} more' if more > 0 else ''}{bulk}"


def _show(
    found: "Located",
    *,
    kind: str,
    place: dict[str, str],
    health: "Health | None",
    locks: int | None,
    waits: bool | None,
    document: dict[str, Any] | None = None,
    more: Facts | None = None,
) -> None:
    config = found.config
    whole = {
        "repo": found.repo_dir,
        "repoId": config.repo_id,
        "datastore": {"type": kind, **place, "from": config.origin, "namespace": config.namespace},
        "directories": list(config.directories),
        "exclude": list(config.exclude),
        "lockTimeoutMs": config.lock_timeout_ms,
        "syncTimeoutMs": config.sync_timeout_ms,
        "locks": locks,
        "catalogWaits": waits,
        "healthy": None if health is None else health.is_healthy,
        "message": "the remote was not asked" if health is None else health.message,
        "latencyMs": None if health is None else round(health.latency_ms, 1),
        **(document or {}),
    }
    emit(
        "status",
        whole,
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
                *(more or ()),
                ("catalog", "not all of it is published yet: 'mire catalog publish' does it now" if waits else None),
                ("locks", locks),
                ("health", _health_text(health)),
            ]
        ),
    )


def _health_text(health: "Health | None") -> str:
    if health is None:
        return "not asked: --remote asks"
    return f"{'ok' if health.is_healthy else 'NOT OK'}: {health.message} ({health.latency_ms:.0f} ms)"
