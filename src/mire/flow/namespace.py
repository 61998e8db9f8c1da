"""The namespace of a repository: take one, leave it, see what it is.

Owns: the setting and the claim, in the order that leaves no repository without the one or the other.
Must not know: how data is moved, what other namespaces have.
Keeps: a name is claimed before the settings say it, and given back only after they no longer do; no data is moved, and
whoever changes the setting is told what stays behind.
"""

import os
from dataclasses import dataclass, replace

from mire.edge import clock, files
from mire.edge.lockobject import ObjectLocks
from mire.edge.state import close_states, open_state
from mire.errors import ConfigError, ConflictError, FormatError, InputError, NotFoundError, shown
from mire.flow.cached import open_cached
from mire.flow.claim import claim_namespace, claim_of, release_namespace
from mire.flow.datastore import Datastore, Located, check_claim, locate, unsettled
from mire.flow.exchange import check_gate
from mire.flow.fence import fenced
from mire.flow.index import fetch_index
from mire.flow.mark import pending_marks
from mire.flow.place import view_of
from mire.flow.prospect import source_of
from mire.flow.publishdir import withdraw
from mire.flow.relocate_remote import open_side
from mire.flow.relocation_journal import load_journal
from mire.model.config import Config, Extension, Filesystem
from mire.model.manifest import Manifest
from mire.model.names import SOLO, Namespace, parse_namespace
from mire.plan.config import Flags
from mire.wire.export import EXPORT
from mire.wire.layout import REPO_FILE
from mire.wire.monolith import MONOLITH
from mire.wire.relocated import Direction
from mire.wire.relpath import is_internal
from mire.wire.repo import renamespace_datastore
from mire.wire.sidecar import SIDECAR


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A repository's namespace and what there is of it."""

    namespace: Namespace
    store: str
    claim: Manifest | None
    has_root_data: bool
    """Whether there is data at the root that this repository saw before it had a namespace, as far as is known."""
    unfinished: Direction | None = None
    """The way of a migration that did not come to its end."""


def show_namespace(repo_dir: str, *, flags: Flags | None = None) -> Shown:
    """The namespace of a repository, as it is set and as it is registered; nothing is changed."""
    found = locate(repo_dir, flags=flags)
    check_repository(found)
    namespace, target = found.config.namespace, found.config.target
    if isinstance(target, Filesystem) and target.is_default and not files.is_dir(target.path):
        return Shown(namespace=namespace, store=target.path, claim=None, has_root_data=False)
    ds = open_for(found)
    claim = claim_of(ds, namespace) if namespace else None
    is_left = bool(namespace) and is_root_ours(ds) and has_data(solo_of(ds))
    journal = load_journal(ds) if namespace else None
    return Shown(
        namespace=namespace,
        store=store_name(ds),
        claim=claim,
        has_root_data=is_left,
        unfinished=None if journal is None else journal.direction,
    )


def set_namespace(repo_dir: str, name: str, *, flags: Flags | None = None) -> Shown:
    """Claim a namespace and use it from now on; data that is at the root stays there until it is migrated."""
    namespace = parse_namespace(name)
    if not namespace:
        raise InputError("the namespace is empty: 'mire namespace unset' leaves a namespace", kind="bad_name")
    found = locate(repo_dir, flags=flags)
    repo_id = check_settings(found)
    before = open_for(found)
    if before.config.namespace not in (SOLO, namespace):
        raise ConflictError(
            f"the repository has the namespace {before.config.namespace}: leave it first, with"
            " 'mire namespace migrate --reverse' or 'mire namespace unset'",
            kind="has_namespace",
            namespace=before.config.namespace,
        )
    if namespace in before.config.directories:
        raise InputError(
            f"namespace {shown(namespace)} is the name of a datastore directory: choose another",
            kind="bad_name",
            value=shown(namespace),
        )
    is_again = before.config.namespace == namespace
    if not is_again:
        check_published(before)
    after = bound_to(before, namespace)
    check_gate(after, is_settling=True)
    has_root_data = not is_again and _may_have_data(before)
    claim_namespace(after, repo_id)
    if not is_again:  # else nothing of the cache changes hands, and what it is to push must not be forgotten
        _write_setting(repo_dir, namespace)
        rebind(after)
    shown_now = show_namespace(repo_dir, flags=flags)
    return replace(shown_now, has_root_data=has_root_data or shown_now.has_root_data)


def unset_namespace(repo_dir: str, *, keep: bool = False, flags: Flags | None = None) -> Namespace:
    """Use no namespace from now on, and give the name back; with `keep` data and claim stay. The name it was."""
    found = locate(repo_dir, flags=flags)
    repo_id = check_settings(found)
    ds = open_for(found)
    namespace = ds.config.namespace
    if not namespace:
        raise NotFoundError("the repository has no namespace: nothing to leave", kind="no_namespace")
    if load_journal(ds) is not None:
        raise ConflictError(unsettled(namespace), kind="migration_interrupted")
    check_published(ds)
    if not keep:
        if has_data(ds):
            raise ConflictError(
                f"the namespace {namespace} has data, which this repository would no longer see: move it to the root"
                " with 'mire namespace migrate --reverse', or add --keep to leave it there",
                kind="namespace_in_use",
                namespace=namespace,
            )
        check_claim(claim_of(ds, namespace), repo_id)
    leave(ds, repo_dir, repo_id, keep=keep)
    return namespace


def leave(ds: Datastore, repo_dir: str, repo_id: str, *, keep: bool = False) -> None:
    """Change the setting, then give the name back: a crash in between leaves a claim that is still ours."""
    if not keep:
        withdraw(ds)
    rebind(solo_of(ds))
    _write_setting(repo_dir, SOLO)
    if not keep:
        release_namespace(ds, repo_id)
        files.remove_empty([ds.tier])


def open_for(found: Located) -> Datastore:
    """The datastore of a repository, whatever it is; its gates are not asked."""
    if isinstance(found.config.target, Extension):
        return open_cached(found, host=None, create=False)
    ds = source_of(found.config, found.repo_dir, is_moving=False)
    if ds is not None:
        return ds
    assert isinstance(found.config.target, Filesystem)  # noqa: S101 - the other kind
    files.make_dirs(found.config.target.path)
    ds = source_of(found.config, found.repo_dir, is_moving=False)
    assert ds is not None  # noqa: S101 - it was made
    return ds


def check_repository(found: Located) -> None:
    """Refuse a directory that is no repository: it has no namespace, and a look makes nothing."""
    if not found.is_initialized:
        raise NotFoundError(
            f"{shown(found.repo_dir)} is not a repository (it has no {REPO_FILE}): run 'mire init' there first",
            kind="no_repository",
            path=found.repo_dir,
        )


def check_settings(found: Located) -> str:
    """The id of a repository whose settings can be changed; what is named for once has no settings."""
    check_repository(found)
    check_origin(found.config)
    if not found.config.repo_id:
        raise ConfigError(
            f"{REPO_FILE} has no 'repoId', by which a namespace is claimed: add a line repoId: \"{clock.new_uuid()}\""
        )
    return found.config.repo_id


def check_origin(config: Config) -> None:
    """Refuse a datastore that is named for once: it has no settings that could name a namespace."""
    if config.origin not in (REPO_FILE, "default"):
        raise InputError(
            f"a namespace is a setting of the repository, and its datastore is named by {config.origin} just now:"
            " leave that out",
            kind="config",
        )


def check_published(ds: Datastore) -> None:
    """Refuse to leave a part of a remote for which something is still to be pushed."""
    if ds.remote is None:
        return
    pending = pending_marks(ds)
    if pending.records or (pending.is_bulk and has_files(ds)):
        raise ConflictError(
            "not everything here is published, and it would stay where it is: run 'mire push' first", kind="unpublished"
        )


def has_files(ds: Datastore) -> bool:
    """Whether a tier has any file in its directories."""
    return any(
        not is_internal(f"{top}/{entry.name}")
        for top in ds.config.directories
        for entry in files.list_dir(os.path.join(ds.tier, top))
    )


def has_data(ds: Datastore) -> bool:
    """Whether our part of a store has data: files of a directory, or entries of an index."""
    if ds.remote is None:
        return has_files(ds)
    with open_side(ds, ds.config.namespace) as place:
        return any(rel != EXPORT for rel, _ in fetch_index(place).entries())


def _may_have_data(ds: Datastore) -> bool:
    """The same for a part that we are about to leave: what cannot be understood is somebody's data."""
    try:
        return has_data(ds)
    except FormatError:
        return True


def bound_to(ds: Datastore, namespace: Namespace) -> Datastore:
    """The same store with another namespace."""
    config = replace(ds.config, namespace=namespace)
    if ds.whole is None:
        return replace(ds, config=config)
    remote = fenced(ds.whole, config)
    return replace(ds, config=config, remote=remote, locks=ObjectLocks(remote))


def solo_of(ds: Datastore) -> Datastore:
    """The same store without a namespace."""
    return bound_to(ds, SOLO)


def store_name(ds: Datastore) -> str:
    """The store without the namespace, as it is shown."""
    return ds.base if ds.remote is None else ds.remote.properties.name


def is_root_ours(ds: Datastore) -> bool:
    """Whether what is at the root of a store is certainly this repository's: in a shared store nobody can tell."""
    return ds.remote is None and ds.base == os.path.realpath(ds.local)


def _write_setting(repo_dir: str, namespace: Namespace) -> None:
    path = os.path.join(os.path.realpath(repo_dir), REPO_FILE)
    existing = files.read_file(path)
    if existing is None:
        raise NotFoundError(f"{shown(path)} went away: restore it and run this again", path=path)
    changed = renamespace_datastore(existing, namespace)
    if changed != existing:
        files.write_file(path, [changed])


def rebind(ds: Datastore) -> None:
    """Let the cache be that of another part of its remote: what was agreed with the former one is forgotten."""
    if ds.remote is None:
        return
    # One local index and one sidecar serve all namespaces of a cache: those of another would be believed.
    for name in (MONOLITH, SIDECAR):
        files.remove_file(os.path.join(ds.base, name))
    close_states(ds.base)
    with open_state(ds.base, view_of(ds).properties.name):
        pass
