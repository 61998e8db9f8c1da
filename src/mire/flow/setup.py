"""Setting a repository up: its settings file, its directories, its datastore.

Owns: what `mire init` leaves behind.
Must not know: artifacts, locks.
Keeps: an existing repository is never changed beyond what was asked for.
"""

import os
from dataclasses import dataclass

from mire.edge import clock, files, process
from mire.errors import ConfigError, NotFoundError, shown
from mire.flow.datastore import Datastore, check_marker, load_repo
from mire.model.config import Extension, Filesystem
from mire.plan.config import parse_target
from mire.wire.layout import LOCAL_TIER, REPO_FILE
from mire.wire.repo import encode_new_repo, replace_datastore

_LOCAL_DIRS = (
    "data",
    "outputs",
    "workflow-runs",
    "workflows-evaluated",
    "definitions-evaluated",
    "secrets",
    "audit",
)
"""What the reference creates below `.swamp/`, except its own bundle directories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialized:
    """What `init` did."""

    repo_dir: str
    created: bool
    changed_datastore: bool


def init(repo_dir: str, *, datastore: str | None = None) -> Initialized:
    """Make a directory a repository, and point it at a datastore when one is named."""
    if not files.is_dir(os.path.dirname(os.path.abspath(repo_dir))):
        raise NotFoundError(f"there is no directory to hold {shown(repo_dir)}: create it first", path=repo_dir)
    block = None
    if datastore is not None:
        block = _checked_block(os.path.abspath(repo_dir), datastore)
    files.make_dirs(os.path.abspath(repo_dir))
    repo_dir = os.path.realpath(repo_dir)
    path = os.path.join(repo_dir, REPO_FILE)
    existing = files.read_file(path)
    for name in _LOCAL_DIRS:
        files.make_dirs(os.path.join(repo_dir, LOCAL_TIER, name))
    if existing is None:
        _write_new(path, block)
    elif block is not None:
        load_repo(repo_dir)
        files.write_file(path, [replace_datastore(existing, block)])
    return Initialized(repo_dir=repo_dir, created=existing is None, changed_datastore=block is not None)


def ensure_initialized(ds: Datastore) -> None:
    """Before the first write: the settings file exists, so that every program sees a repository here."""
    path = os.path.join(ds.repo_dir, REPO_FILE)
    if not ds.is_initialized and not files.is_file(path):
        _write_new(path, None)


def _write_new(path: str, block: dict[str, str] | None) -> None:
    # Create-only: of two processes that start here at once, one names the repository for both.
    files.create_file(path, encode_new_repo(clock.new_uuid(), clock.now_instant(), block))


def _checked_block(repo_dir: str, datastore: str) -> dict[str, str]:
    environ = process.environ()
    target = parse_target(datastore, repo_dir=repo_dir, environ=environ, what="--datastore")
    if isinstance(target, Extension):
        raise ConfigError(f"datastore type {shown(target.type)} is not known to this mire: use filesystem:/path")
    check_marker(target.path)
    files.make_dirs(target.path)
    return {"type": "filesystem", "path": _portable(target, environ.get("HOME"))}


def _portable(target: Filesystem, home: str | None) -> str:
    # A settings file is shared through git: a path below the home directory means everybody's own.
    if home and home != "/" and target.path.startswith(home.rstrip("/") + "/"):
        return "$HOME" + target.path[len(home.rstrip("/")) :]
    return target.path
