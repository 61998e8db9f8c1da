"""Publishing the catalog of our namespace at a remote, as part of a push.

Owns: which names' rows are due, and the order compose, store, put in place.
Must not know: how the index is committed, what others do with the rows.
Keeps: rows of names that this cache does not know pass through, for whoever pushed them; an object is replaced only as
it was read, so that of two who publish at the same time neither loses rows; what is due stays on record until the
index says it is there. Nothing is stored when nothing changed.
"""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from mire.edge import clock, files, staging, walk
from mire.edge.files import Written
from mire.edge.remote import Absent, Condition, Matches, Refused, Stored, Unknown
from mire.edge.tree import hash_file
from mire.errors import FormatError, NotFoundError, RemoteError
from mire.flow.catalog import name_above
from mire.flow.datastore import Datastore
from mire.flow.local import agreed_row, cache_rel, tier_path
from mire.flow.mark import mark
from mire.flow.place import Place, open_place, staging_dir
from mire.flow.rowtexts import all_texts, texts_of
from mire.flow.transfer import Sent, mtime_text
from mire.model.index import Entry
from mire.model.names import RelPath
from mire.plan.publish import is_due
from mire.plan.threeway import Value, value_of
from mire.wire.export import EXPORT, decode_export
from mire.wire.exporttext import listed, rewritten, rewritten_rows

PUBLISHED: Final = RelPath(EXPORT)
EVERYTHING: Final = "*"
"""Every name that this cache knows; others stay as they are."""
EXACTLY: Final = "="
"""Every name that this cache knows, and no other: it was brought in step with the remote before."""

_DUE: Final = "publish_names"
_STORED: Final = "publish_object"
_ROUNDS: Final = 5
_CHEAP_BYTES: Final = 1 << 20
"""Up to here, some 1,500 rows, the catalog is published with every push."""
_WHOLE_BYTES: Final = 64 << 20
"""Up to here the object is replaced in one request; a larger one is stored in parts."""


def is_published(ds: Datastore, rel: str) -> bool:
    """Whether a path is the catalog that pushes of this datastore compose: no copy of it is ever merged as a file."""
    return ds.sync.is_publishing and rel == PUBLISHED


def due_names(place: Place, changed: Iterable[RelPath] = ()) -> frozenset[str]:
    """The names whose rows are to be published: those of changed paths, and those left from before."""
    if not place.ds.sync.is_publishing:
        return frozenset()
    left = json.loads(place.state.fact(_DUE) or "[]")
    return frozenset((*left, *(name for rel in changed if (name := name_above(rel)) is not None)))


def due_now(place: Place, changed: Iterable[RelPath] = ()) -> frozenset[str]:
    """Those that are to be published by this push."""
    return frozenset() if may_wait(place) else due_names(place, changed)


def may_wait(place: Place) -> bool:
    """Whether publishing is put off: a large catalog after a write takes a twentieth of the time at most."""
    if not place.ds.sync.is_patient:
        return False
    known = json.loads(place.state.fact(_STORED) or "{}")
    age_ms = clock.now_ns() / 1e6 - known.get("storedMs", 0)
    return known.get("size", 0) > _CHEAP_BYTES and not is_due(known.get("costMs", 0), age_ms)


def has_due(ds: Datastore) -> bool:
    """Whether something is left to publish by a push that could not finish."""
    if not ds.sync.is_publishing:
        return False
    with open_place(ds) as place:
        return bool(due_names(place))


def record_due(place: Place, names: frozenset[str]) -> None:
    """Remember what is to be published until that has happened."""
    place.state.set_facts({_DUE: json.dumps(sorted(names)) if names else None})


def ask_for_all(place: Place) -> None:
    """Let the next push publish exactly what this cache knows."""
    record_due(place, frozenset((EXACTLY,)))
    mark(place.ds, cache_rel(place.ds, PUBLISHED))


def leave_for_later(place: Place) -> None:
    """Let the next push publish what this one could not, because others were faster again and again."""
    mark(place.ds, cache_rel(place.ds, PUBLISHED))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    """A published catalog that is replaced: its file, what it holds, and what its object must still be."""

    path: str | None
    value: Value | None
    condition: Condition


def publish(place: Place, listed_as: Entry | None, names: frozenset[str], *, dry_run: bool = False) -> Sent | None:
    """Store the catalog with the rows of these names; what the index is to say of it, None when it says so already.

    `listed_as` is what the index says now.
    """
    if listed_as is None:
        names |= {EVERYTHING}  # nobody published before us
    if not dry_run:
        record_due(place, names)
    began_ms = clock.monotonic_ms()
    directory = staging_dir(place)
    # Who asks for all of it wants it put right, whatever became of what we stored.
    known = None if EXACTLY in names else _base_here(place, listed_as)
    base = known or _fetched(place, directory)
    for _ in range(_ROUNDS):
        temporary, written = _composed(place, base, names, directory)
        try:
            value = Value(size_bytes=written.size_bytes, sha256=written.sha256)
            if listed_as is not None and value_of(listed_as) == value == base.value:
                if not dry_run:
                    _settle(place, temporary, listed_as)
                return None
            if dry_run:
                return _sent(temporary, value, "")
            if base.value == value or _stored(place, base, temporary, value):
                path = tier_path(place.ds, PUBLISHED)
                files.make_dirs(os.path.dirname(path))
                files.move_file(temporary, path)
                _remember(place, value, costMs=clock.monotonic_ms() - began_ms, storedMs=clock.now_ns() / 1e6)
                return _sent(path, value, json.loads(place.state.fact(_STORED) or "{}")["fingerprint"])
        finally:
            staging.discard(temporary)
            if base.path is not None and base.path != tier_path(place.ds, PUBLISHED):
                staging.discard(base.path)
        base = _fetched(place, directory)
    leave_for_later(place)
    return None


def _settle(place: Place, temporary: str, listed_as: Entry) -> None:
    """Agree on what is there already: a copy that we put in place before others were faster is of another value."""
    path = tier_path(place.ds, PUBLISHED)
    files.move_file(temporary, path)
    looked_ns = clock.now_ns()
    place.state.agree([agreed_row(PUBLISHED, listed_as, walk.identity_at(path), looked_ns=looked_ns)])
    record_due(place, frozenset())


def _base_here(place: Place, listed_as: Entry | None) -> _Base | None:
    """The catalog as we stored it, if the index still says so: then nothing has to be brought."""
    if listed_as is None:
        return _Base(path=None, value=None, condition=Absent())
    known = json.loads(place.state.fact(_STORED) or "{}")
    path = tier_path(place.ds, PUBLISHED)
    if known.get("sha256") != listed_as.sha256 or files.size_of(path) != listed_as.size_bytes:
        return None
    if hash_file(path).sha256 != listed_as.sha256:
        return None
    return _Base(path=path, value=value_of(listed_as), condition=Matches(known["fingerprint"]))


def _fetched(place: Place, directory: str) -> _Base:
    """The catalog as it is at the remote, whatever the index says of it."""
    try:
        stream = place.remote.get_stream(PUBLISHED)
        path, written = staging.stage(directory, stream.chunks)
    except NotFoundError:
        return _Base(path=None, value=None, condition=Absent())
    value = Value(size_bytes=written.size_bytes, sha256=written.sha256)
    _remember(place, value, fingerprint=stream.stat.fingerprint)
    return _Base(path=path, value=value, condition=Matches(stream.stat.fingerprint))


def _composed(place: Place, base: _Base, names: frozenset[str], directory: str) -> tuple[str, Written]:
    """The new catalog under a temporary name."""
    if base.path is None or EXACTLY in names:
        return staging.stage(directory, _everything(place.ds))
    replaced = dict(all_texts(place.ds)) if EVERYTHING in names else {}
    replaced |= texts_of(place.ds, [RelPath(name) for name in names if name != EVERYTHING])
    try:
        return staging.stage(directory, rewritten(files.chunks_of(base.path), replaced))
    except FormatError:
        pass
    try:
        rows = decode_export(files.read_file(base.path) or b"", PUBLISHED)
        return staging.stage(directory, rewritten_rows(rows, replaced))
    except FormatError:
        return staging.stage(directory, _everything(place.ds))  # nobody can read what is there


def _everything(ds: Datastore) -> Iterator[bytes]:
    return listed(text for _, texts in all_texts(ds) for text in texts)


def _stored(place: Place, base: _Base, path: str, value: Value) -> bool:
    """Replace the object as it was read; False when it is another by now."""
    if value.size_bytes > _WHOLE_BYTES:
        outcome = place.remote.put_stream_if(PUBLISHED, lambda: files.chunks_of(path), base.condition)
    else:
        token = f"{place.state.epoch}.{clock.new_uuid()}"
        outcome = place.remote.put_if(PUBLISHED, files.read_file(path) or b"", base.condition, token=token)
    match outcome:
        case Stored(fingerprint):
            _remember(place, value, fingerprint=fingerprint)
            return True
        case Refused():
            return False
        case Unknown(error):
            raise error


def _remember(place: Place, value: Value, **facts: str | float) -> None:
    known = json.loads(place.state.fact(_STORED) or "{}")
    place.state.set_facts({_STORED: json.dumps({**known, "sha256": value.sha256, "size": value.size_bytes, **facts})})


def _sent(path: str, value: Value, fingerprint: str) -> Sent:
    looked_ns = clock.now_ns()
    identity = walk.identity_at(path)
    if identity is None:
        raise RemoteError(f"{path} is gone again", transient=True, kind="in_use")
    entry = Entry(
        size_bytes=value.size_bytes,
        last_modified=clock.now_instant(),
        local_mtime=mtime_text(identity.mtime_ns),
        sha256=value.sha256,
    )
    return Sent(entry=entry, identity=identity, looked_ns=looked_ns, fingerprint=fingerprint)
