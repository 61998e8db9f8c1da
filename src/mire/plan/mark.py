"""What a mark says: which path it is about, and how the state file that all clients share shows it.

Owns: the rule for marked paths, and the changes of a sidecar when marks come and go.
Must not know: where marks are kept, files, how a sidecar is spelled.
Keeps: what another client wrote into a sidecar is never dropped while it may still mean something; the flag that
makes the reference delete whatever it does not find is never set.
"""

import posixpath
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from mire.model.state import FingerprintKind, Sidecar
from mire.wire.sidecar import PATHS_MAX


def cache_path(path: str, cache: str) -> str | None:
    """A path relative to the cache, as marks have it; None when it is the cache itself, leads out or cannot be kept."""
    inside = path
    if path.startswith("/"):
        root = posixpath.normpath(cache)
        whole = posixpath.normpath(path)
        if not whole.startswith(f"{root.rstrip('/')}/"):
            return None
        inside = whole[len(root.rstrip("/")) + 1 :]
    inside = posixpath.normpath(inside)
    if inside in (".", "..") or inside.startswith("../") or "\0" in inside:
        return None
    try:
        inside.encode()
    except UnicodeEncodeError:
        return None
    return inside


def tops_of(path: str) -> Iterator[str]:
    """A path, then each directory above it, but not the root."""
    end = len(path)
    while end > 0:
        yield path[:end]
        end = path.rfind("/", 0, end)


def is_at_or_below(path: str, tops: Collection[str]) -> bool:
    """Whether a path is one of some paths, or below one of them; everything is below the empty one."""
    return "" in tops or any(top in tops for top in tops_of(path))


@dataclass(frozen=True, slots=True, kw_only=True)
class Strange:
    """What a sidecar that others wrote says about changes."""

    paths: tuple[str, ...] = ()
    is_bulk: bool = False


def strange_marks(seen: Sidecar | None, *, cache: str) -> Strange:
    """The marks in a sidecar that we did not write; None: there was one, and it is gone or cannot be read."""
    if seen is None:
        return Strange(is_bulk=True)  # whatever it said is lost
    paths = [cache_path(path, cache) for path in seen.dirty_paths]
    # A reference after a commit may list paths and not be dirty, and then marks of these paths change nothing:
    # what is listed counts, whatever the flag says.
    is_bare = seen.local_dirty and not seen.dirty_paths
    return Strange(
        paths=tuple(dict.fromkeys(path for path in paths if path is not None)),
        is_bulk=seen.bulk_invalidated or bool(seen.dirty_paths_overflowed) or is_bare or None in paths,
    )


def plan_shown(seen: Sidecar | None, paths: Iterable[str], *, is_bulk: bool, kind: FingerprintKind) -> Sidecar:
    """The sidecar with more marks."""
    before = _usable(seen, kind)
    listed = list(before.dirty_paths)
    is_all = before.bulk_invalidated or is_bulk
    if not is_all:
        listed += dict.fromkeys(path for path in paths if path not in before.dirty_paths)
        is_all = len(listed) > max(PATHS_MAX, len(before.dirty_paths))
        del listed[max(PATHS_MAX, len(before.dirty_paths)) :]
    return replace(before, local_dirty=True, dirty_paths=tuple(listed), bulk_invalidated=is_all)


def plan_cleared(seen: Sidecar | None, left: Collection[str], *, is_clear: bool, kind: FingerprintKind) -> Sidecar:
    """The sidecar after an acknowledgement: only what is still marked is listed, and it is clean once nothing is."""
    before = _usable(seen, kind)
    if not is_clear:
        return replace(before, dirty_paths=tuple(path for path in before.dirty_paths if path in left))
    return replace(
        before,
        local_dirty=False,
        dirty_paths=(),
        bulk_invalidated=False,
        dirty_paths_overflowed=None if before.dirty_paths_overflowed is None else False,
    )


def _usable(seen: Sidecar | None, kind: FingerprintKind) -> Sidecar:
    if seen is None:
        # Without a sidecar a reference looks at everything, and with one that we make it must go on doing so. Nor may
        # it take for deleted what we have not fetched.
        return Sidecar(kind=kind, local_dirty=True, bulk_invalidated=True, lazy_pull_active=True)
    if seen.version == 1:
        return replace(seen, version=2, bulk_invalidated=seen.local_dirty)
    return seen
