"""The datastore that a write commits to: opened with a cache of its own, which goes when the write is done.

Owns: opening a store for one commit, and proving that everything was published.
Must not know: rows, Spark.
Keeps: the user's cache is not touched: what a commit could not publish does not wait there to be published later.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from mire.edge import clock
from mire.edge.state import close_states
from mire.errors import InputError, RemoteError, shown
from mire.flow.cached import open_cached
from mire.flow.catalog import close_catalog
from mire.flow.datastore import Datastore, Located, datastore_in
from mire.flow.mark import pending_marks
from mire.flow.place import META, MONOLITH
from mire.model.config import SYNC_TIMEOUT_S_MAX, Config, Filesystem
from mire.model.names import DATASTORE_SUBDIRS
from mire.pipeline.source.place import address_of, config_of, is_bare
from mire.plan.address import cached
from mire.plan.source import EVERY, SourceOptions


def check_target(options: SourceOptions) -> Config:
    """The settings of the store to write to."""
    config, _ = config_of(options)
    asked = (EVERY,) if options.is_every_namespace else options.namespaces or (config.namespace,)
    if asked != (config.namespace,):
        raise InputError(
            f"a write goes to the namespace of a repository ({config.namespace or 'none'} here), not to"
            f" {', '.join(asked)}: give the 'repo' that has it",
            kind="bad_namespace",
        )
    if options.path is not None and is_bare(options.path) and isinstance(config.target, Filesystem):
        _check_begun(config.target.path, config)
    return config


def _check_begun(path: str, config: Config) -> None:
    """Refuse a directory in which nothing tells whether clients sync with it, or use it in place."""
    is_begun = any(os.path.exists(os.path.join(path, top)) for top in DATASTORE_SUBDIRS)
    if not is_begun and not _is_indexed(path, config):
        raise InputError(
            f"the directory {shown(path)} has nothing in it that tells how it is used: write 'cached:{path}' if"
            f" repositories sync with it, or '{address_of(path)}' if it is used in place",
            kind="empty_directory",
        )


@contextmanager
def open_target(options: SourceOptions, scratch: str) -> Iterator[Datastore]:
    """The store, open for one commit; `scratch` is a directory that goes afterwards."""
    config = check_target(options)
    # The cache is nobody's but this commit's: an id of its own will do where no repository has one.
    config = replace(config, sync_timeout_ms=SYNC_TIMEOUT_S_MAX * 1000, repo_id=config.repo_id or clock.new_uuid())
    target = config.target
    if isinstance(target, Filesystem) and not _is_indexed(target.path, config):
        yield datastore_in(target.path, config, scratch)
        return
    if isinstance(target, Filesystem):
        config = replace(config, target=cached(target))
    found = Located(repo_dir=scratch, is_initialized=True, config=config)
    ds = open_cached(found, host=None, create=False, cache=os.path.join(scratch, "cache"))
    # The same application again knows what it stored and did not live to commit, whichever machine it runs on.
    app = None if options.txn is None else hashlib.sha256(options.txn.app.encode()).hexdigest()
    writer = None if app is None else f"txn-{app[:32]}"
    ds = replace(ds, sync=replace(ds.sync, is_atomic=True, writer=writer))
    try:
        yield ds
        _check_published(ds)
    finally:
        close_catalog(ds)
        close_states(ds.base)


def _is_indexed(path: str, config: Config) -> bool:
    return any(os.path.exists(os.path.join(path, config.namespace, key)) for key in (META, MONOLITH))


def _check_published(ds: Datastore) -> None:
    """Refuse to call a write done that only reached its cache: nobody would ever publish it."""
    notices = [] if ds.lifecycle is None else ds.lifecycle.notices
    if not pending_marks(ds).is_clean:
        why = notices[0] if notices else "something is left to push"
        raise RemoteError(f"the write was not published, and is undone: {why}", transient=True, kind="not_published")
