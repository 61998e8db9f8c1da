"""A datastore whose truth is a remote: opened as its local cache.

Owns: where the cache is, which wrappers the remote gets, and the gate before anything is written to it.
Must not know: what is synced, or when.
Keeps: opening asks the remote nothing: who only reads what is here needs no network.
"""

import hashlib
import os
import threading
from dataclasses import replace

from mire.edge import clock, files, process
from mire.edge.bound import bound_to, has_marks
from mire.edge.lockobject import ObjectLocks
from mire.edge.prefixed import Prefixed
from mire.edge.remote import Remote
from mire.edge.retrying import Retrying
from mire.edge.traced import Traced
from mire.errors import ConfigError, ConflictError, DeniedError, MissingBucketError, NotFoundError, RemoteError, shown
from mire.flow.backend import find_backend, open_remote, settings_of
from mire.flow.claim import fetch_claim
from mire.flow.control import check_remote_marker, fetch_datastore_record
from mire.flow.datastore import Datastore, Located, check_claim, create_repo, load_repo, unsettled
from mire.flow.fence import fenced
from mire.flow.moving import finish_move, moving_dir
from mire.flow.sync import Sync
from mire.model.backend import FileSettings, GcsSettings, S3Settings
from mire.model.config import Config, Extension, SyncSettings
from mire.model.lease import Host
from mire.model.names import DATASTORE_SUBDIRS, SOLO, Namespace, is_namespace
from mire.wire.control import FORMAT_RECORD, control_key
from mire.wire.layout import REPO_FILE
from mire.wire.relocated import RECORD

_UNKNOWN = "unknown"
_AGAIN_MS = 10_000.0
_STRANGERS = ("credentials", "expired_token")
"""Refusals of us, not of one key: waiting for the network would not help."""


def open_cached(
    found: Located, *, host: Host | None, create: bool, is_moving: bool = False, cache: str | None = None
) -> Datastore:
    """The datastore of a repository that names a remote.

    `is_moving`: with a cache beside that of its former one; `cache` is a directory to use instead of either.
    """
    config = found.config
    assert isinstance(config.target, Extension)  # noqa: S101 - chosen by the caller
    opened, sync = _opened(found), sync_settings(found)
    remote = Retrying(Traced(fenced(opened, config)))
    if create and not found.is_initialized:
        # The cache is found by the id: what waits in it must be found again.
        create_repo(found.repo_dir)
        repo = load_repo(found.repo_dir)
        config = replace(config, repo_id=None if repo is None else repo.repo_id)
    view = Prefixed(remote, config.namespace) if config.namespace else remote
    base = cache_dir(config) if cache is None else cache
    if is_moving:
        base = moving_dir(base)
    else:
        finish_move(base, view.properties.name)
    check_owner(base, remote, config.namespace)
    files.make_dirs(base)
    gate = Gate(remote, config)
    return Datastore(
        repo_dir=found.repo_dir,
        base=os.path.realpath(base),
        config=config,
        locks=ObjectLocks(remote),
        given_host=host,
        is_initialized=found.is_initialized,
        may_initialize=create,
        read_only_reason=_why_read_only(found),
        remote=remote,
        whole=Retrying(Traced(opened)),
        sync=sync,
        lifecycle=Sync(gate, gate.check_settled),
    )


def _why_read_only(found: Located) -> str | None:
    """Without an id several repositories would share one cache, and leave it with its marks when they get one."""
    if found.config.repo_id is not None or not found.is_initialized:
        return None
    return no_repo_id()


def no_repo_id() -> str:
    """What to do about a settings file without an id."""
    return (
        f"{REPO_FILE} has no 'repoId', by which the cache of a repository is found: add a line"
        f' repoId: "{clock.new_uuid()}"'
    )


def _opened(found: Located) -> Remote:
    # One request may not take longer than a whole sync.
    config = found.config
    return open_remote(config.target, repo_dir=found.repo_dir, origin=config.origin, timeout_ms=config.sync_timeout_ms)


def cache_dir(config: Config) -> str:
    """The directory that mirrors a remote: one per repository, shared with the reference."""
    environ = process.environ()
    home = environ.get("SWAMP_HOME") or os.path.join(environ.get("HOME") or "", ".swamp")
    if not os.path.isabs(home):
        raise ConfigError("there is no home directory for the cache: set HOME, or SWAMP_HOME to an absolute path")
    name = config.repo_id or _UNKNOWN
    if config.origin != REPO_FILE:
        # Named for once, a remote gets a cache of its own: the files of the usual one are none of its business.
        name = f"{name}-{hashlib.sha256(repr(config.target).encode()).hexdigest()[:12]}"
    return os.path.join(home, "repos", name)


def check_owner(cache: str, remote: Remote, namespace: Namespace = SOLO) -> None:
    """Refuse a cache that mirrors another remote: its files would be published in this one, and its marks forgotten.

    Another part of the same remote has other directories in the cache: there only marks would be forgotten. But what
    is where files without a namespace are may come from a remote whose name only looks like that of a part.
    """
    store = remote.properties.name
    owner, name = bound_to(cache), f"{store}/{namespace}" if namespace else store
    is_part = owner == store or (owner is not None and is_namespace(owner.removeprefix(f"{store}/")))
    is_apart = bool(namespace) or not any(files.list_dir(os.path.join(cache, top)) for top in DATASTORE_SUBDIRS)
    if is_part and is_apart and not has_marks(cache):
        return
    if owner not in (None, name) and any(entry.is_dir for entry in files.list_dir(cache)):
        raise ConflictError(
            f"the cache {shown(cache)} belongs to {owner}, not to {name}: when everything in it is pushed, move it away"
            " and run this again",
            kind="cache_in_use",
            path=cache,
        )


def sync_settings(found: Located) -> SyncSettings:
    """How to sync, from the settings of the backend and of the repository."""
    target = found.config.target
    assert isinstance(target, Extension)  # noqa: S101 - chosen by the caller
    backend = find_backend(target.type, origin=found.config.origin)
    settings = settings_of(backend, target, repo_dir=found.repo_dir, origin=found.config.origin)
    strategy, form = target.config.get("hydrationStrategy", "lazy"), target.config.get("index", "dual")
    if strategy not in ("lazy", "full"):
        raise ConfigError(f"{found.config.origin}: hydrationStrategy is {strategy!r}: give lazy or full")
    if form not in ("dual", "sharded"):
        raise ConfigError(f"{found.config.origin}: index is {form!r}: give dual or sharded")
    kept = target.config.get("dual")
    if kept not in (None, "keep"):
        raise ConfigError(f"{found.config.origin}: dual is {kept!r}: give keep, or leave it out")
    return SyncSettings(
        pull_concurrency=_said(target, settings, "pullConcurrency", "pull_concurrency"),
        push_concurrency=_said(target, settings, "pushConcurrency", "push_concurrency"),
        is_lazy=strategy == "lazy",
        is_sharded=form == "sharded",
        is_monolith_kept=kept == "keep",
        is_publishing=found.config.publishes_catalog and bool(found.config.namespace),
    )


def _said(target: Extension, settings: object, member: str, attribute: str) -> int | None:
    """A number that the configuration gives, or somebody's backend; None: nobody said, and we choose."""
    is_ours = isinstance(settings, FileSettings | S3Settings | GcsSettings)
    return None if is_ours and member not in target.config else getattr(settings, attribute, None)


class Gate:
    """Whether the remote may be written: its format marker is looked at once."""

    def __init__(self, remote: Remote, config: Config) -> None:
        self._remote = remote
        self._namespace = config.namespace
        self._repo_id = config.repo_id
        self._guard = threading.Lock()
        self._reason: str | None = "nobody asked yet"
        self._asked_ms: float | None = None
        self._is_settled = not config.namespace

    def __call__(self) -> str | None:
        """Why nothing may be written now; None when it may. A store of a newer format is an error."""
        with self._guard:
            # Who cannot be reached is asked again, but not for every single write.
            is_due = self._asked_ms is None or clock.monotonic_ms() - self._asked_ms > _AGAIN_MS
            if self._reason is not None and is_due:
                self._reason = check_remote_marker(self._remote, self._namespace)
                if self._reason is None:
                    self._check_ours()
                self._asked_ms = clock.monotonic_ms()
                if self._reason is not None:
                    self._check_let_in()
            return self._reason

    def _check_ours(self) -> None:
        """Refuse a namespace that another repository has; the settings may have been written by hand."""
        if self._namespace and self._repo_id:
            check_claim(fetch_claim(self._remote, self._namespace), self._repo_id)

    def check_settled(self) -> None:
        """Refuse to write while a migration of our namespace waits to be finished; looked at once, by who writes."""
        with self._guard:
            if self._is_settled:
                return
            try:
                self._remote.head(control_key(self._namespace, RECORD))
            except NotFoundError:
                self._is_settled = True
                return
            raise DeniedError(unsettled(self._namespace), kind="read_only")

    def _check_let_in(self) -> None:
        """Tell a remote that does not know us from one that cannot be reached: only the latter is waited for."""
        try:
            fetch_datastore_record(self._remote, FORMAT_RECORD)
        except RemoteError as error:
            if isinstance(error, MissingBucketError) or error.kind in _STRANGERS:
                self._asked_ms = None
                raise
