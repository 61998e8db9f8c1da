"""Repairing what only a client with a copy can: objects that are gone, and entries that were dropped from the index.

Owns: what is stored and listed again, and how it is made sure that nobody meant it to be gone.
Must not know: how damage is found or shown.
Keeps: bytes are stored only where there is no object, and only those the index describes. A path is listed only with
the entry that was agreed on, while its object has exactly these bytes. Nothing is removed or replaced.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from mire.edge import pool
from mire.edge.tree import hash_file
from mire.errors import MireError, NotFoundError, shown
from mire.flow.commit import commit
from mire.flow.datastore import Datastore
from mire.flow.exchange import check_gate
from mire.flow.index import fetch_index
from mire.flow.local import entry_of, load_marks, mark_of, tier_path
from mire.flow.lock import hold_global
from mire.flow.place import Place, open_push_place, view_of
from mire.flow.reading import read_for
from mire.flow.send import is_intended
from mire.flow.transfer import hash_of, upload
from mire.flow.within import Watch, within_timeout
from mire.model.index import Entry
from mire.model.names import RelPath
from mire.plan.commit import Changes
from mire.wire.relpath import check_rel


@dataclass(slots=True, kw_only=True)
class Repaired:
    """What was repaired, and what could not be."""

    stored: list[RelPath] = field(default_factory=list)
    """Objects that were gone, and are there again."""
    listed: list[RelPath] = field(default_factory=list)
    """Paths that the index lists again."""
    findings: list[str] = field(default_factory=list)


def repair(ds: Datastore, *, watch: Watch | None = None) -> Repaired:
    """Store and list again what this cache can vouch for, under the global lock: nobody is about to commit."""
    view_of(ds)
    check_gate(ds)
    done = Repaired()
    with (
        hold_global(replace(ds, lifecycle=None)) as hold,
        open_push_place(within_timeout(ds, watch)) as place,
    ):
        listed = {RelPath(rel): entry for rel, entry in fetch_index(place).entries()}
        usable = {rel: each for rel, each in listed.items() if isinstance(each, Entry) and check_rel(rel) is None}
        _store_again(place, usable, done)
        dropped = [row.rel for row in place.state.all_base() if row.rel not in listed]
        _list_again(place, [RelPath(rel) for rel in dropped], lambda: hold.check(is_strict=True), done)
    return done


def _store_again(place: Place, listed: dict[RelPath, Entry], done: Repaired) -> None:
    def one(rel: RelPath) -> str | None:
        """Why an object is still not there; empty when it is again, None when it was all the time."""
        try:
            if _is_there(place, rel):
                return None
            path = tier_path(place.ds, rel)
            if not _is_described(path, listed[rel]):
                return "the copy here is not what the index describes"
            upload(place.remote, rel, path, replaced=None, writer=place.state.epoch)
        except MireError as error:
            return error.message
        return ""

    here = (rel for rel in listed if os.path.lexists(os.path.join(place.ds.tier, rel)))
    for rel, why in pool.run(one, here, at_once=place.ds.sync.pushes_at_once(are_short=False)):
        if why == "":
            done.stored.append(rel)
        elif why is not None:
            done.findings.append(f"the object of {shown(rel)} was not stored: {why}")
    done.stored.sort()


def _is_there(place: Place, rel: RelPath) -> bool:
    try:
        place.remote.head(rel)
    except NotFoundError:
        return False
    return True


def _is_described(path: str, entry: Entry) -> bool:
    found = hash_file(path)
    return (found.file.size_bytes, found.sha256) == (entry.size_bytes, entry.sha256)


def _list_again(place: Place, dropped: list[RelPath], check: Callable[[], None], done: Repaired) -> None:
    if not dropped:
        return
    reading = read_for(place, dropped, is_fresh_sharded=place.ds.sync.is_sharded)
    if reading.is_new:
        done.findings.append("the remote has no index any more: 'mire push' offers what is here again")
        return
    upserts: dict[RelPath, Entry] = {}
    for rel, entry in _vouched(place, dropped):
        try:
            if reading.entry(rel) is None and _holds(place, rel, entry):
                upserts[rel] = entry
        except NotFoundError:
            continue  # it was deleted
        except MireError as error:
            done.findings.append(f"{shown(rel)} was not listed: {error.message}")
    check()
    lost = commit(place, Changes(upserts=upserts, expected=dict.fromkeys(upserts)), reading).lost
    done.listed += sorted(upserts.keys() - set(lost))


def _vouched(place: Place, rels: list[RelPath]) -> Iterator[tuple[RelPath, Entry]]:
    """What was agreed about paths that nobody here changed or is about to delete."""
    marks = load_marks(place)
    for rel, row in place.state.base_of(rels).items():
        entry = entry_of(row)
        if entry is not None and mark_of(place.ds, rel, marks) is None and not is_intended(place, RelPath(rel)):
            yield RelPath(rel), entry if entry.sha256 is not None else replace(entry, sha256=row.sha256)


def _holds(place: Place, rel: RelPath, entry: Entry) -> bool:
    stream = place.remote.get_stream(rel)
    if entry.sha256 is None or stream.stat.size_bytes != entry.size_bytes:
        return False
    return hash_of(stream.chunks) == entry.sha256
