"""Strays in a cache: what older programs left below a namespace's own name once more, or brought of other namespaces.

Owns: finding them, and putting them beside the cache, where conflicts put what is in nobody's place.
Must not know: what is at the remote.
Keeps: nothing comes home by this, since a cache follows its remote; only what is the same at home is removed.
"""

import os
from collections.abc import Collection

from mire.edge import files, moving
from mire.edge.tree import hash_file
from mire.flow.conflict import kept_path
from mire.flow.datastore import Datastore
from mire.model.names import RelPath, is_namespace
from mire.plan.contamination import Stray, strays_among


def cached_strangers(ds: Datastore) -> list[str]:
    """Every path in the cache of a namespace that is below what may be the name of a namespace; links are not ours."""
    found: list[str] = []
    for entry in files.list_dir(ds.tier):
        path = os.path.join(ds.tier, entry.name)
        if is_namespace(entry.name) and entry.name not in ds.config.directories and not files.is_link(path):
            found += [f"{entry.name}/{rel}" for rel in moving.list_below(path)]
    return sorted(rel for rel in found if files.is_regular(os.path.join(ds.tier, rel)))


def strays_in_cache(ds: Datastore, rels: Collection[str], known: Collection[str]) -> list[Stray]:
    """Those of them that are certainly strays."""
    found = strays_among(rels, ds.config.namespace, known)
    return [each for each in found if each.kind == "doubled" or each.tenant in known]


def put_beside(ds: Datastore, stray: Stray) -> str | None:
    """Take a stray out of the cache: where it is kept now, None when its home has the same, so that it was removed."""
    path, home = os.path.join(ds.tier, stray.rel), os.path.join(ds.base, stray.tenant, stray.home)
    kept = None
    if os.path.lexists(home) and moving.is_same(path, home):
        files.remove_file(path)
    else:
        kept = kept_path(ds, RelPath(stray.rel), hash_file(path).sha256)
        files.make_dirs(os.path.dirname(kept))
        files.move_file(path, kept)
    parts = stray.rel.split("/")[:-1]
    files.remove_empty([os.path.join(ds.tier, *parts[:end]) for end in range(1, len(parts) + 1)])
    return kept
