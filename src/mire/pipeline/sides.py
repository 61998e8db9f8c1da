"""The two ends of a migration: stores that no repository names.

Owns: how an address becomes a store that can be read, or one that can be written.
Must not know: what is moved.
Keeps: a store is written only after the doctor proved it, and a source cannot be; a store of a newer format is not even
read; no settings of any repository are touched.
"""

import os
from dataclasses import dataclass
from typing import Final

from mire.edge import process
from mire.edge.retrying import Retrying
from mire.errors import NotFoundError, shown
from mire.flow.backend import open_remote
from mire.flow.cached import open_cached
from mire.flow.control import check_remote_marker
from mire.flow.datastore import Datastore, Located, check_marker
from mire.flow.setup import proved
from mire.model.config import Config, Extension, Filesystem
from mire.model.names import parse_namespace
from mire.pipeline.store import StoreSpec, spec_at
from mire.plan.address import parse_target
from mire.wire.repo import INDEX

_OWNER: Final = "migration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One end; `ds` only where there is an index to commit to, and something is to be written."""

    name: str
    spec: StoreSpec
    ds: Datastore | None = None


def open_source(url: str, *, namespace: str, repo_dir: str) -> Side:
    """A store to read from."""
    config = _config(url, namespace, repo_dir, "SRC")
    if isinstance(config.target, Filesystem) and not os.path.isdir(config.target.path):
        raise NotFoundError(f"SRC {shown(url)} is not there: mount it, or name another directory", kind="no_store")
    _check_format(config, repo_dir)
    return Side(name=_name(url, namespace), spec=spec_at(config, repo_dir=repo_dir).to_read())


def open_target(url: str, *, namespace: str, index: str, repo_dir: str, dry_run: bool = False) -> Side:
    """A store to write to, proved; a plain directory needs no proof, and a dry run writes nothing, not even a probe."""
    config = _config(url, namespace, repo_dir, "DST")
    spec = spec_at(config, repo_dir=repo_dir)
    if dry_run or isinstance(config.target, Filesystem):
        _check_format(config, repo_dir)
        return Side(name=_name(url, namespace), spec=spec.to_read() if dry_run else spec)
    checked = proved(repo_dir, config.target, origin="DST", allow_untrusted=False)
    target = Extension(type=checked.block["type"], config={**checked.block["config"], INDEX: index})
    # No repository: the private state of a migration has a cache of its own, by its target and namespace.
    owner = f"{_OWNER}-{config.namespace}" if config.namespace else _OWNER
    bound = Config(target=target, origin="DST", namespace=config.namespace, repo_id=owner)
    ds = open_cached(Located(repo_dir=repo_dir, is_initialized=True, config=bound), host=None, create=False)
    return Side(name=_name(url, namespace), spec=spec_at(bound, repo_dir=repo_dir), ds=ds)


def _check_format(config: Config, repo_dir: str) -> None:
    """Refuse a store of a newer format; one that only forbids to write may still be read."""
    if isinstance(config.target, Filesystem):
        check_marker(config.target.path)
        return
    remote = Retrying(open_remote(config.target, repo_dir=repo_dir, origin=config.origin))
    check_remote_marker(remote, config.namespace)


def _config(url: str, namespace: str, repo_dir: str, what: str) -> Config:
    target = parse_target(url, repo_dir=repo_dir, environ=process.environ(), what=what)
    return Config(target=target, origin=what, namespace=parse_namespace(namespace))


def _name(url: str, namespace: str) -> str:
    return f"{url.rstrip('/')}/{namespace}" if namespace else url
