"""Objects of a push: stored before the index names them, deleted after it no longer does.

Owns: uploads, and what may be deleted.
Must not know: what is pushed, the index.
Keeps: an object is deleted only as it was when its removal was decided, by this push or by one that died before it got
there: what somebody stored since is theirs.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from mire.edge import pool
from mire.edge.boundary import Boundary
from mire.edge.remote import Refused, Remote, Removed, Stat, Unknown
from mire.errors import MireError, NotFoundError, RemoteError
from mire.flow.place import Place
from mire.flow.transfer import Sent, Unpublished, is_free, upload
from mire.flow.unpublished import load_unpublished, recorded
from mire.model.index import Entry
from mire.model.names import RelPath

_INTENT: Final = "delete/"
_PASSING: Final = frozenset(("in_use", "in_flight", "changing"))
"""Troubles of one file or object; others are of the remote, and end the push."""


def send(
    place: Place, replaced: Mapping[RelPath, Entry | None], *, gathered: bool = False
) -> Iterator[tuple[RelPath, Sent | MireError]]:
    """Store files, each in the place of what the index describes (None: nothing); what is stored is on record.

    `gathered` as in `pool.run`: the files are small.
    """
    known = load_unpublished(place)
    carrier = place.ds.carrier
    carried = None if carrier is None else carrier.send(place, replaced, known, gathered=gathered)
    if carried is not None:
        return recorded(place, carried)

    boundary = Boundary(place.ds.tier)

    def one(rel: RelPath) -> Sent | MireError:
        path = os.path.join(place.ds.tier, rel)
        try:
            boundary.check(path)
        except MireError as error:
            return error
        return send_one(place.remote, rel, path, replaced[rel], writer_of(place), known.get(rel))

    # What replaces an object goes last, right before the commit: until then the index describes other bytes.
    ordered = sorted(replaced, key=lambda rel: (replaced[rel] is not None, rel))
    at_once = place.ds.sync.pushes_at_once(are_short=gathered)
    return recorded(place, pool.run(one, ordered, at_once=at_once, gathered=gathered))


def writer_of(place: Place) -> str:
    """Who stores what a push stores."""
    return place.ds.sync.writer or place.state.epoch


def send_one(
    remote: Remote, rel: RelPath, path: str, replaced: Entry | None, writer: str, known: Unpublished | None
) -> Sent | MireError:
    """Store one file; what is wrong with it alone is the answer, what is wrong with the remote is raised."""
    try:
        return upload(remote, rel, path, replaced=replaced, writer=writer, known=known)
    except RemoteError as error:
        if error.kind not in _PASSING:
            raise
        return error
    except MireError as error:
        return error


def look_at(place: Place, removed: Mapping[RelPath, Entry]) -> dict[RelPath, Stat]:
    """The objects of entries that are to go, as far as they are there and are what the entries describe.

    One that is not is somebody's who is about to publish it, unless we stored it ourselves in a push that died.
    """

    def one(rel: RelPath) -> Stat | None:
        try:
            stat = place.remote.head(rel)
        except NotFoundError:
            return None
        is_described = stat.size_bytes == removed[rel].size_bytes
        return stat if is_described or is_free(place.remote, stat, writer_of(place)) else None

    found = pool.run(one, removed, at_once=place.ds.sync.pushes_at_once(are_short=True))
    return {rel: stat for rel, stat in found if stat is not None}


def intend(place: Place, objects: Mapping[RelPath, Stat]) -> None:
    """Put on record what will be deleted once the index no longer names it, should we not live to do it."""
    place.state.set_facts({f"{_INTENT}{rel}": _text(stat) for rel, stat in objects.items()})


def is_intended(place: Place, rel: RelPath) -> bool:
    """Whether a push of ours was about to delete the object of a path."""
    return place.state.fact(f"{_INTENT}{rel}") is not None


def intended(place: Place, rel: RelPath) -> bool:
    """Whether the object of a path is still the one that a push of ours was about to delete."""
    text = place.state.fact(f"{_INTENT}{rel}")
    if text is None:
        return False
    try:
        return _text(place.remote.head(rel)) == text
    except NotFoundError:
        return False


def delete(place: Place, objects: Mapping[RelPath, Stat]) -> list[RelPath]:
    """Delete objects that are as they were; those that somebody stored anew."""

    def is_kept(rel: RelPath) -> bool:
        seen = objects[rel]
        try:
            if _text(place.remote.head(rel)) != _text(seen):
                return True
        except NotFoundError:
            return False
        if not place.remote.properties.conditional_delete:
            place.remote.delete(rel)
            return False
        match place.remote.delete_if(rel, seen.fingerprint):
            case Removed():
                return False
            case Refused():
                return True
            case Unknown(error):
                raise error

    at_once = place.ds.sync.pushes_at_once(are_short=True)
    return [rel for rel, kept in pool.run(is_kept, objects, at_once=at_once) if kept]


def forget_intents(place: Place, rels: Iterable[RelPath]) -> None:
    """What was intended is done."""
    place.state.set_facts({f"{_INTENT}{rel}": None for rel in rels})


def _text(stat: Stat) -> str:
    # Equal bytes may have equal fingerprints; the time tells an object from one that was stored again.
    return f"{stat.modified_ms} {stat.fingerprint}"
