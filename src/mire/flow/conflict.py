"""Paths that both sides changed: told, and neither version lost.

Owns: where the version that is not in its place is kept.
Must not know: which side wins.
Keeps: a kept version has a place of its own, by its content, so that no later one takes it; nothing is kept twice, and
nothing that is in its place.
"""

import os
from dataclasses import dataclass
from typing import Final

from mire.edge import files, staging
from mire.edge.tree import hash_file
from mire.errors import RemoteError, shown
from mire.flow.datastore import Datastore
from mire.flow.local import tier_path
from mire.flow.place import Place, staging_dir
from mire.flow.transfer import download
from mire.model.index import Entry
from mire.model.names import RelPath
from mire.plan.threeway import Here
from mire.wire.relpath import INDEX_DIR

_DIRECTORY: Final = f"{INDEX_DIR}/mire-conflicts"
_DIGITS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A path that both sides changed; `ours` and `theirs` say where a version is kept that is not in its place."""

    rel: RelPath
    why: str
    ours: str | None = None
    theirs: str | None = None


def why_of(here: Here, remote: Entry | None) -> str:
    """A conflict in words."""
    if remote is None:
        return "changed here, removed there"
    return "removed here, changed there" if here == "removed" else "changed here and there"


@dataclass(frozen=True, slots=True)
class Kept:
    """A version that is kept, and the hash of its content."""

    path: str
    sha256: str


def keep_theirs(place: Place, rel: RelPath, entry: Entry) -> Kept:
    """Put the remote's version beside the cache, where it can be looked at."""
    if entry.sha256 is not None and files.size_of(path := kept_path(place.ds, rel, entry.sha256)) == entry.size_bytes:
        return Kept(path, entry.sha256)
    temporary, written = download(place.remote, rel, entry, staging_dir(place))
    try:
        path = kept_path(place.ds, rel, written.sha256)
        files.make_dirs(os.path.dirname(path))
        files.move_file(temporary, path)
    finally:
        staging.discard(temporary)
    return Kept(path, written.sha256)


def keep_ours(place: Place, rel: RelPath) -> str:
    """Put a copy of our version beside the cache, before another one takes its place."""
    source = tier_path(place.ds, rel)
    found = hash_file(source)
    path = kept_path(place.ds, rel, found.sha256)
    if files.size_of(path) != found.file.size_bytes:
        files.make_dirs(os.path.dirname(path))
        if files.write_file(path, files.chunks_of(source)).sha256 != found.sha256:
            files.remove_file(path)
            raise RemoteError(f"{shown(source)} changed while it was kept: try again", transient=True, kind="in_use")
    return path


def drop_kept(place: Place, rel: RelPath, sha256: str | None) -> None:
    """Remove a kept version whose bytes are in their place by now."""
    if sha256 is not None:
        path = kept_path(place.ds, rel, sha256)
        files.remove_file(path)
        parts = f"{sha256[:_DIGITS]}/{rel}".split("/")[:-1]
        files.remove_empty([os.path.join(kept_dir(place.ds), *parts[:end]) for end in range(1, len(parts) + 1)])


def kept_dir(ds: Datastore) -> str:
    """Where kept versions are, each below a part of its hash."""
    return os.path.join(ds.base, _DIRECTORY)


def kept_path(ds: Datastore, rel: RelPath, sha256: str) -> str:
    """Where a version of a path is kept."""
    return os.path.join(kept_dir(ds), sha256[:_DIGITS], rel)
