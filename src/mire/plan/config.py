"""Settings from four places, resolved: environment over flag over file over default.

Owns: the priority, timeouts, which directories are shared.
Must not know: where the file was, or that there is an environment; it is given mappings.
Keeps: namespace, directories and exclude belong to the repository, so pointing it at another store by
variable or flag does not drop them (the reference drops them, and then writes into a neighbour's root).
"""

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass

from mire.errors import ConfigError, InputError, shown
from mire.model.config import (
    LOCK_TIMEOUT_MS,
    SYNC_TIMEOUT_MS,
    SYNC_TIMEOUT_S_MAX,
    Config,
    Extension,
    Filesystem,
    Target,
)
from mire.model.names import ALWAYS_LOCAL_SUBDIRS, DATASTORE_SUBDIRS, parse_namespace
from mire.plan.address import parse_target
from mire.plan.path import expand_path
from mire.plan.route import check_exclude
from mire.wire.layout import LOCAL_TIER
from mire.wire.repo import PUBLISH, DatastoreBlock, RepoFile

_SEGMENT = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_@.-]*")
_MILLISECONDS = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """What the command line or the caller said; None where nothing was said."""

    datastore: str | None = None
    lock_timeout_s: float | None = None
    sync_timeout_s: float | None = None


def resolve_config(*, repo_dir: str, repo: RepoFile | None, environ: Mapping[str, str], flags: Flags) -> Config:
    """The settings in force. `repo_dir` is absolute; `repo` is None where there is no `.swamp.yaml`."""
    block = repo.datastore if repo else None
    target, origin = _resolve_target(repo_dir, block, environ, flags)
    try:
        namespace = parse_namespace(block.namespace if block else "")
    except InputError as error:
        raise ConfigError(f".swamp.yaml: 'datastore': {error.message}") from None
    return Config(
        target=target,
        origin=origin,
        directories=_directories(block.directories if block else None),
        exclude=check_exclude(block.exclude or () if block else ()),
        namespace=namespace,
        lock_timeout_ms=_lock_timeout_ms(block, environ, flags),
        sync_timeout_ms=_sync_timeout_ms(block, environ, flags),
        repo_id=repo.repo_id if repo else None,
        publishes_catalog=_publishes(block, target),
    )


def _resolve_target(
    repo_dir: str, block: DatastoreBlock | None, environ: Mapping[str, str], flags: Flags
) -> tuple[Target, str]:
    spoken = (("SWAMP_DATASTORE", environ.get("SWAMP_DATASTORE")), ("--datastore", flags.datastore))
    for origin, text in spoken:
        if text:
            return parse_target(text, repo_dir=repo_dir, environ=environ, what=origin), origin
    if block is None:
        return Filesystem(path=posixpath.join(repo_dir, LOCAL_TIER), is_default=True), "default"
    if block.type != "filesystem":
        return Extension(type=block.type, config=block.config), ".swamp.yaml"
    if block.path is None:
        return Filesystem(path=posixpath.join(repo_dir, LOCAL_TIER), is_default=True), ".swamp.yaml"
    path = expand_path(block.path, repo_dir=repo_dir, environ=environ, what=".swamp.yaml: 'datastore'")
    return Filesystem(path=path, is_default=path == posixpath.join(repo_dir, LOCAL_TIER)), ".swamp.yaml"


def _directories(named: tuple[str, ...] | None) -> tuple[str, ...]:
    if named is None:
        return DATASTORE_SUBDIRS
    for subdir in named:
        if not _SEGMENT.fullmatch(subdir):
            raise ConfigError(
                f".swamp.yaml: 'datastore': directories has {shown(subdir)}, which is not a directory name:"
                f" use some of {', '.join(DATASTORE_SUBDIRS)}"
            )
    return tuple(subdir for subdir in named if subdir not in ALWAYS_LOCAL_SUBDIRS)


def _lock_timeout_ms(block: DatastoreBlock | None, environ: Mapping[str, str], flags: Flags) -> int:
    if flags.lock_timeout_s is not None:
        if not _is_between(flags.lock_timeout_s, 0):
            raise ConfigError(
                f"--lock-timeout {shown(flags.lock_timeout_s)} is out of range: give 0 to {SYNC_TIMEOUT_S_MAX} seconds"
            )
        return round(flags.lock_timeout_s * 1000)
    if block and block.lock_timeout_ms is not None:
        return _milliseconds(block.lock_timeout_ms, ".swamp.yaml: 'datastore': lockTimeoutMs")
    return _from_environ(environ, "SWAMP_LOCK_TIMEOUT_MS", LOCK_TIMEOUT_MS)


def _sync_timeout_ms(block: DatastoreBlock | None, environ: Mapping[str, str], flags: Flags) -> int:
    if flags.sync_timeout_s is not None:
        if not _is_between(flags.sync_timeout_s, 1):
            raise ConfigError(
                f"--timeout {shown(flags.sync_timeout_s)} is out of range: give 1 to {SYNC_TIMEOUT_S_MAX} seconds"
            )
        return round(flags.sync_timeout_s * 1000)
    if block and block.sync_timeout_ms is not None:
        return _milliseconds(block.sync_timeout_ms, ".swamp.yaml: 'datastore': syncTimeoutMs")
    return _from_environ(environ, "SWAMP_DATASTORE_SYNC_TIMEOUT_MS", SYNC_TIMEOUT_MS)


def _publishes(block: DatastoreBlock | None, target: Target) -> bool:
    said = block.publish_catalog if block else None
    if isinstance(target, Extension) and target.config.get(PUBLISH) is not None:
        said = target.config[PUBLISH]
    if said is not None and not isinstance(said, bool):
        raise ConfigError(f".swamp.yaml: 'datastore': {PUBLISH} is {shown(said)}: give true or false")
    return said is not False


def _is_between(seconds: object, least: int) -> bool:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        return False
    return least <= seconds <= SYNC_TIMEOUT_S_MAX


def _milliseconds(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ConfigError(f"{what} is {shown(value)}: give whole milliseconds above 0")
    return value


def _from_environ(environ: Mapping[str, str], name: str, default: int) -> int:
    # The reference ignores values it cannot use; failing here would break a shared environment.
    match = _MILLISECONDS.fullmatch(environ.get(name, "").strip())
    return int(match[0]) if match and int(match[0]) > 0 else default
