"""A store as a task can take it along: a small value, from which the store is opened where the work is.

Owns: `StoreSpec`, and the remotes this process has open because a task asked for them.
Must not know: what a task does with a store.
Keeps: no secret travels: credentials come from the provider's own chain, wherever the task runs. A task reaches the
part of the store that its spec names, and nothing else; what it was given to read it cannot write.
"""

import os
import threading
from dataclasses import dataclass, replace

from mire.edge import objectstore
from mire.edge.prefixed import Prefixed
from mire.edge.remote import Remote
from mire.edge.retrying import Retrying
from mire.errors import RemoteError, shown
from mire.flow.backend import find_backend, settings_of
from mire.flow.datastore import Datastore
from mire.flow.fence import fenced_for_job
from mire.model.config import Config, Filesystem
from mire.model.names import DATASTORE_SUBDIRS, SOLO, Namespace

_guard = threading.Lock()
_open: dict["StoreSpec", Remote] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSpec:
    """One namespace of a store; `settings` are those of its backend, or the path of a plain directory."""

    type: str
    settings: object
    namespace: Namespace = SOLO
    own: tuple[str, ...] = DATASTORE_SUBDIRS
    """Directories at the root that are no namespaces, whatever they look like."""
    is_read_only: bool = False

    @property
    def is_directory(self) -> bool:
        """Whether it is a datastore that is used in place: files, and no index."""
        return isinstance(self.settings, str)

    def within(self, namespace: Namespace) -> "StoreSpec":
        """A namespace of the same store: another one than ours is there to be read."""
        return self if namespace == self.namespace else replace(self, namespace=namespace, is_read_only=True)

    def to_read(self) -> "StoreSpec":
        """The same part, for who only reads."""
        return replace(self, is_read_only=True)


def spec_of(ds: Datastore) -> StoreSpec:
    """The store that a datastore's truth is in: its remote, or the directory itself."""
    return spec_at(ds.config, repo_dir=ds.repo_dir)


def spec_at(config: Config, *, repo_dir: str) -> StoreSpec:
    """The store that a configuration names; nothing is asked of it."""
    target = config.target
    settings: object
    if isinstance(target, Filesystem):
        kind, settings = "filesystem", os.path.realpath(target.path)
    else:
        one = find_backend(target.type, origin=config.origin)
        kind = one.schema.type
        settings = settings_of(one, target, repo_dir=repo_dir, origin=config.origin, timeout_ms=config.sync_timeout_ms)
    return StoreSpec(type=kind, settings=settings, namespace=config.namespace, own=config.directories)


def open_spec(spec: StoreSpec) -> Remote:
    """The namespace of the store, open; one per process, however many tasks run in it."""
    try:
        hash(spec)
    except TypeError:
        return _opened(spec)  # settings of a package that cannot be told apart
    with _guard:
        if spec not in _open:
            _open[spec] = _opened(spec)
        return _open[spec]


def _opened(spec: StoreSpec) -> Remote:
    if isinstance(spec.settings, str):
        if not os.path.isdir(spec.settings):
            raise RemoteError(
                f"the directory {shown(spec.settings)} is not there: every worker must see it under this path",
                kind="unreachable",
                path=spec.settings,
            )
        # A late attempt of a task stores nothing where the directory was before it got its name.
        inside = objectstore.open_local(spec.settings, must_exist=True)
    else:
        inside = find_backend(spec.type, origin="the job").backend.open(spec.settings)
    remote = Retrying(fenced_for_job(inside, spec.namespace, spec.own, is_read_only=spec.is_read_only))
    return Prefixed(remote, spec.namespace) if spec.namespace else remote
