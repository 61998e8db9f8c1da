"""What moving a repository to a remote would mean: the store proved, both sides looked at, nothing changed.

Owns: what must be true before anything is carried over, and the settings as they will be.
Must not know: how a store is proved, how files are copied or synced.
Keeps: a store that cannot be trusted, a namespace of somebody else: each is refused here.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from mire.edge import files, process
from mire.errors import ConfigError, DeniedError, InputError, NotFoundError, RemoteError, shown
from mire.flow.cached import no_repo_id, open_cached
from mire.flow.carry import has_journal, list_files
from mire.flow.claim import fetch_claim
from mire.flow.control import check_remote_marker
from mire.flow.datastore import Datastore, Located, check_claim, datastore_in, load_repo
from mire.flow.index import IndexSummary, fetch_index, summary_of
from mire.flow.place import open_place, view_of
from mire.flow.setup import Checked, proved
from mire.model.config import SYNC_TIMEOUT_S_MAX, Config, Extension, Filesystem
from mire.model.names import parse_namespace
from mire.plan.address import cached, parse_target
from mire.plan.config import Flags, resolve_config
from mire.wire.layout import REPO_FILE
from mire.wire.repo import HYDRATION, INDEX

_ORIGIN: Final = "URL"
_VARIABLE: Final = "SWAMP_DATASTORE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What somebody wants; None keeps what the repository has, or the default."""

    url: str
    index: str | None = None
    hydrate: str | None = None
    namespace: str | None = None
    is_cached: bool = False
    allow_untrusted: bool = False
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """What was found, before anything was changed."""

    located: Located
    """The repository as it will be."""
    former: Config
    """The settings it has now."""
    name: str
    block: Mapping[str, Any]
    index: IndexSummary
    files_here: int
    bytes_here: int
    is_moving: bool = False
    """Whether it syncs with another remote now."""
    is_resumed: bool = False
    """Whether an earlier run was interrupted."""
    notes: tuple[str, ...] = ()

    @property
    def is_joining(self) -> bool:
        """Whether others have data there that is not ours yet."""
        is_new = self.is_moving or isinstance(self.former.target, Filesystem)
        return self.index.entries > 0 and is_new and not self.is_resumed


def examine(repo_dir: str, wish: Wish) -> Prospect:
    """Prove the store and look at both sides; nothing is changed but the doctor's probes, which are removed."""
    former = _former(repo_dir, wish)
    checked = _checked(repo_dir, wish)
    located = Located(repo_dir=repo_dir, is_initialized=True, config=_config(former, checked, wish))
    is_moving = _is_elsewhere(former, located, checked.name)
    ds = open_cached(located, host=None, create=False, is_moving=is_moving)
    _check_store(ds, former)
    with open_place(ds) as place:
        index = summary_of(fetch_index(place))
    source = source_of(former, repo_dir, is_moving=is_moving)
    rels = [] if source is None else [os.path.join(source.tier, rel) for rel in list_files(source)[0]]
    return Prospect(
        located=located,
        former=former,
        name=checked.name,
        block=_block(checked, wish),
        index=index,
        files_here=len(rels),
        bytes_here=sum(files.size_of(path) or 0 for path in rels),
        is_moving=is_moving,
        is_resumed=has_journal(ds),
        notes=(*checked.notes, *_notes(wish, index)),
    )


def _former(repo_dir: str, wish: Wish) -> Config:
    repo = load_repo(repo_dir)
    if repo is None:
        raise NotFoundError(
            f"{shown(repo_dir)} is not a repository (it has no {REPO_FILE}): run 'mire init' there first",
            kind="no_repository",
            path=repo_dir,
        )
    if repo.repo_id is None:
        raise ConfigError(no_repo_id())
    # What is replaced is the setting in the file, whatever counts before it just now.
    environ = {name: value for name, value in process.environ().items() if name != _VARIABLE}
    return resolve_config(repo_dir=repo_dir, repo=repo, environ=environ, flags=Flags(sync_timeout_s=wish.timeout_s))


def _checked(repo_dir: str, wish: Wish) -> Checked:
    target = parse_target(wish.url, repo_dir=repo_dir, environ=process.environ(), what=_ORIGIN)
    if isinstance(target, Filesystem):
        if not wish.is_cached:
            raise InputError(
                f"{shown(wish.url)} is a directory, which can be used as it is: 'mire init --datastore {wish.url}';"
                " add --cached to sync it with a cache instead",
                kind="config",
            )
        target = cached(target)
    return proved(repo_dir, target, origin=_ORIGIN, allow_untrusted=wish.allow_untrusted)


def _config(former: Config, checked: Checked, wish: Wish) -> Config:
    """The settings as they will be; a first push may take as long as it takes, unless somebody says otherwise."""
    kept = former.target.config if isinstance(former.target, Extension) else {}
    wanted = {HYDRATION: wish.hydrate or kept.get(HYDRATION), INDEX: wish.index or kept.get(INDEX)}
    config = {**checked.block["config"], **{name: value for name, value in wanted.items() if value is not None}}
    return replace(
        former,
        target=Extension(type=checked.block["type"], config=config),
        origin=REPO_FILE,
        namespace=former.namespace if wish.namespace is None else parse_namespace(wish.namespace),
        sync_timeout_ms=SYNC_TIMEOUT_S_MAX * 1000 if wish.timeout_s is None else former.sync_timeout_ms,
    )


def _is_elsewhere(former: Config, located: Located, name: str) -> bool:
    """Whether a repository syncs with another remote, or another part of this one."""
    if not isinstance(former.target, Extension):
        return False
    was = open_cached(replace(located, config=former), host=None, create=False)
    namespace = located.config.namespace
    return view_of(was).properties.name != (f"{name}/{namespace}" if namespace else name)


def _check_store(ds: Datastore, former: Config) -> None:
    assert ds.remote is not None  # noqa: S101 - it was opened with one
    ban = check_remote_marker(ds.remote, ds.config.namespace)
    if ban is not None:
        raise DeniedError(ban, kind="read_only")
    if ds.config.namespace:
        check_claim(fetch_claim(ds.remote, ds.config.namespace), former.repo_id or "")


def source_of(former: Config, repo_dir: str, *, is_moving: bool) -> Datastore | None:
    """The datastore the data is carried from; None when there is none, or nothing in it."""
    if is_moving:
        located = Located(repo_dir=repo_dir, is_initialized=True, config=former)
        return open_cached(located, host=None, create=False)
    if not isinstance(former.target, Filesystem):
        return None
    path = former.target.path
    if not files.is_dir(path):
        if former.target.is_default:
            return None
        raise RemoteError(f"the datastore {shown(path)} is not there: mount it first", kind="unreachable", path=path)
    return datastore_in(path, former, repo_dir)


def _notes(wish: Wish, index: IndexSummary) -> list[str]:
    notes = []
    if process.environ().get(_VARIABLE):
        notes.append(f"{_VARIABLE} is set and counts before {REPO_FILE}: unset it to use what was set up")
    if wish.index is not None and index.form not in ("none", wish.index):
        advice = "; 'mire index migrate' makes it sharded" if wish.index == "sharded" else ""
        notes.append(f"the store has a {index.form} index already, which stays as it is{advice}")
    return notes


def _block(checked: Checked, wish: Wish) -> dict[str, Any]:
    """The settings that name the store; what only we know goes into the configuration, where the reference skips it."""
    config = dict(checked.block["config"])
    if wish.index is not None:
        config[INDEX] = wish.index
    block: dict[str, Any] = {"type": checked.block["type"], "config": config}
    if wish.hydrate is not None:
        block[HYDRATION] = wish.hydrate
    if wish.namespace is not None:
        block["namespace"] = wish.namespace
    return block
