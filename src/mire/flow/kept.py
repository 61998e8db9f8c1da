"""Kept versions: the sides of conflicts that are not in their places, as files beside the cache.

Owns: listing and removing them.
Must not know: why one was kept, who won.
Keeps: nothing is removed unless somebody names it, or its bytes are in its place by now.
"""

import os
from collections.abc import Collection
from dataclasses import dataclass

from mire.edge import files
from mire.edge.tree import Tree
from mire.errors import NotFoundError, shown
from mire.flow.conflict import kept_dir
from mire.flow.datastore import Datastore
from mire.model.names import RelPath
from mire.plan.mark import is_at_or_below


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptVersion:
    """One kept version: of which path, where it is, and since when."""

    rel: RelPath
    path: str
    size_bytes: int
    kept_ns: int


def list_kept(ds: Datastore) -> list[KeptVersion]:
    """All kept versions of a cache, by path, the oldest first."""
    root = kept_dir(ds)
    if not files.is_dir(root):
        return []
    found = []
    for inside, (mtime_ns, ctime_ns, size, _) in Tree(root, lambda _: False).files():
        rel = RelPath(inside.partition("/")[2])
        kept_ns = max(mtime_ns, ctime_ns)
        found.append(KeptVersion(rel=rel, path=os.path.join(root, inside), size_bytes=size, kept_ns=kept_ns))
    return sorted(found, key=lambda each: (each.rel, each.kept_ns))


def remove_kept(ds: Datastore, rels: Collection[str], *, dry_run: bool = False) -> list[KeptVersion]:
    """Remove the kept versions of some paths and of what is below them; of all for the empty path."""
    chosen = [each for each in list_kept(ds) if is_at_or_below(each.rel, rels)]
    for rel in rels:
        if rel and not any(is_at_or_below(each.rel, {rel}) for each in chosen):
            raise NotFoundError(f"no version of {shown(rel)} is kept: 'mire kept' lists what is", path=rel)
    root = kept_dir(ds)
    for each in chosen if not dry_run else ():
        files.remove_file(each.path)
        parts = os.path.relpath(os.path.dirname(each.path), root).split("/")
        files.remove_empty([os.path.join(root, *parts[:end]) for end in range(1, len(parts) + 1)])
    return chosen
