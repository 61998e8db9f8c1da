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
from mire.plan.config import Flags, parse_target, resolve_config
from mire.wire.layout import DATA, LOCAL_TIER, REPO_FILE
from mire.wire.repo import encode_new_repo, retarget_datastore

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
    left_behind: str | None
    """The former datastore, when it has data: nothing is moved."""


def init(repo_dir: str, *, datastore: str | None = None) -> Initialized:
    """Make a directory a repository, and point it at a datastore when one is named."""
    if not files.is_dir(os.path.dirname(os.path.abspath(repo_dir))):
        raise NotFoundError(f"there is no directory to hold {shown(repo_dir)}: create it first", path=repo_dir)
    repo_dir = os.path.realpath(repo_dir)
    path = os.path.join(repo_dir, REPO_FILE)
    existing = files.read_file(path)
    load_repo(repo_dir)
    target = None if datastore is None else _checked_target(repo_dir, datastore)
    block = None if target is None else _block(target)
    changed = retarget_datastore(existing, block) if existing is not None and block is not None else None
    left_behind = None if target is None else _data_left_behind(repo_dir, target)
    if target is not None:
        files.make_dirs(target.path)
    for name in _LOCAL_DIRS:
        files.make_dirs(os.path.join(repo_dir, LOCAL_TIER, name))
    # Runtime data, secrets among it, does not belong into version control.
    files.create_file(os.path.join(repo_dir, LOCAL_TIER, ".gitignore"), b"*\n")
    if existing is None:
        _write_new(path, block)
    elif changed is not None:
        files.write_file(path, [changed])
    return Initialized(
        repo_dir=repo_dir, created=existing is None, changed_datastore=block is not None, left_behind=left_behind
    )


def _data_left_behind(repo_dir: str, target: Filesystem) -> str | None:
    former = resolve_config(
        repo_dir=repo_dir, repo=load_repo(repo_dir), environ=process.environ(), flags=Flags()
    ).target
    if isinstance(former, Extension) or former.path == target.path:
        return None
    has_data = any(entry.is_dir for entry in files.list_dir(os.path.join(former.path, DATA)))
    return former.path if has_data else None


def ensure_initialized(ds: Datastore) -> None:
    """Before the first write: the settings file exists, so that every program sees a repository here."""
    path = os.path.join(ds.repo_dir, REPO_FILE)
    if not ds.is_initialized and not files.is_file(path):
        _write_new(path, None)


def _write_new(path: str, block: dict[str, str] | None) -> None:
    # Create-only: of two processes that start here at once, one names the repository for both.
    files.create_file(path, encode_new_repo(clock.new_uuid(), clock.now_instant(), block))


def _checked_target(repo_dir: str, datastore: str) -> Filesystem:
    target = parse_target(datastore, repo_dir=repo_dir, environ=process.environ(), what="--datastore")
    if isinstance(target, Extension):
        raise ConfigError(f"datastore type {shown(target.type)} is not known to this mire: use filesystem:/path")
    check_marker(target.path)
    return target


def _block(target: Filesystem) -> dict[str, str]:
    # A settings file is shared through git: a path below the home directory means everybody's own.
    home = process.environ().get("HOME", "").rstrip("/")
    is_own = bool(home) and target.path.startswith(f"{home}/")
    return {"type": "filesystem", "path": f"$HOME{target.path[len(home) :]}" if is_own else target.path}
