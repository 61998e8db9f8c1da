"""Markers of names whose object was replaced by a push that died before its commit.

Owns: giving a cache the marker that the index describes, when no object has its bytes any more.
Must not know: why somebody wants to write the name.
Keeps: the index is what counts: a marker is restored only if it is one that the index describes, by its hash. Whether
the object that is there instead may be replaced is decided by the push, as always.
"""

import hashlib
from collections.abc import Iterable

from mire.edge import clock, files, walk
from mire.flow.datastore import Datastore
from mire.flow.local import agreed_row
from mire.flow.mark import mark
from mire.flow.place import open_place
from mire.flow.read import numbers_in
from mire.flow.reading import read_for
from mire.model.artifact import ModelRef
from mire.model.index import Entry
from mire.model.names import DataName, RelPath
from mire.wire.latest import encode_latest
from mire.wire.layout import LATEST, name_dir


def restore_markers(ds: Datastore, names: Iterable[tuple[ModelRef, DataName]]) -> list[RelPath]:
    """Restore the markers of names that have versions here and no marker; nothing is asked where there are none."""
    if not ds.is_cache:
        return []
    odd: dict[RelPath, tuple[int, ...]] = {}
    for model, name in names:
        directory = name_dir(model, name)
        rel = RelPath(f"{directory}/{LATEST}")
        numbers = () if files.is_file(ds.path_of(rel)) else numbers_in(ds.path_of(directory))
        if numbers:
            odd[rel] = numbers
    if not odd:
        return []
    with open_place(ds) as place:
        reading = read_for(place, odd, is_fresh_sharded=ds.sync.is_sharded)
        done: list[RelPath] = []
        for rel, numbers in odd.items():
            entry, looked_ns = reading.entry(rel), clock.now_ns()
            marker = None if not isinstance(entry, Entry) else _described(entry, numbers)
            if marker is not None and entry is not None:
                files.write_file(ds.path_of(rel), [marker])
                identity = walk.identity_at(ds.path_of(rel))
                place.state.agree([agreed_row(rel, entry, identity, looked_ns=looked_ns)])
                done.append(rel)
    return done


def offer_again(ds: Datastore, rels: Iterable[str]) -> None:
    """Let the next push look at paths as if nothing was agreed on: what the index has already is listed properly."""
    if not ds.is_cache:
        return
    paths = [RelPath(rel) for rel in rels]
    with open_place(ds) as place:
        place.state.forget(paths)
    for rel in paths:
        mark(ds, ds.path_of(rel))


def _described(entry: Entry, numbers: Iterable[int]) -> bytes | None:
    """The marker with the hash that an entry says: there are few numbers it can have."""
    found = (encode_latest(number) for number in numbers)
    return next((data for data in found if hashlib.sha256(data).hexdigest() == entry.sha256), None)
