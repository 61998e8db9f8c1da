"""An open datastore: where its tiers are, who we are, and whether we may write.

Owns: finding the repository, resolving its settings, the gates before the first read and the first write.
Must not know: artifacts, records, what a lock says.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from mire.edge import clock, files, process
from mire.edge.lockdir import LockDir
from mire.edge.lockplace import LockPlace
from mire.edge.remote import Remote
from mire.errors import ConflictError, DeniedError, FormatError, InputError, NotFoundError, RemoteError, shown
from mire.model.artifact import ModelRef
from mire.model.config import Config, Extension, SyncSettings
from mire.model.lease import Ancestry, Host
from mire.model.manifest import Manifest
from mire.model.names import Namespace, RelPath
from mire.plan.config import Flags, resolve_config
from mire.plan.lock import parse_ancestry
from mire.plan.route import tier_of
from mire.wire.control import control_key
from mire.wire.layout import FORMAT_MARKER, LOCAL_TIER, REPO_FILE
from mire.wire.manifest import MANIFEST, decode_manifest, manifest_key
from mire.wire.marker import BYTES_MAX, check_format
from mire.wire.relocated import RECORD
from mire.wire.repo import RepoFile, decode_repo, encode_new_repo

if TYPE_CHECKING:
    from mire.flow.carrier import Carrier
    from mire.flow.locked import Hold
    from mire.flow.together import Together

_LEVELS_MAX = 10
_PATH_BYTES_MAX = 4096 - 64
"""What Linux takes, less room for a version's files below a name."""


class Lifecycle(Protocol):
    """What happens around work on a datastore that is a cache."""

    notices: list[str]
    gate: Callable[[], str | None]
    """Why the remote may not be written now; None when it may."""
    check_settled: Callable[[], None]
    """Refuses to write in the middle of a migration of our namespace; the remote must be reachable."""

    def around(self, ds: "Datastore", models: Sequence[ModelRef] | None, hold: "Hold") -> AbstractContextManager[None]:
        """A block of work under a lock, of some models or (None) of everything."""

    def offline(self, error: RemoteError | str) -> None:
        """Told that the remote cannot be reached, and that the work goes on without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Datastore:
    """A repository with its datastore, ready to be read; `base` is the datastore's root, all tenants'."""

    repo_dir: str
    base: str
    config: Config
    locks: LockPlace
    """Where its locks live: below its base, or on the remote it is a cache of."""
    given_host: Host | None
    is_initialized: bool
    may_initialize: bool
    read_only_reason: str | None = None
    remote: Remote | None = None
    """What its base is a cache of, our own part only; None when the base is the datastore itself."""
    whole: Remote | None = None
    """All of that store: for what is shown to everybody, and for who moves from one part to another."""
    sync: SyncSettings = field(default_factory=SyncSettings)
    lifecycle: "Lifecycle | None" = None
    """What a cached datastore does around work that writes."""
    carrier: "Carrier | None" = None
    """Who moves the files of a push or a pull, when there are many; None: this process."""
    together: "Together | None" = None
    """Takes new versions that are to become visible together; None: each does by itself."""

    @property
    def is_cache(self) -> bool:
        """Whether others may know more than what is here, until a lock is taken and everything it covers is pulled."""
        return self.remote is not None

    @property
    def host(self) -> Host:
        """Who locks: this process as it is now, which after a fork is not the one that opened the store."""
        return self.given_host or process.this_host()

    @property
    def ancestry(self) -> Ancestry:
        """The locks of the processes we descend from, now."""
        return parse_ancestry(process.environ(), process.this_host().pid)

    @property
    def tier(self) -> str:
        """The root of our own part of the datastore."""
        return os.path.join(self.base, self.config.namespace) if self.config.namespace else self.base

    @property
    def local(self) -> str:
        """The repository's own directory, which is never shared."""
        return os.path.join(self.repo_dir, LOCAL_TIER)

    def root_of(self, rel_path: RelPath) -> str:
        """The tier an artifact's directory or a record's file belongs to."""
        return self.tier if tier_of(rel_path, self.config) == "datastore" else self.local

    def path_of(self, rel_path: RelPath) -> str:
        """The absolute path; a symbolic link that leads out of the tier is refused."""
        root = self.root_of(rel_path)
        path = os.path.join(root, rel_path)
        if len(os.fsencode(path)) > _PATH_BYTES_MAX:
            raise InputError(f"the path {shown(path)} is too long for a file system: shorten the names", path=path)
        files.check_inside(path, root)
        return path

    def roots(self) -> tuple[str, ...]:
        """Both tiers, or the one where they are the same."""
        return (self.tier,) if self.tier == self.local else (self.tier, self.local)

    def data_roots(self) -> tuple[str, ...]:
        """The tiers that can hold model data: both only where patterns exclude some of it from the datastore."""
        if tier_of(RelPath("data"), self.config) == "local":
            return (self.local,)
        return self.roots() if self.config.exclude else (self.tier,)

    def check_writable(self) -> None:
        """The gate before the first write."""
        if self.read_only_reason is not None:
            raise DeniedError(self.read_only_reason, kind="read_only")
        if not self.is_initialized and not self.may_initialize:
            raise _no_repository(self.repo_dir)


def find_repo(start: str, named: str | None = None) -> str:
    """The repository to use: named, else `SWAMP_REPO_DIR`, else the nearest above `start`."""
    chosen = named or process.environ().get("SWAMP_REPO_DIR")
    if chosen:
        return os.path.abspath(os.path.expanduser(chosen))
    directory = os.path.abspath(start)
    for _ in range(_LEVELS_MAX):
        if files.is_file(os.path.join(directory, REPO_FILE)):
            return directory
        parent = os.path.dirname(directory)
        if parent == directory or os.path.exists(os.path.join(directory, ".git")):
            break
        directory = parent
    return os.path.abspath(start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A repository and its settings, before anything of its datastore was looked at."""

    repo_dir: str
    is_initialized: bool
    config: Config


def locate(repo_dir: str, *, flags: Flags | None = None) -> Located:
    """Find a repository's directory and resolve its settings."""
    if not files.is_dir(repo_dir):
        raise NotFoundError(f"there is no directory {shown(repo_dir)}: create it, or name another", path=repo_dir)
    repo_dir = os.path.realpath(repo_dir)
    repo = load_repo(repo_dir)
    config = resolve_config(repo_dir=repo_dir, repo=repo, environ=process.environ(), flags=flags or Flags())
    return Located(repo_dir=repo_dir, is_initialized=repo is not None, config=config)


def open_datastore(
    repo_dir: str,
    *,
    flags: Flags | None = None,
    host: Host | None = None,
    create: bool = False,
    check: bool = True,
) -> Datastore:
    """Open the datastore of a repository.

    `create` lets the first write make a directory without `.swamp.yaml` a repository (with a remote: opening it does);
    `check=False` opens one that cannot be used, to tell why.
    """
    found = locate(repo_dir, flags=flags)
    repo_dir, config = found.repo_dir, found.config
    if not found.is_initialized and not create and check:
        raise _no_repository(repo_dir)
    if isinstance(config.target, Extension):
        from mire.flow.cached import open_cached  # noqa: PLC0415 - few repositories have a remote

        return open_cached(found, host=host, create=create)
    base = config.target.path
    if check and not config.target.is_default and not files.is_dir(base):
        raise RemoteError(
            f"the datastore {shown(base)} (from {config.origin}) is not there: mount it, or create it with"
            " 'mire init --datastore'",
            kind="unreachable",
            path=base,
        )
    return Datastore(
        repo_dir=repo_dir,
        base=base,
        config=config,
        locks=LockDir(base),
        given_host=host,
        is_initialized=found.is_initialized,
        may_initialize=create,
        read_only_reason=_reason_not_to_write(base, config) if check else None,
    )


def create_repo(repo_dir: str, block: Mapping[str, Any] | None = None) -> None:
    """Write the settings file of a new repository, unless there is one."""
    # Create-only: of two processes that start here at once, one names the repository for both.
    document = encode_new_repo(clock.new_uuid(), clock.now_instant(), block)
    files.create_file(os.path.join(repo_dir, REPO_FILE), document)


def _reason_not_to_write(base: str, config: Config) -> str | None:
    """Refuse a datastore of a newer format and a namespace of another repository; why nothing may be written."""
    reason = check_marker(base)
    if not config.namespace:
        return reason
    claim = load_claim(base, config.namespace)
    if config.repo_id is not None:
        check_claim(claim, config.repo_id)
    if files.is_file(os.path.join(base, control_key(config.namespace, RECORD))):
        return reason or unsettled(config.namespace)
    return reason


def unsettled(namespace: Namespace) -> str:
    """Why nothing is written in a namespace whose data is partly elsewhere: numbers would be given twice."""
    return (
        f"a migration of the namespace {namespace} did not come to its end, so nothing is written: run"
        " 'mire namespace migrate' again (with --reverse, if that was the way)"
    )


def load_claim(base: str, namespace: Namespace) -> Manifest | None:
    """Who has a namespace of a directory, if anybody does."""
    data = files.read_file(os.path.join(base, namespace, MANIFEST))
    return None if data is None else decode_manifest(data, manifest_key(namespace))


def check_claim(claim: Manifest | None, repo_id: str) -> None:
    """Refuse a namespace that another repository has."""
    if claim is not None and claim.repo_id != repo_id:
        raise ConflictError(
            f"the namespace {claim.namespace} belongs to the repository {claim.repo_id} since {claim.registered_at}:"
            " choose another",
            kind="namespace_taken",
            namespace=claim.namespace,
            repo_id=claim.repo_id,
        )


def load_repo(repo_dir: str) -> RepoFile | None:
    """The settings file of a repository, or None when there is none."""
    data = files.read_file(os.path.join(repo_dir, REPO_FILE))
    return None if data is None else decode_repo(data)


def datastore_in(path: str, config: Config, repo_dir: str) -> Datastore:
    """The datastore that a directory is, whatever the settings of the repository say."""
    return Datastore(
        repo_dir=repo_dir,
        base=path,
        config=config,
        locks=LockDir(path),
        given_host=None,
        is_initialized=True,
        may_initialize=False,
        read_only_reason=check_marker(path),
    )


def check_marker(base: str) -> str | None:
    """Refuse a datastore of a newer format; an unreadable marker only forbids writing, and says why."""
    path = os.path.join(base, FORMAT_MARKER)
    try:
        if os.path.lexists(path) and not files.is_regular(path):
            raise FormatError(
                f"the datastore's format marker {shown(path)} is not a regular file: restore it; never delete it",
                kind="datastore_format_marker_invalid",
            )
        check_format(files.read_file(path, limit=BYTES_MAX))
    except RemoteError as error:
        return f"the datastore's format marker could not be read, so nothing is written: {error.message}"
    return None


def _no_repository(repo_dir: str) -> NotFoundError:
    return NotFoundError(
        f"{shown(repo_dir)} is not a repository (it has no {REPO_FILE}): run 'mire init' there,"
        " or name one with --repo",
        kind="no_repository",
        path=repo_dir,
    )
