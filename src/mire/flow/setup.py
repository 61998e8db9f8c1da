"""Setting a repository up: its settings file, its directories, its datastore.

Owns: what `mire init` leaves behind.
Must not know: artifacts, locks.
Keeps: an existing repository is never changed beyond what was asked for.
"""

import json
import os
from dataclasses import dataclass, replace
from typing import Any

from mire.edge import files, process
from mire.errors import NotFoundError, shown
from mire.flow.datastore import Datastore, check_marker, create_repo, load_repo
from mire.model.config import Extension, Filesystem, Target
from mire.plan.address import parse_target
from mire.plan.config import Flags, resolve_config
from mire.wire.layout import DATA, LOCAL_TIER, REPO_FILE
from mire.wire.repo import retarget_datastore

_ORIGIN = "--datastore"
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
    datastore: str | None = None
    """The new datastore as it may be shown."""
    notes: tuple[str, ...] = ()
    """What somebody should know about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A datastore that may be used, and the block of the settings that names it."""

    target: Target
    name: str
    block: dict[str, Any]
    notes: tuple[str, ...] = ()


def init(repo_dir: str, *, datastore: str | None = None, allow_untrusted: bool = False) -> Initialized:
    """Make a directory a repository, and point it at a datastore when one is named and can be trusted."""
    if not files.is_dir(os.path.dirname(os.path.abspath(repo_dir))):
        raise NotFoundError(f"there is no directory to hold {shown(repo_dir)}: create it first", path=repo_dir)
    repo_dir = os.path.realpath(repo_dir)
    path = os.path.join(repo_dir, REPO_FILE)
    existing = files.read_file(path)
    load_repo(repo_dir)
    checked = None if datastore is None else _checked(repo_dir, datastore, allow_untrusted=allow_untrusted)
    block = None if checked is None else checked.block
    changed = retarget_datastore(existing, block) if existing is not None and block is not None else None
    left_behind = None if checked is None else _data_left_behind(repo_dir, checked.target)
    if checked is not None and isinstance(checked.target, Filesystem):
        files.make_dirs(checked.target.path)
    for name in _LOCAL_DIRS:
        files.make_dirs(os.path.join(repo_dir, LOCAL_TIER, name))
    # Runtime data, secrets among it, does not belong into version control.
    files.create_file(os.path.join(repo_dir, LOCAL_TIER, ".gitignore"), b"*\n")
    if existing is None:
        create_repo(repo_dir, block)
    elif changed is not None:
        files.write_file(path, [changed])
    return Initialized(
        repo_dir=repo_dir,
        created=existing is None,
        changed_datastore=block is not None,
        left_behind=left_behind,
        datastore=None if checked is None else checked.name,
        notes=() if checked is None else checked.notes,
    )


def _data_left_behind(repo_dir: str, target: Target) -> str | None:
    former = resolve_config(
        repo_dir=repo_dir, repo=load_repo(repo_dir), environ=process.environ(), flags=Flags()
    ).target
    if isinstance(former, Extension) or (isinstance(target, Filesystem) and former.path == target.path):
        return None
    has_data = any(entry.is_dir for entry in files.list_dir(os.path.join(former.path, DATA)))
    return former.path if has_data else None


def ensure_initialized(ds: Datastore) -> None:
    """Before the first write: the settings file exists, so that every program sees a repository here."""
    path = os.path.join(ds.repo_dir, REPO_FILE)
    if not ds.is_initialized and not files.is_file(path):
        create_repo(ds.repo_dir)


def _checked(repo_dir: str, datastore: str, *, allow_untrusted: bool) -> Checked:
    target = parse_target(datastore, repo_dir=repo_dir, environ=process.environ(), what=_ORIGIN)
    if isinstance(target, Filesystem):
        check_marker(target.path)
        return Checked(target=target, name=datastore, block=_block(target))
    return proved(repo_dir, target, origin=_ORIGIN, allow_untrusted=allow_untrusted)


def proved(repo_dir: str, target: Extension, *, origin: str, allow_untrusted: bool) -> Checked:
    """An object store that the doctor has examined; what only a setting can heal is set."""
    from mire.flow.doctor import diagnose  # noqa: PLC0415 - the clients of object stores are heavy

    report = diagnose(target, repo_dir=repo_dir, origin=origin, allow_untrusted=allow_untrusted)
    notes: tuple[str, ...] = ()
    remedy = report.remedy
    if remedy:
        target = replace(target, config={**target.config, **remedy})
        report = diagnose(target, repo_dir=repo_dir, origin=origin, allow_untrusted=allow_untrusted)
        notes = tuple(f"{name}: {json.dumps(value)} was set, as the store needs it" for name, value in remedy.items())
    if report.error is not None:
        raise report.error
    notes += tuple(check.meaning for check in report.checks if check.result == "warn")
    return Checked(
        target=target,
        name=report.name,
        block={"type": report.datastore_type, "config": dict(target.config)},
        notes=notes,
    )


def _block(target: Filesystem) -> dict[str, Any]:
    # A settings file is shared through git: a path below the home directory means everybody's own.
    home = process.environ().get("HOME", "").rstrip("/")
    is_own = bool(home) and target.path.startswith(f"{home}/")
    return {"type": "filesystem", "path": f"$HOME{target.path[len(home) :]}" if is_own else target.path}
